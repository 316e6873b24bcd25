"""Lesson 02: sliding windows, im2col, one matrix product."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.mistakes import Function, Mistake, first_of, given, only, result
from unrolled.checks.spec import Case, Inputs, Rung, Spec, Speed, case, filters, images, normal, random_case, vector
from unrolled.device import Array
from unrolled.ops import blocks
from unrolled.ops.windows import Windows

Size = tuple[int, int]
Stride = int | tuple[int, int]

# The numbers of Fixstars' seminar "Software acceleration and deep learning" (CUDA acceleration seminar 3, 2022).
SEMINAR_X = array([1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1])[None, None]
SEMINAR_W = array([2, 0, 1], [0, 2, 1], [1, 0, 1])[None, None]
SEMINAR_BIAS = array(3)
# Its slide of three channels prints 39, 33, 15, 44; its arrays, which are these, give 39, 37, 16, 46.
SEMINAR_X3 = array(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        SEMINAR_X[0, 0],
    ]
)
SEMINAR_W3 = array(
    [[[2, 0, 1], [0, 3, 0], [1, 0, 2]], [[0, 1, 3], [0, 1, 2], [1, 0, 0]], [[2, 0, 1], [0, 1, 2], [1, 0, 2]]]
)
# Its example of the matrix conversion. The patch matrix is symmetric, so it cannot tell a transposed one.
SEMINAR_PATCHES = array([2, 0, 1], [0, 2, 3], [1, 3, 1])[None, None]

WORK = "convolution forward only, x 60,000 images"
BATCH = 8

CONVOLUTIONS = (ops.conv2d, ops.conv2d_loops, ops.conv2d_positions, blocks.forward)

DIGIT_BATCH = {"x": images(BATCH, 1, 28, 28), "weight": filters(10, 1, 3, 3), "bias": vector(10), "padding": 1}
"""The convolution of every rung."""


def random_sizes(rng: np.random.Generator) -> Inputs:
    """Size, kernel, stride and padding that fit, for one image."""
    kernel = tuple(int(k) for k in rng.integers(1, 5, 2))
    stride, padding = int(rng.integers(1, 4)), int(rng.integers(0, 3))
    size = tuple(int(max(1, k - 2 * padding) + rng.integers(0, 9)) for k in kernel)
    return {"size": size, "kernel_size": kernel, "stride": stride, "padding": padding}


def random_images(rng: np.random.Generator, most: int) -> Inputs:
    """x, kernel_size, stride, padding: 2 to `most` images and channels, sizes as they come."""
    sizes = random_sizes(rng)
    n, c = rng.integers(2, most + 1, 2)
    return {"x": rng.standard_normal((n, c, *sizes.pop("size"))).astype(np.float32), **sizes}


def random_convolution(rng: np.random.Generator) -> Inputs:
    inputs = random_images(rng, 3)
    channels, o = inputs["x"].shape[1], int(rng.integers(2, 5))
    weight = rng.standard_normal((o, channels, *inputs.pop("kernel_size"))).astype(np.float32)
    return {"weight": weight, "bias": rng.standard_normal(o).astype(np.float32), **inputs}


def sizes(formula: Callable[..., int]) -> Function:
    """A mistake in the formula, applied along each axis: formula(size, kernel, stride, padding)."""

    def wrong(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0) -> Size:
        height, width = (formula(s, k, stride, padding) for s, k in zip(size, kernel_size, strict=True))
        return height, width

    return wrong


SIZE_MISTAKES = (
    Mistake("divide by the stride before you add 1", sizes(lambda s, k, t, p: (s + 2 * p - k + 1) // t)),
    Mistake("the padding seems to be missing", sizes(lambda s, k, t, p: (s - k) // t + 1)),
    Mistake("padding counts twice: it is added at both ends", sizes(lambda s, k, t, p: (s + p - k) // t + 1)),
    Mistake("you rounded: part of a step does not count", sizes(lambda s, k, t, p: round((s + 2 * p - k) / t) + 1)),
    Mistake("the stride seems to be missing", sizes(lambda s, k, t, p: s + 2 * p - k + 1)),
    Mistake("you rounded up: part of a step does not count", sizes(lambda s, k, t, p: -(-(s + 2 * p - k) // t) + 1)),
    Mistake("one is missing: count the positions, not the steps", sizes(lambda s, k, t, p: (s + 2 * p - k) // t)),
)

conv2d_output_size = Spec(
    reference=ops.conv2d_output_size,
    answers=(*CONVOLUTIONS, ops.im2col, Windows.over),
    cases=[
        case("the seminar's 4 x 4 image, 3 x 3 kernel", size=(4, 4), kernel_size=(3, 3)),
        case("a digit, 3 x 3 kernel, padding 1", size=(28, 28), kernel_size=(3, 3), padding=1),
        case("a digit, 5 x 5 kernel, padding 2", size=(28, 28), kernel_size=(5, 5), padding=2),
        case("a digit, stride 2", size=(28, 28), kernel_size=(3, 3), stride=2),
        case("7 rows of 10, 3 x 2 kernel", size=(7, 10), kernel_size=(3, 2)),
        case("stride 3, padding 1", size=(9, 15), kernel_size=(4, 3), stride=3, padding=1),
        case("a 1 x 1 kernel, stride 2", size=(7, 5), kernel_size=(1, 1), stride=2),
        case("the kernel covers the image", size=(5, 6), kernel_size=(5, 6)),
        random_case("sizes as they come", random_sizes),
    ],
    points=1,
    hints=(
        "Count along one axis first. The window starts at the left edge of the padded image. How far can it still "
        "move to the right, and how many steps of length `stride` fit into that?",
        "A padded axis has size + 2 * padding pixels, because there is padding at both ends. The free way is that "
        "minus the kernel. Steps that fit: the free way // stride. Positions: one more than steps.",
        "oh = (size[0] + 2 * padding - kernel_size[0]) // stride + 1\now = (the same with [1])\nreturn oh, ow",
    ),
    mistakes=SIZE_MISTAKES,
)


def _first_number(y: Array) -> Array:
    first = np.zeros_like(y)
    first.flat[0] = y.flat[0]
    return first


def _each(bias: Array | None) -> Any:
    """The bias as it joins an output (N, O, OH, OW)."""
    return 0 if bias is None else bias[:, None, None]


def _mixed(weight: Array) -> Array:
    return np.ascontiguousarray(weight.reshape(weight[0].size, len(weight)).T).reshape(weight.shape)


def padded(x: Array, padding: int, mode: Literal["constant", "edge"] = "constant") -> Array:
    """x with zeros, or its edge repeated, on all four sides."""
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode)


ONE_OUTPUT = "only the first output is written: is `return` inside a loop?"
ONE_IMAGE = "only the first image is computed: is `return` inside a loop?"
STRIDE = "the stride is missing: window (row, column) begins at (row * stride, column * stride)"
TURNED = "your windows are turned by 180 degrees: read them as they lie in the image"
O_FIRST = "yours has O before N: "


def as_many(y: Array, stride: Stride) -> Array:
    """What y (…, OH, OW), made with stride 1, has in as many places as there should be with this stride."""
    rows, columns = stride if isinstance(stride, tuple) else (stride, stride)
    return y[..., : -(-y.shape[-2] // rows), : -(-y.shape[-1] // columns)]


def _last_product(weight: Array) -> Array:
    """weight with zeros everywhere but at its last place: what `=` leaves of a sum."""
    last = np.zeros_like(weight)
    last[:, -1, -1, -1] = weight[:, -1, -1, -1]
    return last


OVERWRITTEN = "only the last product is left: = overwrites the sum, += adds to it"
ONE_ROW = (
    "only the first row is right: is `return` inside a loop? What np.empty made stays as it was until you write it"
)
ONE_SHORT = (
    "the last {} is never written: does a loop end one too early, or is `return` inside it? np.empty leaves there what "
    "was in memory"
)

CONVOLUTION_MISTAKES = (
    result(ONE_OUTPUT, _first_number),
    result(ONE_IMAGE, lambda y: first_of(y, 0)),
    result("only the first filter is used: each makes a channel of y", lambda y: first_of(y, 1)),
    given(
        "your kernel is turned by 180 degrees: this course, like deep learning, does not flip it",
        weight=lambda weight: weight[:, :, ::-1, ::-1],
    ),
    given("your kernel is mirrored, left to right", weight=lambda weight: weight[:, :, :, ::-1]),
    given("your kernel is mirrored, top to bottom", weight=lambda weight: weight[:, :, ::-1]),
    given("your kernel is transposed: did i and j swap?", weight=lambda weight: weight.swapaxes(2, 3)),
    given("the bias is missing: each filter adds its own number", bias=None),
    result("the bias is subtracted: add it", lambda y, bias: y - 2 * _each(bias)),
    result(
        "the bias is added once a channel: add it once an output",
        lambda y, weight, bias: y + (weight.shape[1] - 1) * _each(bias),
    ),
    result(
        "the bias is added with each product: add it once an output",
        lambda y, weight, bias: y + (weight[0].size - 1) * _each(bias),
    ),
    given(STRIDE, stride=1),
    given("the stride counts for columns, too", stride=lambda stride: (stride, 1)),
    given("the stride counts for rows, too", stride=lambda stride: (1, stride)),
    Mistake(STRIDE, given={"stride": 1}, result=as_many),
    Mistake(
        "the stride counts for columns, too: column * stride",
        given={"stride": lambda stride: (stride, 1)},
        result=lambda y, stride: as_many(y, (1, stride)),
    ),
    Mistake(
        "the stride counts for rows, too: row * stride",
        given={"stride": lambda stride: (1, stride)},
        result=lambda y, stride: as_many(y, (stride, 1)),
    ),
    given(OVERWRITTEN, weight=_last_product, bias=None),
    given(OVERWRITTEN, weight=_last_product),
    given("the padding is missing: put zeros on all four sides of each image first", padding=0),
    given("the padding repeats the edge: pad with zeros", x=partial(padded, mode="edge"), padding=0),
    given("only the first channel counts: add up over all", x=lambda x: x[:, :1], weight=lambda weight: weight[:, :1]),
    given(
        "only the last channel counts: do not start again at 0",
        x=lambda x: x[:, -1:],
        weight=lambda weight: weight[:, -1:],
    ),
    result(
        O_FIRST + "reshape to (O, N, OH, OW) first, then swap the first two axes",
        lambda y: y.swapaxes(0, 1).reshape(y.shape),
    ),
    result(O_FIRST + "swap the first two axes at the end", lambda y: y.swapaxes(0, 1)),
    given(
        "your filters are mixed up: weight.reshape(C*KH*KW, O) tears them apart; reshape to (O, C*KH*KW), then turn it",
        weight=_mixed,
    ),
    result(ONE_SHORT.format("row"), lambda y: only(y, ..., slice(-1), slice(None))),
    result(ONE_SHORT.format("column"), lambda y: only(y, ..., slice(-1))),
    result(ONE_IMAGE, lambda y: only(y, 0)),
    result("only the first filter is used: each makes a channel of y", lambda y: only(y, 0, 0)),
    result(ONE_ROW, lambda y: only(y, 0, 0, 0)),
)


def weighed(name: str, x: tuple[int, ...], weight: tuple[int, ...], dtype: Any = np.float32, **others: Any) -> Case:
    """Return a case with x and weight drawn from the normal distribution in these shapes, and with `others`."""
    return case(name, x=normal(*x, dtype=dtype), weight=normal(*weight, dtype=dtype), **others)


CONVOLUTION_CASES = (
    case("the seminar's 4 x 4 example", x=SEMINAR_X, weight=SEMINAR_W),
    case("the same with bias 3", x=SEMINAR_X, weight=SEMINAR_W, bias=SEMINAR_BIAS),
    case("the seminar's three channels", x=SEMINAR_X3, weight=SEMINAR_W3),
    case("two filters", x=images(1, 1, 4, 5), weight=filters(2, 1, 2, 3)),
    case("two images, three channels, bias", x=images(2, 3, 5, 7), weight=filters(4, 3, 3, 2), bias=vector(4)),
    case("padding 1", x=images(1, 1, 5, 5), weight=filters(1, 1, 3, 3), padding=1),
    case("stride 2", x=images(1, 1, 7, 8), weight=filters(1, 1, 3, 3), stride=2),
    case("stride 3, padding 2", x=images(2, 2, 6, 5), weight=filters(3, 2, 3, 3), bias=vector(3), stride=3, padding=2),
    weighed("a 1 x 1 kernel, float64", (2, 5, 4, 3), (2, 5, 1, 1), float, bias=None),
    case("the kernel covers the image", x=images(3, 2, 4, 5), weight=filters(2, 2, 4, 5), bias=vector(2)),
    random_case("sizes as they come", random_convolution),
)

conv2d_loops = Spec(
    reference=ops.conv2d_loops,
    answers=CONVOLUTIONS,
    cases=CONVOLUTION_CASES,
    points=3,
    hints=(
        "Write four loops that visit every output (image, filter, row, column). For each, three more loops walk "
        "through the window and add up pixel times weight. The bias is added once.",
        "Pad H and W first; np.pad takes one (before, after) pair an axis, so N and C get (0, 0). The output is "
        "(N, O, OH, OW) with the dtype of x. The window of output (row, column) begins at input "
        "(row * stride, column * stride).",
        "OH, OW = ops.conv2d_output_size(x.shape[2:], (KH, KW), stride, padding), before x is padded\n"
        "x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))\n"
        "y = np.zeros((N, O, OH, OW), dtype=x.dtype)\n"
        "in the loops over image, filter_, row, column:\n"
        "    total = 0 if bias is None else bias[filter_]\n"
        "    in the loops over channel, i, j:\n"
        "        total += x[image, channel, row * stride + i, column * stride + j] * weight[filter_, channel, i, j]\n"
        "    y[image, filter_, row, column] = total",
    ),
    mistakes=CONVOLUTION_MISTAKES,
    rung=Rung("plain loops", WORK, DIGIT_BATCH, BATCH),
)


def _columns(change: Callable[[Array], Array]) -> Function:
    """Columns made of the windows with every axis apart, (C, KH, KW, N, OH, OW), as `change` leaves them."""

    def changed(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
        size = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
        six = y.reshape(x.shape[1], *kernel_size, len(x), *size)
        return change(six).reshape(y.shape)

    return changed


def _one_apart(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
    """As many windows as there should be, which begin one pixel apart; y are all of these."""
    size = ops.conv2d_output_size(x.shape[2:], kernel_size, 1, padding)
    return as_many(y.reshape(len(y), len(x), *size), stride).reshape(len(y), -1)


def _alike(y: Array, x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
    """What column by column makes, inside a window or from window to window. ValueError where these differ."""
    inside, between = (change(y, x, kernel_size, stride, padding) for change in (WINDOWS_BY_COLUMN, PLACES_BY_COLUMN))
    if not np.array_equal(inside, between):
        raise ValueError("the mistakes differ")
    return inside


WINDOWS_BY_COLUMN = _columns(lambda six: six.swapaxes(1, 2))
PLACES_BY_COLUMN = _columns(lambda six: six.swapaxes(4, 5))
IN_A_LOOP = "is `return` inside a loop?"

COLUMN_CASES = (
    case("the seminar's 3 x 3 image, 2 x 2 kernel", x=SEMINAR_PATCHES, kernel_size=(2, 2)),
    case("the seminar's 4 x 4 image, 2 x 2 kernel", x=SEMINAR_X, kernel_size=(2, 2)),
    case("3 rows of 4, kernel 2 x 3", x=np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4), kernel_size=(2, 3)),
    case("two channels", x=np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4), kernel_size=(2, 2)),
    case("three images", x=np.arange(36, dtype=np.float32).reshape(3, 1, 3, 4), kernel_size=(2, 3)),
    case("two images, three channels", x=images(2, 3, 4, 5), kernel_size=(3, 2)),
    case("padding 1", x=images(1, 1, 3, 3), kernel_size=(3, 3), padding=1),
    case("stride 2", x=images(1, 1, 5, 7), kernel_size=(2, 3), stride=2),
    case("stride 3, padding 2", x=images(2, 2, 6, 5), kernel_size=(3, 3), stride=3, padding=2),
    case("a 1 x 1 kernel, float64", x=normal(2, 3, 2, 4, dtype=float), kernel_size=(1, 1)),
    case("the kernel covers the image", x=images(3, 2, 3, 4), kernel_size=(3, 4)),
    random_case("sizes as they come", lambda rng: random_images(rng, 4)),
)

COLUMN_MISTAKES = (
    result(f"only the first column is written: {IN_A_LOOP}", lambda y: first_of(y, 1)),
    result(f"only the first row is written: {IN_A_LOOP}", lambda y: first_of(y, 0)),
    result("out of order: go row by row, inside a window and from window to window", _alike),
    result("each of your rows is a window: windows stand in columns, so transpose", lambda y: y.T),
    result("one window a row, reshaped, is not one window a column: transpose", lambda y: y.T.reshape(y.shape)),
    result(
        "rows out of order: they go (C, KH, KW); yours go (KH, KW, C)",
        _columns(lambda six: six.transpose(1, 2, 0, 3, 4, 5)),
    ),
    result("rows out of order: flatten each window row by row; yours go column by column", WINDOWS_BY_COLUMN),
    result(
        "columns out of order: they go (N, OH, OW); yours go (OH, OW, N)",
        _columns(lambda six: six.transpose(0, 1, 2, 4, 5, 3)),
    ),
    result("columns out of order: the window moves row by row; yours moves column by column", PLACES_BY_COLUMN),
    result(TURNED, _columns(lambda six: six[:, ::-1, ::-1])),
    given(STRIDE, stride=1),
    Mistake(STRIDE, given={"stride": 1}, result=_one_apart),
    given("the padding is missing: put zeros on all four sides before you cut the windows", padding=0),
    result(
        "every window is written into the first column: the counter of columns never advances",
        lambda y: only(np.repeat(y[:, -1:], y.shape[1], axis=1), slice(None), 0),
    ),
    result(ONE_SHORT.format("column"), lambda y: only(y, slice(None), slice(-1))),
    result(
        "only the first image is unrolled: is `return` inside a loop?",
        lambda y, x: only(y, slice(None), slice(y.shape[1] // len(x))),
    ),
    result(
        "only the first row of windows is unrolled: is `return` inside a loop?",
        lambda y, x, kernel_size, stride, padding: only(
            y, slice(None), slice(ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)[1])
        ),
    ),
    result(
        "only the first column is right: is `return` inside a loop? np.empty leaves in the others what was in memory",
        lambda y: only(y, slice(None), 0),
    ),
)

im2col = Spec(
    reference=ops.im2col,
    answers=(blocks.Block.unroll,),
    cases=COLUMN_CASES,
    points=3,
    hints=(
        "One column is one window, flattened. Make an empty matrix, visit the windows in the order of the columns, "
        "and write each into its column. The loops may stay: this exercise is about order, not speed.",
        "Window (n, row, column) of the padded x is x[n, :, top : top + KH, left : left + KW] with top = row * stride "
        "and left = column * stride: shape (C, KH, KW), and .reshape(-1) gives it in just the order of the rows. "
        "Its column has the number (n * OH + row) * OW + column.",
        "OH, OW = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding), before x is padded\n"
        "columns = np.empty((C * KH * KW, N * OH * OW), dtype=x.dtype)\n"
        "at = 0\n"
        "in the loops over image, row, column:\n"
        "    window = x[image, :, top : top + KH, left : left + KW]\n"
        "    columns[:, at] = window.reshape(-1)\n"
        "    at += 1",
    ),
    mistakes=COLUMN_MISTAKES,
)


def im2col_loops(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    """Unroll as `ops.im2col` does, window by window: the solution of `im2col`, and the baseline of the fast one."""
    (n, c), (kh, kw) = x.shape[:2], kernel_size
    oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    x = padded(x, padding)
    columns = np.empty((c * kh * kw, n * oh * ow), dtype=x.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        columns[:, at] = x[image, :, top : top + kh, left : left + kw].reshape(-1)
    return columns


def _places(cut: Callable[..., Array]) -> Function:
    """A loop over places whose pixels of all images, (N, C, OH, OW), are cut(padded x, i, j, stride, oh, ow)."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        oh, ow = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
        x = padded(x, padding)
        pixels = np.stack([cut(x, i, j, stride, oh, ow) for i, j in np.ndindex(*kernel_size)])
        return pixels.transpose(2, 0, 1, 3, 4).reshape(-1, len(x) * oh * ow)

    return wrong


