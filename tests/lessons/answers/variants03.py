"""Wrong and imperfect answers to the variants of lesson 03."""

import numpy as np

from unrolled import ops

from . import Mutant
from .lesson03 import unpool_into_one_image, unpool_of_indices, unpool_of_ones, unpool_swapped, unpool_the_first
from .unpooling import (
    by_columns,
    by_places,
    cut,
    mask_everywhere,
    mask_into_corners,
    mask_never_used,
    places,
    smallest,
)

# max_pool2d_average


def means(x, kernel_size, each=np.mean, axis=(2, 3)):
    n, c, h, w = x.shape
    y = np.empty((n, c, -(-h // kernel_size), -(-w // kernel_size)), x.dtype)
    for row, column in np.ndindex(y.shape[2:]):
        top, left = row * kernel_size, column * kernel_size
        window = x[:, :, top : top + kernel_size, left : left + kernel_size]
        y[:, :, row, column] = each(window, axis=axis)
    return y


def pooled_by(each):
    return lambda x, kernel_size: means(x, kernel_size, each)


def mean_of_whole_windows(x, kernel_size):
    h, w = (size // kernel_size for size in x.shape[2:])
    y = np.empty((*x.shape[:2], h, w), x.dtype)
    for row, column in np.ndindex(h, w):
        top, left = row * kernel_size, column * kernel_size
        y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].mean(axis=(2, 3))
    return y


def mean_of_padded(**how):
    def variant(x, kernel_size):
        down, right = (-size % kernel_size for size in x.shape[2:])
        return means(np.pad(x, ((0, 0), (0, 0), (0, down), (0, right)), **how), kernel_size)

    return variant


def mean_with_stride_1(x, kernel_size):
    return ops.avg_pool2d(x, kernel_size, 1)


def mean_over_channels(x, kernel_size):
    return means(x.mean(axis=1, keepdims=True), kernel_size).repeat(x.shape[1], axis=1)


def mean_without_channels(x, kernel_size):
    return means(x, kernel_size).mean(axis=1)


def mean_over_images(x, kernel_size):
    return means(x.mean(axis=0, keepdims=True), kernel_size).repeat(len(x), axis=0)


def mean_of_the_first(axis):
    def variant(x, kernel_size):
        y = means(x, kernel_size)
        first = np.zeros_like(y)
        first[(slice(None),) * axis + (0,)] = y[(slice(None),) * axis + (0,)]
        return first

    return variant


def mean_swapped(x, kernel_size):
    return means(x, kernel_size).swapaxes(2, 3).copy()


def mean_in_float64(x, kernel_size):
    return means(x.astype(float), kernel_size)


# max_unpool2d_nhwc


def to_nchw(x):
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def in_nhwc(function):
    """A function of NCHW, used on NHWC."""

    def variant(values, indices, size):
        return function(to_nchw(values), to_nchw(indices), size).transpose(0, 2, 3, 1).copy()

    return variant


def nhwc_without_images(values, indices, size):
    n, c = len(values), values.shape[3]
    result = np.zeros((n, size[0] * size[1], c), values.dtype)
    result[:, indices.reshape(n, -1, c), np.arange(c)] = values.reshape(n, -1, c)
    return result.reshape(n, *size, c)


def nhwc_without_channels(values, indices, size):
    n, c = len(values), values.shape[3]
    result = np.zeros((n, size[0] * size[1], c), values.dtype)
    result[np.arange(n)[:, None, None], indices.reshape(n, -1, c)] = values.reshape(n, -1, c)[..., None]
    return result.reshape(n, *size, c)


def nhwc_counting_numbers(values, indices, size):
    result = np.zeros((len(values), size[0] * size[1] * values.shape[3]), values.dtype)
    for image in range(len(values)):
        result[image, indices[image].ravel()] = values[image].ravel()
    return result.reshape(len(values), *size, -1)


def nhwc_reshaped(values, indices, size):
    return ops.max_unpool2d(to_nchw(values), to_nchw(indices), size).reshape(len(values), *size, values.shape[3])


def nhwc_read_as_nchw(values, indices, size):
    return ops.max_unpool2d(values, indices, size)


def nhwc_in_float64(values, indices, size):
    return in_nhwc(ops.max_unpool2d)(values, indices, size).astype(float)


# max_unpool2d_mask_shared


def shared_while_counting(values, x, kernel_size):
    largest, (oh, ow) = ops.max_pool2d(x, kernel_size), values.shape[2:]
    result, count = np.zeros(x.shape, values.dtype), np.zeros(values.shape, values.dtype)
    for i, j in np.ndindex(kernel_size, kernel_size):
        at = np.s_[:, :, i : i + oh * kernel_size : kernel_size, j : j + ow * kernel_size : kernel_size]
        count += x[at] == largest
        result[at] = (x[at] == largest) * values / np.maximum(count, 1)
    return result


def counts(x, kernel_size, stride):
    windows = cut(x, kernel_size, stride)
    return (windows == windows.max(axis=(4, 5), keepdims=True)).sum(axis=(4, 5))


def shared_by(divisor, track=False):
    """Every maximum, or with `track` the first, gets the value by divisor(how many there are, pixels in the window)."""

    def variant(values, x, kernel_size, stride=None):
        parts = values / divisor(counts(x, kernel_size, stride or kernel_size), kernel_size**2)
        return by_places(track=track)(parts.astype(values.dtype), x, kernel_size, stride)

    return variant


shared = shared_by(lambda ties, pixels: ties)
backwards = by_places(order=lambda every: every[::-1])


def put_back(unpool, change):
    """Something else is put back: change(values, maxima)."""

    def variant(values, x, kernel_size, stride=None):
        return unpool(change(values, ops.max_pool2d(x, kernel_size, stride)), x, kernel_size, stride)

    return variant


def shared_among_pixels(values, x, kernel_size):
    return mask_everywhere(values / np.float32(kernel_size**2), x, kernel_size)


def of_the_first(unpool, axis):
    def variant(values, x, kernel_size, stride=None):
        result = unpool(values, x, kernel_size, stride)
        result.swapaxes(0, axis)[1:] = 0
        return result

    return variant


def without_the_edge(values, x, kernel_size):
    h, w = (size * kernel_size for size in values.shape[2:])
    return shared(values, x[:, :, :h, :w], kernel_size)


def shared_in_float64(values, x, kernel_size, stride=None):
    return shared(values.astype(float), x, kernel_size, stride)


# Honest: correct and imperfect


def shared_by_windows_copied(values, x, kernel_size, stride=None):
    """All windows copied, every maximum marked, the marks added up, and the places one by one."""
    stride = stride or kernel_size
    windows = cut(x, kernel_size, stride).copy()
    oh, ow = values.shape[2:]
    marked = windows == windows.max(axis=(4, 5), keepdims=True)
    parts = marked * (values / marked.sum(axis=(4, 5)))[..., None, None]
    result = np.zeros(x.shape, values.dtype)
    for i, j in np.ndindex(kernel_size, kernel_size):
        result[:, :, places(i, oh, stride), places(j, ow, stride)] += parts[..., i, j].astype(values.dtype)
    return result


def shared_by_masks(values, x, kernel_size):
    """Twice through the places, with the largest taken from the places as well."""
    oh, ow = values.shape[2:]
    every = [(..., places(i, oh, kernel_size), places(j, ow, kernel_size)) for i, j in np.ndindex((kernel_size,) * 2)]
    largest = np.max([x[at] for at in every], axis=0)
    parts = values / np.sum([x[at] == largest for at in every], axis=0)
    result = np.zeros(x.shape, values.dtype)
    for at in every:
        result[at] = np.where(x[at] == largest, parts, 0)
    return result


def shared_image_by_image(values, x, kernel_size):
    return np.concatenate(
        [shared_by_masks(v[None], image[None], kernel_size) for v, image in zip(values, x, strict=True)]
    )


def shared_by_way_of_float64(values, x, kernel_size):
    return shared_by_masks(values.astype(float), x.astype(float), kernel_size).astype(values.dtype)


def last_by_windows_copied(values, x, kernel_size, stride):
    windows = cut(x, kernel_size, stride)
    n, c, oh, ow = values.shape
    winners = kernel_size**2 - 1 - windows.reshape(n, c, oh, ow, -1)[..., ::-1].argmax(axis=-1)
    result = np.zeros(x.shape, values.dtype)
    for i, j in np.ndindex(kernel_size, kernel_size):
        here = winners == i * kernel_size + j
        result[:, :, places(i, oh, stride), places(j, ow, stride)] += np.where(here, values, 0)
    return result


def last_by_index_in_float64(values, x, kernel_size, stride):
    """Indices of its own, by way of float64 and np.add.at."""
    n, c, oh, ow = values.shape
    h, w = x.shape[2:]
    turned = cut(x.astype(float), kernel_size, stride).reshape(n, c, oh, ow, -1)[..., ::-1]
    winners = kernel_size**2 - 1 - turned.argmax(axis=-1)
    rows = np.arange(oh)[:, None] * stride + winners // kernel_size
    columns = np.arange(ow) * stride + winners % kernel_size
    result = np.zeros((n * c, h * w))
    indices = (rows * w + columns).reshape(n * c, -1)
    np.add.at(result, (np.arange(n * c)[:, None], indices), values.reshape(n * c, -1))
    return result.reshape(x.shape).astype(values.dtype)


# The loops


def shared_window_by_window(values, x, kernel_size, stride=None):
    result = np.zeros(x.shape, values.dtype)
    for n, c, row, column in np.ndindex(values.shape):
        top, left = row * kernel_size, column * kernel_size
        window = x[n, c, top : top + kernel_size, left : left + kernel_size]
        mask = window == window.max()
        result[n, c, top : top + kernel_size, left : left + kernel_size] = mask * (
            values[n, c, row, column] / mask.sum()
        )
    return result


def last_window_by_window(values, x, kernel_size, stride):
    result = np.zeros(x.shape, values.dtype)
    for n, c, row, column in np.ndindex(values.shape):
        top, left = row * stride, column * stride
        turned = x[n, c, top : top + kernel_size, left : left + kernel_size][::-1, ::-1]
        i, j = divmod(kernel_size**2 - 1 - int(turned.argmax()), kernel_size)
        result[n, c, top + i, left + j] += values[n, c, row, column]
    return result


# max_unpool2d_overlapping_last


def last_window_assigned(values, x, kernel_size, stride):
    result = np.zeros(x.shape, values.dtype)
    for n, c, row, column in np.ndindex(values.shape):
        top, left = row * stride, column * stride
        turned = x[n, c, top : top + kernel_size, left : left + kernel_size][::-1, ::-1]
        i, j = divmod(kernel_size**2 - 1 - int(turned.argmax()), kernel_size)
        result[n, c, top + i, left + j] = values[n, c, row, column]
    return result


def last_place_assigned(values, x, kernel_size, stride):
    put = by_places(order=lambda every: every[::-1], put=lambda before, here, values, x: np.where(here, values, before))
    return put(values, x, kernel_size, stride)


def last_that_forgets(values, x, kernel_size, stride):
    oh, ow = values.shape[2:]
    largest = ops.max_pool2d(x, kernel_size, stride)
    result, waiting = np.zeros(x.shape, values.dtype), np.ones(values.shape, bool)
    for i in reversed(range(kernel_size)):
        for j in reversed(range(kernel_size)):
            at = (..., places(i, oh, stride), places(j, ow, stride))
            here = (x[at] == largest) & waiting
            result[at] += here * values
            waiting = ~here
    return result


def last_averaged(values, x, kernel_size, stride):
    count = backwards(np.ones_like(values), x, kernel_size, stride)
    return backwards(values, x, kernel_size, stride) / np.maximum(count, 1)


def last_in_float64(values, x, kernel_size, stride):
    return backwards(values.astype(float), x, kernel_size, stride)


def up_the_columns(every):
    return by_columns(every)[::-1]


MUTANTS = {
    "max_pool2d_average": [
        Mutant(mean_of_whole_windows, "round OH and OW up"),
        Mutant(mean_of_padded(), "divide by the pixels that are there"),
        Mutant(mean_of_padded(mode="edge"), "you repeat the edge"),
        Mutant(pooled_by(np.max), "these are the largest pixels"),
        Mutant(pooled_by(np.sum), "these are the sums of the windows"),
        Mutant(mean_with_stride_1, "here it moves by its own size"),
        Mutant(mean_over_channels, "pooling leaves the channels apart"),
        Mutant(mean_without_channels, "pooling leaves the channels apart"),
        Mutant(mean_over_images, "each image is pooled by itself"),
        Mutant(mean_of_the_first(0), "only the first image is computed"),
        Mutant(mean_of_the_first(1), "only the first channel is computed"),
        Mutant(mean_swapped, "rows and columns of your result are swapped"),
        Mutant(mean_in_float64, "dtype is float64, expected float32"),
    ],
    "max_unpool2d_nhwc": [
        Mutant(nhwc_without_images, "each image got the values of all images"),
        Mutant(nhwc_without_channels, "all channels of a pixel got the value"),
        Mutant(nhwc_counting_numbers, "an index counts pixels"),
        Mutant(nhwc_reshaped, "with a transpose, not with a reshape"),
        Mutant(nhwc_read_as_nchw, "here they are (N, OH, OW, C)"),
        Mutant(in_nhwc(unpool_into_one_image), "everything lands in the first image"),
        Mutant(in_nhwc(unpool_swapped), "an index is row * W + column"),
        Mutant(in_nhwc(unpool_the_first(0)), "only the first image is filled"),
        Mutant(in_nhwc(unpool_the_first(1)), "only the first channel is filled"),
        Mutant(in_nhwc(unpool_of_ones), "you wrote 1"),
        Mutant(in_nhwc(unpool_of_indices), "you wrote the index"),
        Mutant(nhwc_in_float64, "dtype is float64, expected float32"),
    ],
    "max_unpool2d_mask_shared": [
        Mutant(by_places(track=False), "yours gives all of it to each of them"),
        Mutant(by_places(), "yours gives all of it to the first"),
        Mutant(backwards, "yours gives all of it to the last"),
        Mutant(shared_by(lambda ties, pixels: ties, track=True), "the first its part and the others nothing"),
        Mutant(shared_while_counting, "those counted so far"),
        Mutant(shared_by(lambda ties, pixels: pixels), "not by how many pixels"),
        Mutant(shared_by(lambda ties, pixels: 1 / ties), "yours multiplies"),
        Mutant(shared_among_pixels, "only those that equal its largest do"),
        Mutant(mask_everywhere, "every pixel of a window got its value"),
        Mutant(mask_into_corners, "upper left corners"),
        Mutant(mask_never_used, "nothing arrived"),
        Mutant(by_places(maxima=smallest), "where the smallest pixels are"),
        Mutant(put_back(shared, lambda v, m: m), "you put the maxima back"),
        Mutant(put_back(shared, lambda v, m: np.ones_like(v)), "you put 1"),
        Mutant(of_the_first(shared, 0), "only the first image is filled"),
        Mutant(of_the_first(shared, 1), "only the first channel is filled"),
        Mutant(without_the_edge, "the result is as large as x"),
        Mutant(shared_in_float64, "dtype is float64, expected float32"),
    ],
    "max_unpool2d_overlapping_last": [
        Mutant(by_places(), "yours gives it to the first"),
        Mutant(by_places(track=False), "yours gives all of it to each of them"),
        Mutant(shared, "yours shares it between them"),
        Mutant(by_places(order=up_the_columns), "yours goes up the columns first"),
        Mutant(last_window_assigned, "their values add up; yours keeps one of them"),
        Mutant(last_place_assigned, "add to the slice, +="),
        Mutant(last_that_forgets, "forgets the places before"),
        Mutant(last_averaged, "yours takes their mean"),
        Mutant(mask_never_used, "nothing arrived"),
        Mutant(put_back(backwards, lambda v, m: m), "you put the maxima back"),
        Mutant(of_the_first(backwards, 0), "only the first image is filled"),
        Mutant(of_the_first(backwards, 1), "only the first channel is filled"),
        Mutant(last_in_float64, "dtype is float64, expected float32"),
    ],
}

HONEST = {
    "max_unpool2d_mask_shared": [shared_by_windows_copied, shared_image_by_image, shared_by_way_of_float64],
    "max_unpool2d_overlapping_last": [last_by_windows_copied, last_by_index_in_float64, backwards],
}

LOOP = {
    "max_unpool2d_mask_shared": shared_window_by_window,
    "max_unpool2d_overlapping_last": last_window_by_window,
}
