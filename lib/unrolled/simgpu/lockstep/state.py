"""What a batch of blocks has while it runs: its clock, its shared memory, what is counted, and how faults are named."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu.kernel_report import SECTOR, LineReport
from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.faults import Fault, KernelFault
from unrolled.simgpu.lockstep.lanes import Batch, Mask, Value, value_at
from unrolled.simgpu.lockstep.memory import Reach, Shared, View
from unrolled.simgpu.lockstep.races import Clock
from unrolled.simgpu.lockstep.source import Source

DONE = {"read": "read", "write": "wrote", "atomic": "changed"}
DOES = {"read": "reads", "write": "writes", "atomic": "changes"}


@dataclass(frozen=True)
class RunLimits:
    """What ends a kernel that would run for ever, or too long."""

    steps: int = 100_000
    """Statements that one batch of blocks executes in loops."""
    work: int = 6 * 10**9
    """Statements times threads, in the whole launch. No batch counts for less than `least` threads."""
    least: int = 4096
    threads: int = 2**27
    """Those of one launch."""
    lanes: int = 2**16
    """Threads that run side by side."""
    shared: int = 2**22
    """Bytes of shared memory of the blocks that run side by side."""


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
        return KernelFault(Fault(kind, line, code, text, thread, block, index))

    def step(self, line: int, statements: int, mask: Mask) -> None:
        """Count one turn of a loop. Raises KernelFault where there are too many."""
        self.steps += statements
        self.counts.work += statements * max(self.batch.blocks * self.batch.width, self.limits.least)
        if self.steps > self.limits.steps or self.counts.work > self.limits.work:
            text = f"is still at work after {self.steps:,} statements, the whole launch after {self.counts.work:,}"
            raise self.fault(faults.ENDLESS, line, text, mask.first(True))

    # memory

    def part(self, view: View, indices: list[Value], mask: Mask, line: int, does: str) -> View:
        """Return the part of a view that indices name. Raises KernelFault where one is out of bounds."""
        inside: list[Value] = []
        for axis, index in enumerate(indices):
            index, length = np.asarray(index).astype(np.int64), view.shape[axis]
            outside = (index < 0) | (index >= length)
            if isinstance(view.space, Shared):
                start = view.place + index
                outside = (start < 0) | (start >= length)
            if outside.any():
                wrong = outside & mask.lanes
                if wrong.any():
                    raise self._out_of_bounds(view, indices, mask, wrong, line, does)
                index = np.where(outside, 0 if not isinstance(view.space, Shared) else -view.place, index)
            inside.append(index if index.ndim else index[()])
        return view.at(inside)

    def _out_of_bounds(
        self, view: View, indices: list[Value], mask: Mask, wrong: Any, line: int, does: str
    ) -> KernelFault:
        lane = mask.first(wrong)
        at = [value_at(index, *lane) for index in (*view.indices, *indices)]
        if isinstance(view.space, Shared):
            at[-1] += value_at(view.place, *lane)
        index = tuple(map(int, at))
        text = f"{DOES[does]} {view.space.name}[{', '.join(map(str, index))}]; its shape is {view.space.shape}"
        return self.fault(faults.OUT_OF_BOUNDS, line, text, lane, index)

    def load(self, element: View, mask: Mask, line: int) -> Value:
        """Return the lanes' values at a place, which `part` gave."""
        self._count(element, mask, line, "read")
        space, shadow = element.space, element.space.shadow
        if shadow is not None:
            reach = space.reach(element.place, mask, self.clock)
            self._check_written(element, reach, line, "read")
            for now in reach.touches():
                self._check(element, reach, shadow.clashes("read", now), line, "read")
                shadow.record("read").note(now, together=True)
        return space.take(element.place, mask)

    def store(self, element: View, value: Value, mask: Mask, line: int) -> None:
        """Write the lanes' values to a place, which `part` gave."""
        self._count(element, mask, line, "write")
        shadow = element.space.shadow
        assert shadow is not None  # the compiler found that the kernel writes
        reach = element.space.reach(element.place, mask, self.clock)
        writes, before, lanes = shadow.record("write"), reach.get(), reach.lanes(value)
        for now in reach.touches():
            self._check(element, reach, shadow.clashes("write", now), line, "write")
            again = writes.clashes(now)
            if again is not None:  # the same value again does no harm
                again &= reach.differs(before, lanes)
                self._check(element, reach, ("write", again) if again.any() else None, line, "write")
            writes.note(now, together=False)
        reach.put(lanes)
        for now in reach.touches():
            lost = writes.who[now.cells] != now.owners
            if lost.any():
                lost &= reach.differs(reach.get(), lanes)
                self._check(element, reach, ("write", lost) if lost.any() else None, line, "write")

    def change(self, element: View, mask: Mask, line: int) -> Reach:
        """Note an atomic operation at a place, and return which cells to change."""
        self._count(element, mask, line, "read")
        self._count(element, mask, line, "write")
        shadow = element.space.shadow
        assert shadow is not None
        reach = element.space.reach(element.place, mask, self.clock, each=True)
        self._check_written(element, reach, line, "atomic")
        for now in reach.touches():
            self._check(element, reach, shadow.clashes("atomic", now), line, "atomic")
            shadow.record("atomic").note(now, together=True)
        return reach

    def _count(self, element: View, mask: Mask, line: int, what: str) -> None:
        cost, ideal = element.space.traffic(element.place, mask)
        counts = self.counts.line(line)
        if isinstance(element.space, Shared):
            counts.shared, counts.shared_passes = counts.shared + ideal, counts.shared_passes + cost
        elif what == "read":
            counts.reads += mask.warps
            counts.read_sectors, counts.read_ideal = counts.read_sectors + cost, counts.read_ideal + ideal
            counts.read_again += cost - self._fetched(element, mask, line, cost)
        else:
            counts.writes += mask.warps
            counts.write_sectors, counts.write_ideal = counts.write_sectors + cost, counts.write_ideal + ideal

    def _fetched(self, element: View, mask: Mask, line: int, cost: int) -> int:
        """How many sectors a read takes from memory: not those that each thread read from at this line just before."""
        space, key = element.space, (line, element.space.name)
        sectors = np.asarray(element.place) // max(1, SECTOR // space.data.itemsize)
        before, self.recent[key] = self.recent.get(key), sectors
        if before is None or before.shape != sectors.shape:
            return cost
        new = mask.where(before != sectors)
        return space.traffic(element.place, new)[0] if new.count < mask.count else cost

    def _check_written(self, element: View, reach: Reach, line: int, does: str) -> None:
        """Raise KernelFault where shared memory is read that no thread of the block has written."""
        if isinstance(element.space, Shared):
            missing = ~element.space.shadow.written(reach.cells)
            if missing.any():
                text = "before any thread of the block has written it"
                raise self._finding(faults.NOT_WRITTEN, element, reach, missing, line, text, does)

    def _check(self, element: View, reach: Reach, found: tuple[str, Any] | None, line: int, does: str) -> None:
        """Raise KernelFault for a race, if one was found."""
        if found is None:
            return
        before, clashing = found
        text = f"which another thread {DONE[before]}, with no barrier between"
        raise self._finding(faults.RACE, element, reach, clashing, line, text, does)

    def _finding(
        self, kind: str, element: View, reach: Reach, which: Any, line: int, text: str, does: str
    ) -> KernelFault:
        lane = reach.lane(int(np.argmax(which)))
        index = tuple(int(value_at(at, *lane)) for at in element.indices)
        if isinstance(element.space, Shared):
            index = (int(value_at(element.place, *lane)),)
        place = f"{element.space.name}[{', '.join(map(str, index))}]"
        return self.fault(kind, line, f"{DOES[does]} {place}, {text}", lane, index)
