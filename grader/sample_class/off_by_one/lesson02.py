"""Steps counted instead of positions, and a loop that leaves out the last row."""

import numpy as np

from unrolled import ops


def conv2d_output_size(size, kernel_size, stride=1, padding=0):
    height = (size[0] + 2 * padding - kernel_size[0]) // stride
    width = (size[1] + 2 * padding - kernel_size[1]) // stride
    return height, width


def conv2d_loops(x, weight, bias=None, stride=1, padding=0):
    (n, channels, _, _), (filters, _, kh, kw) = x.shape, weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    y = np.zeros((n, filters, oh, ow), dtype=x.dtype)
    for image in range(n):
        for o in range(filters):
            for row in range(oh - 1):
                for column in range(ow):
                    total = 0.0 if bias is None else bias[o]
                    for c in range(channels):
                        for i in range(kh):
                            for j in range(kw):
                                total += padded[image, c, row * stride + i, column * stride + j] * weight[o, c, i, j]
                    y[image, o, row, column] = total
    return y
