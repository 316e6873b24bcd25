"""Wrong and imperfect answers to the variants of lesson 02."""

import numpy as np

from unrolled import ops

from . import Mutant

# conv2d_output_size_dilated


def size_with_reach(reach, after=lambda free, stride: free // stride + 1):
    """reach(kernel, dilation) and what is made of the free way."""

    def variant(size, kernel_size, stride=1, padding=0, dilation=1):
        free = (s + 2 * padding - reach(k, dilation) for s, k in zip(size, kernel_size, strict=True))
        return tuple(after(way, stride) for way in free)

    return variant


def reach_right(kernel, dilation):
    return dilation * (kernel - 1) + 1


def size_without_padding(size, kernel_size, stride=1, padding=0, dilation=1):
    return size_with_reach(reach_right)(size, kernel_size, stride, 0, dilation)


def size_swapped(size, kernel_size, stride=1, padding=0, dilation=1):
    return size_with_reach(reach_right)(size, kernel_size, stride, padding, dilation)[::-1]


# conv2d_loops_dilated


def spread(weight, rows, columns):
    o, c, kh, kw = weight.shape
    wide = np.zeros((o, c, rows * (kh - 1) + 1, columns * (kw - 1) + 1), weight.dtype)
    wide[:, :, ::rows, ::columns] = weight
    return wide


def dilated(x, weight, bias=None, stride=1, padding=0, dilation=1):
    return ops.conv2d(x, spread(weight, dilation, dilation), bias, stride, padding)


def without_dilation(x, weight, bias=None, stride=1, padding=0, dilation=1):
    return ops.conv2d(x, weight, bias, stride, padding)


def dilated_by_one_more(x, weight, bias=None, stride=1, padding=0, dilation=1):
    return dilated(x, weight, bias, stride, padding, dilation + 1)


def with_other_pixels(row_of, column_of):
    """Loops that are right but for the pixel that place (i, j) of the kernel meets."""

    def variant(x, weight, bias=None, stride=1, padding=0, dilation=1):
        kh, kw = weight.shape[2:]
        y = np.zeros_like(dilated(x, weight, bias, stride, padding, dilation))
        x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        for image, filter_, row, column in np.ndindex(y.shape):
            total = 0 if bias is None else bias[filter_]
            for i, j in np.ndindex(kh, kw):
                pixels = x[image, :, row * stride + row_of(i, dilation), column * stride + column_of(j, dilation)]
                total += (pixels * weight[filter_, :, i, j]).sum()
            y[image, filter_, row, column] = total
        return y

    return variant


def with_places_missing(x, weight, bias=None, stride=1, padding=0, dilation=1):
    y = dilated(x, weight, bias, stride, padding, dilation)
    reach = tuple(dilation * k for k in weight.shape[2:])
    oh, ow = ops.conv2d_output_size(x.shape[2:], reach, stride, padding)
    return y[:, :, :oh, :ow].copy()


def dilated_with(change):
    """The right convolution of something else: change(x, weight, bias, stride, padding)."""

    def variant(x, weight, bias=None, stride=1, padding=0, dilation=1):
        return dilated(*change(x, weight, bias, stride, padding), dilation)

    return variant


def dilated_returning_too_early(x, weight, bias=None, stride=1, padding=0, dilation=1):
    y = dilated(x, weight, bias, stride, padding, dilation)
    first = np.zeros_like(y)
    first[0, 0, 0, 0] = y[0, 0, 0, 0]
    return first


def dilated_bias_in_the_inner_loop(x, weight, bias=None, stride=1, padding=0, dilation=1):
    bias = None if bias is None else weight[0].size * bias
    return dilated(x, weight, bias, stride, padding, dilation)


def dilated_in_float64(x, weight, bias=None, stride=1, padding=0, dilation=1):
    return dilated(x, weight, bias, stride, padding, dilation).astype(float)


# im2col_nhwc


def pad_nhwc(x, padding):
    return np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))


