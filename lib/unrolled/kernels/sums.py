"""Sums in an order that never changes: over the first axis, and the mean of all values."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

# A block of 32 x 32 threads adds up 32 neighbouring columns: each row of threads takes every 32nd value, then the
# partial sums are added in pairs in shared memory. So 32 threads always read 32 neighbours.
SUM = r"""
    __shared__ T partial[32][33];
    int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
    Index column = blockIdx.x * (Index)32 + lane;
    T total = 0;
    if (column < COLUMNS)
        for (long long at = slice * (long long)COLUMNS + column; at < size; at += 32LL * COLUMNS) total += x[at];
    partial[slice][lane] = total;
    for (int half = 16; half > 0; half /= 2) {
        __syncthreads();
        if (slice < half) partial[slice][lane] += partial[slice + half][lane];
    }
    if (slice > 0 || column >= COLUMNS) return;
"""
SUM_FIRST_AXIS = f"""
extern "C" __global__ void sum_first_axis(const T* __restrict__ x, T* __restrict__ y, Index size) {{{SUM}
    y[column] = partial[0][lane];
}}
"""
SUM_FILTERS = f"""
extern "C" __global__ void sum_filters(
    const T* __restrict__ x, T* __restrict__ weight, T* __restrict__ bias, Index size) {{{SUM}
    Index o = column / (K + 1), k = column % (K + 1);
    (k < K ? weight[o * K + k] : bias[o]) = partial[0][lane];
}}
"""
MEAN = r"""
extern "C" __global__ void mean(const T* __restrict__ x, T* __restrict__ y, Index size) {
    __shared__ T partial[256];
    T total = 0;
    for (Index at = threadIdx.x; at < size; at += 256) total += x[at];
    partial[threadIdx.x] = total;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) y[0] = partial[0] / size;
}
"""


def _sum_first_axis(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x,), (y,) = inputs, outputs
    if x.shape[1:] != y.shape or y.size != options["columns"]:
        raise ValueError(f"the sum over the first axis of {x.shape} does not fit {y.shape}, {dict(options)}")
    np.sum(x, axis=0, out=y)


def _sum_filters(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x,), (weight, bias) = inputs, outputs
    if x.ndim != 3 or x.shape[1:] != (len(bias), options["k"] + 1) or weight.size != len(bias) * options["k"]:
        raise ValueError(f"sums of {x.shape} do not fit {weight.shape}, {bias.shape}, {dict(options)}")
    total = x.sum(axis=0)
    weight[...] = total[:, :-1].reshape(weight.shape)
    bias[...] = total[:, -1]


def _mean(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x,), (y,) = inputs, outputs
    y[...] = x.mean()


def _values(inputs: Arrays, *_: Any) -> int:
    """How many values are read, and so how many additions there are."""
    return int(inputs[0].size)


def _threads(size: int, options: Options) -> int:
    return -(-int(options["columns"]) // 32) * 1024


sum_first_axis = Kernel("sum_first_axis", SUM_FIRST_AXIS, _sum_first_axis, _values, False, _values, _threads, 1024)
sum_filters = Kernel("sum_filters", SUM_FILTERS, _sum_filters, _values, size=_values, threads=_threads, block=1024)
"""The sum of (N, O, K + 1) over N, apart: weight (O, K), and bias (O,) from the last column."""
mean = Kernel("mean", MEAN, _mean, _values, size=_values, threads=lambda size, options: 256)
