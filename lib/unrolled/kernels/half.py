"""Columns and filters for convolutions in float16, in the sides that tensor cores want: rows in multiples of eight.

Finding a place takes longer than moving two bytes, so a thread of `im2col_wide` finds one and goes on from there to
seven neighbours, and writes all eight at once.
"""

from __future__ import annotations

from unrolled.kernels.columns import ADDRESSING
from unrolled.kernels.columns import im2col as one_by_one
from unrolled.kernels.kernel import Arrays, Kernel, Options, per_value
from unrolled.kernels.values import relu

WIDTH = 8
IM2COL = r"""
extern "C" __global__ void im2col_wide(const T* __restrict__ x, T* __restrict__ columns, Index size) {
    Index first = (blockIdx.x * (Index)blockDim.x + threadIdx.x) * 8;
    if (first >= size) return;
    int column = first % OW, row = first / OW % OH, place = first / (OH * OW) % ROWS;
    Index image = first / (OH * OW) / ROWS;
    int j = place % KW, i = place / KW % KH, channel = place / (KH * KW);
    __align__(16) unsigned short found[8];
    #pragma unroll
    for (int at = 0; at < 8; ++at) {
        int y = row * SH - PH + i, z = column * SW - PW + j;
        found[at] = 0;
        if (place == C * KH * KW) found[at] = 0x3C00;  // 1: the bias is its weight
        else if (place < C * KH * KW && first + at < size && y >= 0 && y < H && z >= 0 && z < W)
            found[at] = x[((image * C + channel) * H + y) * W + z].bits;
        if (++column < OW) continue;
        column = 0;
        if (++row < OH) continue;
        row = 0;
        if (++place == ROWS) place = 0, ++image;
        j = place % KW, i = place / KW % KH, channel = place / (KH * KW);
    }
    if (first + 8 <= size) *(uint4*)(columns + first) = *(uint4*)found;
    else for (int at = 0; first + at < size; ++at) columns[first + at].bits = found[at];
}
"""
RELU = r"""
extern "C" __global__ void relu_wide(const T* __restrict__ x, T* __restrict__ y, Index size) {
    Index first = (blockIdx.x * (Index)blockDim.x + threadIdx.x) * 8;
    if (first >= size) return;
    bool whole = first + 8 <= size && (size_t)x % 16 == 0;  // what lies elsewhere in memory is no row of eight
    __align__(16) unsigned short found[8];
    if (whole) *(uint4*)found = *(const uint4*)(x + first);
    else for (int at = 0; at < 8 && first + at < size; ++at) found[at] = x[first + at].bits;
    #pragma unroll
    for (int at = 0; at < 8; ++at)  // negative, unless it is NaN
        if (found[at] >= 0x8000 && found[at] <= 0xFC00) found[at] = 0;
    if (whole) *(uint4*)(y + first) = *(uint4*)found;
    else for (int at = 0; at < 8 && first + at < size; ++at) y[first + at].bits = found[at];
}
"""
FILTERS = r"""
    int k = at % ROWS;
    Index o = at / ROWS;
    rows[at] = k < K ? weight[o * K + k] : k == K ? bias[o] : (T)0;
"""


def _im2col(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (columns,), k = outputs, options["c"] * options["kh"] * options["kw"]
    if columns.ndim != 3 or columns.shape[1] != options["rows"] or options["rows"] <= k:
        raise ValueError(f"columns of shape {columns.shape} do not fit windows {dict(options)}")
    one_by_one.numpy(inputs, (columns[:, : k + 1],), {**options, "ones": 1})
    columns[:, k + 1 :] = 0


def _filters(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (weight, bias), (rows,), k = inputs, outputs, options["k"]
    if rows.shape != (len(bias), options["rows"]) or weight.size != k * len(bias) or options["rows"] <= k:
        raise ValueError(f"filters {weight.shape} do not fit rows {rows.shape}, {dict(options)}")
    rows[...] = 0
    rows[:, :k] = weight.reshape(len(weight), -1)
    rows[:, k] = bias


def _eighth(size: int, options: Options) -> int:
    return -(-size // WIDTH)


im2col_wide = Kernel(
    "im2col_wide", IM2COL, _im2col, lambda inputs, outputs, o: 0, threads=_eighth, addressing=ADDRESSING // WIDTH
)
"""float16 images as columns (N, rows, OH * OW), each with a row of ones after its last place, then zeros."""
relu_wide = Kernel("relu_wide", RELU, relu.numpy, relu.flops, threads=_eighth)
"""max(x, 0) in float16; NaN stays NaN."""
filters_wide = per_value("filters_wide", "weight, bias -> rows", FILTERS, _filters, lambda *_: 0)
"""Each filter of weight (O, K) as a row: its bias (O,) after its last weight, then zeros: (O, rows)."""
