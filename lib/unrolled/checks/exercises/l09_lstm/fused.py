"""All that an LSTM's step does value by value, in one launch: what it gives, and what it may move."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l09_lstm.sequences import GATES, gated
from unrolled.checks.spec import Budget, Inputs, normal
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


def sums(n: int, hidden: int, blocks: int = GATES) -> Inputs:
    """Return draws of what `point_wise` takes, with so many blocks of sums."""
    rows = blocks * hidden
    return {"from_x": normal(n, rows), "from_h": normal(n, rows), "bias": normal(rows), "c": normal(n, hidden)}


def any_sums(rng: np.random.Generator) -> Inputs:
    """Draw sizes of which none divides a block."""
    n, hidden = int(rng.integers(3, 12)), int(rng.integers(5, 60))
    return {name: draw.make(rng) for name, draw in sums(n, hidden).items()}


def side_by_side(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c) where the four gates of a cell are taken to stand side by side."""
    sums = from_x + from_h + bias
    return gated(np.concatenate([sums[:, gate::GATES] for gate in range(GATES)], axis=1), c)


def g_last(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c) where the third block is taken for o and the fourth for g."""
    i, f, g, o = np.split(from_x + from_h + bias, GATES, axis=1)
    return gated(np.concatenate([i, f, o, g], axis=1), c)


def without_last_tanh(sums: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c) where h is o * c."""
    _, new = gated(sums, c)
    return ops.sigmoid(sums[:, 3 * c.shape[1] :]) * new, new


def of_the_old_cell(sums: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c) where h is o * tanh(the c before)."""
    return ops.sigmoid(sums[:, 3 * c.shape[1] :]) * np.tanh(c), gated(sums, c)[1]
