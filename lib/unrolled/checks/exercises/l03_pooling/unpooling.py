"""Putting values back where maxima came from: who of equal ones gets the value, and usual mistakes.

That is each, all in equal parts, or the last: such a function puts values (N, C, OH, OW) where the maxima of x
(N, C, H, W) are, and adds up what meets: (N, C, H, W). Mistakes are by index, by mask, with and without overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.mistakes import Function, Mistake, first_of, given, result
from unrolled.device import Array


def places(shape: tuple[int, ...], kernel_size: int, stride: int | None = None) -> list[tuple[Any, slice, slice]]:
    """Return, for each place inside the window, the slice of x that holds this pixel of all windows (N, C, OH, OW)."""
    step = stride or kernel_size
    rows, columns = ([slice(i, i + (size - 1) * step + 1, step) for i in range(kernel_size)] for size in shape[2:])
    return [(..., row, column) for row in rows for column in columns]


def ties(x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Return how many equal maxima each window of x (N, C, H, W) has: (N, C, OH, OW), dtype as x."""
    largest = ops.max_pool2d(x, kernel_size, stride)
    masks = (x[at] == largest for at in places(largest.shape, kernel_size, stride))
    return sum(masks, np.zeros_like(largest))


def to_each(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Put all of a value on each of equal maxima."""
    largest, result = ops.max_pool2d(x, kernel_size, stride), np.zeros(x.shape, values.dtype)
    for at in places(values.shape, kernel_size, stride):
        result[at] += (x[at] == largest) * values
    return result


def shared(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Put an equal part of a value on each of equal maxima."""
    return to_each(values / ties(x, kernel_size, stride), x, kernel_size, stride)


def place_by_place(put: Function, backwards: bool = False, forget: bool = False) -> Function:
    """Return the function that gives each window's value away once, at the place inside it that comes first.

    put(before, here, values) is what the pixels at a place become, where `here` are the windows that give theirs away
    there. With `backwards` the last place comes first. With `forget` a window knows only whether it did so just before.
    """

    def unpool(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
        largest, result = ops.max_pool2d(x, kernel_size, stride), np.zeros(x.shape, values.dtype)
        waiting = np.ones(values.shape, bool)
        for at in places(values.shape, kernel_size, stride)[:: -1 if backwards else 1]:
            here = waiting & (x[at] == largest)
            waiting = ~here if forget else waiting & ~here
            result[at] = put(result[at], here, values)
        return result

    return unpool


def added(before: Array, here: Array, values: Array) -> Array:
    """Return the pixels at a place with the values that arrive there."""
    return before + here * values


def last(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Put a value on the last, row by row, of equal maxima."""
    unpooled: Array = place_by_place(added, backwards=True)(values, x, kernel_size, stride)
    return unpooled


# Usual mistakes

FIRST_IMAGE = "only the first image is filled: is `return` inside a loop?"
NOT_0 = result(
    "the values are where they belong, but what no value reached is not 0: np.zeros makes zeros, np.empty leaves what "
    "was in memory",
    lambda y: np.ma.MaskedArray(y, y == 0),
)


# By index


def _put(y: Array, indices: Array, values: Array) -> Array:
    """Return values at indices, which count from the first pixel of all, and 0 elsewhere."""
    alone = np.zeros_like(y)
    np.put(alone, indices, values)
    return alone


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
    result(FIRST_IMAGE, lambda y: first_of(y, 0)),
    result("only the first channel is filled: each has its own places", lambda y: first_of(y, 1)),
    given("you wrote 1 where the value belongs", values=lambda values: np.ones_like(values)),
    given("you wrote the index where the value belongs", values=lambda values, indices: indices.astype(values.dtype)),
    NOT_0,
)


# By mask


def _share_of_all_pixels(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    return ops.avg_pool2d_backward(values, x.shape, kernel_size, stride)


def _covered(y: Array, values: Array, kernel_size: int, stride: int | None) -> Array:
    """Return the part of y that whole windows cover."""
    height, width = ((size - 1) * (stride or kernel_size) + kernel_size for size in values.shape[2:])
    return y[:, :, :height, :width]


def _by_columns(says: str) -> Mistake:
    """Return the mistake of looking through a window column by column."""
    turned = {"values": lambda values: values.swapaxes(2, 3), "x": lambda x: x.swapaxes(2, 3)}
    return Mistake(says, given=turned, result=lambda y: y.swapaxes(2, 3))


FIRST = "of equal maxima the first, row by row, gets the value; "
TO_EACH = "yours gives all of it to each of them, so the sum grows"
IN_PARTS = "yours shares it between them"
FORGETS = "your mask forgets the places before: a window is done once and for all, so join it, by &, with what it was"

UNPOOLING_MISTAKES = (
    Mistake(FIRST + TO_EACH, to_each),
    Mistake(FIRST + IN_PARTS, shared),
    Mistake(FIRST + "yours gives it to the last", last),
    _by_columns(FIRST + "yours goes down the columns first"),
    Mistake(FORGETS, place_by_place(added, forget=True)),
    result("nothing arrived: the result is all zeros. Is a mask False everywhere from the start?", lambda y: 0 * y),
    given("you put the values where the smallest pixels are", ops.max_unpool2d_mask, x=lambda x: -x),
    given(
        "you put the values into the upper left corners of the windows: find the maxima",
        x=lambda x: -np.arange(x.size, dtype=x.dtype).reshape(x.shape),  # falling from pixel to pixel
    ),
    given(
        "every pixel of a window got its value: only the maximum does",
        _share_of_all_pixels,
        values=lambda values, kernel_size: values * kernel_size**2,
    ),
    given("you put the maxima back, not the values: x says where, values say what", values=ops.max_pool2d),
    given("you put 1 where the value belongs: the mask times the values", values=lambda values: np.ones_like(values)),
    result(FIRST_IMAGE, lambda y: first_of(y, 0)),
    result("only the first channel is filled: each has its own maxima", lambda y: first_of(y, 1)),
    result("pixels at the edge that no window covers stay 0: the result is as large as x", _covered),
)


# By mask, with windows as rows


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


# By mask, with overlap


def _assigned(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """Return what result[place] = value leaves, window by window."""
    y = np.zeros(x.shape, values.dtype)
    for image, channel, row, column in np.ndindex(values.shape):
        rows = slice(row * stride, row * stride + kernel_size)
        columns = slice(column * stride, column * stride + kernel_size)
        pixels, inside = x[image, channel, rows, columns], y[image, channel, rows, columns]
        inside.flat[pixels.argmax()] = values[image, channel, row, column]
    return y


def _averaged(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """Return the mean of the values where windows share a maximum."""
    arrived = ops.max_unpool2d_mask(np.ones_like(values), x, kernel_size, stride)
    return ops.max_unpool2d_mask(values, x, kernel_size, stride) / np.maximum(arrived, 1)


MEET = "where windows share a maximum, their values add up; "
ONE_IS_LEFT = MEET + "yours keeps one of them: each place in the window overwrites what is there. Add to the slice, +="

OVERLAP_MISTAKES = (
    Mistake(
        MEET + "yours keeps one of them. (= overwrites; so does += with an array of indices that repeats one)",
        _assigned,
    ),
    Mistake(ONE_IS_LEFT, place_by_place(lambda before, here, values: np.where(here, values, before))),
    Mistake(ONE_IS_LEFT, place_by_place(lambda before, here, values: np.where(here, values, 0))),
    Mistake(MEET + "yours takes their mean", _averaged),
)
