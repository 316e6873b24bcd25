"""Convolution and im2col on images in the other order, NHWC: references, baselines and usual mistakes of variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l02_convolution.windows import CONVOLUTION_MISTAKES, STRIDE, TURNED, Size, padded
from unrolled.checks.mistakes import Function, Mistake, converted, first_of, given, only, result
from unrolled.device import Array


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


def _order(says: str, *axes: int, step: int = 1) -> Mistake:
    """The mistake of rows whose axes, (N, OH, OW, KH, KW, C), go in this order; step -1: with turned windows."""

    def changed(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
        six = windows(x, kernel_size, stride, padding)[:, :, :, ::step, ::step]
        return six.transpose(axes).reshape(y.shape)

    return result(says, changed)


def _one_apart(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
    """As many windows as there should be, which begin one pixel apart."""
    oh, ow = ops.conv2d_output_size(x.shape[1:3], kernel_size, stride, padding)
    return windows(x, kernel_size, 1, padding)[:, :oh, :ow].reshape(y.shape)


ROW_MISTAKES = (
    result("only the first row is written: is `return` inside a loop?", lambda y: first_of(y, 0)),
    result("each of your columns is a window: here windows stand in rows, so transpose", lambda y: y.T),
    result("one window a column, reshaped, is not one window a row: transpose", lambda y: y.T.reshape(y.shape)),
    _order(
        "a row is out of order: it goes (KH, KW, C), since in NHWC the channels of a pixel are neighbours; yours goes "
        "(C, KH, KW)",
        *(0, 1, 2, 5, 3, 4),
    ),
    _order("a row is out of order: flatten each window row by row; yours go column by column", 0, 1, 2, 4, 3, 5),
    _order("rows out of order: they go (N, OH, OW); yours go (OH, OW, N)", 1, 2, 0, 3, 4, 5),
    _order("rows out of order: the window moves row by row; yours moves column by column", 0, 2, 1, 3, 4, 5),
    _order(TURNED, *range(6), step=-1),
    given("only the first channel is in your rows: a window has all of them", x=lambda x: x[..., :1]),
    given(STRIDE, stride=1),
    result(STRIDE, _one_apart),
    given("the padding is missing", padding=0),
    given(
        "you padded columns and channels, as if x were NCHW: in NHWC the sides are axes 1 and 2", x=padded, padding=0
    ),
    result("you read x as (N, C, H, W): here it is (N, H, W, C)", lambda y: y.T, ops.im2col),
    result(
        "every window is written into the first row: the counter of rows never advances",
        lambda y: only(np.repeat(y[-1:], len(y), axis=0), 0),
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
    """Convolve as `conv2d` does, by a loop over output positions with one small product at each: the baseline."""
    (kh, kw), (n, o) = weight.shape[:2], (len(x), weight.shape[3])
    oh, ow = ops.conv2d_output_size(x.shape[1:3], (kh, kw), stride, padding)
    x, table = pad(x, padding), weight.reshape(-1, o)
    y = np.zeros((n, oh, ow, o), x.dtype)
    for row in range(oh):
        for column in range(ow):
            top, left = row * stride, column * stride
            y[:, row, column] = x[:, top : top + kh, left : left + kw].reshape(n, -1) @ table
    return y if bias is None else y + bias


def _torn_weight(weight: Array) -> Array:
    """weight.reshape(-1, O) beside columns that go (C, KH, KW)."""
    kh, kw, c, o = weight.shape
    return weight.reshape(c, kh, kw, o).transpose(1, 2, 0, 3)


def _torn_images(x: Array) -> Array:
    n, h, w, c = x.shape
    return to_nhwc(x.reshape(n, c, h, w))


# Mistakes in the order of axes, and after them those of a convolution of NCHW, made in NHWC.
LAYOUT_MISTAKES = (
    given(
        "weight and columns are in different orders: the rows of ops.im2col go (C, KH, KW), those of "
        "weight.reshape(-1, O) go (KH, KW, C). Transpose weight first: weight.transpose(2, 0, 1, 3)",
        weight=_torn_weight,
    ),
    given("a reshape tears the pixels of x apart: x.transpose(0, 3, 1, 2) gives NCHW", x=_torn_images),
    result(
        "your product is right, but its filters come first: turn it to (N*OH*OW, O) before the reshape",
        lambda y: y.transpose(3, 0, 1, 2).reshape(y.shape),
    ),
    result("yours is (N, O, OH, OW): the result is NHWC, as x is", to_nchw),
    *(converted(mistake, ops.conv2d, to_nhwc, x=to_nchw, weight=to_oihw) for mistake in CONVOLUTION_MISTAKES),
)


# The way back from max-pooling, by index


def max_unpool2d(values: Array, indices: Array, size: Size) -> Array:
    """Put values (N, OH, OW, C) at indices (the same shape), row * W + column, of images (N, H, W, C)."""
    return to_nhwc(ops.max_unpool2d(to_nchw(values), to_nchw(indices), size))


def _images_not_named(y: Array, values: Array, indices: Array) -> Array:
    n, *_, c = y.shape
    unpooled = np.zeros_like(y).reshape(n, -1, c)
    unpooled[:, indices.reshape(n, -1, c), np.arange(c)] = values.reshape(n, -1, c)
    return unpooled.reshape(y.shape)


def _channels_not_named(y: Array, values: Array, indices: Array) -> Array:
    n, *_, c = y.shape
    unpooled = np.zeros_like(y).reshape(n, -1, c)
    unpooled[np.arange(n)[:, None, None], indices.reshape(n, -1, c)] = values.reshape(n, -1, c, 1)
    return unpooled.reshape(y.shape)


def _counted_by_numbers(y: Array, values: Array, indices: Array) -> Array:
    """As if an index counted numbers, with all channels of a pixel one after the other."""
    unpooled = np.zeros_like(y).reshape(len(y), -1)
    np.put_along_axis(unpooled, indices.reshape(len(y), -1), values.reshape(len(y), -1), axis=1)
    return unpooled.reshape(y.shape)


TO_NCHW: dict[str, Function] = {"values": lambda values: to_nchw(values), "indices": lambda indices: to_nchw(indices)}


def unpooling_mistakes(mistakes: Sequence[Mistake]) -> tuple[Mistake, ...]:
    """Mistakes in the axes, and after them those of NCHW, made in NHWC."""
    return (
        result(
            "each image got the values of all images: result[:, indices, channels] pairs every image with every index. "
            "Name the images: np.arange(N)[:, None, None]",
            _images_not_named,
        ),
        result(
            "all channels of a pixel got the value: name the channel of each index as well, np.arange(C)",
            _channels_not_named,
        ),
        result(
            "an index counts pixels, row * W + column, not the numbers in them: keep the channels in an axis of their "
            "own",
            _counted_by_numbers,
        ),
        result(
            "your images are NCHW at the end: bring C behind H and W with a transpose, not with a reshape",
            lambda y: to_nchw(y).reshape(y.shape),
        ),
        given("you read values as (N, C, OH, OW): here they are (N, OH, OW, C)", ops.max_unpool2d),
        *(converted(mistake, ops.max_unpool2d, to_nhwc, **TO_NCHW) for mistake in mistakes),
    )