def _torn(x: Array, i: int, j: int, stride: int, oh: int, ow: int) -> Array:
    """(N, C, OH, OW), reshaped to (C, N, OH, OW)."""
    pixels = x[:, :, i : i + oh * stride : stride, j : j + ow * stride : stride]
    return pixels.reshape(x.shape[1], len(x), oh, ow).swapaxes(0, 1)


im2col_fast = Spec(
    reference=ops.im2col,
    answers=(blocks.Block.unroll,),
    cases=COLUMN_CASES,
    points=1,
    hints=(
        "Look at the picture of the digit once more. A row of the matrix belongs to one channel and one place (i, j) "
        "inside the window, and it holds the pixel that every window has there: the padded images, shifted by i rows "
        "and j columns. So loop over the places, and fill the rows of all channels and images with one slice.",
        "Give the matrix six axes first, (C, KH, KW, N, OH, OW); columns[:, i, j] is (C, N, OH, OW). Place (i, j) of "
        "all windows is x[:, :, i : i + OH * stride : stride, j : j + OW * stride : stride] of the padded x: "
        "(N, C, OH, OW), so swap its first two axes. At the end a reshape makes the matrix.",
        "OH, OW = ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding), before x is padded\n"
        "columns = np.empty((C, KH, KW, N, OH, OW), dtype=x.dtype)\n"
        "in the loops over i, j:\n"
        "    shifted = x[:, :, i : i + OH * stride : stride, j : j + OW * stride : stride]\n"
        "    columns[:, i, j] = shifted.swapaxes(0, 1)\n"
        "return columns.reshape(C * KH * KW, N * OH * OW)",
    ),
    mistakes=(
        Mistake(
            "images and channels are mixed up: a slice of x is (N, C, OH, OW); swap its first two axes, do not reshape",
            _places(_torn),
        ),
        Mistake(
            "your slices do not step: windows have place (i, j) at i, i + stride, ..., so i : i + OH * stride : stride",
            _places(lambda x, i, j, stride, oh, ow: x[:, :, i : i + oh, j : j + ow]),
        ),
        Mistake(
            "every place holds the corner of the windows: its slice begins at i and j",
            _places(lambda x, i, j, stride, oh, ow: as_many(x, stride)[:, :, :oh, :ow]),
        ),
        *COLUMN_MISTAKES,
        result("only the first place is written: is `return` inside a loop?", lambda y: only(y, 0)),
    ),
    speed=Speed(
        im2col_loops,
        {"x": images(4, 1, 56, 56), "kernel_size": (3, 3), "padding": 1},
        at_least=20,
        points=1,
        against="a loop over windows, on 4 images of 56 x 56",
    ),
)

