"""Who of equal maxima gets the value on the way back from max-pooling: each, all in equal parts, or the last.

Each function puts values (N, C, OH, OW) where the maxima of x (N, C, H, W) are, and adds up what meets: (N, C, H, W).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Function
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


def shared_loops(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Do what `shared` does with a loop over every axis: the definition, and the baseline."""
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


def place_by_place(
    put: Callable[[Array, Array, Array], Array], backwards: bool = False, forget: bool = False
) -> Function:
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


def last_loops(values: Array, x: Array, kernel_size: int, stride: int | None = None) -> Array:
    """Do what `last` does with a loop over every axis: the definition, and the baseline."""
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
