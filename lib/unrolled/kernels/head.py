"""The end of a network in one launch or two: the last dense layer, softmax, cross entropy, and the way back."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options, of_blocks
from unrolled.kernels.loss import softmax_cross_entropy

# A warp for each of the SAMPLES of a block: lane m has class m. The weight lies in shared memory, its rows filled up to
# a multiple of 32. What is summed over the samples is left to the second kernel, unless there is one block alone.
HEAD = r"""
constexpr int LOADS = (D + 31) / 32, PITCH = 32 * LOADS, ALL = 0xffffffff;

extern "C" __global__ void __launch_bounds__(BLOCK) head(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
    const long long* __restrict__ labels, T* __restrict__ losses, T* __restrict__ grad_scores, T* __restrict__ grad_x,
    T* __restrict__ loss, T* __restrict__ grad_weight, T* __restrict__ grad_bias, Index size) {
    __shared__ T rows[M * PITCH], grads[SAMPLES][32], own[SAMPLES];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, sample = blockIdx.x * SAMPLES + warp;
    T values[LOADS], score = 0, g = 0, lost = 0;
    #pragma unroll
    for (int l = 0; l < LOADS; ++l)
        values[l] = sample < BATCH && lane + 32 * l < D ? x[sample * D + lane + 32 * l] : (T)0;
    #pragma unroll 4
    for (int at = threadIdx.x; at < M * PITCH; at += BLOCK)
        rows[at] = at % PITCH < D ? weight[at / PITCH * D + at % PITCH] : (T)0;
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
        #pragma unroll
        for (int far = 16; far > 0; far /= 2) largest = MAX(largest, __shfl_xor_sync(ALL, largest, far));
        T share = lane < M ? EXP(score - largest) : (T)0, total = share;
        #pragma unroll
        for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(ALL, total, far);
        long long label = labels[sample];
        bool known = label >= 0 && label < M;
        T right = __shfl_sync(ALL, score, known ? (int)label : 0);
        lost = known ? LOG(total) - (right - largest) : (T)__int_as_float(0x7fffffff);  // else NaN
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
        if (BLOCKS > 1 && lane < M) grad_scores[sample * M + lane] = g;
        if (BLOCKS > 1 && lane == 0) losses[sample] = lost;
    }
    if (BLOCKS > 1) return;
    grads[warp][lane] = g;
    if (lane == 0) own[warp] = lost;
    __syncthreads();
    for (int at = threadIdx.x; at < M * D + M + 1; at += BLOCK) {
        int m = at / D, k = at % D;
        T total = 0;
        #pragma unroll 8
        for (int n = 0; n < BATCH; ++n)
            total += at < M * D ? grads[n][m] * x[n * D + k] : at < M * D + M ? grads[n][at - M * D] : own[n];
        if (at < M * D) grad_weight[at] = total;
        else if (at < M * D + M) grad_bias[at - M * D] = total;
        else loss[0] = total / BATCH;
    }
}
"""

# A block for 32 inputs: its warps share out the samples, and a lane has a sum for each class.
HEAD_WEIGHTS = r"""
constexpr int WARPS = BLOCK / 32;

extern "C" __global__ void __launch_bounds__(BLOCK) head_weights(
    const T* __restrict__ grad_scores, const T* __restrict__ x, const T* __restrict__ losses,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, T* __restrict__ loss, Index size) {
    __shared__ T partial[WARPS][33];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
    T sums[M] = {};
    #pragma unroll 8
    for (int n = warp; n < BATCH; n += WARPS) {
        T g = lane < M ? grad_scores[n * M + lane] : (T)0;
        T value = k < D ? x[n * D + k] : k == D ? (T)1 : (T)0;  // the bias is the weight of a one
        #pragma unroll
        for (int m = 0; m < M; ++m) sums[m] += __shfl_sync(0xffffffff, g, m) * value;
    }
    T lost = 0;
    if (blockIdx.x == 0)
        for (int n = threadIdx.x; n < BATCH; n += BLOCK) lost += losses[n];
    #pragma unroll
    for (int m = 0; m <= M; ++m) {
        __syncthreads();
        partial[warp][lane] = m < M ? sums[m < M ? m : 0] : lost;
        __syncthreads();
        if (warp != m % WARPS) continue;
        T total = 0;
        #pragma unroll
        for (int other = 0; other < WARPS; ++other) total += partial[other][lane];
        if (m < M && k < D) grad_weight[m * D + k] = total;
        if (m < M && k == D) grad_bias[m] = total;
        if (m < M || blockIdx.x > 0) continue;
        for (int far = 16; far > 0; far /= 2) total += __shfl_xor_sync(0xffffffff, total, far);
        if (lane == 0) loss[0] = total / BATCH;
    }
}
"""


def _head(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, weight, bias, labels), (all_losses, all_grads, grad_x, *sums) = inputs, outputs
    with np.errstate(all="ignore"):
        scores = x @ weight.T + bias
        losses, grad = np.empty(len(x), x.dtype), np.empty_like(scores)
        softmax_cross_entropy.numpy((scores, labels), (losses, grad), options)
        if options["inputs"]:
            grad_x[...] = grad @ weight * (x > 0) if options["masked"] else grad @ weight
    if options["blocks"] == 1:
        loss, grad_weight, grad_bias = sums
        _head_weights((grad, x, losses), (grad_weight, grad_bias, loss), options)
    else:
        all_losses[...], all_grads[...] = losses, grad


def _head_weights(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, x, losses), (grad_weight, grad_bias, loss) = inputs, outputs
    grad_weight[...] = grad.T @ x
    grad_bias[...] = grad.sum(axis=0)
    loss[...] = losses.mean()


head = Kernel(
    "head",
    HEAD,
    _head,
    lambda inputs, outputs, options: 4 * inputs[0].shape[0] * int(inputs[1].size),
    threads=of_blocks,
)
"""x (N, D), weight (M, D), bias, labels (N,) to losses (N,) and the gradients by scores (N, M) and x; M is at most 32.

With one block the mean loss (1,) and the gradients by weight and bias take the place of losses and scores'; else
`head_weights` finds these.
"""
head_weights = Kernel(
    "head_weights",
    HEAD_WEIGHTS,
    _head_weights,
    lambda inputs, outputs, options: 2 * int(inputs[0].size) * inputs[1].shape[1],
    threads=lambda size, options: (options["d"] // 32 + 1) * options["block"],
)
"""The gradient by the scores (N, M), x (N, D) and losses (N,) to the gradients by weight and bias and the mean loss."""
