"""Softmax and cross entropy in one launch, which otherwise take fourteen."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

# A warp (32 threads) for each sample: its threads share out the classes, and shuffle what they found.
SOFTMAX_CROSS_ENTROPY = r"""
extern "C" __global__ void softmax_cross_entropy(
    const T* __restrict__ scores, const long long* __restrict__ labels, T* __restrict__ losses, T* __restrict__ grad,
    Index size) {
    long long sample = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (sample >= size) return;
    scores += sample * M;
    grad += sample * M;
    T largest = (T)__int_as_float(0xff800000);  // minus infinity
    for (int j = lane; j < M; j += 32) largest = MAX(largest, scores[j]);
    for (int far = 16; far > 0; far /= 2) largest = MAX(largest, __shfl_xor_sync(0xffffffff, largest, far));
    T total = 0;
    for (int j = lane; j < M; j += 32) total += EXP(scores[j] - largest);
    for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(0xffffffff, total, far);
    long long label = labels[sample];
    for (int j = lane; j < M; j += 32)
        grad[j] = EXP(scores[j] - largest) / (total * size) - (j == label ? (T)1 / size : (T)0);
    if (lane == 0) {
        bool known = label >= 0 && label < M;
        losses[sample] = known ? LOG(total) - (scores[label] - largest) : (T)__int_as_float(0x7fffffff);  // else NaN
    }
}
"""


COUNT_RIGHT = r"""
extern "C" __global__ void count_right(
    const T* __restrict__ scores, const long long* __restrict__ labels, long long* __restrict__ right, Index size) {
    __shared__ int partial[256];
    int total = 0;
    for (long long sample = threadIdx.x; sample < size; sample += 256) {
        const T* row = scores + sample * M;
        int best = 0;
        for (int j = 1; j < M; ++j)
            if (row[j] > row[best] || (row[j] != row[j] && row[best] == row[best])) best = j;
        total += best == labels[sample];
    }
    partial[threadIdx.x] = total;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if (threadIdx.x == 0) right[0] = partial[0];
}
"""


def _softmax_cross_entropy(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (scores, labels), (losses, grad) = inputs, outputs
    n, m = scores.shape
    known = (labels >= 0) & (labels < m)
    chosen = np.flatnonzero(known), labels[known]
    with np.errstate(all="ignore"):
        shifted = scores - scores.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1)
        losses[...] = np.nan
        losses[known] = np.log(sums[known]) - shifted[chosen]
        grad[...] = exponentials / (sums * n)[:, None]
        grad[chosen] -= scores.dtype.type(1 / n)


softmax_cross_entropy = Kernel(
    "softmax_cross_entropy",
    SOFTMAX_CROSS_ENTROPY,
    _softmax_cross_entropy,
    lambda inputs, outputs, options: 8 * inputs[0].size,
    threads=lambda size, options: 32 * size,
)


def _count_right(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (scores, labels), (right,) = inputs, outputs
    right[...] = (scores.argmax(axis=1) == labels).sum()


count_right = Kernel(
    "count_right",
    COUNT_RIGHT,
    _count_right,
    lambda inputs, outputs, options: inputs[0].size,
    size=lambda inputs, outputs: int(inputs[1].size),
    threads=lambda size, options: 256,
)
"""How many of the scores (N, M) are highest at their label (N,): an int64 of no axes."""
