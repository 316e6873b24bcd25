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


def by_places(order=None, track=True, put=None, maxima=None, stop_at=None):
    """The loop over places with one thing changed."""

    def variant(values, x, kernel_size, stride=None):
        stride = stride or kernel_size
        oh, ow = values.shape[2:]
        largest = (maxima or ops.max_pool2d)(x, kernel_size, stride)
        result, waiting = np.zeros(x.shape, values.dtype), np.ones(values.shape, bool)
        every = [(i, j) for i in range(kernel_size) for j in range(kernel_size)]
        for i, j in (order or list)(every):
            at = (..., places(i, oh, stride), places(j, ow, stride))
            here = x[at] == largest
            if track:
                here = here & waiting
                waiting = waiting & ~here
            result[at] = (put or (lambda before, here, values, x: before + here * values))(
                result[at], here, values, x[at]
            )
        return result

    return variant


def mask_that_forgets(values, x, kernel_size, stride=None):
    stride, (oh, ow) = stride or kernel_size, values.shape[2:]
    largest = ops.max_pool2d(x, kernel_size, stride)
    result, waiting = np.zeros(x.shape, values.dtype), np.ones(values.shape, bool)
    for i, j in np.ndindex(kernel_size, kernel_size):
        at = (..., places(i, oh, stride), places(j, ow, stride))
        here = (x[at] == largest) & waiting
        result[at] += here * values
        waiting = ~here
    return result


def mask_never_used(values, x, kernel_size, stride=None):
    return np.zeros(x.shape, values.dtype)


def mask_of_runs(values, x, kernel_size):
    runs = x.reshape(-1, kernel_size**2)
    filled = np.zeros(runs.shape, values.dtype)
    filled[np.arange(len(runs)), runs.argmax(axis=1)] = values.ravel()
    return filled.reshape(x.shape)


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


def by_columns(every):
    return sorted(every, key=lambda place: place[::-1])


def smallest(x, kernel_size, stride):
    return -ops.max_pool2d(-x, kernel_size, stride)


def mask_shared(values, x, kernel_size, stride=None):
    stride = stride or kernel_size
    windows = cut(x, kernel_size, stride)
    ties = (windows == windows.max(axis=(4, 5), keepdims=True)).sum(axis=(4, 5))
    return by_places(track=False)((values / ties).astype(values.dtype), x, kernel_size, stride)


def mask_into_corners(values, x, kernel_size):
    oh, ow = values.shape[2:]
    result = np.zeros(x.shape, values.dtype)
    result[:, :, : oh * kernel_size : kernel_size, : ow * kernel_size : kernel_size] = values
    return result


def mask_everywhere(values, x, kernel_size):
    result = np.zeros(x.shape, values.dtype)
    wide = values.repeat(kernel_size, axis=2).repeat(kernel_size, axis=3)
    result[:, :, : wide.shape[2], : wide.shape[3]] = wide
    return result


def mask_of_repeated_maxima(values, x, kernel_size):
    """Both repeated to the size of the image, then compared: an edge that is left over gets lost."""
    h, w = (size * kernel_size for size in values.shape[2:])
    return by_places()(values, x[:, :, :h, :w], kernel_size)


def mask_as_the_article_filled(values, x, kernel_size):
    n, c, h, w = x.shape
    k = kernel_size
    filled = np.zeros((values.size, k * k), values.dtype)
    filled[:, in_rows(x, k).argmax(axis=1)] = values.reshape(-1, 1)
    return filled.reshape(n, c, h // k, w // k, k, k).swapaxes(3, 4).reshape(x.shape)


def mask_not_swapped_back(values, x, kernel_size):
    rows = in_rows(x, kernel_size)
    filled = np.zeros(rows.shape, values.dtype)
    filled[np.arange(len(rows)), rows.argmax(axis=1)] = values.reshape(-1)
    return filled.reshape(x.shape)


def mask_left_in_rows(values, x, kernel_size):
    rows = in_rows(x, kernel_size)
    filled = np.zeros(rows.shape, values.dtype)
    filled[np.arange(len(rows)), rows.argmax(axis=1)] = values.reshape(-1)
    return filled


def mask_in_the_images_dtype(values, x, kernel_size, stride=None):
    return by_places()(values, x, kernel_size, stride).astype(x.dtype)


def mask_in_float64(values, x, kernel_size, stride=None):
    result = np.zeros(x.shape)
    result += ops.max_unpool2d_mask(values, x, kernel_size, stride)
    return result


def mask_of_the_first_image(values, x, kernel_size, stride=None):
    result = np.zeros(x.shape, values.dtype)
    result[:1] = ops.max_unpool2d_mask(values[:1], x[:1], kernel_size, stride)
    return result


def mask_of_the_first_channel(values, x, kernel_size, stride=None):
    result = np.zeros(x.shape, values.dtype)
    result[:, :1] = ops.max_unpool2d_mask(values[:, :1], x[:, :1], kernel_size, stride)
    return result


def mask_that_wipes_its_input(values, x, kernel_size, stride=None):
    result = ops.max_unpool2d_mask(values, x, kernel_size, stride)
    x[:] = 0
    return result


def window_by_window_assigned(values, x, kernel_size, stride):
    result = np.zeros(x.shape, values.dtype)
    for n, c, row, column in np.ndindex(values.shape):
        top, left = row * stride, column * stride
        i, j = divmod(int(x[n, c, top : top + kernel_size, left : left + kernel_size].argmax()), kernel_size)
        result[n, c, top + i, left + j] = values[n, c, row, column]
    return result


def added_by_repeated_indices(values, x, kernel_size, stride):
    n, c, h, w = x.shape
    indices = ops.max_pool2d_indices(x, kernel_size, stride).reshape(n * c, -1)
    result = np.zeros((n * c, h * w), values.dtype)
    result[np.arange(n * c)[:, None], indices] += values.reshape(n * c, -1)
    return result.reshape(x.shape)


def averaged(values, x, kernel_size, stride):
    count = ops.max_unpool2d_mask(np.ones_like(values), x, kernel_size, stride)
    return ops.max_unpool2d_mask(values, x, kernel_size, stride) / np.maximum(count, 1)


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


def mask_image_by_image(values, x, kernel_size):
    return np.concatenate([by_places()(v[None], image[None], kernel_size) for v, image in zip(values, x, strict=True)])


def mask_by_way_of_float64(values, x, kernel_size):
    return by_places()(values.astype(float), x.astype(float), kernel_size).astype(values.dtype)


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
