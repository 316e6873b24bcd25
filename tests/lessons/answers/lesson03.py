"""Wrong and imperfect answers to the exercises of lesson 03."""

import numpy as np

from unrolled import ops

from . import Mutant
from .unpooling import (
    by_index_in_float64,
    cut,
    mask_by_rows_and_winners,
    mask_by_windows_copied,
    mask_given_all_values,
    mask_laid_on_the_whole,
    mask_less_its_winners,
    places,
    unpool_position_by_position,
)

# max_pool2d


def pool_by_reshaping_alone(x, kernel_size):
    n, c, h, w = x.shape
    k = kernel_size
    return x.reshape(n, c, h // k, k, w // k, k).max(axis=(3, 5))


# max_unpool2d


def unpool_divided_by_the_height(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    for at in np.ndindex(values.shape):
        result[at[0], at[1], indices[at] // size[0], indices[at] % size[0]] = values[at]
    return result


def unpool_left_flat(values, indices, size):
    return ops.max_unpool2d(values, indices, size).reshape(*values.shape[:2], -1)


def unpool_with_rows_in_a_line(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]), values.dtype)
    result[np.arange(n * c), indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


# max_pool2d_overlapping


def overlapping_with_open_slices(x, kernel_size, stride):
    """Slices without an end: they are not all of one length."""
    y = x[:, :, ::stride, ::stride]
    for i, j in np.ndindex(kernel_size, kernel_size):
        y = np.maximum(y, x[:, :, i::stride, j::stride])
    return y


# Honest: correct and imperfect


def pool_of_windows_copied(x, kernel_size, stride):
    windows = cut(x, kernel_size, stride)
    flat = windows.reshape(*windows.shape[:4], -1)
    return np.ascontiguousarray(np.moveaxis(flat, -1, 0)).max(axis=0)


def pool_channel_by_channel(x, kernel_size, stride):
    y = np.empty((*x.shape[:2], *ops.conv2d_output_size(x.shape[2:], kernel_size, stride)), x.dtype)
    for n, c in np.ndindex(y.shape[:2]):
        best = np.full(y.shape[2:], -np.inf, x.dtype)
        for i, j in np.ndindex(kernel_size, kernel_size):
            best = np.maximum(best, x[n, c, places(i, y.shape[2], stride), places(j, y.shape[3], stride)])
        y[n, c] = best
    return y


# The loop


def pool_row_by_row(x, kernel_size, stride):
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride)
    y = np.full((*x.shape[:2], oh, ow), -np.inf, x.dtype)
    for row, i, j in np.ndindex(oh, kernel_size, kernel_size):
        y[:, :, row] = np.maximum(y[:, :, row], x[:, :, row * stride + i, places(j, ow, stride)])
    return y


MUTANTS = {
    "max_pool2d": [
        Mutant(lambda x, kernel_size: cut(x, kernel_size).max(4, 5), "one pair of brackets: axis=(2, 3)"),
        Mutant(lambda x, kernel_size: x[:, :, 1:1].max(axis=(2, 3)), "a window without a pixel"),
        Mutant(pool_by_reshaping_alone, "cannot reshape array"),
    ],
    "max_unpool2d": [
        Mutant(unpool_divided_by_the_height, "out of bounds"),
        Mutant(unpool_left_flat, "only the shape is not"),
        Mutant(unpool_with_rows_in_a_line, "np.arange(n)[:, None], a column (n, 1)"),
    ],
    "max_unpool2d_mask": [
        Mutant(mask_laid_on_the_whole, "take the slice first, then the mask"),
        Mutant(mask_given_all_values, "a value for each True of the mask"),
        Mutant(mask_less_its_winners, "True and False have no minus"),
    ],
    "max_pool2d_overlapping": [
        Mutant(overlapping_with_open_slices, "i : i + OH * step : step"),
    ],
}

HONEST = {
    "max_unpool2d_mask": [
        mask_by_windows_copied,
        mask_by_rows_and_winners,
    ],
    "max_pool2d_overlapping": [pool_of_windows_copied, pool_channel_by_channel],
    "max_unpool2d_overlapping": [mask_by_windows_copied, by_index_in_float64],
}

LOOP = {
    "max_unpool2d_mask": unpool_position_by_position,
    "max_pool2d_overlapping": pool_row_by_row,
    "max_unpool2d_overlapping": unpool_position_by_position,
}
