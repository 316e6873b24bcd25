"""Usual mistakes when values are put back where maxima came from, with and without overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from unrolled import ops
from unrolled.checks.mistakes import first_of
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array

Size = tuple[int, int]
Shares = list[tuple[int, int, float]]  # row and column in the window, and how much of the value goes there


# By index


def _flat(values: Array, indices: Array) -> tuple[Array, Array]:
    """Both as (N*C, OH*OW): a row for each image and channel."""
    rows = values.shape[0] * values.shape[1]
    return values.reshape(rows, -1), indices.reshape(rows, -1)


def _every_row_with_every_index(values: Array, indices: Array, size: Size) -> Array:
    v, i = _flat(values, indices)
    result = np.zeros((len(v), size[0] * size[1]), values.dtype)
    result[:, i] = v
    return result.reshape(*values.shape[:2], *size)


def _all_into_the_first(values: Array, indices: Array, size: Size) -> Array:
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    result.reshape(-1)[indices.reshape(-1)] = values.reshape(-1)
    return result


def _one_offset_an_image(values: Array, indices: Array, size: Size) -> Array:
    """Only images are kept apart: all channels land in the first."""
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    for image, (v, i) in enumerate(zip(values, indices, strict=True)):
        result[image].reshape(-1)[i.reshape(-1)] = v.reshape(-1)
    return result


def _rows_and_columns_swapped(values: Array, indices: Array, size: Size) -> Array:
    row, column = indices // size[1], indices % size[1]
    return ops.max_unpool2d(values, column * size[1] + row, size)


def _unpooled_after(change: Callable[[Array], Array]) -> Function:
    return lambda values, indices, size: change(ops.max_unpool2d(values, indices, size))


BY_INDEX_MISTAKES = (
    Mistake(
        "each row got the values of all rows: result[:, indices] pairs every row with every index. Name the rows: "
        "result[rows, indices] with rows of shape (N*C, 1)",
        _every_row_with_every_index,
    ),
    Mistake(
        "everything lands in the first image: an index counts from the first pixel of its own image and channel",
        _all_into_the_first,
    ),
    Mistake("all channels land in the first one: they need rows of their own, too", _one_offset_an_image),
    Mistake("rows and columns are swapped: an index is row * W + column", _rows_and_columns_swapped),
    Mistake("only the first image is filled: is `return` inside a loop?", _unpooled_after(lambda y: first_of(y, 0))),
    Mistake("only the first channel is filled: each has its own places", _unpooled_after(lambda y: first_of(y, 1))),
    Mistake(
        "you wrote 1 where the value belongs",
        lambda values, indices, size: ops.max_unpool2d(np.ones_like(values), indices, size),
    ),
    Mistake(
        "you wrote the index where the value belongs",
        lambda values, indices, size: ops.max_unpool2d(indices.astype(values.dtype), indices, size),
    ),
)


# By mask


def by_rule(rule: Callable[[Array], Shares]) -> Function:
    """Another rule for where in its window a value goes."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
        result = np.zeros(x.shape, values.dtype)
        for place, corner in windows_of(values, kernel_size, stride):
            pixels, inside = cut(x, corner, kernel_size), cut(result, corner, kernel_size)
            for i, j, share in rule(pixels):
                inside[i, j] += share * values[place]
        return result

    return wrong


