"""Bias, ReLU and max-pooling in one pass: what it gives, what it may move, and what goes wrong in it."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Budget, Inputs
from unrolled.device import Array

SECTORS = 1.1  # times the fewest: a few more than needed may come from rows that begin inside of a sector
POOLED = 2  # the window


def bias_relu_pool(x: Array, bias: Array) -> tuple[Array, Array]:
    """Return (the largest of each window of relu(x + bias), where it lies: row * W + column, int64)."""
    return ops.max_pool2d_with_indices(ops.relu(x + bias.reshape(-1, 1, 1)), POOLED)


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


def wrong(x: Array, bias: Array, order: str) -> tuple[Array, Array]:
    """Return what comes of the operations with one of them in another place, or missing."""
    shift, none = bias.reshape(-1, 1, 1), np.float32(0)
    if order == "relu first":
        return ops.max_pool2d_with_indices(ops.relu(x) + shift, POOLED)
    if order == "no relu":
        return ops.max_pool2d_with_indices(x + shift, POOLED)
    if order == "no bias":
        return ops.max_pool2d_with_indices(ops.relu(x + none), POOLED)
    if order == "pool first":
        largest, found = ops.max_pool2d_with_indices(x + shift, POOLED)
        return ops.relu(largest), found
    if order == "no pixel":
        largest, found = ops.max_pool2d_with_indices(ops.relu(x + shift), POOLED)
        return largest, found * (largest > 0)
    y, found = ops.max_pool2d_with_indices(ops.relu(x + shift)[:, :, ::-1, ::-1], POOLED)
    last = x.shape[2] * x.shape[3] - 1 - found
    return y[:, :, ::-1, ::-1], last[:, :, ::-1, ::-1]


def places(found: Array, x: Array) -> Array:
    """Return where in its window each index lies: 0 to 3."""
    return found // x.shape[3] % 2 * 2 + found % x.shape[3] % 2
