"""Wrong and imperfect answers to the exercises of lesson 02."""

import math

import numpy as np

from unrolled import ops

from . import Mutant, solution


def changed(exercise, *changes):
    return solution("02_convolution", exercise, *changes)


GEMM, COLUMNS = changed("conv2d_gemm"), changed("im2col_fast")

# conv2d_output_size


def size_with_a_fraction(size, kernel_size, stride=1, padding=0):
    return tuple((s + 2 * padding - k) / stride + 1 for s, k in zip(size, kernel_size, strict=True))


# conv2d_loops and conv2d_gemm


def padded(x, padding):
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))


def out_size(x, weight, stride, padding):
    return ops.conv2d_output_size(x.shape[2:], weight.shape[2:], stride, padding)


# im2col


def all_windows(x, kernel_size, stride, padding):
    """(N, C, OH, OW, KH, KW), a view."""
    views = np.lib.stride_tricks.sliding_window_view(padded(x, padding), kernel_size, axis=(2, 3))
    return views[:, :, ::stride, ::stride]


def columns_of(axes):
    def variant(x, kernel_size, stride=1, padding=0):
        rows = x.shape[1] * kernel_size[0] * kernel_size[1]
        return all_windows(x, kernel_size, stride, padding).transpose(axes).reshape(rows, -1)

    return variant


def columns_out_of_order_off_the_diagonal(x, kernel_size, stride=1, padding=0):
    """Right for square windows and images; column by column elsewhere."""
    (kh, kw), (oh, ow) = kernel_size, ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    axes = (1, 4, 5, 0, 2, 3) if (kh, oh) == (kw, ow) else (1, 5, 4, 0, 2, 3)
    return columns_of(axes)(x, kernel_size, stride, padding)


# Honest: correct and imperfect


def im2col_slice_by_slice(x, kernel_size, stride=1, padding=0):
    """Columns filled by a loop over images, channels and places in the window."""
    (n, c), (kh, kw) = x.shape[:2], kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    x = padded(x, padding)
    columns = np.empty((c, kh, kw, n, oh, ow), x.dtype)
    for image in range(n):
        for channel in range(c):
            for i in range(kh):
                for j in range(kw):
                    columns[channel, i, j, image] = x[
                        image, channel, i : i + stride * oh : stride, j : j + stride * ow : stride
                    ]
    return columns.reshape(c * kh * kw, n * oh * ow)


