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
    y = weight.reshape(len(weight), -1) @ columns_by_places(x, weight.shape[2:], stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(weight), len(x), *out_size(x, weight, stride, padding)).swapaxes(0, 1)


def gemm_image_by_image(x, weight, bias=None, stride=1, padding=0):
    """The loop that the speed part must not pass: columns and a product for each image."""
    return np.concatenate([gemm_in_float32(image[None], weight, bias, stride, padding) for image in x])


def gemm_by_way_of_float64(x, weight, bias=None, stride=1, padding=0):
    return gemm_in_float32(x.astype(float), weight.astype(float), bias, stride, padding).astype(x.dtype)


def gemm_windows_times_filters(x, weight, bias=None, stride=1, padding=0):
    y = ops.im2col(x, weight.shape[2:], stride, padding).T @ weight.reshape(len(weight), -1).T
    y = y if bias is None else y + bias
    return y.reshape(len(x), *out_size(x, weight, stride, padding), -1).transpose(0, 3, 1, 2)


# Slips in the loops themselves


def loops_with(
    corner=lambda at, stride: at * stride, add=lambda total, product: total + product, until=None, rows=None
):
    """conv2d_loops with one thing changed; the outputs from `until` on, or rows from `rows` on, stay what they were."""

    def slip(x, weight, bias=None, stride=1, padding=0):
        (kh, kw), x = weight.shape[2:], padded(x, padding) if padding else x
        oh, ow = ops.conv2d_output_size(x.shape[2:], (kh, kw), stride)
        y = np.full((len(x), len(weight), oh, ow), 7.5, x.dtype)
        for at, (image, filter_, row, column) in enumerate(np.ndindex(y.shape)):
            if (until is not None and at >= until(*y.shape)) or (rows is not None and row >= rows(oh)):
                continue
            total = 0 if bias is None else bias[filter_]
            for channel, i, j in np.ndindex(weight.shape[1:]):
                pixel = x[image, channel, corner(row, stride) + i, corner(column, stride) + j]
                total = add(total, pixel * weight[filter_, channel, i, j])
            y[image, filter_, row, column] = total
        return y

    return slip


def stride_in_columns_only(x, weight, bias=None, stride=1, padding=0):
    oh, ow = out_size(x, weight, stride, padding)
    return ops.conv2d(x, weight, bias, (1, stride), padding)[:, :, :oh, :ow].copy()


def stride_in_rows_only(x, weight, bias=None, stride=1, padding=0):
    oh, ow = out_size(x, weight, stride, padding)
    return ops.conv2d(x, weight, bias, (stride, 1), padding)[:, :, :oh, :ow].copy()


def columns_with(corner=lambda at, stride: at * stride, counted=True, until=None):
    """im2col in loops with one thing changed."""

    def slip(x, kernel_size, stride=1, padding=0):
        (n, c), (kh, kw) = x.shape[:2], kernel_size
        oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
        x = padded(x, padding)
        columns = np.full((c * kh * kw, n * oh * ow), 7.5, x.dtype)
        for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
            if until is None or at < until(n, oh, ow):
                top, left = corner(row, stride), corner(column, stride)
                window = x[image, :, top : top + kh, left : left + kw]
                columns[:, at if counted else 0] = window.reshape(-1)
        return columns

    return slip


# im2col_fast


def places_with(cut):
    """The loop over places, with another slice: cut(x, i, j, stride, oh, ow) is (C, N, OH, OW)."""

    def columns(x, kernel_size, stride=1, padding=0):
        (n, c), (kh, kw) = x.shape[:2], kernel_size
        oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
        x = padded(x, padding)
        columns = np.empty((c, kh, kw, n, oh, ow), x.dtype)
        for i, j in np.ndindex(kh, kw):
            columns[:, i, j] = cut(x, i, j, stride, oh, ow)
        return columns.reshape(c * kh * kw, n * oh * ow)

    return columns


def pixels(x, i, j, stride, oh, ow):
    return x[:, :, i : i + oh * stride : stride, j : j + ow * stride : stride]


columns_by_places = places_with(lambda *cut: pixels(*cut).swapaxes(0, 1))


def columns_of_the_first_place(x, kernel_size, stride=1, padding=0):
    columns = np.full_like(columns_by_places(x, kernel_size, stride, padding), 7.5)
    columns[0] = columns_by_places(x, kernel_size, stride, padding)[0]
    return columns


def columns_of_views(x, kernel_size, stride=1, padding=0):
    return columns_of((1, 4, 5, 0, 2, 3))(x, kernel_size, stride, padding)


def columns_by_way_of_float64(x, kernel_size, stride=1, padding=0):
    return columns_by_places(x.astype(float), kernel_size, stride, padding).astype(x.dtype)


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


def sizes_by(formula):
    """(OH, OW) by formula(size, kernel_size, stride, padding, axis), with pairs."""

    def variant(size, kernel_size, stride=1, padding=0):
        return formula(size, kernel_size, stride, padding, 0), formula(size, kernel_size, stride, padding, 1)

    return variant


def with_all_axes_padded(x, weight, bias=None, stride=1, padding=0):
    c = x.shape[1]
    return ops.conv2d(np.pad(x, padding)[:, :c], weight, bias, stride)