def all_windows(x, kernel_size, stride, padding):
    """(N, OH, OW, KH, KW, C), a view."""
    views = np.lib.stride_tricks.sliding_window_view(pad_nhwc(x, padding), kernel_size, axis=(1, 2))
    return views[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def rows_of(axes):
    def variant(x, kernel_size, stride=1, padding=0):
        in_a_row = x.shape[3] * kernel_size[0] * kernel_size[1]
        return all_windows(x, kernel_size, stride, padding).transpose(axes).reshape(-1, in_a_row)

    return variant


rows_right = rows_of((0, 1, 2, 3, 4, 5))


def columns_nhwc(x, kernel_size, stride=1, padding=0):
    return rows_right(x, kernel_size, stride, padding).T.copy()


def columns_nhwc_reshaped(x, kernel_size, stride=1, padding=0):
    columns = columns_nhwc(x, kernel_size, stride, padding)
    return columns.reshape(columns.shape[::-1])


def rows_padded_as_nchw(x, kernel_size, stride=1, padding=0):
    return rows_right(np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))), kernel_size, stride)


def rows_without_stride(x, kernel_size, stride=1, padding=0):
    return rows_right(x, kernel_size, 1, padding)


def rows_without_padding(x, kernel_size, stride=1, padding=0):
    return rows_right(x, kernel_size, stride)


def rows_turned(x, kernel_size, stride=1, padding=0):
    cut = all_windows(x, kernel_size, stride, padding)[:, :, :, ::-1, ::-1]
    return cut.reshape(-1, x.shape[3] * kernel_size[0] * kernel_size[1])


def rows_stopped_after_one(x, kernel_size, stride=1, padding=0):
    rows = rows_right(x, kernel_size, stride, padding).copy()
    rows[1:] = 0
    return rows


def rows_in_float64(x, kernel_size, stride=1, padding=0):
    return rows_right(x, kernel_size, stride, padding).astype(float)


def rows_as_if_nchw(x, kernel_size, stride=1, padding=0):
    return ops.im2col(x, kernel_size, stride, padding).T.copy()


def rows_of_the_first_channel(x, kernel_size, stride=1, padding=0):
    return rows_right(x[..., :1], kernel_size, stride, padding)


# conv2d_gemm_nhwc


def nhwc_size(x, weight, stride, padding):
    return ops.conv2d_output_size(x.shape[1:3], weight.shape[:2], stride, padding)


def nhwc_columns(x, weight, stride, padding):
    return ops.im2col(x.transpose(0, 3, 1, 2), weight.shape[:2], stride, padding)


def nhwc_right(x, weight, bias=None, stride=1, padding=0):
    o = weight.shape[3]
    y = nhwc_columns(x, weight, stride, padding).T @ weight.transpose(2, 0, 1, 3).reshape(-1, o)
    y = y if bias is None else y + bias
    return y.reshape(len(x), *nhwc_size(x, weight, stride, padding), o)


def nhwc_with(change):
    """The right convolution of something else: change(x, weight, bias, stride, padding)."""

    def variant(x, weight, bias=None, stride=1, padding=0):
        return nhwc_right(*change(x, weight, bias, stride, padding))

    return variant


def nhwc_weight_torn(x, weight, bias=None, stride=1, padding=0):
    o = weight.shape[3]
    y = nhwc_columns(x, weight, stride, padding).T @ weight.reshape(-1, o)
    y = y if bias is None else y + bias
    return y.reshape(len(x), *nhwc_size(x, weight, stride, padding), o)


def nhwc_images_torn(x, weight, bias=None, stride=1, padding=0):
    n, h, w, c = x.shape
    return nhwc_right(x.reshape(n, c, h, w).transpose(0, 2, 3, 1), weight, bias, stride, padding)


