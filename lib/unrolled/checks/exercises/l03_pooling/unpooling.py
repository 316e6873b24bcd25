"""Putting values back where maxima came from, and usual mistakes: by index, by mask, with and without overlap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.mistakes import Function, Mistake, alone, given, result
from unrolled.device import Array


def shared_by(share: Callable[[Array], Array]) -> Function:
    """Return an unpooling with another rule for who gets what of a value: share(largest) are the pixels' parts.

    `largest` says where each window's maxima are, and the parts are of this shape: (K*K, N*C*OH*OW).
    """

    def unpool(values: Array, x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
        n, c, h, w = x.shape
        above_0 = (x - (x.min() - 1)).reshape(n * c, 1, h, w)  # so that padding never wins
        windows = ops.im2col(above_0, kernel_size, stride or kernel_size, padding)
        parts = share(windows == windows.max(axis=0)) * values.reshape(-1)
        back = ops.col2im(parts.astype(values.dtype), above_0.shape, kernel_size, stride or kernel_size, padding)
        return back.reshape(x.shape)

    return unpool


def _forgetting(largest: Array) -> Array:
    """Return who gets a value from windows that know only whether they gave it away at the place just before."""
    parts = largest.copy()
    for place in range(1, len(parts)):
        parts[place] &= ~parts[place - 1]
    return parts


to_each = shared_by(lambda largest: largest)
in_parts = shared_by(lambda largest: largest / largest.sum(axis=0))
to_last = shared_by(lambda largest: largest & (largest[::-1].cumsum(axis=0)[::-1] == 1))  # from the end it is the first
to_every_pixel = shared_by(np.ones_like)


def overwritten(values: Array, x: Array, kernel_size: int, stride: int | None = None, padding: int = 0) -> Array:
    """Return what result[place] = value leaves where windows share a maximum: the last value."""
    n, c, h, w = x.shape
    indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)
    y = np.zeros((n, c, h * w), values.dtype)
    np.put_along_axis(y, indices.reshape(n, c, -1), values.reshape(n, c, -1), axis=2)
    return y.reshape(x.shape)


FIRST_IMAGE = "only the first image is filled: is `return` inside a loop?"
NOT_0 = result(
    "the values are where they belong, but what no value reached is not 0: np.zeros makes zeros, np.empty leaves what "
    "was in memory",
    lambda y: np.ma.MaskedArray(y, y == 0),
)


def _put(y: Array, indices: Array, values: Array) -> Array:
    """Return values at indices, which count from the first pixel of all, and 0 elsewhere."""
    found = np.zeros_like(y)
    np.put(found, indices, values)
    return found


def _all_in_every_row(y: Array, indices: Array, values: Array) -> Array:
    n, c, h, w = y.shape
    rows = np.zeros((n * c, h * w), y.dtype)
    rows[:, indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return rows.reshape(y.shape)


BY_INDEX_MISTAKES = (
    result(
        "each row got the values of all rows: result[:, indices] pairs every row with every index. Name the rows: "
        "result[rows, indices] with rows of shape (N*C, 1)",
        _all_in_every_row,
    ),
    result(
        "everything lands in the first image: an index counts from the first pixel of its own image and channel", _put
    ),
    result(
        "all channels land in the first one: they need rows of their own, too",
        lambda y, indices, values: np.stack([_put(*image) for image in zip(y, indices, values, strict=True)]),
    ),
    given(
        "rows and columns are swapped: an index is row * W + column",
        indices=lambda indices, size: indices % size[1] * size[1] + indices // size[1],
    ),
    result(FIRST_IMAGE, lambda y: alone(y, 0)),
    result("only the first channel is filled: each has its own places", lambda y: alone(y, slice(None), 0)),
    given("you wrote 1 where the value belongs", values=lambda values: np.ones_like(values)),
    given("you wrote the index where the value belongs", values=lambda values, indices: indices.astype(values.dtype)),
    NOT_0,
)


def _covered(y: Array, values: Array, kernel_size: int, stride: int | None) -> Array:
    """Return the part of y that whole windows cover."""
    height, width = ((size - 1) * (stride or kernel_size) + kernel_size for size in values.shape[2:])
    return y[:, :, :height, :width]


FIRST = "of equal maxima the first, row by row, gets the value; "

UNPOOLING_MISTAKES = (
    Mistake(FIRST + "yours gives all of it to each of them, so the sum grows", to_each),
    Mistake(FIRST + "yours shares it between them", in_parts),
    Mistake(FIRST + "yours gives it to the last", to_last),
    Mistake(
        FIRST + "yours goes down the columns first",
        given={"values": lambda values: values.swapaxes(2, 3), "x": lambda x: x.swapaxes(2, 3)},
        result=lambda y: y.swapaxes(2, 3),
    ),
    Mistake(
        "your mask forgets the places before: a window is done once and for all, so join it, by &, with what it was",
        shared_by(_forgetting),
    ),
    given("only pixels that are equal tie: compare with ==, not np.isclose", x=lambda x: np.round(x, 4)),
    result("nothing arrived: the result is all zeros. Is a mask False everywhere from the start?", lambda y: 0 * y),
    given("you put the values where the smallest pixels are", ops.max_unpool2d_mask, x=lambda x: -x),
    given(
        "you put the values into the upper left corners of the windows: find the maxima",
        x=lambda x: -np.arange(x.size, dtype=x.dtype).reshape(x.shape),  # falling from pixel to pixel
    ),
    Mistake("every pixel of a window got its value: only the maximum does", to_every_pixel),
    given("you put the maxima back, not the values: x says where, values say what", values=ops.max_pool2d),
    given("you put 1 where the value belongs: the mask times the values", values=lambda values: np.ones_like(values)),
    result(FIRST_IMAGE, lambda y: alone(y, 0)),
    result("only the first channel is filled: each has its own maxima", lambda y: alone(y, slice(None), 0)),
    result("pixels at the edge that no window covers stay 0: the result is as large as x", _covered),
)


def _rows(x: Array, kernel_size: int) -> Array:
    """Return windows that do not overlap as rows: (N*C*OH*OW, K*K). ValueError where an edge is left over."""
    n, c, h, w = x.shape
    windows = x.reshape(n, c, h // kernel_size, kernel_size, w // kernel_size, kernel_size)
    return windows.swapaxes(3, 4).reshape(-1, kernel_size * kernel_size)


def _winners_of_every_row(y: Array, values: Array, x: Array, kernel_size: int) -> Array:
    rows = np.zeros((values.size, kernel_size * kernel_size), values.dtype)
    rows[:, _rows(x, kernel_size).argmax(axis=1)] = values.reshape(-1, 1)
    return rows.reshape(*values.shape, kernel_size, kernel_size).swapaxes(3, 4).reshape(y.shape)


def _runs_as_windows(_: Array, values: Array, x: Array, kernel_size: int) -> Array:
    runs = x.reshape(-1, kernel_size * kernel_size)
    filled = np.zeros(runs.shape, values.dtype)
    filled[np.arange(len(runs)), runs.argmax(axis=1)] = values.ravel()
    return filled.reshape(x.shape)


ROW_MISTAKES = (
    result(
        "x.reshape(-1, k * k) cuts each row of pixels into runs, not into windows: swap axes, as windows_as_rows does",
        _runs_as_windows,
    ),
    result(
        "each window has a largest pixel of its own: compare with ops.max_pool2d(x, kernel_size), not with x.max()",
        lambda y, x: y * (x == x.max()),
    ),
    result(
        "every window got its value at the winning places of all windows: [:, winners] pairs every row with every "
        "place. This is the line of the hunt",
        _winners_of_every_row,
    ),
    result(
        "your windows are right, but they lie one after another: swap the axes back before the last reshape",
        lambda y, kernel_size: _rows(y, kernel_size).reshape(y.shape),
    ),
    result("these are the windows as rows: bring them back to the shape of x", _rows),
    NOT_0,
)


def _place_by_place(put: Callable[[Array, Array, Array], Array]) -> Function:
    """Return an unpooling in which put(before, here, values) takes the place of adding what arrives at a place.

    `here` are the windows whose first maximum lies there.
    """

    def unpool(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
        largest, y = ops.max_pool2d(x, kernel_size, stride), np.zeros(x.shape, values.dtype)
        waiting = np.ones(values.shape, bool)
        height, width = ((size - 1) * stride + 1 for size in values.shape[2:])
        for i, j in np.ndindex(kernel_size, kernel_size):
            at = (..., slice(i, i + height, stride), slice(j, j + width, stride))
            here = waiting & (x[at] == largest)
            waiting &= ~here
            y[at] = put(y[at], here, values)
        return y

    return unpool


MEET = "where windows share a maximum, their values add up; "
ONE_IS_LEFT = MEET + "yours keeps one of them: each place in the window overwrites what is there. Add to the slice, +="

OVERLAP_MISTAKES = (
    Mistake(
        MEET + "yours keeps one of them. (= overwrites; so does += with an array of indices that repeats one)",
        overwritten,
    ),
    Mistake(ONE_IS_LEFT, _place_by_place(lambda before, here, values: np.where(here, values, before))),
    Mistake(ONE_IS_LEFT, _place_by_place(lambda before, here, values: np.where(here, values, 0))),
    result(
        MEET + "yours takes their mean",
        lambda y, values, x, kernel_size, stride: (
            y / np.maximum(ops.max_unpool2d_mask(np.ones_like(values), x, kernel_size, stride), 1)
        ),
    ),
)
