"""Convolution and im2col on images in the other order, NHWC: references, baselines and usual mistakes of variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l03_pooling.pooling import first_of
from unrolled.checks.spec import Function, Mistake
from unrolled.device import Array

Size = tuple[int, int]


def pad(x: Array, padding: int) -> Array:
    """x (N, H, W, C) with zeros on all four sides."""
    return np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))


def windows(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    """Every window of x (N, H, W, C), with all axes apart: (N, OH, OW, KH, KW, C), a view."""
    views = np.lib.stride_tricks.sliding_window_view(pad(x, padding), kernel_size, axis=(1, 2))
    return views[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def rows(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    """Every window of x (N, H, W, C) as a row: (N*OH*OW, KH*KW*C)."""
    cut = windows(x, kernel_size, stride, padding)
    return np.ascontiguousarray(cut).reshape(-1, cut[0, 0, 0].size)


def _rows_in_order(*axes: int) -> Function:
    """A mistake in the order of the six axes; the last three still make a row."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        cut = windows(x, kernel_size, stride, padding)
        return np.ascontiguousarray(cut.transpose(axes)).reshape(-1, cut[0, 0, 0].size)

    return wrong


def _rows_then(change: Callable[[Array], Array]) -> Function:
    """A mistake after the right rows were made."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        return np.ascontiguousarray(change(rows(x, kernel_size, stride, padding)))

    return wrong


def _rows_of(change: Callable[..., tuple[Any, ...]]) -> Function:
    """A mistake in what the rows were made of: `change(x, s, p)` is x, stride and padding as they were used."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        x, stride, padding = change(x, stride, padding)
        return rows(x, kernel_size, stride, padding)

    return wrong


def _turned_windows(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    cut = windows(x, kernel_size, stride, padding)[:, :, :, ::-1, ::-1]
    return cut.reshape(-1, cut[0, 0, 0].size)


def _whole_padding(x: Array, stride: int, padding: int) -> tuple[Array, int, int]:
    """Padded as NCHW is: the last two axes."""
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding))), stride, 0


STRIDE = "the stride is missing: window (row, column) begins at (row * stride, column * stride)"
SIDES = "you padded columns and channels, as if x were NCHW: in NHWC the sides are axes 1 and 2"

ROW_MISTAKES = (
    Mistake("only the first row is written: is `return` inside a loop?", _rows_then(lambda r: first_of(r, 0))),
    Mistake("each of your columns is a window: here windows stand in rows, so transpose", _rows_then(lambda r: r.T)),
    Mistake(
        "one window a column, reshaped, is not one window a row: transpose", _rows_then(lambda r: r.T.reshape(r.shape))
    ),
    Mistake(
        "a row is out of order: it goes (KH, KW, C), since in NHWC the channels of a pixel are neighbours; yours goes "
        "(C, KH, KW)",
        _rows_in_order(0, 1, 2, 5, 3, 4),
    ),
    Mistake(
        "a row is out of order: flatten each window row by row; yours go column by column",
        _rows_in_order(0, 1, 2, 4, 3, 5),
    ),
    Mistake("rows out of order: they go (N, OH, OW); yours go (OH, OW, N)", _rows_in_order(1, 2, 0, 3, 4, 5)),
    Mistake(
        "rows out of order: the window moves row by row; yours moves column by column", _rows_in_order(0, 2, 1, 3, 4, 5)
    ),
    Mistake("your windows are turned by 180 degrees: read them as they lie in the image", _turned_windows),
    Mistake(
        "only the first channel is in your rows: a window has all of them", _rows_of(lambda x, s, p: (x[..., :1], s, p))
    ),
    Mistake(STRIDE, _rows_of(lambda x, s, p: (x, 1, p))),
    Mistake("the padding is missing", _rows_of(lambda x, s, p: (x, s, 0))),
    Mistake(SIDES, _rows_of(_whole_padding)),
    Mistake(
        "you read x as (N, C, H, W): here it is (N, H, W, C)",
        lambda x, kernel_size, stride=1, padding=0: ops.im2col(x, kernel_size, stride, padding).T,
    ),
)


# Convolution


def to_nchw(x: Array) -> Array:
    """(N, H, W, C) as (N, C, H, W)."""
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def to_oihw(weight: Array) -> Array:
    """(KH, KW, C, O) as (O, C, KH, KW)."""
    return np.ascontiguousarray(weight.transpose(3, 2, 0, 1))


def to_nhwc(y: Array) -> Array:
    """(N, O, OH, OW) as (N, OH, OW, O)."""
    return np.ascontiguousarray(y.transpose(0, 2, 3, 1))


def conv2d(x: Array, weight: Array, bias: Array | None = None, stride: int = 1, padding: int = 0) -> Array:
    """Convolve x (N, H, W, C) with weight (KH, KW, C, O), add bias (O,): (N, OH, OW, O)."""
    return to_nhwc(ops.conv2d(to_nchw(x), to_oihw(weight), bias, stride, padding))


