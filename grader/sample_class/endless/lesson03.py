"""A window that never moves on."""

import numpy as np


def max_pool2d(x, kernel_size):
    n, c, h, w = x.shape
    y = np.empty((n, c, h // kernel_size, w // kernel_size), dtype=x.dtype)
    top = 0
    while top + kernel_size <= h:
        for column in range(w // kernel_size):
            left = column * kernel_size
            window = x[:, :, top : top + kernel_size, left : left + kernel_size]
            y[:, :, top // kernel_size, column] = window.max(axis=(2, 3))
    return y
