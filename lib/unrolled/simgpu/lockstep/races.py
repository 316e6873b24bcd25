"""Who touched which value when: two threads at one address without a barrier between, where one writes, are a race.

Time is a count of barriers. An access is ordered after an earlier one if both are of one thread, if a barrier of their
block lies between, or, within a warp, a `syncwarp`. Blocks of one launch are never ordered. Atomic operations do not
race with each other. Threads that write one and the same value do no harm, and are no race.

An owner is a number: `block * SPAN + thread`. Where several threads read, it is that of their warp (width + warp) or of
their block (width + warps); several blocks are `BLOCKS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep.lanes import WARP, Batch, Mask

BLOCKS = 2**62
NOBODY = -1


class Clock:
    """Counts barriers of a batch: `since` is the last one of each block, `warps` that of each warp (None: never)."""

    def __init__(self, batch: Batch, tick: int) -> None:
        self.batch, self.tick = batch, tick
        self.since: Any = tick  # a number, or one for each block, shape (blocks, 1)
        self.warps: Any = None  # shape (blocks or 1, warps)

    def barrier(self, mask: Mask) -> None:
        """Note a barrier that all threads of the blocks in the mask have reached."""
        self.tick += 1
        if mask.even:
            self.since = self.tick
        else:
            self.since = np.where(mask.spread.any(axis=1, keepdims=True), self.tick, self.since)

    @property
    def even(self) -> bool:
        """Whether all blocks have met the same barriers."""
        return np.ndim(self.since) == 0 and (self.warps is None or len(self.warps) == 1)

    def warp_barrier(self, mask: Mask) -> None:
        """Note a barrier that all threads of the warps in the mask have reached."""
        self.tick += 1
        if self.warps is None:
            self.warps = np.full((1, self.batch.width // WARP), self.tick - 1, np.int64)
        met = mask.spread.reshape(mask.spread.shape[0], -1, WARP).any(axis=2)
        self.warps = np.where(met, self.tick, self.warps)


@dataclass(frozen=True, eq=False)
class Accesses:
    """Accesses of active lanes: the cell of each, its owner, its block's and its warp's last barrier."""

    cells: Any
    owners: Any
    since: Any
    warp_since: Any  # None while the kernel has met no syncwarp
    tick: int
    width: int

    @property
    def span(self) -> int:
        return self.width + self.width // WARP + 1

    def warp(self, owners: Any) -> Any:
        """The warp of owners, -1 for a whole block's."""
        part = owners % self.span
        return np.where(part < self.width, part // WARP, np.where(part == self.span - 1, -1, part - self.width))


def accesses(mask: Mask, clock: Clock, cells: Any, rows: int, blocks: Any = 0) -> Accesses:
    """Return the accesses of the mask's lanes to these cells, one each. blocks: their numbers, where they matter."""
    width = mask.batch.width
    owners = mask.active(np.asarray(blocks) * (width + width // WARP + 1) + mask.batch.thread, rows)
    since = clock.since if np.ndim(clock.since) == 0 else mask.active(clock.since, rows)
    warps = None if clock.warps is None else mask.active(np.repeat(clock.warps, WARP, axis=1), rows)
    return Accesses(cells, owners, since, warps, clock.tick, width)


class Record:
    """Who did one kind of access (read, write, atomic) last, for each cell, and when."""

    def __init__(self, cells: int) -> None:
        self.who = np.full(cells, NOBODY, np.int64)
        self.when = np.zeros(cells, np.int64)

    def repeat(self, times: int) -> None:
        """Give each of so many blocks cells of its own, with what this one has."""
        self.who, self.when = np.tile(self.who, times), np.tile(self.when, times)

    def clashes(self, now: Accesses) -> Any:
        """Return which of the accesses are not ordered after this record's by another thread; None for none of them."""
        before = self.who[now.cells]
        suspect = (before != now.owners) & (before != NOBODY)
        if not suspect.any():
            return None
        found = suspect & ~self._ordered(before, now)
        return found if found.any() else None

    def note(self, now: Accesses, together: bool) -> None:
        """Note the accesses. together: keep those before that are not ordered; else the last one stands for all."""
        mine = now.owners
        if together:
            before = self.who[now.cells]
            alone = (before == NOBODY) | (before == mine) | self._ordered(before, now)
            mine = np.where(alone, mine, _merged(before, mine, now))
        self.who[now.cells] = mine
        self.when[now.cells] = now.tick
        if together:
            last = self.who[now.cells]
            others = last != mine
            if others.any():
                np.maximum.at(
                    self.who, now.cells[others], _merged(last[others], np.broadcast_to(mine, others.shape)[others], now)
                )

    def _ordered(self, before: Any, now: Accesses) -> Any:
        """Whether a barrier lies between the record, whose owners are given, and the accesses."""
        when = self.when[now.cells]
        same_block = before // now.span == now.owners // now.span
        ordered = when < now.since
        if now.warp_since is not None:
            ordered = ordered | ((when < now.warp_since) & (now.warp(before) == now.warp(now.owners)))
        return same_block & ordered


def _merged(one: Any, other: Any, now: Accesses) -> Any:
    """The owner that stands for both."""
    block, span = other // now.span, now.span
    warp = now.warp(other)
    wider = np.where((now.warp(one) == warp) & (warp >= 0), now.width + warp, span - 1)
    merged = np.where(one // span == block, block * span + wider, BLOCKS)
    return np.where(one == other, one, merged)


class Shadow:
    """The records of one memory: who read, who wrote, who did atomic operations. Made as they are needed."""

    def __init__(self, cells: int) -> None:
        self.cells = cells
        self.records: dict[str, Record] = {}

    def record(self, kind: str) -> Record:
        if kind not in self.records:
            self.records[kind] = Record(self.cells)
        return self.records[kind]

    def repeat(self, times: int) -> None:
        self.cells *= times
        for record in self.records.values():
            record.repeat(times)

    def clashes(self, kind: str, now: Accesses) -> tuple[str, Any] | None:
        """Return (what was done before, which accesses clash with it) for an access of this kind, or None."""
        for other in {"read": ("write", "atomic"), "write": ("read", "atomic"), "atomic": ("read", "write")}[kind]:
            found = self.records[other].clashes(now) if other in self.records else None
            if found is not None:
                return other, found
        return None

    def touched(self) -> dict[str, Any]:
        """Return which cells the kernel touched, by what it did: "read", "write", "atomic"."""
        return {kind: record.who != NOBODY for kind, record in self.records.items()}

    def written(self, cells: Any) -> Any:
        """Return which of the cells hold what the kernel wrote."""
        found = np.zeros(np.shape(cells), bool)
        for kind in ("write", "atomic"):
            if kind in self.records:
                found |= self.records[kind].who[cells] != NOBODY
        return found
