"""One thread for each value: one launch for what would otherwise be several."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options

RELU = r"""
extern "C" __global__ void relu(const T* __restrict__ x, T* __restrict__ y, Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at < size) y[at] = x[at] > 0 || x[at] != x[at] ? x[at] : (T)0;  // NaN stays NaN
}
"""
RELU_BACKWARD = r"""
extern "C" __global__ void relu_backward(
    const T* __restrict__ grad, const T* __restrict__ x, T* __restrict__ grad_x, Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at < size) grad_x[at] = grad[at] * (T)(x[at] > 0);
}
"""
ADD_ROW = r"""
extern "C" __global__ void add_row(const T* __restrict__ row, T* __restrict__ y, Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at < size) y[at] += row[at % COLUMNS];
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


def _relu(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    np.maximum(inputs[0], 0, out=outputs[0])


def _add_row(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (row,), (y,) = inputs, outputs
    if y.shape[1:] != row.shape or row.size != options["columns"]:
        raise ValueError(f"a row of shape {row.shape} does not fit {y.shape}, {dict(options)}")
    np.add(y, row, out=y)


def _relu_backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, x), (grad_x,) = inputs, outputs
    np.multiply(grad, x > 0, out=grad_x)


def _dropout(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, chance), (y, mask) = inputs, outputs
    mask[...] = chance >= np.float32(options["rate"])
    mask *= mask.dtype.type(1 / (1 - options["rate"]))
    np.multiply(x, mask, out=y)


relu = Kernel("relu", RELU, _relu, lambda inputs, outputs, o: inputs[0].size)
relu_backward = Kernel("relu_backward", RELU_BACKWARD, _relu_backward, lambda inputs, outputs, o: 2 * inputs[0].size)
dropout = Kernel("dropout", DROPOUT, _dropout, lambda inputs, outputs, o: 2 * inputs[0].size)
add_row = Kernel("add_row", ADD_ROW, _add_row, lambda inputs, outputs, o: outputs[0].size, updates=True)
"""Adds a row (M,) to each row of y (N, M), in place."""