def gemm_with_loop_filled_columns(x, weight, bias=None, stride=1, padding=0):
    y = weight.reshape(len(weight), -1) @ COLUMNS(x, weight.shape[2:], stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


def gemm_image_by_image(x, weight, bias=None, stride=1, padding=0):
    """The loop that the speed part must not pass: columns and a product for each image."""
    return np.concatenate([GEMM(image[None], weight, bias, stride, padding) for image in x])


def gemm_windows_times_filters(x, weight, bias=None, stride=1, padding=0):
    y = ops.im2col(x, weight.shape[2:], stride, padding).T @ weight.reshape(len(weight), -1).T
    y = y if bias is None else y + bias
    return y.reshape(len(x), *out_size(x, weight, stride, padding), -1).transpose(0, 3, 1, 2)


# im2col_fast


def columns_of_views(x, kernel_size, stride=1, padding=0):
    return columns_of((1, 4, 5, 0, 2, 3))(x, kernel_size, stride, padding)


def columns_position_by_position(x, kernel_size, stride=1, padding=0):
    """The loop that the speed part must not pass: a window of all images at once."""
    (n, c), (kh, kw) = x.shape[:2], kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    x = padded(x, padding)
    columns = np.empty((c * kh * kw, n, oh, ow), x.dtype)
    for row, column in np.ndindex(oh, ow):
        top, left = row * stride, column * stride
        columns[:, :, row, column] = x[:, :, top : top + kh, left : left + kw].reshape(n, -1).T
    return columns.reshape(c * kh * kw, n * oh * ow)


# Right in other styles


def size_counted(size, kernel_size, stride=1, padding=0):
    counts = [0, 0]
    for axis in (0, 1):
        begin = -padding
        while begin + kernel_size[axis] <= size[axis] + padding:
            counts[axis], begin = counts[axis] + 1, begin + stride
    return counts


def size_of_each(size, kernel_size, stride=1, padding=0):
    def places(length, window):
        return math.floor((length + padding * 2 - window) / stride) + 1

    return tuple(map(places, size, kernel_size))


def loops_with_a_sum(x, weight, bias=None, stride=1, padding=0):
    (kh, kw), x = weight.shape[2:], padded(x, padding)
    tops, lefts = range(0, x.shape[2] - kh + 1, stride), range(0, x.shape[3] - kw + 1, stride)
    y = [[[[(image[:, i : i + kh, j : j + kw] * w).sum() for j in lefts] for i in tops] for w in weight] for image in x]
    return np.array(y) if bias is None else np.array(y) + bias.reshape(-1, 1, 1)


def loops_inside_the_image(x, weight, bias=None, stride=1, padding=0):
    """Nothing is padded: what lies outside is left out of the sum."""
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    y = np.empty((n, o, *out_size(x, weight, stride, padding)), x.dtype)
    for image, f, row, column in np.ndindex(*y.shape):
        total = 0.0 if bias is None else float(bias[f])
        for channel, i, j in np.ndindex(c, kh, kw):
            r, q = row * stride + i - padding, column * stride + j - padding
            if 0 <= r < h and 0 <= q < w:
                total += float(x[image, channel, r, q]) * float(weight[f, channel, i, j])
        y[image, f, row, column] = total
    return y


def convolution_by_einsum(x, weight, bias=None, stride=1, padding=0):
    windows = all_windows(x, weight.shape[2:], stride, padding)
    y = np.einsum("nchwij,ocij->nohw", windows, weight)
    return y if bias is None else y + bias[:, None, None]


def columns_in_a_list(x, kernel_size, stride=1, padding=0):
    (kh, kw), x = kernel_size, padded(x, padding)
    tops, lefts = range(0, x.shape[2] - kh + 1, stride), range(0, x.shape[3] - kw + 1, stride)
    return np.array([image[:, i : i + kh, j : j + kw].ravel() for image in x for i in tops for j in lefts]).T


def columns_by_indices(x, kernel_size, stride=1, padding=0):
    (kh, kw), (oh, ow) = kernel_size, ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    rows = np.arange(kh)[:, None, None, None] + stride * np.arange(oh)[:, None]
    taken = padded(x, padding)[:, :, rows, np.arange(kw)[:, None, None] + stride * np.arange(ow)]
    return np.moveaxis(taken, 0, 3).reshape(-1, len(x) * oh * ow)


def with_three_axes_padded(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(np.pad(x, ((0, 0), (padding, padding), (padding, padding))), weight, bias, stride)


MUTANTS = {
    "conv2d_output_size": [Mutant(size_with_a_fraction, "// gives whole numbers")],
    "conv2d_loops": [Mutant(with_three_axes_padded, "np.pad takes a pair (before, after) for each axis")],
    "im2col": [Mutant(columns_out_of_order_off_the_diagonal, "your values are right, in another order")],
}

HONEST = {
    "conv2d_gemm": [gemm_with_loop_filled_columns, gemm_windows_times_filters],
    "im2col_fast": [im2col_slice_by_slice, columns_of_views],
}

LOOP = {"conv2d_gemm": gemm_image_by_image, "im2col_fast": columns_position_by_position}

RIGHT = {
    "conv2d_output_size": [
        size_counted,
        size_of_each,
        lambda size, kernel_size, stride=1, padding=0: tuple(
            (np.add(size, 2 * padding) - kernel_size + stride) // stride
        ),
        lambda size, kernel_size, stride=1, padding=0: (
            1 + divmod(size[0] - kernel_size[0] + padding + padding, stride)[0],
            1 + divmod(size[1] - kernel_size[1] + padding + padding, stride)[0],
        ),
    ],
    "conv2d_loops": [loops_with_a_sum, loops_inside_the_image, convolution_by_einsum, gemm_with_loop_filled_columns],
    "im2col": [im2col_slice_by_slice, columns_position_by_position, columns_in_a_list, columns_by_indices],
    "im2col_fast": [columns_by_indices, columns_in_a_list],
    "conv2d_gemm": [convolution_by_einsum, gemm_image_by_image],
}
