"""The variant of lesson 02: windows of images in the other order, NHWC, as rows."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import exercises
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X
from unrolled.checks.exercises.l02_convolution.windows import STRIDE, TURNED, Size, padded
from unrolled.checks.mistakes import Mistake, alone, given, only, result
from unrolled.checks.spec import case, normal, random_case, variant
from unrolled.device import Array

PIXELS = array([[[1, 10], [2, 20]], [[3, 30], [4, 40]]])


def to_nhwc(x: Array) -> Array:
    """(N, C, H, W) as (N, H, W, C)."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def windows(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    """Every window of x (N, H, W, C), with all axes apart: (N, OH, OW, KH, KW, C), a view."""
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    views = np.lib.stride_tricks.sliding_window_view(x, kernel_size, axis=(1, 2))
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
    result("only the first row is written: is `return` inside a loop?", lambda y: alone(y, 0)),
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


im2col_nhwc = variant(
    exercises.im2col,
    reference=rows,
    cases=[
        case("2 x 2 pixels of two channels, window 1 x 2", x=PIXELS, kernel_size=(1, 2)),
        case("the seminar's 4 x 4 image, 2 x 2 kernel", x=to_nhwc(SEMINAR_X), kernel_size=(2, 2)),
        case("3 rows of 4, kernel 2 x 3", x=np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1), kernel_size=(2, 3)),
        case("two images, three channels", x=normal(2, 4, 5, 3), kernel_size=(3, 2)),
        case("padding 1", x=normal(1, 3, 3, 1), kernel_size=(3, 3), padding=1),
        case("stride 2", x=normal(1, 5, 7, 1), kernel_size=(2, 3), stride=2),
        case("stride 3, padding 2", x=normal(2, 6, 5, 2), kernel_size=(2, 2), stride=3, padding=2),
    ],
    domain=random_case(
        "any images and windows", lambda rng: {**(drawn := exercises.any_images(rng)), "x": to_nhwc(drawn["x"])}
    ),
    hints=(
        "One row is one window, flattened. Make an empty matrix, visit the windows in the order of the rows, and write "
        "each into its row. The loops may stay: this exercise is about order, not speed.",
        "Pad axes 1 and 2 only. Window (n, row, column) of the padded x is x[n, top : top + KH, left : left + KW] with "
        "top = row * stride and left = column * stride: shape (KH, KW, C), and .reshape(-1) gives it in just the order "
        "of a row. Its row has the number (n * OH + row) * OW + column.",
        "x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))\n"
        "rows = np.empty((N * OH * OW, KH * KW * C), dtype=x.dtype)\n"
        "at = 0\n"
        "in the loops over image, row, column:\n"
        "    rows[at] = x[image, top : top + KH, left : left + KW].reshape(-1)\n"
        "    at += 1",
    ),
    mistakes=ROW_MISTAKES,
)
