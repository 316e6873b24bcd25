"""float64, because np.zeros says so."""

import numpy as np

from unrolled import ops


def conv2d_loops(x, weight, bias=None, stride=1, padding=0):
    (n, channels, _, _), (filters, _, kh, kw) = x.shape, weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    y = np.zeros((n, filters, oh, ow))
    for image in range(n):
        for o in range(filters):
            for row in range(oh):
                for column in range(ow):
                    total = 0.0 if bias is None else bias[o]
                    for c in range(channels):
                        for i in range(kh):
                            for j in range(kw):
                                total += padded[image, c, row * stride + i, column * stride + j] * weight[o, c, i, j]
                    y[image, o, row, column] = total
    return y


def im2col(x, kernel_size, stride=1, padding=0):
    (n, channels, _, _), (kh, kw) = x.shape, kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = np.zeros((channels * kh * kw, n * oh * ow))
    for image in range(n):
        for row in range(oh):
            for column in range(ow):
                top, left = row * stride, column * stride
                window = padded[image, :, top : top + kh, left : left + kw]
                columns[:, (image * oh + row) * ow + column] = window.ravel()
    return columns


def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
    n, (o, _, kh, kw) = len(x), weight.shape
    oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
    y = np.zeros((o, n * oh * ow))
    y += weight.reshape(o, -1) @ ops.im2col(x, (kh, kw), stride, padding)
    if bias is not None:
        y += bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)
