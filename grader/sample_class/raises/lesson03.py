"""Functions that raise: values of another shape than the places, slices of different lengths."""

import numpy as np

from unrolled import ops


def max_unpool2d(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]), dtype=values.dtype)
    result[np.arange(n * c), indices.reshape(n * c, -1)] = values
    return result.reshape(n, c, *size)


def max_unpool2d_overlapping(values, x, kernel_size, stride):
    largest = ops.max_pool2d(x, kernel_size, stride)
    result = np.zeros(x.shape, dtype=values.dtype)
    for i in range(kernel_size):
        for j in range(kernel_size):
            here = x[:, :, i::stride, j::stride] == largest
            result[:, :, i::stride, j::stride] += here * values
    return result
