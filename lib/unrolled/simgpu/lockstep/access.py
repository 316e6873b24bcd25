"""What lanes do in memory: all of it comes through here, is checked for bounds, order and races, and counted.

Atomic operations are done one lane after the other, in an order that nobody may count on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.simgpu.kernel_report import SECTOR
from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.arrays import GlobalArray, Reach, Region, Shared
from unrolled.simgpu.lockstep.faults import KernelFault
from unrolled.simgpu.lockstep.lanes import Mask, Value, value_at
from unrolled.simgpu.lockstep.state import Run

RECENT = 2
"""Requests of which a warp finds the sectors in the L1 cache: of two rows that it reads by turns."""
DONE = {"read": "read", "write": "wrote", "atomic": "changed"}
DOES = {"read": "reads", "write": "writes", "atomic": "changes"}


def part(run: Run, view: Region, indices: list[Value], mask: Mask, line: int, does: str) -> Region:
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
                raise _out_of_bounds(run, view, indices, mask, wrong, line, does)
            index = np.where(outside, 0 if not isinstance(view.space, Shared) else -view.place, index)
        inside.append(index if index.ndim else index[()])
    return view.at(inside)


def _out_of_bounds(
    run: Run, view: Region, indices: list[Value], mask: Mask, wrong: Any, line: int, does: str
) -> KernelFault:
    lane = mask.first(wrong)
    at = [value_at(index, *lane) for index in (*view.indices, *indices)]
    if isinstance(view.space, Shared):
        at[-1] += value_at(view.place, *lane)
    index = tuple(map(int, at))
    text = f"{DOES[does]} {view.space.name}[{', '.join(map(str, index))}]; its shape is {view.space.shape}"
    return run.fault(faults.OUT_OF_BOUNDS, line, text, lane, index)


def load(run: Run, element: Region, mask: Mask, line: int) -> Value:
    """Return the lanes' values at a place, which `part` gave."""
    _count(run, element, mask, line, "read")
    if element.space.shadow is not None:
        _noted(run, element, mask, line, "read")
    elif isinstance(element.space, GlobalArray):
        blocks = mask.batch.blocks
        places = element.place if mask.picked(blocks) is None else mask.active(element.place, blocks)
        element.space.fetched[places] = True
    return element.space.take(element.place, mask)


def store(run: Run, element: Region, value: Value, mask: Mask, line: int) -> None:
    """Write the lanes' values to a place, which `part` gave."""
    _count(run, element, mask, line, "write")
    shadow = element.space.shadow
    assert shadow is not None  # the compiler found that the kernel writes
    reach = element.space.reach(element.place, mask, run.clock)
    writes, before, lanes = shadow.record("write"), reach.get(), reach.lanes(value)
    for now in reach.touches():
        _check(run, element, reach, shadow.clashes("write", now), line, "write")
        again = writes.clashes(now)
        if again is not None:  # the same value again does no harm
            again &= reach.differs(before, lanes)
            _check(run, element, reach, ("write", again), line, "write")
        writes.note(now, together=False)
    reach.put(lanes)
    for now in reach.touches():
        lost = writes.who[now.cells] != now.owners
        if lost.any():
            lost &= reach.differs(reach.get(), lanes)
            _check(run, element, reach, ("write", lost), line, "write")


def _noted(run: Run, element: Region, mask: Mask, line: int, does: str) -> Reach:
    """Check and note a read or an atomic operation at a place, and return which cells it touches."""
    shadow = element.space.shadow
    assert shadow is not None
    reach = element.space.reach(element.place, mask, run.clock, each=does == "atomic")
    if isinstance(element.space, Shared):
        _check(run, element, reach, ("", ~shadow.written(reach.cells)), line, does)
    for now in reach.touches():
        _check(run, element, reach, shadow.clashes(does, now), line, does)
        shadow.record(does).note(now, together=True)
    return reach


