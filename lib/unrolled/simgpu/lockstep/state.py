"""What a batch of blocks has while it runs: its clock, its shared memory, what is counted, and how faults are named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu.kernel_report import LineReport
from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.arrays import Shared
from unrolled.simgpu.lockstep.faults import Fault, KernelFault
from unrolled.simgpu.lockstep.lanes import Batch, Mask
from unrolled.simgpu.lockstep.races import Clock
from unrolled.simgpu.lockstep.source import Source


@dataclass(frozen=True)
class RunLimits:
    """What ends a kernel that would run for ever, or too long."""

    steps: int = 100_000
    """Statements that one batch of blocks executes in loops, and what it does in memory."""
    access: int = 4
    """How many more steps a read or a write takes: an endless loop around one is given up within seconds, too."""
    work: int = 6 * 10**9
    """Statements times threads, in the whole launch. No batch counts for less than `least` threads."""
    least: int = 4096
    threads: int = 2**27
    """Those of one launch."""
    lanes: int = 2**16
    """Threads that run side by side."""
    cells: int = 2**27
    """Values of arrays that a kernel writes: of each is kept who touched it, in up to 48 bytes."""
    shared: int = 2**22
    """Bytes of shared memory of the blocks that run side by side."""
    text: int = 500
    """Characters of a finding, which may hold long names."""


@dataclass(eq=False)
class Counts:
    """What is counted over the whole launch."""

    lines: dict[int, LineReport] = field(default_factory=dict)
    barriers: int = 0
    work: int = 0

    def line(self, number: int) -> LineReport:
        return self.lines.setdefault(number, LineReport(number))


@dataclass(eq=False)
class Run:
    """One batch while it runs."""

    batch: Batch
    sources: list[Source]
    counts: Counts
    clock: Clock
    limits: RunLimits
    rng: np.random.Generator
    shared: dict[int, Shared] = field(default_factory=dict)
    steps: int = 0
    recent: dict[tuple[int, str], Any] = field(default_factory=dict)
    """The sectors that the lanes read from last, by line and array."""
    kernel: Any = None
    """The kernel's own frame, once it runs."""

    @property
    def left(self) -> Mask:
        """The lanes that have left the kernel."""
        found: Mask = self.kernel.returned
        return found

    def fault(
        self, kind: str, line: int, text: str, lane: tuple[int, int] | None = None, index: tuple[int, ...] | None = None
    ) -> KernelFault:
        """Return the exception for a finding at a lane, given as (row, thread)."""
        thread = None if lane is None else self.batch.thread_at(lane[1])
        block = None if lane is None else self.batch.block_at(lane[0])
        code = next(filter(None, (source.code(line) for source in self.sources)), "")
        return KernelFault(Fault(kind, line, code, text[: self.limits.text], thread, block, index))

    def step(self, line: int, statements: int, mask: Mask) -> None:
        """Count one turn of a loop. Raises KernelFault where there are too many."""
        self.steps += statements
        self.counts.work += statements * max(self.batch.blocks * self.batch.width, self.limits.least)
        if self.steps > self.limits.steps or self.counts.work > self.limits.work:
            text = f"is still at work after {self.steps:,} steps, the whole launch after {self.counts.work:,}"
            raise self.fault(faults.ENDLESS, line, text, mask.first(True))
