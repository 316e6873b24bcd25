"""A dense layer for few samples: what takes time is reading the weights, so each of them is read once a pass.

A thread holds a sum for each of the BATCH samples, so every weight that it loads serves all of them.
"""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

# A block for each output: its threads share out the inputs D, then add up across lanes, then across warps.
DENSE = r"""
extern "C" __global__ void __launch_bounds__(BLOCK) dense(
    const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ y, Index size) {
    __shared__ T partial[BLOCK / 32][BATCH];
    int o = blockIdx.x;
    T sums[BATCH] = {};
    #pragma unroll 4
    for (int k = threadIdx.x; k < D; k += BLOCK) {
        T w = weight[o * (Index)D + k];
        #pragma unroll
        for (int n = 0; n < BATCH; ++n) sums[n] += w * x[n * D + k];
    }
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) {
        for (int far = 16; far > 0; far /= 2) sums[n] += __shfl_xor_sync(0xffffffff, sums[n], far);
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32][n] = sums[n];
    }
    __syncthreads();
    for (int n = threadIdx.x; n < BATCH; n += BLOCK) {
        T total = bias[o];
        for (int warp = 0; warp < BLOCK / 32; ++warp) total += partial[warp][n];
        y[n * O + o] = !RELU || total > 0 || total != total ? total : (T)0;
    }
}
"""

# A block for 32 inputs: its warps take the outputs in turn. A weight is loaded for the gradient by x, and the gradient
# by this weight is written at the same place.
DENSE_BACKWARD = r"""
constexpr int WARPS = BLOCK / 32, CHUNK = 128;
extern "C" __global__ void __launch_bounds__(BLOCK) dense_backward(
    const T* __restrict__ grad, const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ grad_x,
    T* __restrict__ grad_weight, T* __restrict__ grad_bias, Index size) {
    __shared__ T shares[CHUNK][BATCH];
    __shared__ T partial[INPUTS ? WARPS : 1][BATCH][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, k = blockIdx.x * 32 + lane;
    T values[BATCH], sums[BATCH] = {};
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) values[n] = k < D ? x[n * D + k] : (T)0;
    for (int first = 0; first < O; first += CHUNK) {
        __syncthreads();
        for (int at = threadIdx.x; at < CHUNK * BATCH; at += BLOCK) {
            int o = first + at % CHUNK, n = at / CHUNK;
            shares[at % CHUNK][n] = o < O ? grad[n * O + o] : (T)0;
        }
        __syncthreads();
        if (k < D) {
            #pragma unroll 4
            for (int o = first + warp; o < min(O, first + CHUNK); o += WARPS) {
                Index at = o * (Index)D + k;
                T w = INPUTS ? weight[at] : (T)0, total = 0;
                #pragma unroll
                for (int n = 0; n < BATCH; ++n) {
                    T g = shares[o - first][n];
                    total += g * values[n];
                    if (INPUTS) sums[n] += g * w;
                }
                grad_weight[at] = total;
            }
        }
        if (blockIdx.x == 0)
            for (int o = first + threadIdx.x; o < min(O, first + CHUNK); o += BLOCK) {
                T total = 0;
                for (int n = 0; n < BATCH; ++n) total += shares[o - first][n];
                grad_bias[o] = total;
            }
    }
    if (!INPUTS) return;
    #pragma unroll
    for (int n = 0; n < BATCH; ++n) partial[warp][n][lane] = sums[n];
    __syncthreads();
    for (int at = threadIdx.x; at < 32 * BATCH; at += BLOCK) {
        int n = at / 32, column = blockIdx.x * 32 + at % 32;
        T total = 0;
        for (int other = 0; other < WARPS; ++other) total += partial[other][n][at % 32];
        if (column < D) grad_x[n * D + column] = !MASKED || x[n * D + column] > 0 ? total : (T)0;
    }
}
"""


def forward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    """Write x (N, D) @ weight (O, D).T + bias (O,) to y (N, O), without what is negative if `relu`."""
    (x, weight, bias), (y, *_) = inputs, outputs
    y[...] = x @ weight.T + bias
    if options["relu"]:
        np.maximum(y, 0, out=y)


def backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    """Write the gradients by x (if `inputs`, and 0 where x is if `masked`), weight and bias, from that by y (N, O)."""
    (grad, x, weight), (grad_x, grad_weight, grad_bias, *_) = inputs, outputs
    if options["inputs"]:
        grad_x[...] = grad @ weight * (x > 0) if options["masked"] else grad @ weight
    grad_weight[...] = grad.T @ x
    grad_bias[...] = grad.sum(axis=0)


def flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    """Return the operations of one product: the number of samples times the number of weights, twice."""
    return int(2 * inputs[0].shape[0] * inputs[1].size)


def backward_flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    """Return the operations of the products of the backward pass."""
    return int(2 * inputs[0].shape[0] * inputs[2].size * (1 + options["inputs"]))


dense = Kernel("dense", DENSE, forward, flops, threads=lambda size, options: int(options["o"] * options["block"]))


dense_backward = Kernel(
    "dense_backward",
    DENSE_BACKWARD,
    backward,
    backward_flops,
    threads=lambda size, options: int(-(-options["d"] // 32) * options["block"]),
)