def nhwc_filters_first(x, weight, bias=None, stride=1, padding=0):
    o = weight.shape[3]
    y = weight.transpose(3, 2, 0, 1).reshape(o, -1) @ nhwc_columns(x, weight, stride, padding)
    y = y if bias is None else y + bias[:, None]
    return y.reshape(len(x), *nhwc_size(x, weight, stride, padding), o)


def nhwc_in_nchw(x, weight, bias=None, stride=1, padding=0):
    return nhwc_right(x, weight, bias, stride, padding).transpose(0, 3, 1, 2).copy()


def nhwc_in_float64(x, weight, bias=None, stride=1, padding=0):
    return nhwc_right(x.astype(float), weight.astype(float), bias, stride, padding)


# Honest: correct and imperfect


def nhwc_with_loop_filled_rows(x, weight, bias=None, stride=1, padding=0):
    """Rows of windows in NHWC, filled by a loop over images and places in the window."""
    kh, kw, c, o = weight.shape
    oh, ow = nhwc_size(x, weight, stride, padding)
    padded = pad_nhwc(x, padding)
    rows = np.empty((len(x), oh, ow, kh, kw, c), x.dtype)
    for image in range(len(x)):
        for i in range(kh):
            for j in range(kw):
                rows[image, :, :, i, j] = padded[image, i : i + stride * oh : stride, j : j + stride * ow : stride]
    y = rows.reshape(-1, kh * kw * c) @ weight.reshape(-1, o)
    return (y if bias is None else y + bias).reshape(len(x), oh, ow, o)


def nhwc_for_each_image(x, weight, bias=None, stride=1, padding=0):
    return np.concatenate([nhwc_right(image[None], weight, bias, stride, padding) for image in x])


def nhwc_by_way_of_float64(x, weight, bias=None, stride=1, padding=0):
    return nhwc_in_float64(x, weight, bias, stride, padding).astype(x.dtype)


def nhwc_windows_times_filters(x, weight, bias=None, stride=1, padding=0):
    y = np.tensordot(all_windows(x, weight.shape[:2], stride, padding), weight, axes=3)
    return y if bias is None else y + bias


def nhwc_position_by_position(x, weight, bias=None, stride=1, padding=0):
    """The loop that the speed part must not pass: a product at every output position."""
    kh, kw, _, o = weight.shape
    oh, ow = nhwc_size(x, weight, stride, padding)
    x = pad_nhwc(x, padding)
    y = np.zeros((len(x), oh, ow, o), x.dtype)
    for row in range(oh):
        for column in range(ow):
            window = x[:, row * stride : row * stride + kh, column * stride : column * stride + kw]
            y[:, row, column] = window.reshape(len(x), -1) @ weight.reshape(-1, o)
    return y if bias is None else y + bias


