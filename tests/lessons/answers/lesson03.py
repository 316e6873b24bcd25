"""Wrong and imperfect answers to the exercises of lesson 03."""

import numpy as np

from unrolled import ops

from . import Mutant


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


# max_pool2d


# max_unpool2d


def unpool_with_rows_in_a_line(values, indices, size):
    n, c = values.shape[:2]
    result = np.zeros((n * c, size[0] * size[1]), values.dtype)
    result[np.arange(n * c), indices.reshape(n * c, -1)] = values.reshape(n * c, -1)
    return result.reshape(n, c, *size)


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


# Right in other styles


def pool_by_sorting(x, kernel_size, stride=None):
    windows = cut(x, kernel_size, stride)
    return np.sort(windows.reshape(*windows.shape[:4], -1), axis=-1)[..., -1]


def pool_in_two_steps(x, kernel_size, stride=None):
    """Along the rows first, then along the columns."""
    stride, y = stride or kernel_size, x
    for axis in (2, 3):
        starts = range(0, y.shape[axis] - kernel_size + 1, stride)
        y = np.stack([y.take(range(at, at + kernel_size), axis).max(axis) for at in starts], axis)
    return y


def pool_in_lists(x, kernel_size, stride=None):
    stride, (h, w) = stride or kernel_size, x.shape[2:]
    tops, lefts = range(0, h - kernel_size + 1, stride), range(0, w - kernel_size + 1, stride)

    def largest(image, top, left):
        return max(image[i, j] for i in range(top, top + kernel_size) for j in range(left, left + kernel_size))

    y = [[[[largest(image, top, left) for left in lefts] for top in tops] for image in images] for images in x]
    return np.array(y, dtype=x.dtype)


def unpool_value_by_value(values, indices, size):
    result = np.zeros((*values.shape[:2], *size), dtype=values.dtype)
    for (n, c, _, _), value, index in zip(np.ndindex(values.shape), values.flat, indices.flat, strict=True):
        result[n, c, index // size[1], index % size[1]] = value
    return result


def unpool_images_in_turn(values, indices, size):
    planes = []
    for v, at in zip(values.reshape(-1, values[0, 0].size), indices.reshape(-1, values[0, 0].size), strict=True):
        plane = np.zeros(size[0] * size[1], v.dtype)
        plane[at] = v
        planes.append(plane.reshape(size))
    return np.stack(planes).reshape(*values.shape[:2], *size)


def unpool_from_first_pixels(values, indices, size):
    n, c, pixels = *values.shape[:2], size[0] * size[1]
    y = np.zeros(n * c * pixels, values.dtype)
    np.put(y, indices + np.arange(n * c).reshape(n, c, 1, 1) * pixels, values)
    return y.reshape(n, c, *size)


def unpool_by_counting(values, indices, size):
    n, c, pixels = *values.shape[:2], size[0] * size[1]
    places = indices.reshape(n * c, -1) + pixels * np.arange(n * c)[:, None]
    y = np.bincount(places.ravel(), weights=values.ravel(), minlength=n * c * pixels)
    return y.astype(values.dtype).reshape(n, c, *size)


def unpool_value_after_value(values, x, kernel_size, stride=None):
    stride, result = stride or kernel_size, 0 * x.astype(values.dtype)
    for n, c, row, column in np.ndindex(*values.shape):
        window = x[n, c, row * stride :, column * stride :][:kernel_size, :kernel_size]
        i, j = np.argwhere(window == window.max())[0]
        result[n, c, row * stride + i, column * stride + j] += values[n, c, row, column]
    return result


def unpool_with_places_left(values, x, kernel_size, stride=None):
    """What is still to be given away is counted down to 0."""
    stride, left, result = stride or kernel_size, values.copy(), np.zeros(x.shape, values.dtype)
    largest = ops.max_pool2d(x, kernel_size, stride)
    for i, j in np.ndindex(kernel_size, kernel_size):
        rows, columns = (places(at, size, stride) for at, size in zip((i, j), values.shape[2:], strict=True))
        given = np.where(x[:, :, rows, columns] == largest, left, 0)
        result[:, :, rows, columns] += given
        left -= given
    return result


MUTANTS = {
    "max_pool2d": [
        Mutant(lambda x, kernel_size: cut(x, kernel_size).max(4, 5), "one pair of brackets: axis=(2, 3)"),
        Mutant(lambda x, kernel_size: x[:, :, 1:1].max(axis=(2, 3)), "a window without a pixel"),
    ],
    "max_unpool2d": [Mutant(unpool_with_rows_in_a_line, "np.arange(n)[:, None], a column (n, 1)")],
    "max_unpool2d_mask": [
        Mutant(mask_laid_on_the_whole, "take the slice first, then the mask"),
        Mutant(mask_given_all_values, "a value for each True of the mask"),
        Mutant(mask_less_its_winners, "True and False have no minus"),
    ],
    "max_pool2d_overlapping": [Mutant(overlapping_with_open_slices, "i : i + OH * step : step")],
}

HONEST = {
    "max_unpool2d_mask": [mask_by_windows_copied, mask_by_rows_and_winners],
    "max_pool2d_overlapping": [pool_of_windows_copied, pool_channel_by_channel],
    "max_unpool2d_overlapping": [mask_by_windows_copied, by_index_in_float64],
}

LOOP = {
    "max_unpool2d_mask": unpool_position_by_position,
    "max_pool2d_overlapping": pool_row_by_row,
    "max_unpool2d_overlapping": unpool_position_by_position,
}

RIGHT = {
    "max_pool2d": [
        pool_by_sorting,
        pool_in_two_steps,
        pool_in_lists,
        lambda x, kernel_size: np.maximum.reduce(cut(x, kernel_size), axis=(4, 5)),
    ],
    "max_unpool2d": [unpool_value_by_value, unpool_images_in_turn, unpool_from_first_pixels, unpool_by_counting],
    "max_unpool2d_mask": [unpool_value_after_value, unpool_with_places_left],
    "max_pool2d_overlapping": [pool_by_sorting, pool_in_two_steps],
    "max_unpool2d_overlapping": [unpool_value_after_value, unpool_with_places_left],
}
