"""Atomic operations: one lane after the other, in an order that nobody may count on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep import access
from unrolled.simgpu.lockstep.arrays import Reach, Region
from unrolled.simgpu.lockstep.lanes import Mask, Value
from unrolled.simgpu.lockstep.state import Run

SLOW = 50
"""How many lanes of another statement one lane of these takes the time of, where results are used."""
_WHOLE = ("int32", "uint32", "uint64")


@dataclass(frozen=True)
class Operation:
    """What an atomic operation makes of a value in memory and its operands; `at` does so for many at once."""

    types: tuple[str, ...]
    function: Callable[..., Any]
    at: Callable[..., Any] | None = None


OPERATIONS = {
    "add": Operation((*_WHOLE, "float32", "float64", "float16"), lambda old, x: old + x, np.add.at),
    "sub": Operation(("int32", "uint32"), lambda old, x: old - x, np.subtract.at),
    "max": Operation(_WHOLE, max, np.maximum.at),
    "min": Operation(_WHOLE, min, np.minimum.at),
    "and": Operation(_WHOLE, lambda old, x: old & x, np.bitwise_and.at),
    "or": Operation(_WHOLE, lambda old, x: old | x, np.bitwise_or.at),
    "xor": Operation(_WHOLE, lambda old, x: old ^ x, np.bitwise_xor.at),
    "exch": Operation((*_WHOLE, "float32"), lambda old, x: x),
    "cas": Operation((*_WHOLE, "uint16"), lambda old, x, y: y if old == x else old),
}
"""By CuPy's name, less `atomic_`."""


def change(
    run: Run, place: Region, operation: Operation, operands: Sequence[Value], mask: Mask, line: int, used: bool
) -> Value:
    """Let each active lane change its value in memory; return the values from before, where they are used."""
    reach = access.change(run, place, mask, line)
    values = [reach.lanes(x) for x in operands]
    order = run.rng.permutation(len(reach.cells))
    if operation.at is not None and not used:
        operation.at(reach.values, reach.cells[order], values[0][order])
        return None
    run.counts.work += SLOW * len(order)
    before = np.zeros(mask.batch.blocks * mask.batch.width, reach.values.dtype)
    picked = reach.mask.picked(reach.rows)
    before[order if picked is None else picked[order]] = _one_by_one(reach, operation.function, values, order)
    return before.reshape(mask.batch.blocks, mask.batch.width)


def _one_by_one(reach: Reach, function: Callable[..., Any], values: Sequence[Any], order: Any) -> list[Any]:
    memory, found = reach.values, []
    for cell, *operands in zip(reach.cells[order], *(x[order] for x in values), strict=True):
        old = memory[cell]
        found.append(old)
        memory[cell] = function(old, *operands)
    return found
