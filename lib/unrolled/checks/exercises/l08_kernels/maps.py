"""What `fused_bias_relu_pool` is given, what it may move, and the mistakes of a place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array

POOLED = 2  # the window of fused_bias_relu_pool


def bias_relu_pool(x: Array, bias: Array) -> tuple[Array, Array]:
    """Return (the largest of each window of relu(x + bias), where it lies: row * W + column, int64)."""
    return pooled(ops.relu(x + bias.reshape(-1, 1, 1)))


def traffic(inputs: Inputs) -> float:
    """Return the bytes of one read of x, and of the bias, which each warp reads once or for each pixel."""
    return 1.2 * float(inputs["x"].nbytes)


def results(inputs: Inputs) -> float:
    """Return the bytes of one write of the results: the values, and an int64 each for the places."""
    n, c, h, w = inputs["x"].shape
    return float(n * c * (h // POOLED) * (w // POOLED) * (inputs["x"].dtype.itemsize + 8))


def any_maps(rng: np.random.Generator) -> Inputs:
    """Draw maps of at least one window; many have ties, and some nothing above 0."""
    n, c, h, w = edge_size(rng, 3), edge_size(rng, 4), edge_size(rng, 18, 2), edge_size(rng, 18, 2)
    x, bias = 2 * rng.standard_normal((n, c, h, w)), rng.standard_normal(c) - rng.integers(0, 2)
    return {"x": np.round(x, int(rng.integers(0, 4))).astype(np.float32), "bias": bias.astype(np.float32)}


def pooled(x: Array) -> tuple[Array, Array]:
    """Return the largest of each window of x, and where it lies."""
    return ops.max_pool2d_with_indices(x, POOLED)


TWO_WINDOWS = np.array([[[[1, 5], [2, -3], [0, 2], [7, 1]]]], np.float32)
PLACES: dict[str, Callable[[Array, Array, int, int], Array]] = {
    "in rows of ow windows": lambda row, column, h, w: row * (w // POOLED) + column,
    "inside of the windows": lambda row, column, h, w: row % 2 * 2 + column % 2,
    "of the windows' first pixels": lambda row, column, h, w: row // 2 * 2 * w + column // 2 * 2,
    "of windows, and not of pixels": lambda row, column, h, w: row // 2 * (w // POOLED) + column // 2,
    "with row and column of the window": lambda row, column, h, w: row // 2 * w + column // 2,
    "with row and column exchanged": lambda row, column, h, w: column * w + row,
    "down the columns": lambda row, column, h, w: column * h + row,
    "counted on from image to image": lambda row, column, h, w: (
        row * w + column + h * w * np.arange(row[..., 0, 0].size).reshape(*row.shape[:2], 1, 1)
    ),
}


def placed(where: str) -> Mistake:
    """Return the mistake of such a place for that of the pixel."""
    says = f"these are places {where}: asked is the place in the image, row * w + column of the pixel"
    return result(says, lambda y, x: (y[0], PLACES[where](y[1] // x.shape[3], y[1] % x.shape[3], *x.shape[2:])))
