"""float64, because np.zeros says so."""

import numpy as np

from unrolled import ops


def max_pool2d(x, kernel_size):
    n, c, h, w = x.shape
    y = np.zeros((n, c, h // kernel_size, w // kernel_size))
    for row in range(y.shape[2]):
        for column in range(y.shape[3]):
            top, left = row * kernel_size, column * kernel_size
            y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].max(axis=(2, 3))
    return y


def max_unpool2d(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]))
    result[np.arange(n * c)[:, None], indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


def max_unpool2d_mask(values, x, kernel_size):
    largest = ops.max_pool2d(x, kernel_size)
    (oh, ow), k = values.shape[2:], kernel_size
    result, waiting = np.zeros(x.shape), np.ones(values.shape, dtype=bool)
    for i in range(k):
        for j in range(k):
            here = waiting & (x[:, :, i : oh * k : k, j : ow * k : k] == largest)
            result[:, :, i : oh * k : k, j : ow * k : k] = here * values
            waiting &= ~here
    return result
