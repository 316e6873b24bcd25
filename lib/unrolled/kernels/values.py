"""One thread for each value: what would be several launches in a row, in one."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

RELU_BACKWARD = r"""
extern "C" __global__ void relu_backward(
    const T* __restrict__ grad, const T* __restrict__ x, T* __restrict__ grad_x, Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at < size) grad_x[at] = grad[at] * (T)(x[at] > 0);
}
"""
DROPOUT = r"""
extern "C" __global__ void dropout(
    const T* __restrict__ x, const float* __restrict__ chance, T* __restrict__ y, T* __restrict__ mask,
    Index size, double rate) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at >= size) return;
    T kept = chance[at] >= (float)rate ? (T)(1 / (1 - rate)) : (T)0;
    mask[at] = kept;
    y[at] = x[at] * kept;
}
"""


def _relu_backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, x), (grad_x,) = inputs, outputs
    np.multiply(grad, x > 0, out=grad_x)


def _dropout(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, chance), (y, mask) = inputs, outputs
    mask[...] = chance >= np.float32(options["rate"])
    mask *= mask.dtype.type(1 / (1 - options["rate"]))
    np.multiply(x, mask, out=y)


relu_backward = Kernel("relu_backward", RELU_BACKWARD, _relu_backward, lambda inputs, outputs, o: 2 * inputs[0].size)
dropout = Kernel("dropout", DROPOUT, _dropout, lambda inputs, outputs, o: 2 * inputs[0].size)
