"""Lesson 03: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np


class slow:
    """Right, and a loop over windows where all of them at once were asked for."""

    def max_unpool2d_mask(values, x, kernel_size):
        result = np.zeros(x.shape, dtype=values.dtype)
        for image, channel, row, column in np.ndindex(values.shape):
            top, left = row * kernel_size, column * kernel_size
            window = x[image, channel, top : top + kernel_size, left : left + kernel_size]
            i, j = divmod(int(window.argmax()), kernel_size)
            result[image, channel, top + i, left + j] = values[image, channel, row, column]
        return result


class off_by_one:
    """A loop that leaves out the last row of windows, and a number of steps where one of positions was asked for."""

    max_pool2d = {"y = np.empty": "y = np.zeros", "range(y.shape[2])": "range(y.shape[2] - 1)"}
    max_pool2d_overlapping = {"stride + 1, (w - kernel_size) // stride + 1": "stride, (w - kernel_size) // stride"}


class another_way:
    """Right, by other ways: reshaped images, indices along an axis."""

    def max_pool2d(x, kernel_size):
        (n, c, h, w), k = x.shape, kernel_size
        oh, ow = h // k, w // k
        return x[:, :, : oh * k, : ow * k].reshape(n, c, oh, k, ow, k).max(axis=(3, 5))

    def max_unpool2d(values, indices, size):
        n, c = values.shape[:2]
        result = np.zeros((n, c, size[0] * size[1]), dtype=values.dtype)
        np.put_along_axis(result, indices.reshape(n, c, -1), values.reshape(n, c, -1), axis=2)
        return result.reshape(n, c, *size)
