"""Global arrays and shared memory as lanes see them: a place for each lane, and what a request of a warp costs.

That is sectors of 32 bytes of global memory, and passes of the banks of shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unrolled.simgpu.kernel_report import SECTOR
from unrolled.simgpu.lockstep.lanes import WARP, Batch, Mask, Value
from unrolled.simgpu.lockstep.races import Accesses, Clock, Shadow, accesses

BANKS = 32
BANK_WIDTH = 4
"""Bytes of one bank; a value of 8 bytes takes two, and half a warp at a time."""


@dataclass(frozen=True, eq=False)
class Reach:
    """The cells that active lanes touch, as places in `values`; `rows` of lanes stand for all blocks, or for one."""

    values: Any  # the memory, cells along the last axis
    cells: Any
    rows: int
    mask: Mask
    accesses: Accesses
    unit: int = 1
    """Cells of the shadow that one value covers."""

    def get(self) -> Any:
        return self.values[..., self.cells]

    def put(self, lanes: Any) -> None:
        """Write the lanes' values, as `lanes` gave them."""
        self.values[..., self.cells] = lanes

    def lanes(self, value: Value) -> Any:
        """Return the active lanes' values, in the memory's dtype and in the shape of `get`."""
        value = np.asarray(value).astype(self.values.dtype)
        if self.values.ndim == 1 or value.ndim == 0 or len(value) == 1:
            return self.mask.active(value, self.rows)
        picked = self.mask.picked(1)  # every block its own values, at the same cells
        value = np.broadcast_to(value, (len(value), self.mask.batch.width))
        return value if picked is None else value[:, picked]

    def differs(self, one: Any, other: Any) -> Any:
        """Return for which lanes two of these arrays differ, in any block."""
        found = (one != other) & ~((one != one) & (other != other))  # NaN is NaN
        return found.any(axis=0) if found.ndim == 2 else found

    def touches(self) -> list[Accesses]:
        """Return the accesses to the shadow's cells: several for each lane where values of other sizes lie there."""
        now, unit = self.accesses, self.unit
        if unit == 1:
            return [now]
        rest = (now.owners, now.since, now.warp_since, now.tick, now.width)
        return [Accesses(now.cells * unit + part, *rest) for part in range(unit)]

    def lane(self, number: int) -> tuple[int, int]:
        """Return (row, thread) of an active lane, by its number among them."""
        picked = self.mask.picked(self.rows)
        place = number if picked is None else int(picked[number])
        return divmod(place, self.mask.batch.width)


@dataclass(eq=False)
class GlobalArray:
    """An array argument: `data` is all of its buffer as values of its dtype, `start` and `steps` count in values.

    Its methods, and those of `Shared`, take the place of each lane and the active lanes.
    """

    name: str
    data: Any
    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    buffer: int = 0
    shadow: Shadow | None = None
    """None where nothing is written, so that no race can be."""
    unit: int = 1
    fetched: Any = None
    """Which values were read, where there is no shadow to tell it."""

    def take(self, places: Value, mask: Mask) -> Value:
        """Return the values at each lane's place; anything for idle lanes."""
        return self.data[places] if np.ndim(places) == 0 else self.data.take(places)

    def reach(self, places: Value, mask: Mask, clock: Clock, each: bool = False) -> Reach:
        """Return the active lanes' cells. each: of every block by itself, even where all touch the same."""
        rows = mask.batch.blocks
        cells = mask.active(places, rows)
        now = accesses(mask, clock, cells, rows, mask.batch.numbers[:, None])
        return Reach(self.data, cells, rows, mask, now, self.unit)

    def traffic(self, places: Value, mask: Mask) -> tuple[int, int, int]:
        """Return (what the request costs, what it would cost at best, the bytes of its values)."""
        return sectors(places, mask, self.data.itemsize)