def windows_of(
    values: Array, kernel_size: int, stride: int | None
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The place of every output, and the upper left pixel of its window."""
    stride = stride or kernel_size
    for image, channel, row, column in np.ndindex(values.shape):
        yield (image, channel, row, column), (image, channel, row * stride, column * stride)


def cut(x: Array, corner: tuple[int, ...], kernel_size: int) -> Array:
    image, channel, top, left = corner
    window: Array = x[image, channel, top : top + kernel_size, left : left + kernel_size]
    return window


def largest_places(pixels: Array) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in np.argwhere(pixels == pixels.max())]


def to_all(pixels: Array) -> Shares:
    return [(i, j, 1.0) for i, j in largest_places(pixels)]


def shared_among_all(pixels: Array) -> Shares:
    places = largest_places(pixels)
    return [(i, j, 1 / len(places)) for i, j in places]


def to_the_last(pixels: Array) -> Shares:
    return [(*largest_places(pixels)[-1], 1.0)]


def down_the_columns(pixels: Array) -> Shares:
    j, i = largest_places(pixels.T)[0]
    return [(i, j, 1.0)]


def _smallest(pixels: Array) -> Shares:
    return [(*largest_places(-pixels)[0], 1.0)]


def _corner(pixels: Array) -> Shares:
    return [(0, 0, 1.0)]


def _everywhere(pixels: Array) -> Shares:
    return [(int(i), int(j), 1.0) for i, j in np.ndindex(pixels.shape)]


def _instead(unpool: Function, change: Callable[[Array, Array], Array]) -> Function:
    """Something else is put back: change(values, maxima)."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
        maxima = ops.max_pool2d(x, kernel_size, stride)
        back: Array = unpool(change(values, maxima), x, kernel_size, stride)
        return back

    return wrong


def _only(unpool: Function, axis: int) -> Function:
    """The rest is left at zero along this axis."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
        result: Array = unpool(values, x, kernel_size, stride)
        result.swapaxes(0, axis)[1:] = 0
        return result

    return wrong


def _without_the_edge(unpool: Function) -> Function:
    """As large as the pixels that whole windows cover."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
        height, width = ((size - 1) * (stride or kernel_size) + kernel_size for size in values.shape[2:])
        result: Array = unpool(values, x, kernel_size, stride)
        return result[:, :, :height, :width]

    return wrong


def forgetting_the_winners(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """`waiting = ~here`: only the place before is remembered."""
    stride, (oh, ow) = stride or kernel_size, values.shape[2:]
    largest, result = ops.max_pool2d(x, kernel_size, stride), np.zeros(x.shape, values.dtype)
    waiting = np.ones(values.shape, bool)
    for i, j in np.ndindex(kernel_size, kernel_size):
        at = (..., _places(i, oh, stride), _places(j, ow, stride))
        here = waiting & (x[at] == largest)
        waiting = ~here
        result[at] += here * values
    return result


def _places(first: int, count: int, stride: int) -> slice:
    """The pixels that one place inside the window meets, along one axis."""
    return slice(first, first + (count - 1) * stride + 1, stride)


def _rows(x: Array, kernel_size: int) -> Array:
    """Windows that do not overlap as rows: (N*C*OH*OW, kernel_size²). ValueError where an edge is left over."""
    n, c, h, w = x.shape
    cut = x.reshape(n, c, h // kernel_size, kernel_size, w // kernel_size, kernel_size)
    return cut.swapaxes(3, 4).reshape(-1, kernel_size * kernel_size)


def _fill_of_n_times_n(values: Array, x: Array, kernel_size: int) -> Array:
    """Source A's line: every row gets its value at the winning places of all rows."""
    n, c, oh, ow = values.shape
    rows = _rows(x, kernel_size)
    filled = np.zeros(rows.shape, values.dtype)
    filled[:, rows.argmax(axis=1)] = values.reshape(-1, 1)
    return filled.reshape(n, c, oh, ow, kernel_size, kernel_size).swapaxes(3, 4).reshape(x.shape)


def _windows_not_turned_back(values: Array, x: Array, kernel_size: int) -> Array:
    """The right rows of windows, read as if they were an image."""
    back = ops.max_unpool2d_mask(values, x, kernel_size)
    return _rows(back, kernel_size).reshape(x.shape)


def _still_rows(values: Array, x: Array, kernel_size: int) -> Array:
    return _rows(ops.max_unpool2d_mask(values, x, kernel_size), kernel_size)


FIRST = "of equal maxima the first, row by row, gets the value; "

FORGETTING = (
    "waiting = ~here forgets the places before: a window is done once and for all, so waiting = waiting & ~here"
)


def mistakes_beside_ties(unpool: Function) -> tuple[Mistake, ...]:
    """Mistakes that have nothing to do with ties, where `unpool` is the right way back."""
    return (
        Mistake("nothing arrived: the result is all zeros", _instead(unpool, lambda v, m: np.zeros_like(v))),
        Mistake("you put the values where the smallest pixels are", by_rule(_smallest)),
        Mistake("you put the values into the upper left corners of the windows: find the maxima", by_rule(_corner)),
        Mistake("every pixel of a window got its value: only the maximum does", by_rule(_everywhere)),
        Mistake(
            "you put the maxima back, not the values: x says where, values say what", _instead(unpool, lambda v, m: m)
        ),
        Mistake(
            "you put 1 where the value belongs: the mask times the values",
            _instead(unpool, lambda v, m: np.ones_like(v)),
        ),
        Mistake("only the first image is filled: is `return` inside a loop?", _only(unpool, 0)),
        Mistake("only the first channel is filled: each has its own maxima", _only(unpool, 1)),
        Mistake(
            "pixels at the edge that no window covers stay 0: the result is as large as x", _without_the_edge(unpool)
        ),
    )


UNPOOLING_MISTAKES = (
    Mistake(FIRST + "yours gives all of it to each of them, so the sum grows", by_rule(to_all)),
    Mistake(FIRST + "yours shares it between them", by_rule(shared_among_all)),
    Mistake(FIRST + "yours gives it to the last", by_rule(to_the_last)),
    Mistake(FIRST + "yours goes down the columns first", by_rule(down_the_columns)),
    Mistake(FORGETTING, forgetting_the_winners),
    *mistakes_beside_ties(ops.max_unpool2d_mask),
)

ROW_MISTAKES = (
    Mistake(
        "every window got its value at the winning places of all windows: [:, winners] pairs every row with every "
        "place. This is the line of the hunt",
        _fill_of_n_times_n,
    ),
    Mistake(
        "your windows are right, but they lie one after another: swap the axes back before the last reshape",
        _windows_not_turned_back,
    ),
    Mistake("these are the windows as rows: bring them back to the shape of x", _still_rows),
)


# Overlap


def place_by_place(put: Callable[[Array, Array, Array], Array]) -> Function:
    """For each place in the window, what becomes of the pixels there: put(before, here, values)."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
        oh, ow = values.shape[2:]
        largest, result = ops.max_pool2d(x, kernel_size, stride), np.zeros(x.shape, values.dtype)
        waiting = np.ones(values.shape, bool)
        for i, j in np.ndindex(kernel_size, kernel_size):
            at = (..., _places(i, oh, stride), _places(j, ow, stride))
            here = waiting & (x[at] == largest)
            waiting &= ~here
            result[at] = put(result[at], here, values)
        return result

    return wrong


def _last_window_wins(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """What `result[place] = value` leaves, window by window, and `+=` with repeated indices as well."""
    result = np.zeros(x.shape, values.dtype)
    for place, corner in windows_of(values, kernel_size, stride):
        (i, j), *_ = largest_places(cut(x, corner, kernel_size))
        cut(result, corner, kernel_size)[i, j] = values[place]
    return result


def averaged(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """What meets is averaged."""
    arrived = ops.max_unpool2d_mask(np.ones_like(values), x, kernel_size, stride)
    return ops.max_unpool2d_mask(values, x, kernel_size, stride) / np.maximum(arrived, 1)


MEET = "where windows share a maximum, their values add up; "
ONE_IS_LEFT = MEET + "yours keeps one of them: each place in the window overwrites what is there. Add to the slice, +="

OVERLAP_MISTAKES = (
    Mistake(
        MEET + "yours keeps one of them. (= overwrites; so does += with an array of indices that repeats one)",
        _last_window_wins,
    ),
    Mistake(ONE_IS_LEFT, place_by_place(lambda before, here, values: np.where(here, values, before))),
    Mistake(ONE_IS_LEFT, place_by_place(lambda before, here, values: np.where(here, values, 0))),
    Mistake(MEET + "yours takes their mean", averaged),
)