def with_three_axes_padded(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(np.pad(x, ((0, 0), (padding, padding), (padding, padding))), weight, bias, stride)


def with_one_image_for_all(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(np.repeat(x[:1], len(x), axis=0), weight, bias, stride, padding)


def with_the_weights_of_one_channel(x, weight, bias=None, stride=1, padding=0):
    return ops.conv2d(x, np.repeat(weight[:, :1], x.shape[1], axis=1), bias, stride, padding)


def with_the_size_before_padding(x, weight, bias=None, stride=1, padding=0):
    oh, ow = ops.conv2d_output_size(x.shape[2:], weight.shape[2:], stride)
    return ops.conv2d(x, weight, bias, stride, padding)[:, :, :oh, :ow]


def columns_of_one_image(x, kernel_size, stride=1, padding=0):
    return ops.im2col(np.repeat(x[:1], len(x), axis=0), kernel_size, stride, padding)


def columns_all_padded(x, kernel_size, stride=1, padding=0):
    return ops.im2col(np.pad(x, padding), kernel_size, stride)


def columns_over_each_other(x, kernel_size, stride=1, padding=0):
    columns = np.zeros_like(ops.im2col(x, kernel_size, stride, padding))
    of_one = ops.im2col(x[-1:], kernel_size, stride, padding)
    columns[:, : of_one.shape[1]] = of_one
    return columns


def columns_images_first(x, kernel_size, stride=1, padding=0):
    columns = ops.im2col(x, kernel_size, stride, padding)
    return columns.reshape(len(columns), len(x), -1).swapaxes(0, 1).reshape(columns.shape)


MUTANTS = {
    "conv2d_output_size": [
        Mutant(sizes_by(lambda s, k, t, p, axis: s[axis] + 2 * p - k[axis] // t + 1), "put the sum in brackets"),
        Mutant(sizes_by(lambda s, k, t, p, axis: (s[axis] - 2 * p - k[axis]) // t + 1), "makes the image larger"),
        Mutant(
            sizes_by(lambda s, k, t, p, axis: (s[axis] + 2 * p - k[0]) // t + 1), "OW needs the width of the kernel"
        ),
        Mutant(sizes_by(lambda s, k, t, p, axis: (s[0] + 2 * p - k[axis]) // t + 1), "OW needs the width of the image"),
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
        Mutant(with_all_axes_padded, "pads images and channels, too"),
        Mutant(with_three_axes_padded, "np.pad takes a pair (before, after) for each axis"),
        Mutant(with_one_image_for_all, "every image is made of the first one"),
        Mutant(with_the_weights_of_one_channel, "each channel has weights of its own"),
        Mutant(with_the_size_before_padding, "OH and OW are those of the padded image"),
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
        Mutant(loops_with(rows=lambda oh: oh - 1), "the last row is never written"),
        Mutant(loops_with(until=lambda n, o, oh, ow: ow), "or is `return` inside it?"),
        Mutant(loops_with(until=lambda n, o, oh, ow: oh * ow), "only the first filter is used"),
        Mutant(loops_with(until=lambda n, o, oh, ow: o * oh * ow), "only the first image is computed"),
        Mutant(loops_with(corner=lambda at, stride: at), "begins at (row * stride, column * stride)"),
        Mutant(stride_in_columns_only, "the stride counts for rows, too: row * stride"),
        Mutant(stride_in_rows_only, "the stride counts for columns, too: column * stride"),
        Mutant(loops_with(add=lambda total, product: product), "= overwrites the sum, += adds to it"),
        Mutant(padding_its_input, "changed its input x"),
        Mutant(one_image_too_few, "shape (1, 4, 3, 6), expected (2, 4, 3, 6)"),
    ],
    "im2col": [
        Mutant(columns_of_one_image, "every image is made of the first one"),
        Mutant(columns_all_padded, "pads images and channels, too"),
        Mutant(columns_over_each_other, "the counter of columns starts again at 0"),
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
        Mutant(columns_with(corner=lambda at, stride: at), "begins at (row * stride, column * stride)"),
        Mutant(columns_with(counted=False), "the counter of columns never advances"),
        Mutant(columns_with(until=lambda n, oh, ow: n * oh * ow - 1), "the last column is never written"),
        Mutant(columns_with(until=lambda n, oh, ow: oh * ow), "only the first image is unrolled"),
        Mutant(columns_with(until=lambda n, oh, ow: ow), "only the first row of windows is unrolled"),
        Mutant(columns_with(until=lambda n, oh, ow: 1), "only the first column is right"),
    ],
    "im2col_fast": [
        Mutant(columns_images_first, "N belongs behind KW"),
        Mutant(places_with(pixels), "could not broadcast"),
        Mutant(places_with(lambda x, *cut: pixels(x, *cut).reshape(x.shape[1], len(x), *cut[3:])), "do not reshape"),
        Mutant(
            places_with(lambda x, i, j, stride, oh, ow: x[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)),
            "your slices do not step",
        ),
        Mutant(places_with(lambda x, i, j, *cut: pixels(x, 0, 0, *cut).swapaxes(0, 1)), "its slice begins at i and j"),
        Mutant(columns_of_the_first_place, "only the first place is written"),
        Mutant(columns_of((1, 5, 4, 0, 2, 3)), "go row by row"),
        Mutant(columns_transposed, "windows stand in columns"),
        Mutant(columns_without_padding, "the padding is missing"),
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
        gemm_by_way_of_float64,
        gemm_windows_times_filters,
    ],
    "im2col_fast": [im2col_slice_by_slice, columns_of_views, columns_by_way_of_float64],
}

LOOP = {"conv2d_gemm": gemm_image_by_image, "im2col_fast": columns_position_by_position}
