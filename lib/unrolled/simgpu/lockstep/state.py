"""What a batch of blocks has while it runs: clock, shared memory, counts, and the variables of its functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu.kernel_report import LineReport
from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.arrays import Region, Shared
from unrolled.simgpu.lockstep.faults import Fault, KernelFault
from unrolled.simgpu.lockstep.lanes import Batch, Mask, Value, place
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
    working: int = 0
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
    recent: dict[str, list[Any]] = field(default_factory=dict)
    """The sectors that the lanes read from last, by array."""
    working: Any = False
    """Which warps have read or written global memory, shape (blocks or 1, warps)."""
    kernel: Frame = field(init=False)
    """The kernel's own, once it runs: what it returned are the lanes that have left the kernel."""

    def fault(
        self, kind: str, line: int, text: str, lane: tuple[int, int], index: tuple[int, ...] | None = None
    ) -> KernelFault:
        """Return the exception for a finding at a lane, given as (row, thread)."""
        thread = place(lane[1], self.batch.block)
        block = place(int(self.batch.numbers[lane[0]]), self.batch.grid)
        code = Source.code_in(self.sources, line)
        return KernelFault(Fault(kind, line, code, text[: self.limits.text], thread, block, index))

    def step(self, line: int, statements: int, mask: Mask) -> None:
        """Count one turn of a loop. Raises KernelFault where there are too many."""
        self.steps += statements
        self.counts.work += statements * max(self.batch.blocks * self.batch.width, self.limits.least)
        if self.steps > self.limits.steps or self.counts.work > self.limits.work:
            text = f"is still at work after {self.steps:,} steps, the whole launch after {self.counts.work:,}"
            raise self.fault(faults.ENDLESS, line, text, mask.first(True))


class Frame:
    """Variables by name, for the lanes that entered the function.

    A variable that only some lanes have set is in `partial`, with those lanes.
    """

    def __init__(self, run: Run, values: dict[str, Any], entry: Mask) -> None:
        self.run, self.values, self.entry = run, values, entry
        self.partial: dict[str, Mask] = {}
        self.returned = entry.batch.none
        self.result: Any = None
        self.held: Any = None
        """What `x += 1` found in x."""
        self.loops: list[dict[type[ast.stmt], Mask]] = []
        """For each loop, the lanes that `break` and `continue` have sent on."""

    def read(self, name: str, mask: Mask, line: int) -> Any:
        """Return a variable. Raises KernelFault if an active lane has not set it."""
        known = self.partial.get(name)
        if known is not None and not mask.within(known):
            lane = mask.first(~known.lanes)
            raise self.run.fault(faults.UNSET, line, f"reads {name!r}, which it has not set", lane)
        if name not in self.values:
            raise self.run.fault(faults.UNSET, line, f"reads {name!r}, which it has not set", mask.first(True))
        return self.values[name]

    def assign(self, name: str, value: Any, mask: Mask) -> None:
        """Set a variable in the active lanes."""
        if mask.count + self.returned.count == self.entry.count:  # nobody is left who could see another value
            self.values[name] = value
            self.partial.pop(name, None)
            return
        if name not in self.values:
            self.values[name], self.partial[name] = value, mask
            return
        self.values[name] = merged(mask, value, self.values[name])
        known = self.partial.get(name)
        if known is not None and not mask.within(known):
            self.partial[name] = Mask(mask.batch, known.lanes | mask.lanes)

    def give(self, value: Any, mask: Mask) -> None:
        """Leave the function in the active lanes, with its result."""
        if value is not None:
            self.result = value if self.result is None else merged(mask, value, self.result)
        self.returned = self.returned.plus(mask)

    def branch(self, mask: Mask, condition: Value, line: int) -> tuple[Mask, Mask]:
        """Return the lanes for which a condition holds, and the others. Counts it."""
        yes = mask.where(condition)
        counts = self.run.counts.line(line)
        counts.branches += mask.warps
        if np.ndim(condition) and condition.shape[1] > 1:
            counts.divergent += mask.split_warps(yes)
        return yes, mask.less(yes)


def merged(mask: Mask, new: Any, old: Any) -> Any:
    """Return the new value in the active lanes, the old one in all others."""
    if isinstance(new, tuple):
        return tuple(merged(mask, x, y) for x, y in zip(new, old, strict=True))
    if isinstance(new, Region):
        return Region(new.space, merged(mask, new.place, old.place), new.shape, new.steps, new.indices)
    if new is old:
        return new
    return np.where(mask.lanes, new, old)
