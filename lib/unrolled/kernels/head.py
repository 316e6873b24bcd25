"""The end of a network in one launch: the last dense layer, softmax and cross entropy, and the way back through both."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options
from unrolled.kernels.last_block import LAST_BLOCK

# A warp for each of the SAMPLES of a block: lane m has class m. The block adds up its gradients of the weight, the last
# block those of all. The weight lies in shared memory, its rows filled up to a multiple of 32.
HEAD = (
    LAST_BLOCK
    + r"""
constexpr int LOADS = (D + 31) / 32, PITCH = 32 * LOADS, ALL = 0xffffffff, VALUES = M * D + M + 1;

extern "C" __global__ void __launch_bounds__(BLOCK) head(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    const long long* __restrict__ labels, T* __restrict__ loss, T* __restrict__ grad_x, T* __restrict__ grad_weight,
    T* __restrict__ grad_bias, T* parts, int* counters, Index size) {
    __shared__ T rows[M * PITCH];
    __shared__ T grads[SAMPLES][32], losses[SAMPLES];
    for (int at = threadIdx.x; at < M * PITCH; at += BLOCK)
        rows[at] = at % PITCH < D ? weight[at / PITCH * D + at % PITCH] : (T)0;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sample = blockIdx.x * SAMPLES + warp;
    T values[LOADS], score = 0, g = 0, own = 0;
    #pragma unroll
    for (int l = 0; l < LOADS; ++l)
        values[l] = sample < BATCH && lane + 32 * l < D ? x[sample * D + lane + 32 * l] : (T)0;
    __syncthreads();
    if (sample < BATCH) {
        #pragma unroll
        for (int m = 0; m < M; ++m) {
            T total = 0;
            #pragma unroll
            for (int l = 0; l < LOADS; ++l) total += values[l] * rows[m * PITCH + lane + 32 * l];
            #pragma unroll
            for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
            if (lane == m) score = total + bias[m];
        }
        T largest = lane < M ? score : (T)__int_as_float(0xff800000);  // minus infinity
        for (int far = 16; far > 0; far /= 2) largest = MAX(largest, __shfl_xor_sync(ALL, largest, far));
        T share = lane < M ? EXP(score - largest) : (T)0, total = share;
        for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
        long long label = labels[sample];
        bool known = label >= 0 && label < M;
        T right = __shfl_sync(ALL, score, known ? (int)label : 0);
        own = known ? LOG(total) - (right - largest) : (T)__int_as_float(0x7fffffff);  // else NaN
        if (lane < M) g = share / (total * BATCH) - (lane == label ? (T)1 / BATCH : (T)0);
        T back[LOADS] = {};
        #pragma unroll
        for (int m = 0; m < M; ++m) {
            T of = __shfl_sync(ALL, g, m);
            #pragma unroll
            for (int l = 0; l < LOADS; ++l) back[l] += of * rows[m * PITCH + lane + 32 * l];
        }
        #pragma unroll
        for (int l = 0; l < LOADS; ++l)
            if (INPUTS && lane + 32 * l < D)
                grad_x[sample * D + lane + 32 * l] = !MASKED || values[l] > 0 ? back[l] : (T)0;
    }
    grads[warp][lane] = g;
    if (lane == 0) losses[warp] = own;
    __syncthreads();
    T* mine = parts + blockIdx.x * (Index)VALUES;
    int samples = min(SAMPLES, BATCH - (int)blockIdx.x * SAMPLES);
    for (int at = threadIdx.x; at < VALUES; at += BLOCK) {
        int m = at / D, k = at % D;
        T total = 0;
        for (int s = 0; s < samples; ++s) {
            if (at < M * D) total += grads[s][m] * x[(blockIdx.x * SAMPLES + s) * D + k];
            else total += at < M * D + M ? grads[s][at - M * D] : losses[s];
        }
        mine[at] = total;
    }
    if (!is_last(counters, BLOCKS)) return;
    for (int at = threadIdx.x; at < VALUES; at += BLOCK) {
        T total = 0;
        #pragma unroll 8
        for (int b = 0; b < BLOCKS; ++b) total += __ldcg(parts + b * (Index)VALUES + at);
        if (at < M * D) grad_weight[at] = total;
        else if (at < M * D + M) grad_bias[at - M * D] = total;
        else loss[0] = total / BATCH;
    }
}
"""
)


def _head(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, weight, bias, labels), (loss, grad_x, grad_weight, grad_bias, *_) = inputs, outputs
    n, m = len(x), len(weight)
    known = (labels >= 0) & (labels < m)
    chosen = np.flatnonzero(known), labels[known]
    with np.errstate(all="ignore"):
        shifted = x @ weight.T + bias
        shifted -= shifted.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=1)
        losses = np.full(n, np.nan, x.dtype)
        losses[known] = np.log(sums[known]) - shifted[chosen]
        grad = exponentials / (sums * n)[:, None]
        grad[chosen] -= x.dtype.type(1 / n)
        loss[...] = losses.mean()
        if options["inputs"]:
            grad_x[...] = grad @ weight * (x > 0) if options["masked"] else grad @ weight
        grad_weight[...] = grad.T @ x
    grad_bias[...] = grad.sum(axis=0)


head = Kernel(
    "head",
    HEAD,
    _head,
    lambda inputs, outputs, options: 6 * inputs[0].shape[0] * int(inputs[1].size),
    threads=lambda size, options: int(options["blocks"] * options["block"]),
)
"""x (N, D), weight (M, D), bias, labels (N,) to the mean loss (1,) and the gradients by x, weight and bias.

M is at most 32. Scratch: parts (BLOCKS, M * D + M + 1), counters, an int32 that is 0 before and after.
"""
