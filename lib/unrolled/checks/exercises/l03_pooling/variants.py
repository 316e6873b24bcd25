"""Variants of the exercises of lesson 03: means instead of maxima, images in NHWC, other rules for ties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import nhwc
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X, SEMINAR_X3
from unrolled.checks.exercises.l03_pooling import exercises, pooling, unpooling
from unrolled.checks.spec import Case, Inputs, case, images, normal, random_case, variant

ODD = array([1, 3, 5], [5, 7, 9], [2, 4, 6])[None, None]

max_pool2d_average = variant(
    exercises.max_pool2d,
    reference=pooling.average_pool,
    answers=(ops.avg_pool2d, pooling.pool),
    cases=[
        case("a 3 x 3 image, window 2: an edge is left over", x=ODD, kernel_size=2),
        case("the seminar's 4 x 4 image, window 2", x=SEMINAR_X, kernel_size=2),
        case("the seminar's three channels", x=SEMINAR_X3, kernel_size=2),
        case("4 rows of 6, window 2", x=images(1, 1, 4, 6), kernel_size=2),
        case("three images, two channels, window 3", x=images(3, 2, 9, 6), kernel_size=3),
        case("6 rows of 8, window 3: only columns are left over", x=images(2, 2, 6, 8), kernel_size=3),
        case("7 rows of 9, window 4: edges of three rows and of one column", x=images(1, 2, 7, 9), kernel_size=4),
        case("window 1, float64", x=normal(2, 3, 2, 4, dtype=float), kernel_size=1),
        case("the window is larger than the image", x=images(3, 2, 3, 4), kernel_size=5),
        random_case("sizes as they come", exercises.any_pooling),
    ],
    hints=(
        "Go through the outputs, row by row. Cut the window of each out of x, and take its mean. A slice that reaches "
        "over the edge ends at the edge by itself, so the last windows need no case of their own.",
        "y is (N, C, OH, OW), in x's dtype, where OH is H / kernel_size rounded up: (H + kernel_size - 1) // "
        "kernel_size. The window of output (row, column) begins at top = row * kernel_size, left = column * "
        "kernel_size; x[:, :, top : top + kernel_size, left : left + kernel_size] holds the pixels that are there.",
        "OH, OW = (H + kernel_size - 1) // kernel_size, (W + kernel_size - 1) // kernel_size\n"
        "y = np.empty((N, C, OH, OW), dtype=x.dtype)\n"
        "in the loops over row, column:\n"
        "    top, left = row * kernel_size, column * kernel_size\n"
        "    y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].mean(axis=(2, 3))",
    ),
    mistakes=pooling.AVERAGE_MISTAKES,
)


def _to_nhwc(inputs: Mapping[str, Any]) -> Inputs:
    return {**inputs, "values": nhwc.to_nhwc(inputs["values"]), "indices": nhwc.to_nhwc(inputs["indices"])}


def _in_nhwc(given: Case) -> Case:
    """Return a case of `max_unpool2d` with values and indices in NHWC."""
    draw = given.draw
    if draw is None:
        return case(given.name, **_to_nhwc(given.arguments))
    return random_case(given.name, lambda rng: _to_nhwc(draw(rng)))


ONE_WINDOW = {"values": array([[[10, 20]]]), "indices": np.array([[[[3, 0]]]])}

max_unpool2d_nhwc = variant(
    exercises.max_unpool2d,
    reference=nhwc.max_unpool2d,
    cases=[
        case("2 x 2 pixels of two channels, one window", **ONE_WINDOW, size=(2, 2)),
        *map(_in_nhwc, exercises.max_unpool2d.cases),
    ],
    hints=(
        "Make the two axes of places one: images of H * W pixels, in which `indices` says where each value goes. Then "
        "name all that there is to name: the image, the place in it, and the channel.",
        "result is (N, H*W, C); values and indices become (N, OH*OW, C). The numbers of the images, "
        "np.arange(N)[:, None, None], are (N, 1, 1), those of the channels, np.arange(C), are (C,); beside indices, "
        "NumPy repeats both. At the end, reshape to (N, H, W, C).",
        "result = np.zeros((N, H * W, C), dtype=values.dtype)\n"
        "image, channel = np.arange(N)[:, None, None], np.arange(C)\n"
        "result[image, indices.reshape(N, -1, C), channel] = values.reshape(N, -1, C)\n"
        "return result.reshape(N, H, W, C)",
    ),
    mistakes=nhwc.unpooling_mistakes(unpooling.BY_INDEX_MISTAKES),
)

untied, tied, *others = exercises.max_unpool2d_mask.cases
parted = case(tied.name, **{**tied.arguments, "values": 12 * exercises.FOUR_VALUES})  # the parts are whole numbers

max_unpool2d_mask_shared = variant(
    exercises.max_unpool2d_mask,
    reference=unpooling.shared,
    cases=[untied, parted, *others],
    hints=(
        "A place inside the window, such as the upper left, is a slice of x with steps: it holds that pixel of all "
        "windows at once. Go through the places twice: first count the winners of each window, then give each winner "
        "its part.",
        "largest = ops.max_pool2d(x, kernel_size) is (N, C, OH, OW), and so is x[:, :, i : i + OH * kernel_size : "
        "kernel_size, j : j + OW * kernel_size : kernel_size], the pixels at place (i, j). Where they equal largest, "
        "count += 1. Each part is values / count.",
        "count = np.zeros(values.shape, dtype=values.dtype)\n"
        "in the loops over i, j:\n"
        "    at = (..., slice(i, i + OH * kernel_size, kernel_size), slice(j, j + OW * kernel_size, kernel_size))\n"
        "    count += x[at] == largest\n"
        "part = values / count\n"
        "in the same loops again:\n"
        "    result[at] = (x[at] == largest) * part",
    ),
    mistakes=unpooling.SHARED_MISTAKES,
    speed=replace(exercises.UNPOOLING_SPEED, baseline=unpooling.shared_loops, at_least=8),
    rung=replace(exercises.UNPOOLING_RUNG, label="by masks, ties shared"),
)

max_unpool2d_overlapping_last = variant(
    exercises.max_unpool2d_overlapping,
    reference=unpooling.last,
    hints=(
        "It is the mask again, with three changes: slices that step by the stride, a plus where values are put down, "
        "because another window may have left one on the same pixel, and another end from which you begin.",
        "Who comes first wins, so begin with the last place: for i in reversed(range(kernel_size)), and j alike. At "
        "each place, here, waiting and values are (N, C, OH, OW), and result[:, :, rows, columns] is the slice of the "
        "same shape, with rows = slice(i, i + OH * stride, stride). Within one slice no pixel occurs twice, so += adds "
        "as it should.",
        "in the loops over i, j, both from kernel_size - 1 down to 0:\n"
        "    rows = slice(i, i + OH * stride, stride)\n"
        "    columns = slice(j, j + OW * stride, stride)\n"
        "    here = waiting & (x[:, :, rows, columns] == largest)\n"
        "    result[:, :, rows, columns] += here * values\n"
        "    waiting = waiting & ~here",
    ),
    mistakes=unpooling.LAST_MISTAKES,
    speed=replace(exercises.OVERLAPPING_SPEED, baseline=unpooling.last_loops, at_least=6),
)
