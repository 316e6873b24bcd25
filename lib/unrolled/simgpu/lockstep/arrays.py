"""Global arrays and shared memory as lanes see them: a place for each lane, checked before it is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep import traffic
from unrolled.simgpu.lockstep.lanes import Batch, Mask, Value
from unrolled.simgpu.lockstep.races import Accesses, Clock, Shadow, accesses


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

    def take(self, places: Value, mask: Mask) -> Value:
        """Return the values at each lane's place; anything for idle lanes."""
        return self.data[places] if np.ndim(places) == 0 else self.data.take(places)

    def reach(self, places: Value, mask: Mask, clock: Clock, each: bool = False) -> Reach:
        """Return the active lanes' cells. each: of every block by itself, even where all touch the same."""
        rows = mask.batch.blocks
        cells = mask.active(places, rows)
        now = accesses(mask, clock, cells, rows, mask.batch.numbers[:, None])
        return Reach(self.data, cells, rows, mask, now, self.unit)

    def traffic(self, places: Value, mask: Mask) -> tuple[int, int]:
        """Return (what the request costs, what it would cost at best)."""
        return traffic.sectors(places, mask, self.data.itemsize)


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

    @classmethod
    def of(cls, name: str, dtype: Any, size: int, batch: Batch) -> Shared:
        return cls(name, np.zeros((batch.blocks, size), dtype), (size,), Shadow(size))

    @property
    def size(self) -> int:
        return self.shape[0]

    def take(self, places: Value, mask: Mask) -> Value:
        if np.ndim(places) == 0:
            return self.data[:, int(places)][:, None].copy()  # what is in a register stays when memory changes
        if len(places) == 1:
            return self.data.take(places[0], axis=1)
        return self.data.reshape(-1).take(mask.batch.row * self.size + places)

    def reach(self, places: Value, mask: Mask, clock: Clock, each: bool = False) -> Reach:
        even = not each and mask.even and clock.even and (np.ndim(places) == 0 or len(places) == 1)
        blocks = mask.batch.blocks
        if blocks > 1 and not self.alone and not even:
            self.alone = True
            self.shadow.repeat(blocks)
        if self.alone or each:
            cells = mask.active(mask.batch.row * self.size + places, blocks)
            return Reach(self.data.reshape(-1), cells, blocks, mask, accesses(mask, clock, cells, blocks))
        cells = mask.active(places, 1)
        return Reach(self.data, cells, 1, mask, accesses(mask, clock, cells, 1))

    def traffic(self, places: Value, mask: Mask) -> tuple[int, int]:
        return traffic.passes(places, mask, self.data.itemsize)


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
        if isinstance(space, Shared):
            return cls(space, np.int64(0), space.shape, (1,))
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
