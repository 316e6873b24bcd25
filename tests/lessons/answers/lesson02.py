"""Wrong and imperfect answers to the exercises of lesson 02."""

import numpy as np

from unrolled import ops

from . import Mutant

# conv2d_output_size


def size_without_one(size, kernel_size, stride=1, padding=0):
    return tuple((s + 2 * padding - k) // stride for s, k in zip(size, kernel_size, strict=True))


def size_with_padding_once(size, kernel_size, stride=1, padding=0):
    return tuple((s + padding - k) // stride + 1 for s, k in zip(size, kernel_size, strict=True))


def size_without_padding(size, kernel_size, stride=1, padding=0):
    return tuple((s - k) // stride + 1 for s, k in zip(size, kernel_size, strict=True))


def size_without_stride(size, kernel_size, stride=1, padding=0):
    return tuple(s + 2 * padding - k + 1 for s, k in zip(size, kernel_size, strict=True))


def size_with_a_fraction(size, kernel_size, stride=1, padding=0):
    return tuple((s + 2 * padding - k) / stride + 1 for s, k in zip(size, kernel_size, strict=True))


def size_rounded_up(size, kernel_size, stride=1, padding=0):
    return tuple(-(-(s + 2 * padding - k) // stride) + 1 for s, k in zip(size, kernel_size, strict=True))


def size_divided_too_late(size, kernel_size, stride=1, padding=0):
    return tuple((s + 2 * padding - k + 1) // stride for s, k in zip(size, kernel_size, strict=True))


def size_of_one_axis(size, kernel_size, stride=1, padding=0):
    return (size[0] + 2 * padding - kernel_size[0]) // stride + 1


def size_swapped(size, kernel_size, stride=1, padding=0):
    return ops.conv2d_output_size(size, kernel_size, stride, padding)[::-1]


def size_of_squares(size, kernel_size, stride=1, padding=0):
    side = (size[0] + 2 * padding - kernel_size[0]) // stride + 1
    return side, side


# conv2d_loops and conv2d_gemm


def size_rounded(size, kernel_size, stride=1, padding=0):
    return tuple(round((s + 2 * padding - k) / stride) + 1 for s, k in zip(size, kernel_size, strict=True))


def padded(x, padding):
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))


def with_turned_kernel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight[:, :, ::-1, ::-1].copy(), bias, stride, padding)


def with_mirrored_kernel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight[:, :, :, ::-1].copy(), bias, stride, padding)


def with_bias_subtracted(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight, None if bias is None else -bias, stride, padding)


def with_stride_in_rows_only(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight, bias, (stride, 1), padding)


def returning_too_early(x, weight, bias=None, stride=1, padding=0):
    y = ops.conv2d(x, weight, bias, stride, padding)
    right = np.zeros_like(y)
    right[0, 0, 0, 0] = y[0, 0, 0, 0]
    return right


def with_the_first_image(x, weight, bias=None, stride=1, padding=0):
    y = ops.conv2d(x, weight, bias, stride, padding).copy()
    y[1:] = 0
    return y


def with_the_first_filter(x, weight, bias=None, stride=1, padding=0):
    y = ops.conv2d(x, weight, bias, stride, padding).copy()
    y[:, 1:] = 0
    return y


def with_transposed_kernel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight.swapaxes(2, 3).copy(), bias, stride, padding)


def without_bias(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight, None, stride, padding)


def without_padding(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight, bias, stride)


def without_stride(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, weight, bias, 1, padding)


def with_the_first_channel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x[:, :1], weight[:, :1], bias, stride, padding)


def with_the_last_channel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x[:, -1:], weight[:, -1:], bias, stride, padding)


def with_bias_in_the_channel_loop(x, weight, bias=None, stride=1, padding=0):
    parts = [ops.conv2d(x[:, c : c + 1], weight[:, c : c + 1], bias, stride, padding) for c in range(x.shape[1])]
    return sum(parts)


def with_bias_in_the_inner_loop(x, weight, bias=None, stride=1, padding=0):
    y = ops.conv2d(x, weight, None, stride, padding)
    return y if bias is None else y + weight[0].size * bias[:, None, None]


def with_stretched_edges(x, weight, bias=None, stride=1, padding=0):
    edges = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="edge")
    return ops.conv2d(edges, weight, bias, stride)


def in_float64(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x.astype(float), weight.astype(float), bias, stride, padding)


def with_the_last_row_missing(x, weight, bias=None, stride=1, padding=0):
    y = ops.conv2d(x, weight, bias, stride, padding).copy()
    y[:, :, -1] = 0
    return y


