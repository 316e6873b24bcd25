"""What a machine refuses, so that no command takes unbounded time or memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from unrolled.simgpu.lockstep.state import RunLimits


@dataclass(frozen=True)
class MachineLimits:
    """What a machine refuses, so that no command takes unbounded time or memory."""

    elements: int = 2**30
    """Values of one view, and those that one command handles."""
    flops: int = 10**14
    """Floating-point operations of one command."""
    operands: int = 64
    buffers: int = 10**6
    streams: int = 256
    events: int = 10**6
    """CUDA events, and events of one trace."""
    traces: int = 64
    """Traces open at a time."""
    kernels: RunLimits = field(default_factory=RunLimits)
    """Of each launch of a program's own kernel; what its source may hold, `lockstep.source` says."""
    lines: bool = True
    """Whether the program runs in this process, so that its lines can be told."""
