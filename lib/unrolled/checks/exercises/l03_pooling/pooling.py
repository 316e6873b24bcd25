"""Usual mistakes in max-pooling, with and without overlap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array


def _pooled_after(change: Callable[[Array, int], Array]) -> Function:
    """A mistake after the right pooling: change(y, kernel_size)."""
    return lambda x, kernel_size: change(ops.max_pool2d(x, kernel_size), kernel_size)


def first_of(y: Array, axis: int) -> Array:
    """y with zeros everywhere but at the first place along axis."""
    first = np.zeros_like(y)
    place = (slice(None),) * axis + (0,)
    first[place] = y[place]
    return first


def _runs(x: Array, kernel_size: int) -> Array:
    """The largest of kernel_size² neighbours in memory, which are no window."""
    n, c, h, w = x.shape
    oh, ow = h // kernel_size, w // kernel_size
    largest: Array = x.reshape(n, c, oh, ow, kernel_size * kernel_size).max(axis=-1)
    return largest


def _rounded_up(x: Array, kernel_size: int) -> Array:
    """The edge that no whole window covers counts as a window of its own."""
    short = [-size % kernel_size for size in x.shape[2:]]
    filled = np.pad(x, ((0, 0), (0, 0), (0, short[0]), (0, short[1])), constant_values=-np.inf)
    return ops.max_pool2d(filled, kernel_size)


POOLING_MISTAKES = (
    Mistake(
        "your maximum starts at 0, so negative pixels never win: start with the first pixel of the window",
        _pooled_after(lambda y, k: np.maximum(y, 0)),
    ),
    Mistake(
        "these are the smallest pixels: max-pooling keeps the largest",
        lambda x, kernel_size: -ops.max_pool2d(-x, kernel_size),
    ),
    Mistake(
        "these are the means of the windows: max-pooling keeps the largest pixel",
        lambda x, kernel_size: ops.avg_pool2d(x, kernel_size),
    ),
    Mistake(
        "your window moves one pixel at a time: here it moves by its own size",
        lambda x, kernel_size: ops.max_pool2d(x, kernel_size, 1),
    ),
    Mistake(
        "your windows start one pixel apart: window (row, column) begins at (row * kernel_size, column * kernel_size)",
        lambda x, kernel_size: _first_outputs(ops.max_pool2d(x, kernel_size, 1), x, kernel_size),
    ),
    Mistake("only the first image is computed: is `return` inside a loop?", _pooled_after(lambda y, k: first_of(y, 0))),
    Mistake("only the first channel is computed: each has its own maxima", _pooled_after(lambda y, k: first_of(y, 1))),
    Mistake(
        "you took the largest of all channels: pooling leaves the channels apart",
        _pooled_after(lambda y, k: np.broadcast_to(y.max(axis=1, keepdims=True), y.shape)),
    ),
    Mistake(
        "you took the largest of all channels: pooling leaves the channels apart",
        _pooled_after(lambda y, k: y.max(axis=1)),
    ),
    Mistake(
        "you took the largest of all images: each image is pooled by itself",
        _pooled_after(lambda y, k: np.broadcast_to(y.max(axis=0), y.shape)),
    ),
    Mistake("rows and columns of your result are swapped", _pooled_after(lambda y, k: y.swapaxes(2, 3))),
    Mistake("what is left over at the edge is no window: leave it out", _rounded_up),
    Mistake("a reshape alone cuts the image into runs of neighbours in a row, not into square windows", _runs),
)


def _first_outputs(y: Array, x: Array, kernel_size: int) -> Array:
    return y[:, :, : x.shape[2] // kernel_size, : x.shape[3] // kernel_size]


# Overlap


def _strided(change: Callable[[Array, int, int], Array]) -> Function:
    """A mistake in how windows overlap: change(x, kernel_size, stride) is what was computed."""
    return lambda x, kernel_size, stride: change(x, kernel_size, stride)


def _one_less(x: Array, kernel_size: int, stride: int) -> Array:
    return ops.max_pool2d(x, kernel_size, stride)[:, :, :-1, :-1]


def _too_small(x: Array, kernel_size: int, stride: int) -> Array:
    """Windows of stride x stride, at the right corners."""
    h, w = ops.max_pool2d(x, kernel_size, stride).shape[2:]
    return ops.max_pool2d(x, stride, stride)[:, :, :h, :w]


OVERLAPPING_MISTAKES = (
    Mistake(
        "your maximum starts at 0, so negative pixels never win: start with the first place",
        lambda x, kernel_size, stride: np.maximum(ops.max_pool2d(x, kernel_size, stride), 0),
    ),
    Mistake(
        "your windows do not overlap: they move by stride, not by their own size",
        _strided(lambda x, k, s: ops.max_pool2d(x, k)),
    ),
    Mistake("your windows are as small as the stride: they see kernel_size pixels each way", _too_small),
    Mistake(
        "your windows move one pixel at a time: they move by stride", _strided(lambda x, k, s: ops.max_pool2d(x, k, 1))
    ),
    Mistake("the last row and column of windows are missing: OH = (H - kernel_size) // stride + 1", _one_less),
    Mistake(
        "these are the smallest pixels: max-pooling keeps the largest",
        _strided(lambda x, k, s: -ops.max_pool2d(-x, k, s)),
    ),
    Mistake(
        "these are the means of the windows: max-pooling keeps the largest pixel",
        _strided(lambda x, k, s: ops.avg_pool2d(x, k, s)),
    ),
    Mistake(
        "you took the largest of all channels: pooling leaves the channels apart",
        _strided(lambda x, k, s: ops.max_pool2d(x, k, s).max(axis=1)),
    ),
)
