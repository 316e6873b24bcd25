"""All that an LSTM's step does value by value, in one launch: what it gives, and what it may move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l09_lstm.sequences import GATES, cell, gated
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Inputs, normal, sized
from unrolled.device import Array

MORE = 1.1  # times the fewest bytes: a block at the end may share a sector with another
FLOAT = 4


def point_wise(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return the new (h, c), both (N, H), from two sums (N, 4 * H), the bias (4 * H,) and the c before."""
    return gated(from_x + from_h + bias, c)


def one_by_one(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return what `point_wise` does, with a launch for each operation and each gate: a baseline for speed."""
    size = c.shape[1]
    parts = [slice(k * size, (k + 1) * size) for k in range(GATES)]
    i, f, g, o = (from_x[:, part] + from_h[:, part] + bias[part] for part in parts)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def read(inputs: Inputs) -> float:
    """Return the bytes that a step reads: both sums, c, and the bias for each sample, since each warp asks for it."""
    return MORE * FLOAT * float(inputs["c"].size) * (3 * GATES + 1)


def written(inputs: Inputs) -> float:
    """Return the bytes of h and c."""
    return MORE * FLOAT * 2 * float(inputs["c"].size)


ONCE = Budget(launches=1, own=1, float64=0, read_sectors=MORE, bytes_read=read, bytes_written=written)
ODD = Budget(launches=1, own=1, float64=0)  # rows begin inside of sectors, so bytes say little


def sums(n: int, hidden: int) -> Inputs:
    """Return draws of what `point_wise` takes."""
    rows = GATES * hidden
    return {"from_x": normal(n, rows), "from_h": normal(n, rows), "bias": normal(rows), "c": normal(n, hidden)}


any_sums = sized(sums, (3, 5), (12, 60))  # of which none divides a block


def _of_sums(says: str, change: Callable[[Array], Array] = np.asarray, **changes: Any) -> Mistake:
    """Return the mistake of other sums, or of a cell with these changes."""
    return Mistake(says, lambda from_x, from_h, bias, c: cell(change(from_x + from_h + bias), c, **changes))


MISTAKES = (
    result("you return c before h: h comes first", lambda y: (y[1], y[0])),
    _of_sums(
        "the gates are in the order i, f, o, g: the third block is g, the fourth o",
        lambda sums: np.concatenate([np.split(sums, GATES, axis=1)[k] for k in (0, 1, 3, 2)], axis=1),
    ),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given(
        "each gate has a bias of its own: bias[unit] belongs to i, bias[unit + hidden] to f, and so on",
        bias=lambda bias: np.tile(bias[: len(bias) // GATES], GATES),
    ),
    given("from_h has no part in it: both sums are added", from_h=lambda from_h: 0 * from_h),
    given("what c held has no part in it: c is f * c + i * g", c=lambda c: 0 * c),
    _of_sums(
        "the four gates of a unit stand in blocks, hidden columns apart, and not side by side",
        lambda sums: np.concatenate([sums[:, gate::GATES] for gate in range(GATES)], axis=1),
    ),
    _of_sums("a tanh is missing: h is o * tanh(c)", out_by=np.asarray),
    _of_sums("h is made of the old c: first the new c, then h from it", old=True),
)
