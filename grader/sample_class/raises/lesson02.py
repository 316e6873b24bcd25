"""Functions that raise: a window that leaves the image, a name that does not exist."""

import numpy as np


def conv2d_loops(x, weight, bias=None, stride=1, padding=0):
    (n, channels, h, w), (filters, _, kh, kw) = x.shape, weight.shape
    y = np.zeros((n, filters, h, w), dtype=x.dtype)
    for image in range(n):
        for o in range(filters):
            for row in range(h):
                for column in range(w):
                    for c in range(channels):
                        for i in range(kh):
                            for j in range(kw):
                                y[image, o, row, column] += x[image, c, row + i, column + j] * weight[o, c, i, j]
    return y


def im2col(x, kernel_size, stride=1, padding=0):
    return all_windows.reshape(len(x), -1)  # noqa: F821  the mistake
