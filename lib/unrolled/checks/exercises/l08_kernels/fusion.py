"""Bias, ReLU and max-pooling in one pass: what it gives, what it may move, and what goes wrong in it."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Inputs
from unrolled.device import Array

SECTORS = 1.1  # times the fewest: a few more than needed may come from rows that begin inside of a sector
POOLED = 2  # the window


def bias_relu_pool(x: Array, bias: Array) -> tuple[Array, Array]:
    """Return (the largest of each window of relu(x + bias), where it lies: row * W + column, int64)."""
    return _pooled(ops.relu(x + bias.reshape(-1, 1, 1)))


def traffic(inputs: Inputs) -> float:
    """Return the bytes of one read of the inputs.

    Where rows of windows do not begin at a sector, what a warp reads of a row of x may begin and end inside of one. A
    row of windows lies on two rows of x, and is cut where a warp ends.
    """
    x = inputs["x"]
    n, c, h, w = x.shape
    warps = -(-n * c * (h // POOLED) * (w // POOLED) // 32)
    ends = 0 if w % 16 == 0 else 2 * POOLED * (n * c * (h // POOLED) + warps)
    return SECTORS * float(x.nbytes + inputs["bias"].nbytes) + 32.0 * ends


def results(inputs: Inputs) -> float:
    """Return the bytes of one write of the results: the values, and an int64 each for the places."""
    x = inputs["x"]
    outputs = x.shape[0] * x.shape[1] * (x.shape[2] // POOLED) * (x.shape[3] // POOLED)
    return SECTORS * float(outputs * (x.dtype.itemsize + 8))


FUSED = Budget(launches=1, own=1, bytes_read=traffic, bytes_written=results)


def any_maps(rng: np.random.Generator) -> Inputs:
    """Draw maps of any height, with ties; some are a multiple of 16 wide, so that rows of windows begin at sectors."""
    n, c, h, w = int(rng.integers(1, 3)), int(rng.integers(2, 5)), int(rng.integers(10, 18)), int(rng.integers(20, 33))
    x = rng.standard_normal((n, c, h, int(rng.choice([w, 32])))).astype(np.float32)
    return {"x": np.round(x), "bias": np.round(rng.standard_normal(c)).astype(np.float32)}


def _pooled(x: Array) -> tuple[Array, Array]:
    return ops.max_pool2d_with_indices(x, POOLED)


def _last(x: Array, bias: Array) -> tuple[Array, Array]:
    """Return the last of equal maxima, and where it lies."""
    y, found = _pooled(ops.relu(x + bias.reshape(-1, 1, 1))[:, :, ::-1, ::-1])
    last = x.shape[2] * x.shape[3] - 1 - found
    return y[:, :, ::-1, ::-1], last[:, :, ::-1, ::-1]


def _pooled_first(x: Array, bias: Array) -> tuple[Array, Array]:
    largest, found = _pooled(x + bias.reshape(-1, 1, 1))
    return ops.relu(largest), found


MISTAKES = (
    Mistake("the last of equal maxima wins: in lesson 03 it is the first, so take a pixel only if it is larger", _last),
    Mistake(
        "the ReLU comes before the bias: first the bias, then the ReLU",
        lambda x, bias: _pooled(ops.relu(x) + bias.reshape(-1, 1, 1)),
    ),
    Mistake("the ReLU is missing: what is below 0 becomes 0", lambda x, bias: _pooled(x + bias.reshape(-1, 1, 1))),
    Mistake(
        "the places are those of the largest pixels before the ReLU: after it ties are common, and the first "
        "wins, so apply bias and ReLU before you compare",
        _pooled_first,
    ),
    result(
        "a window of zeros takes no pixel: begin with a largest below 0, so that its first one is taken",
        lambda y: (y[0], y[1] * (y[0] > 0)),
    ),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    result(
        "the routing says which of four places it was; asked is the place in the image, row * W + column",
        lambda y, x: (y[0], y[1] // x.shape[3] % 2 * 2 + y[1] % x.shape[3] % 2),
    ),
)
