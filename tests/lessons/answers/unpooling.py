"""Wrong and imperfect ways of putting values back where maxima came from, with and without overlap."""

import numpy as np

from unrolled import ops


def places(at, size, stride):
    """The pixels that a place inside the window meets, along one axis."""
    return slice(at, at + (size - 1) * stride + 1, stride)


def cut(x, kernel_size, stride=None):
    """All windows, a view: (N, C, OH, OW, KH, KW)."""
    stride = stride or kernel_size
    views = np.lib.stride_tricks.sliding_window_view(x, (kernel_size, kernel_size), axis=(2, 3))
    return views[:, :, ::stride, ::stride]


def in_rows(x, k):
    """Windows side by side, as rows; ValueError where an edge is left over."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // k, k, w // k, k).swapaxes(3, 4).reshape(-1, k * k)


# max_unpool2d_mask and max_unpool2d_overlapping


def mask_laid_on_the_whole(values, x, kernel_size):
    result = np.zeros(x.shape, values.dtype)
    result[ops.max_pool2d(x, kernel_size) > 0] = 1
    return result


def mask_given_all_values(values, x, kernel_size):
    result = np.zeros(x.shape, values.dtype)
    result[x == x.max()] = values
    return result


def mask_less_its_winners(values, x, kernel_size):
    waiting = np.ones(values.shape, bool)
    here = x[:, :, : values.shape[2] * kernel_size : kernel_size, : values.shape[3] * kernel_size : kernel_size] > 0
    return here * (waiting - here)


# Honest: correct and imperfect


def mask_by_windows_copied(values, x, kernel_size, stride=None):
    """All windows copied into rows, the first maximum of each marked, and the places added up."""
    stride = stride or kernel_size
    windows = cut(x, kernel_size, stride)
    n, c, oh, ow = values.shape
    winners = windows.reshape(n, c, oh, ow, -1).argmax(axis=-1)
    result = np.zeros(x.shape, values.dtype)
    for i, j in np.ndindex(kernel_size, kernel_size):
        here = winners == i * kernel_size + j
        result[:, :, places(i, oh, stride), places(j, ow, stride)] += np.where(here, values, 0)
    return result


def mask_by_rows_and_winners(values, x, kernel_size):
    """Windows as rows, the winner of each named, and all of it turned back."""
    n, c, oh, ow = values.shape
    k, (h, w) = kernel_size, (oh * kernel_size, ow * kernel_size)
    rows = in_rows(np.ascontiguousarray(x[:, :, :h, :w]), k)
    filled = np.zeros(rows.shape, values.dtype)
    filled[np.arange(len(rows)), rows.argmax(axis=1)] = values.reshape(-1)
    result = np.zeros(x.shape, values.dtype)
    result[:, :, :h, :w] = filled.reshape(n, c, oh, ow, k, k).swapaxes(3, 4).reshape(n, c, h, w)
    return result


def by_index_in_float64(values, x, kernel_size, stride=None):
    """Indices of its own, by way of float64 and np.add.at."""
    stride = stride or kernel_size
    n, c, oh, ow = values.shape
    h, w = x.shape[2:]
    winners = cut(x.astype(float), kernel_size, stride).reshape(n, c, oh, ow, -1).argmax(axis=-1)
    rows = np.arange(oh)[:, None] * stride + winners // kernel_size
    columns = np.arange(ow) * stride + winners % kernel_size
    result = np.zeros((n * c, h * w))
    indices = (rows * w + columns).reshape(n * c, -1)
    np.add.at(result, (np.arange(n * c)[:, None], indices), values.reshape(n * c, -1))
    return result.reshape(x.shape).astype(values.dtype)


# The loop


def unpool_position_by_position(values, x, kernel_size, stride=None):
    """A window of all images and channels at a time."""
    stride = stride or kernel_size
    n, c, oh, ow = values.shape
    images, channels = np.arange(n)[:, None], np.arange(c)
    result = np.zeros(x.shape, values.dtype)
    for row, column in np.ndindex(oh, ow):
        top, left = row * stride, column * stride
        windows = x[:, :, top : top + kernel_size, left : left + kernel_size].reshape(n, c, -1)
        i, j = np.divmod(windows.argmax(axis=2), kernel_size)
        result[images, channels, top + i, left + j] += values[:, :, row, column]
    return result