def _count(run: Run, element: Region, mask: Mask, line: int, what: str) -> None:
    run.steps += run.limits.access
    cost, ideal, nbytes = element.space.traffic(element.place, mask)
    counts = run.counts.line(line)
    if isinstance(element.space, Shared):
        counts.shared, counts.shared_passes = counts.shared + ideal, counts.shared_passes + cost
        return
    run.working = run.working | mask.working
    if what == "read":
        counts.reads += mask.warps
        counts.read_sectors, counts.read_ideal = counts.read_sectors + cost, counts.read_ideal + ideal
        counts.read_bytes += nbytes
        counts.read_again += cost - _fetched(run, element, mask, cost)
    else:
        counts.writes += mask.warps
        counts.write_sectors, counts.write_ideal = counts.write_sectors + cost, counts.write_ideal + ideal
        counts.write_bytes += nbytes


def _fetched(run: Run, element: Region, mask: Mask, cost: int) -> int:
    """How many sectors a read takes from memory: not those from which each thread read one of the `RECENT` before."""
    space = element.space
    sectors = np.asarray(element.place) // max(1, SECTOR // space.data.itemsize)
    before = [known for known in run.recent.get(space.name, []) if known.shape == sectors.shape]
    run.recent[space.name] = [sectors, *before][:RECENT]
    new = mask
    for known in before:
        new = new.where(known != sectors)
    return space.traffic(element.place, new)[0] if new.count < mask.count else cost


def _check(run: Run, element: Region, reach: Reach, found: tuple[str, Any] | None, line: int, does: str) -> None:
    """Raise KernelFault for what was found, if anything: (what was done before, or "" for nothing; in which lanes)."""
    if found is None or not found[1].any():
        return
    before, which = found
    lane = reach.lane(int(np.argmax(which)))
    index = tuple(int(value_at(at, *lane)) for at in element.indices)
    if isinstance(element.space, Shared):
        index = (int(value_at(element.place, *lane)),)
    kind, text = faults.NOT_WRITTEN, "before any thread of the block has written it"
    if before:
        kind, text = faults.RACE, f"which another thread {DONE[before]}, with no barrier between"
    place = f"{element.space.name}[{', '.join(map(str, index))}]"
    raise run.fault(kind, line, f"{DOES[does]} {place}, {text}", lane, index)


# atomic operations

SLOW = 50
"""How many lanes of another statement one lane of these takes the time of, where results are used."""
_WHOLE = ("int32", "uint32", "uint64")


@dataclass(frozen=True)
class Atomic:
    """What an atomic operation makes of a value in memory and its operands; `at` does so for many at once."""

    types: tuple[str, ...]
    function: Callable[..., Any]
    at: Callable[..., Any] | None = None


ATOMICS = {
    "add": Atomic((*_WHOLE, "float32", "float64", "float16"), lambda old, x: old + x, np.add.at),
    "sub": Atomic(("int32", "uint32"), lambda old, x: old - x, np.subtract.at),
    "max": Atomic(_WHOLE, max, np.maximum.at),
    "min": Atomic(_WHOLE, min, np.minimum.at),
    "and": Atomic(_WHOLE, lambda old, x: old & x, np.bitwise_and.at),
    "or": Atomic(_WHOLE, lambda old, x: old | x, np.bitwise_or.at),
    "xor": Atomic(_WHOLE, lambda old, x: old ^ x, np.bitwise_xor.at),
    "exch": Atomic((*_WHOLE, "float32"), lambda old, x: x),
    "cas": Atomic((*_WHOLE, "uint16"), lambda old, x, y: y if old == x else old),
}
"""By CuPy's name, less `atomic_`."""


def change(
    run: Run, place: Region, operation: Atomic, operands: Sequence[Value], mask: Mask, line: int, used: bool
) -> Value:
    """Let each active lane change its value in memory; return the values from before, where they are used."""
    for what in ("read", "write"):
        _count(run, place, mask, line, what)
    reach = _noted(run, place, mask, line, "atomic")
    values = [reach.lanes(x) for x in operands]
    order = run.rng.permutation(len(reach.cells))
    if operation.at is not None and not used:
        operation.at(reach.values, reach.cells[order], values[0][order])
        return None
    run.counts.work += SLOW * len(order)
    before = np.zeros(mask.batch.blocks * mask.batch.width, reach.values.dtype)
    picked = reach.mask.picked(reach.rows)
    found = []
    for cell, *given in zip(reach.cells[order], *(x[order] for x in values), strict=True):
        old = reach.values[cell]
        found.append(old)
        reach.values[cell] = operation.function(old, *given)
    before[order if picked is None else picked[order]] = found
    return before.reshape(mask.batch.blocks, mask.batch.width)
