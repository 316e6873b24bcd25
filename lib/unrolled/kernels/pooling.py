"""Pooling: the largest or the mean of each window, and the backward passes. A thread for each value that is written.

The backward pass of a max-pooling gathers: each pixel looks at the windows that can reach it and adds the values of
those whose maximum it is. Nothing is filled with zeros first, and no two threads write to one place.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from unrolled.kernels.columns import ADDRESSING, check_windows, meetings
from unrolled.kernels.kernel import Arrays, Options, per_value

OUTPUT = r"""
    int left = at % OW * SW - PW, top = at / OW % OH * SH - PH;
    x += at / (OH * OW) * (H * W);  // this image and channel
"""
LARGEST = r"""
    T largest = 0;
    int place = -1;
    for (int i = top < 0 ? 0 : top; i < top + KH && i < H; ++i)
        for (int j = left < 0 ? 0 : left; j < left + KW && j < W; ++j) {
            T pixel = x[i * W + j];
            if (place < 0 || pixel > largest || (pixel != pixel && largest == largest)) {  // the first NaN wins
                largest = pixel;
                place = i * W + j;
            }
        }
    y[at] = largest;
"""
# Which windows reach a pixel: rows `first_row` to `last_row` of them, and so for columns.
PIXEL = r"""
    int column = at % W, row = at / W % H;
    Index plane = at / (H * W) * (OH * OW);
    int first_row = row + PH < KH ? 0 : (row + PH - KH) / SH + 1, last_row = (row + PH) / SH;
    int first_column = column + PW < KW ? 0 : (column + PW - KW) / SW + 1, last_column = (column + PW) / SW;
    T total = 0;
    for (int i = first_row; i <= last_row && i < OH; ++i)
        for (int j = first_column; j <= last_column && j < OW; ++j)
"""
MAX_UNPOOL = r"""
            if (places[plane + i * OW + j] == row * W + column) total += values[plane + i * OW + j];
    x[at] = total;
"""
AVG_POOL = r"""
    T total = 0;
    for (int i = top < 0 ? 0 : top; i < top + KH && i < H; ++i)
        for (int j = left < 0 ? 0 : left; j < left + KW && j < W; ++j) total += x[i * W + j];
    y[at] = total * ((T)1 / (KH * KW));
"""
AVG_POOL_BACKWARD = r"""
            total += values[plane + i * OW + j];
    x[at] = total * ((T)1 / (KH * KW));
"""


def _max_pool(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x,), (y, *places) = inputs, outputs
    check_windows(options, x, y)
    largest, found = np.empty(y.shape, y.dtype), np.full(y.shape, -1, np.int64)
    corners = options["w"] * np.arange(options["h"])[:, None] + np.arange(options["w"])
    if y.size:
        for _, _, to, of in meetings(options):
            pixel, leader = x[of], largest[to]
            leads = (found[to] < 0) | (pixel > leader) | ((pixel != pixel) & (leader == leader))
            largest[to] = np.where(leads, pixel, leader)
            found[to] = np.where(leads, corners[of], found[to])
    y[...] = largest
    for each in places:
        each[...] = found


def _max_unpool(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (values, places), (x,) = inputs, outputs
    check_windows(options, x, values)
    numbers = options["w"] * np.arange(options["h"])[:, None] + np.arange(options["w"])
    x[...] = 0
    if x.size:
        for _, _, of, to in meetings(options):
            x[to] += np.where(places[of] == numbers[to], values[of], 0)


def _avg_pool(inputs: Arrays, outputs: Arrays, options: Options, backward: bool = False) -> None:
    (values,), (out,) = inputs, outputs
    check_windows(options, *((out, values) if backward else (values, out)))
    out[...] = 0
    if out.size:
        for _, _, place, pixels in meetings(options):
            to, of = (pixels, place) if backward else (place, pixels)
            out[to] += values[of]
    out *= out.dtype.type(1 / (options["kh"] * options["kw"]))


def _of_outputs(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    return int(outputs[0].size * options["kh"] * options["kw"])


def _of_inputs(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    return int(inputs[0].size * options["kh"] * options["kw"])


max_pool = per_value("max_pool", "x -> y", OUTPUT + LARGEST, _max_pool, _of_outputs)
max_pool_with_indices = per_value(
    "max_pool_with_indices",
    "x -> y, long long places",
    OUTPUT + LARGEST + "    places[at] = place;\n",
    _max_pool,
    _of_outputs,
)
max_unpool = per_value(
    "max_unpool", "values, long long places -> x", PIXEL + MAX_UNPOOL, _max_unpool, _of_inputs, addressing=ADDRESSING
)
avg_pool = per_value("avg_pool", "x -> y", OUTPUT + AVG_POOL, _avg_pool, _of_outputs)
_backward = partial(_avg_pool, backward=True)
avg_pool_backward = per_value(
    "avg_pool_backward", "values -> x", PIXEL + AVG_POOL_BACKWARD, _backward, _of_inputs, addressing=ADDRESSING
)
