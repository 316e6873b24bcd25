"""The library's own kernels on large arrays, for gpu_kernels.py: calls, and the bytes that each has to move."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any

from unrolled import kernels
from unrolled.ops.windows import Windows

Call = tuple[Callable[[], Any], float]
CLASSES = 10


def calls(cp: Any, values: int) -> dict[str, Call]:
    """Return name -> (call, bytes): each kernel of ours on float32 arrays of about `values` values."""
    return {**of_values(cp, values), **of_sums(cp, values), **of_windows(cp, values)}


def of_values(cp: Any, values: int) -> dict[str, Call]:
    """One thread a value."""
    x, y, z, u = (cp.ones(values, "float32") for _ in range(4))
    row, rows = cp.ones(64, "float32"), x.reshape(-1, 64)
    steps = {"rate": 1e-3, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.0}
    return {
        "relu": _call(kernels.relu, (x,), (y,)),
        "relu_backward": _call(kernels.relu_backward, (x, z), (y,)),
        "add_row": _call(kernels.add_row, (row,), (rows,), kernels.constants(columns=64)),
        "dropout": _call(kernels.dropout, (x, y), (z, u), rate=0.5),
        "sgd": _call(kernels.sgd, (x,), (y,), rate=1e-3, weight_decay=0.0),
        "adam": _call(kernels.adam, (x,), (y, z, u), **steps),
    }


def of_sums(cp: Any, values: int) -> dict[str, Call]:
    """Trees of partial sums, and a warp a sample."""
    side, samples = isqrt(values), values // CLASSES
    x, scores, labels = cp.ones((side, side), "float32"), cp.ones((samples, CLASSES), "float32"), cp.arange(samples)
    labels = labels % CLASSES
    losses, grad, one = cp.empty(samples, "float32"), cp.empty_like(scores), cp.empty((), "float32")
    columns, classes = kernels.constants(columns=side), kernels.constants(m=CLASSES)
    right = cp.empty((), "int64")
    return {
        "sum_first_axis": _call(kernels.sum_first_axis, (x,), (cp.empty(side, "float32"),), columns),
        "mean": _call(kernels.mean, (x,), (one,)),
        "softmax_cross_entropy": _call(kernels.softmax_cross_entropy, (scores, labels), (losses, grad), classes),
        "count_right": _call(kernels.count_right, (scores, labels), (right,), classes),
    }


def of_windows(cp: Any, values: int) -> dict[str, Call]:
    """Pooling in windows of 2 x 2, and columns for a convolution of 3 x 3 with padding: nine times the values."""
    shape, few = (values // 1024, 1, 32, 32), (max(1, values // 16384), 1, 32, 32)
    x, pool, columns = cp.ones(shape, "float32"), Windows.over(32, 2, 2, 0), Windows.over(32, 3, 1, 1)
    small = (*shape[:2], 16, 16)
    y, places = cp.empty(small, "float32"), cp.zeros(small, "int64")
    image, unrolled = cp.ones(few, "float32"), cp.ones((few[0], 9, 1024), "float32")
    constants, unrolling = pool.constants(), columns.constants(1)
    return {
        "max_pool": _call(kernels.max_pool, (x,), (y,), constants),
        "max_pool_with_indices": _call(kernels.max_pool_with_indices, (x,), (y, places), constants),
        "max_unpool": _call(kernels.max_unpool, (y, places), (x,), constants),
        "avg_pool": _call(kernels.avg_pool, (x,), (y,), constants),
        "avg_pool_backward": _call(kernels.avg_pool_backward, (y,), (x,), constants),
        "im2col": _call(kernels.im2col, (image,), (unrolled,), unrolling),
        "col2im": _call(kernels.col2im, (unrolled,), (image,), unrolling),
    }


def _call(kernel: Any, inputs: Any, outputs: Any, constants: Any = kernels.NONE, **floats: float) -> Call:
    """A call, and its bytes: each array once, outputs that are read as well twice."""
    moved = sum(x.nbytes for x in inputs) + (1 + kernel.updates) * sum(x.nbytes for x in outputs)
    return lambda: kernel(inputs, outputs, constants, **floats), float(moved)
