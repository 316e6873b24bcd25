"""Wrong and imperfect answers to the exercises of lesson 03."""

import numpy as np

from unrolled import ops

from . import Mutant
from .unpooling import (
    added_by_repeated_indices,
    averaged,
    by_columns,
    by_index_in_float64,
    by_places,
    cut,
    mask_as_the_article_filled,
    mask_by_rows_and_winners,
    mask_by_way_of_float64,
    mask_by_windows_copied,
    mask_everywhere,
    mask_given_all_values,
    mask_image_by_image,
    mask_in_float64,
    mask_in_the_images_dtype,
    mask_into_corners,
    mask_laid_on_the_whole,
    mask_left_in_rows,
    mask_less_its_winners,
    mask_never_used,
    mask_not_swapped_back,
    mask_of_repeated_maxima,
    mask_of_runs,
    mask_of_the_first_channel,
    mask_of_the_first_image,
    mask_shared,
    mask_that_forgets,
    mask_that_wipes_its_input,
    places,
    smallest,
    unpool_position_by_position,
    window_by_window_assigned,
)

# max_pool2d


def pooling(start, pick):
    """A loop over outputs that begins with `start` and goes on with `pick`."""

    def variant(x, kernel_size):
        n, c, h, w = x.shape
        y = np.zeros((n, c, h // kernel_size, w // kernel_size), x.dtype)
        for image, channel, row, column in np.ndindex(y.shape):
            top, left = row * kernel_size, column * kernel_size
            best = start
            for pixel in x[image, channel, top : top + kernel_size, left : left + kernel_size].flat:
                best = pixel if best is None else pick(best, pixel)
            y[image, channel, row, column] = best
        return y

    return variant


def pool_of_means(x, kernel_size):
    return cut(x, kernel_size).mean(axis=(4, 5), dtype=x.dtype)


def pool_with_stride_1(x, kernel_size):
    return cut(x, kernel_size, 1).max(axis=(4, 5))


def pool_with_windows_one_apart(x, kernel_size):
    n, c, h, w = x.shape
    y = np.zeros((n, c, h // kernel_size, w // kernel_size), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        y[:, :, row, column] = x[:, :, row : row + kernel_size, column : column + kernel_size].max(axis=(2, 3))
    return y


def pool_with_windows_too_small(x, kernel_size):
    windows = cut(x, kernel_size)
    return windows[..., : kernel_size - 1, : kernel_size - 1].max(axis=(4, 5))


def pool_without_swapping_axes(x, kernel_size):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // kernel_size, w // kernel_size, kernel_size**2).max(axis=4)


def pool_over_channels(x, kernel_size):
    return np.repeat(cut(x, kernel_size).max(axis=(1, 4, 5))[:, None], x.shape[1], axis=1)


def pool_over_the_wrong_axes(x, kernel_size):
    return cut(x, kernel_size).max(axis=(1, 4, 5))


def pool_over_images(x, kernel_size):
    n, c, h, w = x.shape
    y = np.zeros((n, c, h // kernel_size, w // kernel_size), x.dtype)
    for channel, row, column in np.ndindex(y.shape[1:]):
        top, left = row * kernel_size, column * kernel_size
        y[:, channel, row, column] = x[:, channel, top : top + kernel_size, left : left + kernel_size].max()
    return y


def pool_of_the_first_image(x, kernel_size):
    y = np.zeros_like(ops.max_pool2d(x, kernel_size))
    y[0] = ops.max_pool2d(x[:1], kernel_size)[0]
    return y


def pool_of_the_first_channel(x, kernel_size):
    y = np.zeros_like(ops.max_pool2d(x, kernel_size))
    y[:, :1] = ops.max_pool2d(x[:, :1], kernel_size)
    return y


def pool_with_the_edge(x, kernel_size):
    h, w = x.shape[2:]
    y = np.zeros((*x.shape[:2], -(-h // kernel_size), -(-w // kernel_size)), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        top, left = row * kernel_size, column * kernel_size
        y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].max(axis=(2, 3))
    return y


def pool_by_reshaping_alone(x, kernel_size):
    n, c, h, w = x.shape
    k = kernel_size
    return x.reshape(n, c, h // k, k, w // k, k).max(axis=(3, 5))


def pool_with_rows_and_columns_swapped(x, kernel_size):
    return ops.max_pool2d(x.swapaxes(2, 3), kernel_size)


def pool_without_the_last_row(x, kernel_size):
    y = ops.max_pool2d(x, kernel_size)
    y[:, :, -1] = 7.5
    return y


def pool_in_float64(x, kernel_size):
    n, c, h, w = x.shape
    y = np.zeros((n, c, h // kernel_size, w // kernel_size))
    y[:] = ops.max_pool2d(x, kernel_size)
    return y


def pool_on_its_input(x, kernel_size):
    h, w = x.shape[2] // kernel_size, x.shape[3] // kernel_size
    x[:, :, :h, :w] = ops.max_pool2d(x, kernel_size)
    return x[:, :, :h, :w].copy()


# max_unpool2d


def unpool_every_row_with_every_index(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]), values.dtype)
    result[:, indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


def unpool_into_one_image(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    np.put(result, indices, values)
    return result


def unpool_without_channels(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n, c * size[0] * size[1]), values.dtype)
    result[np.arange(n)[:, None], indices.reshape(n, -1)] = values.reshape(n, -1)
    return result.reshape(n, c, *size)


def unpool_swapped(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    for at in np.ndindex(values.shape):
        result[at[0], at[1], indices[at] % size[1], indices[at] // size[1]] = values[at]
    return result


def unpool_divided_by_the_height(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    for at in np.ndindex(values.shape):
        result[at[0], at[1], indices[at] // size[0], indices[at] % size[0]] = values[at]
    return result


def unpool_left_flat(values, indices, size):
    return ops.max_unpool2d(values, indices, size).reshape(*values.shape[:2], -1)


def unpool_of_ones(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), values.dtype)
    np.put_along_axis(result.reshape(*values.shape[:2], -1), indices.reshape(*values.shape[:2], -1), 1, axis=2)
    return result


def unpool_of_indices(values, indices, size):
    return ops.max_unpool2d(indices.astype(values.dtype), indices, size)


def unpool_the_first(axis):
    def variant(values, indices, size):
        right = ops.max_unpool2d(values, indices, size)
        result = np.zeros_like(right)
        result[(slice(None),) * axis + (0,)] = right[(slice(None),) * axis + (0,)]
        return result

    return variant


def unpool_in_float64(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]))
    result[np.arange(n * c)[:, None], indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


def unpool_on_the_indices(values, indices, size):
    n, c = values.shape[:2]
    h, w = size
    indices += np.arange(n * c).reshape(n, c, 1, 1) * h * w
    result = np.zeros(n * c * h * w, values.dtype)
    result[indices] = values
    return result.reshape(n, c, h, w)


def unpool_with_rows_in_a_line(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]), values.dtype)
    result[np.arange(n * c), indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


def unpool_into_memory_as_it_was(values, indices, size):
    n, c = values.shape[:2]
    result = np.full((n * c, size[0] * size[1]), 7.5, values.dtype)
    result[np.arange(n * c)[:, None], indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


def unpool_too_small(values, indices, size):
    result = np.zeros((*values.shape[:2], values.shape[2] * 2, values.shape[3] * 2), values.dtype)
    np.put_along_axis(result.reshape(*values.shape[:2], -1), indices.reshape(*values.shape[:2], -1), 0, axis=2)
    return result


# max_pool2d_overlapping


def overlapping(change):
    return lambda x, kernel_size, stride: change(x, kernel_size, stride)


def overlapping_small_windows(x, kernel_size, stride):
    oh, ow = ((size - kernel_size) // stride + 1 for size in x.shape[2:])
    y = np.full((*x.shape[:2], oh, ow), -np.inf, x.dtype)
    for i, j in np.ndindex(stride, stride):
        y = np.maximum(y, x[:, :, places(i, oh, stride), places(j, ow, stride)])
    return y


def overlapping_from_zero(x, kernel_size, stride):
    return np.maximum(ops.max_pool2d(x, kernel_size, stride), 0)


def overlapping_without_stride(x, kernel_size, stride):
    oh, ow = ((size - kernel_size) // stride + 1 for size in x.shape[2:])
    return cut(x, kernel_size, 1)[:, :, :oh, :ow].max(axis=(4, 5))


def overlapping_assigned(x, kernel_size, stride):
    return cut(x, kernel_size, stride)[..., -1, -1].copy()


def overlapping_one_short(x, kernel_size, stride):
    oh, ow = ((size - kernel_size) // stride for size in x.shape[2:])
    return ops.max_pool2d(x, kernel_size, stride)[:, :, :oh, :ow]


def overlapping_in_float64(x, kernel_size, stride):
    y = np.full(ops.max_pool2d(x, kernel_size, stride).shape, -np.inf)
    for i, j in np.ndindex(kernel_size, kernel_size):
        y = np.maximum(y, x[:, :, places(i, y.shape[2], stride), places(j, y.shape[3], stride)])
    return y


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
        Mutant(pooling(0, max), "your maximum starts at 0"),
        Mutant(pooling(None, min), "max-pooling keeps the largest"),
        Mutant(pool_of_means, "these are the means of the windows"),
        Mutant(pool_with_stride_1, "your window moves one pixel at a time"),
        Mutant(pool_with_windows_too_small, "a pixel too small each way"),
        Mutant(lambda x, kernel_size: cut(x, kernel_size).max(4, 5), "one pair of brackets: axis=(2, 3)"),
        Mutant(lambda x, kernel_size: x[:, :, 1:1].max(axis=(2, 3)), "a window without a pixel"),
        Mutant(pool_with_windows_one_apart, "your windows start one pixel apart"),
        Mutant(pool_without_swapping_axes, "runs of neighbours in a row"),
        Mutant(pool_over_channels, "pooling leaves the channels apart"),
        Mutant(pool_over_the_wrong_axes, "pooling leaves the channels apart"),
        Mutant(pool_over_images, "each image is pooled by itself"),
        Mutant(pool_of_the_first_image, "only the first image is computed"),
        Mutant(pool_of_the_first_channel, "only the first channel is computed"),
        Mutant(pool_with_the_edge, "what is left over at the edge is no window"),
        Mutant(pool_by_reshaping_alone, "cannot reshape array"),
        Mutant(pool_with_rows_and_columns_swapped, "rows and columns of your result are swapped"),
        Mutant(pool_in_float64, "dtype is float64, expected float32"),
        Mutant(pool_on_its_input, "changed its input x"),
        Mutant(pool_without_the_last_row, "the last row is never written"),
    ],
    "max_unpool2d": [
        Mutant(unpool_every_row_with_every_index, "pairs every row with every index"),
        Mutant(unpool_into_one_image, "everything lands in the first image"),
        Mutant(unpool_without_channels, "all channels land in the first one"),
        Mutant(unpool_swapped, "an index is row * W + column"),
        Mutant(unpool_divided_by_the_height, "out of bounds"),
        Mutant(unpool_left_flat, "only the shape is not"),
        Mutant(unpool_of_ones, "you wrote 1 where the value belongs"),
        Mutant(unpool_of_indices, "you wrote the index"),
        Mutant(unpool_the_first(0), "only the first image is filled"),
        Mutant(unpool_the_first(1), "only the first channel is filled"),
        Mutant(unpool_in_float64, "dtype is float64, expected float32"),
        Mutant(unpool_on_the_indices, "changed its input indices"),
        Mutant(unpool_with_rows_in_a_line, "np.arange(n)[:, None], a column (n, 1)"),
        Mutant(unpool_into_memory_as_it_was, "np.empty leaves what was in memory"),
        Mutant(unpool_too_small, "values differ"),
    ],
    "max_unpool2d_mask": [
        Mutant(by_places(track=False), "all of it to each of them"),
        Mutant(mask_shared, "yours shares it between them"),
        Mutant(mask_that_forgets, "a window is done once and for all"),
        Mutant(mask_never_used, "nothing arrived"),
        Mutant(mask_of_runs, "not into windows"),
        Mutant(by_places(maxima=lambda x, k, stride: x.max()), "each window has a largest pixel of its own"),
        Mutant(mask_laid_on_the_whole, "take the slice first, then the mask"),
        Mutant(mask_given_all_values, "a value for each True of the mask"),
        Mutant(mask_less_its_winners, "True and False have no minus"),
        Mutant(by_places(order=reversed), "yours gives it to the last"),
        Mutant(by_places(order=by_columns), "down the columns first"),
        Mutant(by_places(maxima=smallest), "where the smallest pixels are"),
        Mutant(mask_into_corners, "upper left corners"),
        Mutant(mask_everywhere, "every pixel of a window got its value"),
        Mutant(by_places(put=lambda before, here, values, x: before + here * x), "you put the maxima back"),
        Mutant(by_places(put=lambda before, here, values, x: before + here), "you put 1 where the value belongs"),
        Mutant(mask_of_repeated_maxima, "the result is as large as x"),
        Mutant(mask_as_the_article_filled, "the line of the hunt"),
        Mutant(mask_not_swapped_back, "swap the axes back"),
        Mutant(mask_left_in_rows, "bring them back to the shape of x"),
        Mutant(mask_of_the_first_image, "only the first image is filled"),
        Mutant(mask_of_the_first_channel, "only the first channel is filled"),
        Mutant(mask_in_float64, "dtype is float64, expected float32"),
        Mutant(mask_in_the_images_dtype, "make it with dtype=values.dtype"),
        Mutant(mask_that_wipes_its_input, "changed its input x"),
    ],
    "max_pool2d_overlapping": [
        Mutant(overlapping(lambda x, k, s: ops.max_pool2d(x, k)), "your windows do not overlap"),
        Mutant(overlapping(lambda x, k, s: ops.max_pool2d(x, k, 1)), "they move by stride"),
        Mutant(overlapping_small_windows, "as small as the stride"),
        Mutant(overlapping_from_zero, "your maximum starts at 0"),
        Mutant(overlapping_one_short, "the last row and column of windows are missing"),
        Mutant(overlapping(lambda x, k, s: -ops.max_pool2d(-x, k, s)), "max-pooling keeps the largest"),
        Mutant(overlapping(lambda x, k, s: ops.avg_pool2d(x, k, s) * k**2), "you add up the places"),
        Mutant(overlapping(lambda x, k, s: ops.avg_pool2d(x, k, s)), "these are the means"),
        Mutant(overlapping(lambda x, k, s: ops.max_pool2d(x, k, s).max(axis=1)), "leaves the channels apart"),
        Mutant(overlapping_in_float64, "dtype is float64, expected float32"),
        Mutant(overlapping_without_stride, "your windows start one pixel apart"),
        Mutant(overlapping_assigned, "= overwrites y"),
        Mutant(overlapping_with_open_slices, "i : i + OH * step : step"),
    ],
    "max_unpool2d_overlapping": [
        Mutant(window_by_window_assigned, "yours keeps one of them. (= overwrites"),
        Mutant(added_by_repeated_indices, "so does += with an array of indices that repeats one"),
        Mutant(
            by_places(put=lambda before, here, values, x: here * values),
            "overwrites what is there",
        ),
        Mutant(
            by_places(put=lambda before, here, values, x: np.where(here, values, before)), "yours keeps one of them"
        ),
        Mutant(averaged, "yours takes their mean"),
        Mutant(by_places(track=False), "all of it to each of them"),
        Mutant(mask_shared, "yours shares it between them"),
        Mutant(mask_that_forgets, "a window is done once and for all"),
        Mutant(mask_never_used, "nothing arrived"),
        Mutant(by_places(order=reversed), "yours gives it to the last"),
        Mutant(by_places(order=by_columns), "down the columns first"),
        Mutant(by_places(put=lambda before, here, values, x: before + here * x), "you put the maxima back"),
        Mutant(mask_of_the_first_image, "only the first image is filled"),
        Mutant(mask_in_float64, "dtype is float64, expected float32"),
        Mutant(mask_that_wipes_its_input, "changed its input x"),
    ],
}

HONEST = {
    "max_unpool2d_mask": [
        mask_by_windows_copied,
        mask_by_rows_and_winners,
        mask_image_by_image,
        mask_by_way_of_float64,
    ],
    "max_pool2d_overlapping": [pool_of_windows_copied, pool_channel_by_channel],
    "max_unpool2d_overlapping": [mask_by_windows_copied, by_index_in_float64],
}

LOOP = {
    "max_unpool2d_mask": unpool_position_by_position,
    "max_pool2d_overlapping": pool_row_by_row,
    "max_unpool2d_overlapping": unpool_position_by_position,
}
