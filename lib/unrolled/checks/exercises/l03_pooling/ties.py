"""Other rules for equal maxima on the way back from max-pooling: shared by all, or all to the last.

References, baselines and usual mistakes of variants of lesson 03.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l03_pooling.unpooling import (
    FORGETTING,
    MEET,
    OVERLAP_MISTAKES,
    Shares,
    by_rule,
    cut,
    down_the_columns,
    forgetting_the_winners,
    largest_places,
    mistakes_beside_ties,
    shared_among_all,
    to_all,
    to_the_last,
    windows_of,
)
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array


def shared(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are; equal maxima share theirs in equal parts."""
    stride, (oh, ow) = stride or kernel_size, values.shape[2:]
    largest = ops.max_pool2d(x, kernel_size, stride)
    masks = {}
    for i, j in np.ndindex(kernel_size, kernel_size):
        at = (..., slice(i, i + (oh - 1) * stride + 1, stride), slice(j, j + (ow - 1) * stride + 1, stride))
        masks[i, j] = at, x[at] == largest
    parts = values / sum(mask.astype(values.dtype) for _, mask in masks.values())
    result = np.zeros(x.shape, values.dtype)
    for at, mask in masks.values():
        result[at] += mask * parts
    return result


def shared_loops(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """`shared` with a loop over every axis: the definition, and the baseline."""
    stride = stride or kernel_size
    result = np.zeros(x.shape, values.dtype)
    for image, channel, row, column in np.ndindex(values.shape):
        largest, places = None, []
        for i in range(row * stride, row * stride + kernel_size):
            for j in range(column * stride, column * stride + kernel_size):
                pixel = x[image, channel, i, j]
                if largest is None or pixel > largest:
                    largest, places = pixel, [(i, j)]
                elif pixel == largest:
                    places.append((i, j))
        for i, j in places:
            result[image, channel, i, j] += values[image, channel, row, column] / len(places)
    return result


def last(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Put values (N, C, OH, OW) where the maxima of x (N, C, H, W) are, and add them up; of equal maxima the last."""
    return _turned(ops.max_unpool2d_mask, values, x, kernel_size, stride or kernel_size)


def last_loops(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """`last` with a loop over every axis: the definition, and the baseline."""
    stride = stride or kernel_size
    result = np.zeros(x.shape, values.dtype)
    for image, channel, row, column in np.ndindex(values.shape):
        largest, place = None, (0, 0)
        for i in range(row * stride, row * stride + kernel_size):
            for j in range(column * stride, column * stride + kernel_size):
                pixel = x[image, channel, i, j]
                if largest is None or pixel >= largest:
                    largest, place = pixel, (i, j)
        result[image, channel, place[0], place[1]] += values[image, channel, row, column]
    return result


def _turned(unpool: Function, values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """What `unpool` does with everything turned by 180 degrees: its first maximum is the last."""
    height, width = ((size - 1) * stride + kernel_size for size in values.shape[2:])
    covered, back = x[:, :, :height, :width], np.zeros(x.shape, values.dtype)
    turned = np.ascontiguousarray(covered[:, :, ::-1, ::-1])
    there = unpool(np.ascontiguousarray(values[:, :, ::-1, ::-1]), turned, kernel_size, stride)
    back[:, :, :height, :width] = there[:, :, ::-1, ::-1]
    return back


# Usual mistakes


def _rule(share: Callable[[int, int], float], only_first: bool = False) -> Function:
    """Maxima get share(how many there are, pixels in the window) of the value; perhaps only the first of them."""

    def shares(pixels: Array) -> Shares:
        places = largest_places(pixels)
        return [(i, j, share(len(places), pixels.size)) for i, j in (places[:1] if only_first else places)]

    return by_rule(shares)


def _as_they_come(pixels: Array) -> Shares:
    """Divided by the maxima counted so far: the first gets all, the second half."""
    return [(i, j, 1 / count) for count, (i, j) in enumerate(largest_places(pixels), 1)]


def _mean(pixels: Array) -> Shares:
    return [(int(i), int(j), 1 / pixels.size) for i, j in np.ndindex(pixels.shape)]


ALL = "equal maxima share the value in equal parts; "
SHARED_MISTAKES = (
    Mistake(ALL + "yours gives all of it to each of them, so the sum grows", by_rule(to_all)),
    Mistake(ALL + "yours gives all of it to the first", ops.max_unpool2d_mask),
    Mistake(ALL + "yours gives all of it to the last", by_rule(to_the_last)),
    Mistake(ALL + "yours gives the first its part and the others nothing", _rule(lambda n, size: 1 / n, True)),
    Mistake(ALL + "yours divides by those counted so far: count all of them before you give", by_rule(_as_they_come)),
    Mistake("divide by how many maxima the window has, not by how many pixels", _rule(lambda n, size: 1 / size)),
    Mistake("all pixels of a window share the value: only those that equal its largest do", by_rule(_mean)),
    Mistake("divide the values by the number of maxima: yours multiplies", _rule(lambda n, size: n)),
    *mistakes_beside_ties(shared),
)

LAST = "of equal maxima the last, row by row, gets the value; "


def _from_the_end(mistake: Mistake) -> Mistake:
    """A mistake of loops that begin at the first place, made by loops that begin at the last."""

    def wrong(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
        return _turned(mistake.function, values, x, kernel_size, stride)

    return Mistake(mistake.says, wrong)


def _last_window_wins(values: Array, x: Array, kernel_size: int, stride: int) -> Array:
    """What `result[place] = value` leaves, window by window."""
    result = np.zeros(x.shape, values.dtype)
    for place, corner in windows_of(values, kernel_size, stride):
        i, j = largest_places(cut(x, corner, kernel_size))[-1]
        cut(result, corner, kernel_size)[i, j] = values[place]
    return result


# Places from the end and windows from the beginning leave the same value.
KEPT = (
    MEET + "yours keeps one of them. = overwrites what is there, so add to the slice, +=. "
    "(+= with an array of indices that repeats one overwrites as well)"
)

LAST_MISTAKES = (
    Mistake(KEPT, _last_window_wins),
    *(_from_the_end(mistake) for mistake in OVERLAP_MISTAKES[1:]),
    Mistake(LAST + "yours gives it to the first: begin with the last place", ops.max_unpool2d_mask),
    Mistake(LAST + "yours gives all of it to each of them, so the sum grows", by_rule(to_all)),
    Mistake(LAST + "yours shares it between them", by_rule(shared_among_all)),
    _from_the_end(Mistake(LAST + "yours goes up the columns first", by_rule(down_the_columns))),
    _from_the_end(Mistake(FORGETTING, forgetting_the_winners)),
    *mistakes_beside_ties(last),
)