def padding_its_input(x, weight, bias=None, stride=1, padding=0):
    x *= 2
    return ops.conv2d(x / 2, weight, bias, stride, padding)


def one_image_too_few(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x[:1], weight, bias, stride, padding)


def product(x, weight, stride, padding):
    o, _, kh, kw = weight.shape
    return weight.reshape(o, -1) @ ops.im2col(x, (kh, kw), stride, padding)


def out_size(x, weight, stride, padding):
    return ops.conv2d_output_size(x.shape[2:], weight.shape[2:], stride, padding)


def gemm_not_swapped(x, weight, bias=None, stride=1, padding=0):
    y = product(x, weight, stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding))


def gemm_read_as_images(x, weight, bias=None, stride=1, padding=0):
    y = product(x, weight, stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(x), len(weight), *out_size(x, weight, stride, padding))


def gemm_without_bias(x, weight, bias=None, stride=1, padding=0):
    y = product(x, weight, stride, padding).reshape(len(weight), len(x), *out_size(x, weight, stride, padding))
    return y.swapaxes(0, 1)


def gemm_bias_along_the_columns(x, weight, bias=None, stride=1, padding=0):
    y = product(x, weight, stride, padding)
    y = y if bias is None else y + bias
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


def gemm_without_stride(x, weight, bias=None, stride=1, padding=0):
    return gemm_in_float32(x, weight, bias, 1, padding)


def gemm_without_padding(x, weight, bias=None, stride=1, padding=0):
    return gemm_in_float32(x, weight, bias, stride, 0)


