"""Usual mistakes in pooling: of maxima, with and without overlap, with indices, and of means that count the edge."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution.windows import UNWRITTEN, as_many
from unrolled.checks.mistakes import Mistake, alone, given, only, result
from unrolled.device import Array


def pool(x: Array, kernel_size: int, *, each: Callable[..., Any] = np.mean) -> Array:
    """Return the mean, or each(window, axis), of every window of x (N, C, H, W), at the edge of what is there.

    The window moves by its own size.
    """
    n, c, h, w = x.shape
    y = np.empty((n, c, -(-h // kernel_size), -(-w // kernel_size)), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        top, left = row * kernel_size, column * kernel_size
        window = x[:, :, top : top + kernel_size, left : left + kernel_size]
        y[:, :, row, column] = each(window, axis=(2, 3))
    return y


def _filled_up(x: Array, kernel_size: int, mode: Literal["constant", "edge"] = "constant") -> Array:
    """Return x, as large as whole windows need it, filled up with zeros or with the pixels at its edge."""
    down, right = (-size % kernel_size for size in x.shape[2:])
    return np.pad(x, ((0, 0), (0, 0), (0, down), (0, right)), mode)


_with_more_edge = partial(_filled_up, mode="edge")


def _one_pixel_smaller(x: Array, kernel_size: int) -> Array:
    """Return x with nothing that could win in the last row and column of each window."""
    y, last = x.copy(), slice(kernel_size - 1, None, kernel_size)
    y[:, :, last] = y[..., last] = -np.inf
    return y


def _corner_of(y: Array, like: Array) -> Array:
    """Return the upper left part of y, as large as `like`."""
    return y[:, :, : like.shape[2], : like.shape[3]]


def _in_axes(own: str, taken: str, over: Callable[..., Any]) -> tuple[Mistake, ...]:
    """Return the mistakes in what is pooled together; `over` is np.max or np.mean."""
    return (
        result(f"only the first channel is computed: each has its own {own}", lambda y: alone(y, slice(None), 0)),
        result(f"you took {taken} {ALL_CHANNELS}", lambda y: np.broadcast_to(over(y, axis=1, keepdims=True), y.shape)),
        result(f"you took {taken} {ALL_CHANNELS}", lambda y: over(y, axis=1)),
        result(
            f"you took {taken} all images: each image is pooled by itself",
            lambda y: np.broadcast_to(over(y, axis=0), y.shape),
        ),
        result("rows and columns of your result are swapped", lambda y: y.swapaxes(2, 3)),
    )


ALL_CHANNELS = "all channels: pooling leaves the channels apart"
BY_ONE_PIXEL = "your window moves one pixel at a time: here it moves by its own size"
FROM_0 = "your maximum starts at 0, so negative pixels never win: start with the first "
OTHER_THAN_MAXIMA = (
    Mistake(
        "these are the smallest pixels: max-pooling keeps the largest", given={"x": lambda x: -x}, result=lambda y: -y
    ),
    Mistake("these are the means of the windows: max-pooling keeps the largest pixel", ops.avg_pool2d),
)

POOLING_MISTAKES = (
    result(FROM_0 + "pixel of the window", lambda y: np.maximum(y, 0)),
    *OTHER_THAN_MAXIMA,
    given(BY_ONE_PIXEL, stride=1),
    given(
        "your windows are a pixel too small each way: a slice ends before its last number, top : top + kernel_size",
        x=_one_pixel_smaller,
    ),
    result(
        "your windows start one pixel apart: window (row, column) begins at (row * kernel_size, column * kernel_size)",
        lambda y, x, kernel_size: _corner_of(ops.max_pool2d(x, kernel_size, 1), y),
    ),
    *_in_axes("maxima", "the largest of", np.max),
    given("what is left over at the edge is no window: leave it out", x=_with_more_edge),
    result(
        "a reshape alone cuts the image into runs of neighbours in a row, not into square windows",
        lambda y, x, kernel_size: x.reshape(*y.shape, kernel_size**2).max(axis=-1),
    ),
    *UNWRITTEN,
)

ONE_ROW = (
    "only the first row is right: is `return` inside a loop? What np.empty made stays as it was until you write it"
)
OVERLAPPING_MISTAKES = (
    result(FROM_0 + "place", lambda y: np.maximum(y, 0)),
    given("your windows do not overlap: they move by stride, not by their own size", stride=None),
    result(
        "your windows are as small as the stride: they see kernel_size pixels each way",
        lambda y, x, stride: _corner_of(ops.max_pool2d(x, stride), y),
    ),
    given("your windows move one pixel at a time: they move by stride", stride=1),
    Mistake(
        "your windows start one pixel apart: place (i, j) of all windows is i : i + OH * stride : stride, and j alike",
        given={"stride": 1},
        result=as_many,
    ),
    result(
        "only the last place counts: = overwrites y; compare it with what is there, np.maximum(y, …)",
        lambda y, x, kernel_size, stride: _corner_of(x[:, :, kernel_size - 1 :: stride, kernel_size - 1 :: stride], y),
    ),
    result(
        "you add up the places: np.maximum(y, …) keeps the larger",
        lambda _, x, kernel_size, stride: ops.avg_pool2d(x, kernel_size, stride) * kernel_size**2,
    ),
    result(
        "the last row and column of windows are missing: OH = (H - kernel_size) // stride + 1",
        lambda y: y[:, :, :-1, :-1],
    ),
    *OTHER_THAN_MAXIMA,
    result(f"you took the largest of {ALL_CHANNELS}", lambda y: y.max(axis=1)),
    *UNWRITTEN,
    result(ONE_ROW, lambda y: only(y, ..., 0, slice(None))),
    result(ONE_ROW, lambda y: only(y, 0, 0, 0)),
)

AVERAGE_MISTAKES = (
    Mistake("what is left over at the edge is a window, too, a smaller one: round OH and OW up", ops.avg_pool2d),
    given("at the edge you divide by kernel_size * kernel_size: divide by the pixels that are there", x=_filled_up),
    given("you repeat the edge to fill the last windows: take the pixels that are there", x=_with_more_edge),
    Mistake("these are the largest pixels: here the mean counts", partial(pool, each=np.max)),
    Mistake("these are the sums of the windows: divide by the number of pixels", partial(pool, each=np.sum)),
    given(BY_ONE_PIXEL, ops.avg_pool2d, stride=1),
    *_in_axes("means", "the mean over", np.mean),
    *UNWRITTEN,
)


# With indices: where the maxima lie


def last_maximum(x: Array, kernel_size: int) -> tuple[Array, Array]:
    """Return as `ops.max_pool2d_with_indices` does, but of equal maxima the last one."""
    h, w = x.shape[2:]
    k, oh, ow = kernel_size, h // kernel_size, w // kernel_size
    cut = x[:, :, : oh * k, : ow * k]
    y, indices = ops.max_pool2d_with_indices(cut[:, :, ::-1, ::-1], k)
    turned = cut.shape[2] * cut.shape[3] - 1 - indices[:, :, ::-1, ::-1]
    return y[:, :, ::-1, ::-1], turned // (ow * k) * w + turned % (ow * k)


def _index(says: str, index: Callable[[Array, Array, int, int, int], Array]) -> Mistake:
    """Return the mistake of `index(row, column, height, width, kernel_size)` in place of row * width + column."""

    def changed(y: tuple[Array, Array], x: Array, kernel_size: int) -> tuple[Array, Array]:
        height, width = x.shape[2:]
        return y[0], index(y[1] // width, y[1] % width, height, width, kernel_size)

    return result(says, changed)


INDEXED_MISTAKES = (
    result("the order is the largest, then their indices", lambda y: y[::-1]),
    Mistake(
        "these are the smallest pixels: a new leader is larger, pixel > largest",
        ops.max_pool2d_with_indices,
        given={"x": lambda x: -x},
        result=lambda y: (-y[0], y[1]),
    ),
    _index(
        "the index of the window's first pixel is missing: corner + (i * W + j)",
        lambda row, column, height, width, k: row % k * width + column % k,
    ),
    _index(
        "place (i, j) lies i rows of the image lower: corner + (i * W + j), not i * kernel_size + j",
        lambda row, column, height, width, k: row // k * k * width + column // k * k + row % k * k + column % k,
    ),
    _index(
        "where the first pixel of a window wins, its index is missing: begin with the corners, not with 0",
        lambda row, column, height, width, k: np.where((row % k == 0) & (column % k == 0), 0, row * width + column),
    ),
    Mistake("of equal maxima the first wins: take a new leader only where it is larger, not equal", last_maximum),
    _index(
        "your index is the place inside the window: in the image it is row * W + column",
        lambda row, column, height, width, k: row % k * k + column % k,
    ),
    _index(
        "your index is row * OW + column: a row of the image holds W pixels, and OW is the width of the result",
        lambda row, column, height, width, k: row * (width // k) + column,
    ),
    _index(
        "the corners of your windows are counted in rows of OW pixels: a row of the image holds W of them",
        lambda row, column, height, width, k: row * width + column - row // k * k * (width - width // k),
    ),
    _index(
        "your index counts windows: it is the pixel's place in the image, row * W + column",
        lambda row, column, height, width, k: row // k * (width // k) + column // k,
    ),
    _index(
        "your index is column * H + row: it is row * W + column",
        lambda row, column, height, width, k: column * height + row,
    ),
    _index(
        "your index says where the window begins: add the place of the winner inside it",
        lambda row, column, height, width, k: row // k * k * width + column // k * k,
    ),
)
