"""Average-pooling that keeps the edge: reference and usual mistakes of a variant of lesson 03."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l03_pooling.pooling import first_of
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array


def pool(x: Array, kernel_size: int, each: Callable[..., Any]) -> Array:
    """each(window, axis) of every window of x (N, C, H, W), what is left over at the edge included."""
    n, c, h, w = x.shape
    y = np.empty((n, c, -(-h // kernel_size), -(-w // kernel_size)), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        top, left = row * kernel_size, column * kernel_size
        window = x[:, :, top : top + kernel_size, left : left + kernel_size]
        y[:, :, row, column] = each(window, axis=(2, 3))
    return y


def average_pool(x: Array, kernel_size: int) -> Array:
    """The mean of each window of x (N, C, H, W), which moves by its own size; at the edge, of the pixels there are."""
    return pool(x, kernel_size, np.mean)


def _then(change: Callable[[Array], Array]) -> Function:
    """A mistake after the right pooling."""
    return lambda x, kernel_size: np.ascontiguousarray(change(average_pool(x, kernel_size)))


def _filled(x: Array, kernel_size: int, **how: Any) -> Array:
    """x, as large as whole windows would need, filled up as np.pad is told."""
    down, right = (-size % kernel_size for size in x.shape[2:])
    return ops.avg_pool2d(np.pad(x, ((0, 0), (0, 0), (0, down), (0, right)), **how), kernel_size)


def _whole_windows(x: Array, kernel_size: int) -> Array:
    return ops.avg_pool2d(x, kernel_size)


def _by_the_area(x: Array, kernel_size: int) -> Array:
    """The sum by k², where the edge has fewer pixels."""
    return pool(x, kernel_size, np.sum) / (kernel_size * kernel_size)


AVERAGE_MISTAKES = (
    Mistake("what is left over at the edge is a window, too, a smaller one: round OH and OW up", _whole_windows),
    Mistake("at the edge you divide by kernel_size * kernel_size: divide by the pixels that are there", _by_the_area),
    Mistake(
        "you repeat the edge to fill the last windows: take the pixels that are there", partial(_filled, mode="edge")
    ),
    Mistake("these are the largest pixels: here the mean counts", partial(pool, each=np.max)),
    Mistake("these are the sums of the windows: divide by the number of pixels", partial(pool, each=np.sum)),
    Mistake(
        "your window moves one pixel at a time: here it moves by its own size",
        lambda x, kernel_size: ops.avg_pool2d(x, kernel_size, 1),
    ),
    Mistake("only the first image is computed: is `return` inside a loop?", _then(lambda y: first_of(y, 0))),
    Mistake("only the first channel is computed: each has its own means", _then(lambda y: first_of(y, 1))),
    Mistake(
        "you took the mean over all channels: pooling leaves the channels apart",
        _then(lambda y: np.broadcast_to(y.mean(axis=1, keepdims=True), y.shape)),
    ),
    Mistake("you took the mean over all channels: pooling leaves the channels apart", _then(lambda y: y.mean(axis=1))),
    Mistake(
        "you took the mean over all images: each image is pooled by itself",
        _then(lambda y: np.broadcast_to(y.mean(axis=0), y.shape)),
    ),
    Mistake("rows and columns of your result are swapped", _then(lambda y: y.swapaxes(2, 3))),
)
