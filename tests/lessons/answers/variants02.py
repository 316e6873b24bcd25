"""Wrong and imperfect answers to the variants of lesson 02."""

import numpy as np

from unrolled import ops

from . import Mutant

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


MUTANTS = {
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
}

HONEST: dict[str, list] = {}

LOOP: dict = {}