def conv2d_positions(x: Array, weight: Array, bias: Array | None = None, stride: int = 1, padding: int = 0) -> Array:
    """The same by a loop over output positions, with one small product at each: the baseline."""
    (kh, kw), (n, o) = weight.shape[:2], (len(x), weight.shape[3])
    oh, ow = ops.conv2d_output_size(x.shape[1:3], (kh, kw), stride, padding)
    x, table = pad(x, padding), weight.reshape(-1, o)
    y = np.zeros((n, oh, ow, o), x.dtype)
    for row in range(oh):
        for column in range(ow):
            top, left = row * stride, column * stride
            y[:, row, column] = x[:, top : top + kh, left : left + kw].reshape(n, -1) @ table
    return y if bias is None else y + bias


def _between(function: Function) -> Function:
    """A mistake in a convolution of NCHW, made in NHWC."""

    def wrong(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
        return to_nhwc(function(to_nchw(x), to_oihw(weight), bias, stride, padding))

    return wrong


def _torn_weight(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
    """weight.reshape(-1, O) beside columns that go (C, KH, KW)."""
    kh, kw, c, o = weight.shape
    return conv2d(x, weight.reshape(c, kh, kw, o).transpose(1, 2, 0, 3), bias, stride, padding)


def _torn_images(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
    n, h, w, c = x.shape
    return to_nhwc(ops.conv2d(x.reshape(n, c, h, w), to_oihw(weight), bias, stride, padding))


def _filters_first(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
    y = conv2d(x, weight, bias, stride, padding)
    return np.ascontiguousarray(y.transpose(3, 0, 1, 2)).reshape(y.shape)


def _in_nchw(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
    return to_nchw(conv2d(x, weight, bias, stride, padding))


def convolution_mistakes(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Mistakes in the order of axes, and after them those of a convolution of NCHW, made in NHWC."""
    return (
        Mistake(
            "weight and columns are in different orders: the rows of ops.im2col go (C, KH, KW), those of "
            "weight.reshape(-1, O) go (KH, KW, C). Transpose weight first: weight.transpose(2, 0, 1, 3)",
            _torn_weight,
        ),
        Mistake("a reshape tears the pixels of x apart: x.transpose(0, 3, 1, 2) gives NCHW", _torn_images),
        Mistake(
            "your product is right, but its filters come first: turn it to (N*OH*OW, O) before the reshape",
            _filters_first,
        ),
        Mistake("yours is (N, O, OH, OW): the result is NHWC, as x is", _in_nchw),
        *(Mistake(mistake.says, _between(mistake.function)) for mistake in mistakes),
    )


# The way back from max-pooling, by index


def max_unpool2d(values: Array, indices: Array, size: Size) -> Array:
    """Put values (N, OH, OW, C) at indices (the same shape), row * W + column, of images (N, H, W, C)."""
    return to_nhwc(ops.max_unpool2d(to_nchw(values), to_nchw(indices), size))


def _unpooled_between(function: Function) -> Function:
    def wrong(values: Array, indices: Array, size: Size) -> Array:
        return to_nhwc(function(to_nchw(values), to_nchw(indices), size))

    return wrong


def _images_not_named(values: Array, indices: Array, size: Size) -> Array:
    n, c = len(values), values.shape[3]
    result = np.zeros((n, size[0] * size[1], c), values.dtype)
    result[:, indices.reshape(n, -1, c), np.arange(c)] = values.reshape(n, -1, c)
    return result.reshape(n, *size, c)


def _channels_not_named(values: Array, indices: Array, size: Size) -> Array:
    n, c = len(values), values.shape[3]
    result = np.zeros((n, size[0] * size[1], c), values.dtype)
    result[np.arange(n)[:, None, None], indices.reshape(n, -1, c)] = values.reshape(n, -1, c, 1)
    return result.reshape(n, *size, c)


def _counted_by_numbers(values: Array, indices: Array, size: Size) -> Array:
    """As if an index counted numbers, with all channels of a pixel one after the other."""
    n, c = len(values), values.shape[3]
    result = np.zeros((n, size[0] * size[1] * c), values.dtype)
    result[np.arange(n)[:, None], indices.reshape(n, -1)] = values.reshape(n, -1)
    return result.reshape(n, *size, c)


def _not_transposed_back(values: Array, indices: Array, size: Size) -> Array:
    back = ops.max_unpool2d(to_nchw(values), to_nchw(indices), size)
    return back.reshape(len(values), *size, values.shape[3])


def _read_as_nchw(values: Array, indices: Array, size: Size) -> Array:
    return ops.max_unpool2d(values, indices, size)


def unpooling_mistakes(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Mistakes in the axes, and after them those of NCHW, made in NHWC."""
    return (
        Mistake(
            "each image got the values of all images: result[:, indices, channels] pairs every image with every index. "
            "Name the images: np.arange(N)[:, None, None]",
            _images_not_named,
        ),
        Mistake(
            "all channels of a pixel got the value: name the channel of each index as well, np.arange(C)",
            _channels_not_named,
        ),
        Mistake(
            "an index counts pixels, row * W + column, not the numbers in them: keep the channels in an axis of their "
            "own",
            _counted_by_numbers,
        ),
        Mistake(
            "your images are NCHW at the end: bring C behind H and W with a transpose, not with a reshape",
            _not_transposed_back,
        ),
        Mistake("you read values as (N, C, OH, OW): here they are (N, OH, OW, C)", _read_as_nchw),
        *(Mistake(mistake.says, _unpooled_between(mistake.function)) for mistake in mistakes),
    )