MUTANTS = {
    "conv2d_output_size_dilated": [
        Mutant(size_with_reach(lambda k, d: k), "the dilation seems to be missing"),
        Mutant(size_with_reach(lambda k, d: d * k), "k pixels have k - 1 steps between them"),
        Mutant(size_with_reach(lambda k, d: d * (k - 1)), "the first pixel counts, too"),
        Mutant(size_with_reach(lambda k, d: k + (k - 1) * d), "dilation counts from pixel to pixel"),
        Mutant(size_with_reach(lambda k, d: k + d - 1), "between any two numbers of the kernel"),
        Mutant(size_with_reach(reach_right, lambda way, s: way // s), "count the positions, not the steps"),
        Mutant(size_with_reach(reach_right, lambda way, s: (way + 1) // s), "divide by the stride before you add 1"),
        Mutant(size_with_reach(reach_right, lambda way, s: -(-way // s) + 1), "you rounded up"),
        Mutant(size_with_reach(reach_right, lambda way, s: way + 1), "the stride seems to be missing"),
        Mutant(size_with_reach(reach_right, lambda way, s: way / s + 1), "// gives whole numbers"),
        Mutant(size_without_padding, "the padding seems to be missing"),
        Mutant(size_swapped, "the items are right, in another order"),
    ],
    "conv2d_loops_dilated": [
        Mutant(without_dilation, "the dilation is missing"),
        Mutant(dilated_by_one_more, "2 leaves one pixel out"),
        Mutant(with_other_pixels(lambda i, d: i, lambda j, d: j), "its pixels lie side by side"),
        Mutant(with_other_pixels(lambda i, d: i * d, lambda j, d: j), "the gaps count for columns, too"),
        Mutant(with_other_pixels(lambda i, d: i, lambda j, d: j * d), "the gaps count for rows, too"),
        Mutant(with_places_missing, "the last places are missing"),
        Mutant(dilated_with(lambda x, w, b, s, p: (x, w[:, :, ::-1, ::-1], b, s, p)), "turned by 180 degrees"),
        Mutant(dilated_with(lambda x, w, b, s, p: (x, w, None, s, p)), "the bias is missing"),
        Mutant(dilated_with(lambda x, w, b, s, p: (x, w, b, 1, p)), "the stride is missing"),
        Mutant(dilated_with(lambda x, w, b, s, p: (x, w, b, s, 0)), "the padding is missing"),
        Mutant(dilated_with(lambda x, w, b, s, p: (x[:, :1], w[:, :1], b, s, p)), "only the first channel counts"),
        Mutant(dilated_returning_too_early, "only the first output is written"),
        Mutant(dilated_bias_in_the_inner_loop, "the bias is added with each product"),
        Mutant(dilated_in_float64, "dtype is float64, expected float32"),
    ],
    "im2col_nhwc": [
        Mutant(columns_nhwc, "here windows stand in rows"),
        Mutant(columns_nhwc_reshaped, "is not one window a row"),
        Mutant(rows_of((0, 1, 2, 5, 3, 4)), "yours goes (C, KH, KW)"),
        Mutant(rows_of((0, 1, 2, 4, 3, 5)), "yours go column by column"),
        Mutant(rows_of((1, 2, 0, 3, 4, 5)), "yours go (OH, OW, N)"),
        Mutant(rows_of((0, 2, 1, 3, 4, 5)), "yours moves column by column"),
        Mutant(rows_turned, "turned by 180 degrees"),
        Mutant(rows_without_stride, "the stride is missing"),
        Mutant(rows_without_padding, "the padding is missing"),
        Mutant(rows_padded_as_nchw, "the sides are axes 1 and 2"),
        Mutant(rows_stopped_after_one, "only the first row is written"),
        Mutant(rows_of_the_first_channel, "only the first channel is in your rows"),
        Mutant(rows_as_if_nchw, "you read x as (N, C, H, W)"),
        Mutant(rows_in_float64, "dtype is float64, expected float32"),
    ],
    "conv2d_gemm_nhwc": [
        Mutant(nhwc_weight_torn, "weight and columns are in different orders"),
        Mutant(nhwc_images_torn, "a reshape tears the pixels of x apart"),
        Mutant(nhwc_filters_first, "its filters come first"),
        Mutant(nhwc_in_nchw, "the result is NHWC, as x is"),
        Mutant(nhwc_with(lambda x, w, b, s, p: (x, w, None, s, p)), "the bias is missing"),
        Mutant(nhwc_with(lambda x, w, b, s, p: (x, w, b, 1, p)), "the stride is missing"),
        Mutant(nhwc_with(lambda x, w, b, s, p: (x, w, b, s, 0)), "the padding is missing"),
        Mutant(nhwc_with(lambda x, w, b, s, p: (x, w[::-1, ::-1], b, s, p)), "turned by 180 degrees"),
        Mutant(nhwc_in_float64, "dtype is float64, expected float32"),
    ],
}

HONEST = {
    "conv2d_gemm_nhwc": [
        nhwc_with_loop_filled_rows,
        nhwc_for_each_image,
        nhwc_by_way_of_float64,
        nhwc_windows_times_filters,
    ],
}

LOOP = {"conv2d_gemm_nhwc": nhwc_position_by_position}
