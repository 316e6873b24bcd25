"""The lanes of a batch of blocks, and masks of those that are active.

Values of lanes are arrays of shape (blocks, threads). Where all blocks of the batch hold the same, the first axis has
length 1; where all threads of a block do, the second; a number is the same everywhere. NumPy's broadcasting keeps it
so: what depends on `threadIdx` alone is computed once for all blocks. Threads are filled up to whole warps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

WARP = 32
Value = Any
Size = tuple[int, int, int]


def place(number: Any, size: Size) -> tuple[Any, Any, Any]:
    """Return (x, y, z) of a number that counts x first."""
    return number % size[0], number // size[0] % size[1], number // (size[0] * size[1])


@dataclass(frozen=True, eq=False)
class Batch:
    """Blocks that run side by side: their numbers in the grid, the sizes of grid and block."""

    numbers: Any  # int64, shape (blocks,)
    grid: Size
    block: Size

    @cached_property
    def blocks(self) -> int:
        return len(self.numbers)

    @cached_property
    def threads(self) -> int:
        """Threads of a block that exist."""
        return prod(self.block)

    @cached_property
    def width(self) -> int:
        """Threads of a block, filled up to whole warps."""
        return -(-self.threads // WARP) * WARP

    @cached_property
    def thread(self) -> Any:
        """Every thread's number in its block, shape (1, width)."""
        return np.arange(self.width, dtype=np.int64)[None]

    @cached_property
    def row(self) -> Any:
        """Every block's number in the batch, shape (blocks, 1)."""
        return np.arange(self.blocks, dtype=np.int64)[:, None]

    @cached_property
    def all(self) -> Mask:
        """The mask of all threads that exist."""
        return Mask(self, self.thread < self.threads, self.blocks * self.threads)

    @cached_property
    def none(self) -> Mask:
        return Mask(self, np.zeros((1, 1), bool), 0)

    @cached_property
    def indices(self) -> dict[str, tuple[Value, ...]]:
        """threadIdx, blockIdx, blockDim and gridDim as (x, y, z) of uint32."""
        return {
            "threadIdx": self._places(self.thread, self.block),
            "blockIdx": self._places(self.numbers[:, None], self.grid),
            **{name: tuple(map(np.uint32, size)) for name, size in (("blockDim", self.block), ("gridDim", self.grid))},
        }

    @staticmethod
    def _places(numbers: Any, size: Size) -> tuple[Value, ...]:
        """Axes of length 1 have index 0 in all lanes, which a number says more cheaply."""
        axes = zip(place(numbers, size), size, strict=True)
        return tuple(v.astype(np.uint32) if length > 1 else np.uint32(0) for v, length in axes)


class Mask:
    """Which lanes are active: `lanes`, broadcast to (blocks, width), and their count. It never changes."""

    __slots__ = ("__dict__", "batch", "count", "lanes")

    def __init__(self, batch: Batch, lanes: Any, count: int | None = None) -> None:
        self.batch, self.lanes = batch, lanes
        if count is None:
            count = int(np.count_nonzero(lanes)) * (batch.blocks // lanes.shape[0]) * (batch.width // lanes.shape[1])
        self.count = count

    @property
    def full(self) -> bool:
        """Whether all threads that exist are active."""
        return self.count == self.batch.all.count

    def where(self, condition: Value) -> Mask:
        """Return those of the lanes for which the condition, an array or a number of bool, holds."""
        if np.ndim(condition) == 0:
            return self if condition else self.batch.none
        found = Mask(self.batch, self.lanes & condition)
        return self if found.count == self.count else found

    def less(self, other: Mask) -> Mask:
        """Return the lanes without those of a mask that is part of it."""
        if not other.count:
            return self
        return self.batch.none if other.count == self.count else Mask(self.batch, self.lanes & ~other.lanes)

    def plus(self, other: Mask) -> Mask:
        """Return the lanes of both masks, which have none in common."""
        if not other.count or not self.count:
            return self if self.count else other
        count = self.count + other.count
        if count == self.batch.all.count:
            return self.batch.all
        return Mask(self.batch, self.lanes | other.lanes, count)

    def within(self, other: Mask) -> bool:
        """Return whether the other mask has all of these lanes."""
        return self is other or other.full or not (self.lanes & ~other.lanes).any()

    @cached_property
    def spread(self) -> Any:
        """The lanes as an array of one row or one row a block, and of all threads."""
        return np.broadcast_to(self.lanes, (self.lanes.shape[0], self.batch.width))

    @cached_property
    def working(self) -> Any:
        """Which warps have an active lane, shape (blocks or 1, warps)."""
        return self.spread.reshape(len(self.spread), -1, WARP).any(axis=2)

    @cached_property
    def warps(self) -> int:
        """How many warps have an active lane."""
        return int(np.count_nonzero(self.working)) * int(self.batch.blocks // len(self.working))

    def split_warps(self, yes: Mask) -> int:
        """Return how many warps have active lanes on both sides of a condition, which holds in those of `yes`."""
        if not yes.count or yes.count == self.count:
            return 0
        rows = np.broadcast_to(yes.lanes, np.broadcast_shapes(yes.lanes.shape, self.spread.shape))
        true_lanes = rows.reshape(-1, WARP)
        left = np.broadcast_to(self.spread, rows.shape).reshape(-1, WARP) & ~true_lanes
        split = int(np.count_nonzero(true_lanes.any(axis=1) & left.any(axis=1)))
        return split * int(self.batch.blocks // rows.shape[0])

    @cached_property
    def even(self) -> bool:
        """Whether all blocks have the same active threads."""
        return bool(self.lanes.shape[0] == 1)

    def picked(self, rows: int) -> Any:
        """Return the active lanes as places in an array of (rows, width), rows being 1 or all; None: all of them."""
        if self.full and self.batch.width == self.batch.threads:
            return None
        if rows not in self._picked:
            lanes = self.lanes if rows == self.lanes.shape[0] else np.broadcast_to(self.lanes, (rows, self.batch.width))
            self._picked[rows] = np.flatnonzero(lanes)
        return self._picked[rows]

    def active(self, value: Value, rows: int) -> Any:
        """Return what the active lanes of so many rows hold, in one row."""
        array, picked = np.asarray(value), self.picked(rows)
        if not array.ndim:
            return np.full(rows * self.batch.width if picked is None else len(picked), array)
        if array.shape != (rows, self.batch.width):
            array = np.broadcast_to(array, (rows, self.batch.width))
        lanes = array.reshape(-1)
        return lanes if picked is None else lanes[picked]

    @cached_property
    def _picked(self) -> dict[int, Any]:
        return {}

    def first(self, wrong: Any) -> tuple[int, int]:
        """Return (row, thread) of the first active lane for which `wrong` holds, of which there is one."""
        lanes = np.broadcast_to(self.lanes & wrong, (self.batch.blocks, self.batch.width))
        row, thread = np.unravel_index(int(np.argmax(lanes)), lanes.shape)
        return int(row), int(thread)


def value_at(value: Value, row: int, thread: int) -> Any:
    """Return what one lane holds, as a Python number."""
    array = np.asarray(value)
    if not array.ndim:
        return array.item()
    return array[row if array.shape[0] > 1 else 0, thread if array.shape[1] > 1 else 0].item()
