"""Training steps on the CPU in buffers that are made once, a cache-sized block of samples at a time."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.device import Array
from unrolled.nn.compiler.stages import NotCompilableError, Stage
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer


class HostProgram:
    """See `step.Program`."""

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int, read: Sequence[Stage]) -> None:
        raise NotCompilableError("no program for the CPU yet")

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        raise NotCompilableError("no program for the CPU yet")
