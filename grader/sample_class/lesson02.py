"""Lesson 02: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np

from unrolled import ops


class slow:
    """Right, and the functions with loops again, where one product was asked for, or one loop over places."""

    def im2col_fast(x, kernel_size, stride=1, padding=0):
        return im2col(x, kernel_size, stride, padding)

    def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
        return conv2d_positions(x, weight, bias, stride, padding)


class off_by_one:
    """Steps counted instead of positions, and a loop that leaves out the last row."""

    conv2d_output_size = {"// stride + 1": "// stride"}
    conv2d_loops = {"np.ndindex(y.shape)": "np.ndindex(len(x), o, oh - 1, ow)"}


class another_way:
    """Right, by other ways: counted positions, shifted images, views."""

    def conv2d_output_size(size, kernel_size, stride=1, padding=0):
        return tuple(len(range(0, s + 2 * padding - k + 1, stride)) for s, k in zip(size, kernel_size, strict=True))

    def conv2d_loops(x, weight, bias=None, stride=1, padding=0):
        (n, channels, _, _), (filters, _, kh, kw) = x.shape, weight.shape
        oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride, padding)
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        y = np.zeros((n, filters, oh, ow), dtype=x.dtype)
        for i in range(kh):
            for j in range(kw):
                shifted = padded[:, :, i : i + oh * stride : stride, j : j + ow * stride : stride][:, :, :oh, :ow]
                for o in range(filters):
                    for c in range(channels):
                        y[:, o] += shifted[:, c] * weight[o, c, i, j]
        return y if bias is None else y + bias[:, None, None]

    def im2col(x, kernel_size, stride=1, padding=0):
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, kernel_size, axis=(2, 3))
        windows = windows[:, :, ::stride, ::stride]  # (N, C, OH, OW, KH, KW)
        return windows.transpose(1, 4, 5, 0, 2, 3).reshape(x.shape[1] * kernel_size[0] * kernel_size[1], -1)

    def conv2d_gemm(x, weight, bias=None, stride=1, padding=0):
        padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], axis=(2, 3))
        y = np.tensordot(weight, windows[:, :, ::stride, ::stride], axes=([1, 2, 3], [1, 4, 5]))  # (O, N, OH, OW)
        if bias is not None:
            y += bias[:, None, None, None]
        return y.swapaxes(0, 1)
