"""Batches gathered on the device: what a host would pick out of the training set between two steps."""

from __future__ import annotations

from unrolled.kernels.kernel import Arrays, Kernel, Options

GATHER = r"""
extern "C" __global__ void gather(
    const T* __restrict__ images, const long long* __restrict__ labels, const long long* __restrict__ order,
    T* __restrict__ x, long long* __restrict__ y, Index size) {
    Index at = blockIdx.x * (Index)blockDim.x + threadIdx.x;
    if (at >= size) return;
    Index row = at / VALUES;
    int value = at % VALUES;
    x[at] = images[order[row] * VALUES + value];
    if (value == 0) y[row] = labels[order[row]];
}
"""


def _gather(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (images, labels, order), (x, y) = inputs, outputs
    x[...] = images[order].reshape(x.shape)
    y[...] = labels[order].reshape(y.shape)


gather = Kernel("gather", GATHER, _gather, lambda inputs, outputs, options: 0)
"""Copies the images (M, ...) and labels (M,) that order (S,) names, int64 both, `values` numbers an image."""