def gemm_in_float32(x, weight, bias=None, stride=1, padding=0):
    y = product(x, weight, stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


def gemm_turned_around(x, weight, bias=None, stride=1, padding=0):
    o, c, kh, kw = weight.shape
    weight_columns = weight.reshape(c * kh * kw, o)
    y = (ops.im2col(x, (kh, kw), stride, padding).T @ weight_columns).T
    y = y if bias is None else y + bias[:, None]
    return y.reshape(o, len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


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


def columns_transposed(x, kernel_size, stride=1, padding=0):
    windows = all_windows(x, kernel_size, stride, padding).transpose(0, 2, 3, 1, 4, 5)
    return windows.reshape(-1, x.shape[1] * kernel_size[0] * kernel_size[1])


def columns_reshaped(x, kernel_size, stride=1, padding=0):
    rows = columns_transposed(x, kernel_size, stride, padding)
    return rows.reshape(rows.shape[::-1])


def columns_without_stride(x, kernel_size, stride=1, padding=0):
    return ops.im2col(x, kernel_size, 1, padding)


def columns_without_padding(x, kernel_size, stride=1, padding=0):
    return ops.im2col(x, kernel_size, stride)


def columns_turned(x, kernel_size, stride=1, padding=0):
    views = all_windows(x, kernel_size, stride, padding)[..., ::-1, ::-1]
    return views.transpose(1, 4, 5, 0, 2, 3).reshape(x.shape[1] * kernel_size[0] * kernel_size[1], -1)


def columns_stopped_after_one(x, kernel_size, stride=1, padding=0):
    columns = ops.im2col(x, kernel_size, stride, padding)
    columns[:, 1:] = 0
    return columns


def columns_in_float64(x, kernel_size, stride=1, padding=0):
    return ops.im2col(x, kernel_size, stride, padding).astype(float)


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
    y = weight.reshape(len(weight), -1) @ im2col_slice_by_slice(x, weight.shape[2:], stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


def gemm_for_each_image(x, weight, bias=None, stride=1, padding=0):
    return np.concatenate([gemm_in_float32(image[None], weight, bias, stride, padding) for image in x])


def gemm_by_way_of_float64(x, weight, bias=None, stride=1, padding=0):
    return gemm_in_float32(x.astype(float), weight.astype(float), bias, stride, padding).astype(x.dtype)


def windows_times_filters(x, weight, bias=None, stride=1, padding=0):
    windows = all_windows(x, weight.shape[2:], stride, padding)
    y = np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)
    return y if bias is None else y + bias[:, None, None]


def position_by_position(x, weight, bias=None, stride=1, padding=0):
    """The loop that the speed part must not pass: multiply and add at every output position."""
    (n, o), (kh, kw) = (len(x), len(weight)), weight.shape[2:]
    oh, ow = out_size(x, weight, stride, padding)
    x = padded(x, padding)
    y = np.zeros((n, o, oh, ow), x.dtype)
    for row in range(oh):
        for column in range(ow):
            top, left = row * stride, column * stride
            window = x[:, :, top : top + kh, left : left + kw].reshape(n, -1)
            y[:, :, row, column] = window @ weight.reshape(o, -1).T
    return y if bias is None else y + bias[:, None, None]


MUTANTS = {
    "conv2d_output_size": [
        Mutant(size_without_one, "count the positions, not the steps"),
        Mutant(size_with_padding_once, "it is added at both ends"),
        Mutant(size_without_padding, "the padding seems to be missing"),
        Mutant(size_without_stride, "the stride seems to be missing"),
        Mutant(size_with_a_fraction, "// gives whole numbers"),
        Mutant(size_rounded_up, "you rounded up"),
        Mutant(size_rounded, "you rounded: part of a step does not count"),
        Mutant(size_divided_too_late, "divide by the stride before you add 1"),
        Mutant(size_of_one_axis, "expected a tuple of 2"),
        Mutant(size_swapped, "the items are right, in another order"),
        Mutant(lambda **given: list(ops.conv2d_output_size(**given)), "the values are right: return them as a tuple"),
        Mutant(size_of_squares, "item 1 of 2"),
    ],
    "conv2d_loops": [
        Mutant(with_turned_kernel, "turned by 180 degrees"),
        Mutant(with_mirrored_kernel, "mirrored, left to right"),
        Mutant(with_bias_subtracted, "the bias is subtracted"),
        Mutant(with_stride_in_rows_only, "the stride counts for columns, too"),
        Mutant(returning_too_early, "only the first output is written"),
        Mutant(with_the_first_image, "only the first image is computed"),
        Mutant(with_the_first_filter, "only the first filter is used"),
        Mutant(with_transposed_kernel, "your kernel is transposed"),
        Mutant(without_bias, "the bias is missing"),
        Mutant(without_padding, "the padding is missing"),
        Mutant(without_stride, "the stride is missing"),
        Mutant(with_the_first_channel, "only the first channel counts"),
        Mutant(with_the_last_channel, "do not start again at 0"),
        Mutant(with_bias_in_the_channel_loop, "the bias is added once a channel"),
        Mutant(with_bias_in_the_inner_loop, "the bias is added with each product"),
        Mutant(with_stretched_edges, "pad with zeros"),
        Mutant(in_float64, "dtype is float64, expected float32"),
        Mutant(lambda **given: ops.conv2d(**given).astype(np.float32), "dtype is float32, expected float64"),
        Mutant(
            lambda **given: ops.conv2d(**given | {"stride": min(given.get("stride", 1), 2)}), "expected (2, 3, 3, 3)"
        ),
        Mutant(with_the_last_row_missing, "first at [0, 0, 1, 0]"),
        Mutant(padding_its_input, "changed its input x"),
        Mutant(one_image_too_few, "shape (1, 4, 3, 6), expected (2, 4, 3, 6)"),
    ],
    "im2col": [
        Mutant(columns_transposed, "windows stand in columns"),
        Mutant(columns_reshaped, "is not one window a column"),
        Mutant(columns_of((4, 5, 1, 0, 2, 3)), "yours go (KH, KW, C)"),
        Mutant(columns_of((1, 5, 4, 0, 2, 3)), "go row by row"),
        Mutant(columns_of((1, 4, 5, 2, 3, 0)), "yours go (OH, OW, N)"),
        Mutant(columns_of((1, 4, 5, 0, 3, 2)), "go row by row"),
        Mutant(columns_out_of_order_off_the_diagonal, "your values are right, in another order"),
        Mutant(columns_turned, "turned by 180 degrees"),
        Mutant(columns_without_stride, "the stride is missing"),
        Mutant(columns_without_padding, "the padding is missing"),
        Mutant(columns_stopped_after_one, "only the first column is written"),
        Mutant(lambda **given: ops.im2col(**given | {"stride": min(given.get("stride", 1), 2)}), "expected (18, 18)"),
        Mutant(columns_in_float64, "dtype is float64, expected float32"),
    ],
    "conv2d_gemm": [
        Mutant(gemm_not_swapped, "O before N"),
        Mutant(gemm_read_as_images, "O before N"),
        Mutant(gemm_without_bias, "the bias is missing"),
        Mutant(gemm_bias_along_the_columns, "ValueError"),
        Mutant(gemm_without_stride, "the stride is missing"),
        Mutant(gemm_without_padding, "the padding is missing"),
        Mutant(gemm_turned_around, "tears them apart"),
        Mutant(with_turned_kernel, "turned by 180 degrees"),
        Mutant(in_float64, "dtype is float64, expected float32"),
    ],
}

HONEST = {
    "conv2d_gemm": [
        gemm_with_loop_filled_columns,
        gemm_for_each_image,
        gemm_by_way_of_float64,
        windows_times_filters,
    ],
}

LOOP = {"conv2d_gemm": position_by_position}