GEMM_SPEED = Speed(
    ops.conv2d_positions,
    {"x": images(4, 1, 56, 56), "weight": filters(8, 1, 3, 3), "padding": 1},
    at_least=7,
    points=1,
    against="a loop over output positions, on 4 images of 56 x 56 with 8 filters",
)

conv2d_gemm = Spec(
    reference=ops.conv2d,
    answers=CONVOLUTIONS,
    cases=CONVOLUTION_CASES,
    points=2,
    hints=(
        "ops.im2col turned every window into a column. Turn every filter into a row. Row times column is one output, "
        "so filters times columns is all of them.",
        "weight.reshape(O, -1) is (O, C*KH*KW). ops.im2col gives (C*KH*KW, N*OH*OW). Their product is (O, N*OH*OW), "
        "one row a filter, so the bias joins as bias[:, None]. Last, bring (O, N, OH, OW) to (N, O, OH, OW).",
        "OH, OW = ops.conv2d_output_size(x.shape[2:], (KH, KW), stride, padding)\n"
        "y = weight.reshape(O, -1) @ ops.im2col(x, (KH, KW), stride, padding)\n"
        "if bias is not None: y = y + bias[:, None]\n"
        "return y.reshape(O, N, OH, OW).swapaxes(0, 1)",
    ),
    mistakes=CONVOLUTION_MISTAKES,
    speed=GEMM_SPEED,
    rung=Rung("one matrix product", WORK, DIGIT_BATCH, BATCH),
)