@dataclass(eq=False)
class Shared:
    """One array in shared memory, of each block of a batch.

    While all blocks touch it at the same places, one shadow stands for all of them.
    """

    name: str
    data: Any  # shape (blocks, size)
    shape: tuple[int, ...]
    shadow: Shadow
    alone: bool = False
    """Whether every block has a shadow of its own."""
    start: ClassVar[int] = 0
    steps: ClassVar[tuple[int, ...]] = (1,)

    @classmethod
    def of(cls, name: str, dtype: Any, size: int, batch: Batch) -> Shared:
        return cls(name, np.zeros((batch.blocks, size), dtype), (size,), Shadow(size))

    def take(self, places: Value, mask: Mask) -> Value:
        if np.ndim(places) == 0:
            return self.data[:, int(places)][:, None].copy()  # what is in a register stays when memory changes
        if len(places) == 1:
            return self.data.take(places[0], axis=1)
        return self.data.reshape(-1).take(mask.batch.row * self.shape[0] + places)

    def reach(self, places: Value, mask: Mask, clock: Clock, each: bool = False) -> Reach:
        even = not each and mask.even and clock.even and (np.ndim(places) == 0 or len(places) == 1)
        blocks = mask.batch.blocks
        if blocks > 1 and not self.alone and not even:
            self.alone = True
            self.shadow.repeat(blocks)
        if self.alone or each:
            cells = mask.active(mask.batch.row * self.shape[0] + places, blocks)
            return Reach(self.data.reshape(-1), cells, blocks, mask, accesses(mask, clock, cells, blocks))
        cells = mask.active(places, 1)
        return Reach(self.data, cells, 1, mask, accesses(mask, clock, cells, 1))

    def traffic(self, places: Value, mask: Mask) -> tuple[int, int, int]:
        return *passes(places, mask, self.data.itemsize), 0


@dataclass(frozen=True, eq=False)
class Region:
    """An array or a part of one in a kernel: each lane's place of its first value, and the axes that are left.

    `indices` are those that led here. A pointer into shared memory is a view that begins at its offset.
    """

    space: GlobalArray | Shared
    place: Value
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    indices: tuple[Value, ...] = ()

    @classmethod
    def of(cls, space: GlobalArray | Shared) -> Region:
        return cls(space, np.int64(space.start), space.shape, space.steps)

    def at(self, indices: Sequence[Value]) -> Region:
        """Return the part that the lanes' indices name. They are checked before, and idle lanes' may be anything."""
        place = self.place
        for index, step in zip(indices, self.steps, strict=False):
            place = place + index * np.int64(step)
        used = len(indices)
        return Region(self.space, place, self.shape[used:], self.steps[used:], (*self.indices, *indices))

    def moved(self, offset: Value) -> Region:
        """Return a pointer so many values further."""
        return Region(self.space, self.place + offset, self.shape, self.steps)


def sectors(elements: Value, mask: Mask, itemsize: int) -> tuple[int, int, int]:
    """Return (sectors that the active lanes of all warps touch, sectors that would hold their values, their bytes).

    elements: each lane's place, in values of `itemsize` bytes from the beginning of the memory.
    """
    if np.ndim(elements) == 0 or elements.shape[1] == 1:
        return mask.warps, mask.warps, mask.warps * itemsize
    rows, idle, times = _rows(elements, mask, WARP)
    steps = np.diff(rows, axis=1)
    if (steps < 0).any():
        rows = np.sort(rows, axis=1)
        steps = np.diff(rows, axis=1)
    values = 1 + np.count_nonzero(steps, axis=1) - idle
    places = rows // (SECTOR // itemsize) if itemsize < SECTOR else rows  # -1 stays -1
    touched = 1 + np.count_nonzero(np.diff(places, axis=1), axis=1) - idle
    ideal = -(-values * itemsize // SECTOR)
    return int(touched.sum()) * times, int(ideal.sum()) * times, int(np.sum(values)) * itemsize * times


def passes(elements: Value, mask: Mask, itemsize: int) -> tuple[int, int]:
    """Return (passes that shared memory takes for the active lanes of all warps, passes without conflicts).

    Lanes that read one word share a pass; different words of one bank take one each.
    """
    if np.ndim(elements) == 0 or elements.shape[1] == 1:
        return mask.warps, mask.warps
    width = max(BANK_WIDTH, itemsize)
    banks = BANKS * BANK_WIDTH // width
    rows, _, times = _rows(elements, mask, banks)
    words = np.sort(rows * itemsize // width if itemsize < width else rows, axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    group = np.arange(len(words))[:, None] * banks + words % banks
    counts = np.bincount(group[new], minlength=banks * len(words)).reshape(-1, banks)
    return int(counts.max(axis=1).sum()) * times, int(np.count_nonzero(new.any(axis=1))) * times


def _rows(elements: Value, mask: Mask, size: int) -> tuple[Any, Any, int]:
    """Places in rows of lanes, -1 for idle ones; which rows have idle ones; how many blocks a row stands for."""
    batch, array = mask.batch, np.asarray(elements)
    places = np.broadcast_to(array, (array.shape[0] if array.ndim else 1, batch.width))
    if mask.full and batch.width == batch.threads:
        return places.reshape(-1, size), 0, batch.blocks // places.shape[0]
    places = np.where(mask.lanes, places, -1)
    rows = places.reshape(-1, size)
    return rows, (rows < 0).any(axis=1), batch.blocks // places.shape[0]
