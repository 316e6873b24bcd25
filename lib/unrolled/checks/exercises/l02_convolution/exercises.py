"""Lesson 02: sliding windows, im2col, one matrix product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.spec import (
    Function,
    Inputs,
    Mistake,
    Rung,
    Spec,
    Speed,
    case,
    filters,
    images,
    normal,
    random_case,
    vector,
)
from unrolled.device import Array
from unrolled.ops import blocks
from unrolled.ops.windows import Windows

Size = tuple[int, int]


def _array(*rows: list[int]) -> Array:
    return np.array(rows, np.float32)


# The numbers of Fixstars' seminar "Software acceleration and deep learning" (CUDA acceleration seminar 3, 2022).
SEMINAR_X = _array([1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1])[None, None]
SEMINAR_W = _array([2, 0, 1], [0, 2, 1], [1, 0, 1])[None, None]
SEMINAR_BIAS = np.array([3], np.float32)
# Its slide of three channels prints 39, 33, 15, 44; its arrays, which are these, give 39, 37, 16, 46.
SEMINAR_X3 = np.stack(
    [
        _array([1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]),
        _array([4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]),
        SEMINAR_X[0, 0],
    ]
)[None]
SEMINAR_W3 = np.stack(
    [
        _array([2, 0, 1], [0, 3, 0], [1, 0, 2]),
        _array([0, 1, 3], [0, 1, 2], [1, 0, 0]),
        _array([2, 0, 1], [0, 1, 2], [1, 0, 2]),
    ]
)[None]
# Its example of the matrix conversion. The patch matrix is symmetric, so it cannot tell a transposed one.
SEMINAR_PATCHES = _array([2, 0, 1], [0, 2, 3], [1, 3, 1])[None, None]

WORK = "convolution forward only, x 60,000 images"
BATCH = 8

CONVOLUTIONS = (ops.conv2d, ops.conv2d_loops, ops.conv2d_positions, blocks.forward)


def _work() -> dict[str, Any]:
    """The convolution of every rung: 10 filters 3x3, padding 1, on 28 x 28 images, 8 at a time."""
    return {"x": images(BATCH, 1, 28, 28), "weight": filters(10, 1, 3, 3), "bias": vector(10), "padding": 1}


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


# conv2d_output_size


def _sizes(formula: Any) -> Function:
    """A mistake in the formula, applied along each axis: formula(size, kernel, stride, padding)."""

    def wrong(size: Size, kernel_size: Size, stride: int = 1, padding: int = 0) -> Size:
        height, width = (formula(s, k, stride, padding) for s, k in zip(size, kernel_size, strict=True))
        return height, width

    return wrong


SIZE_MISTAKES = (
    Mistake("divide by the stride before you add 1", _sizes(lambda s, k, t, p: (s + 2 * p - k + 1) // t)),
    Mistake("the padding seems to be missing", _sizes(lambda s, k, t, p: (s - k) // t + 1)),
    Mistake("padding counts twice: it is added at both ends", _sizes(lambda s, k, t, p: (s + p - k) // t + 1)),
    Mistake("you rounded: part of a step does not count", _sizes(lambda s, k, t, p: round((s + 2 * p - k) / t) + 1)),
    Mistake("the stride seems to be missing", _sizes(lambda s, k, t, p: s + 2 * p - k + 1)),
    Mistake("you rounded up: part of a step does not count", _sizes(lambda s, k, t, p: -(-(s + 2 * p - k) // t) + 1)),
    Mistake("one is missing: count the positions, not the steps", _sizes(lambda s, k, t, p: (s + 2 * p - k) // t)),
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


# conv2d_loops and conv2d_gemm


def _of(change: Callable[..., tuple[Any, ...]]) -> Function:
    """A mistake in what is convolved: `change(x, w, b, s, p)` gives the arguments that were used in their place."""

    def wrong(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
        return ops.conv2d(*change(x, weight, bias, stride, padding))

    return wrong


def _then(change: Callable[..., Array]) -> Function:
    """A mistake after the convolution: `change(y, w, b)` is what came of the right y; b is 0 if there is none."""

    def wrong(x: Array, weight: Array, bias: Any = None, stride: int = 1, padding: int = 0) -> Array:
        b = np.zeros((1, 1, 1), x.dtype) if bias is None else bias[:, None, None]
        return np.ascontiguousarray(change(ops.conv2d(x, weight, bias, stride, padding), weight, b))

    return wrong


def _stretched_edges(x: Array, padding: int) -> Array:
    return np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)), mode="edge")


def _mixed(weight: Array) -> Array:
    return np.ascontiguousarray(weight.reshape(weight[0].size, len(weight)).T).reshape(weight.shape)


def _first_of(y: Array, axis: int) -> Array:
    """y with zeros everywhere but at the first place along axis."""
    first = np.zeros_like(y)
    place = (slice(None),) * axis + (0,)
    first[place] = y[place]
    return first


def _first_number(y: Array) -> Array:
    first = np.zeros_like(y)
    first.flat[0] = y.flat[0]
    return first


TURNED = "your kernel is turned by 180 degrees: this course, like deep learning, does not flip it"
STRIDE = "the stride is missing: window (row, column) begins at (row * stride, column * stride)"
O_FIRST = "yours has O before N: "

CONVOLUTION_MISTAKES = (
    Mistake("only the first output is written: is `return` inside a loop?", _then(lambda y, w, b: _first_number(y))),
    Mistake("only the first image is computed: is `return` inside a loop?", _then(lambda y, w, b: _first_of(y, 0))),
    Mistake("only the first filter is used: each makes a channel of y", _then(lambda y, w, b: _first_of(y, 1))),
    Mistake(TURNED, _of(lambda x, w, b, s, p: (x, w[:, :, ::-1, ::-1], b, s, p))),
    Mistake("your kernel is mirrored, left to right", _of(lambda x, w, b, s, p: (x, w[:, :, :, ::-1], b, s, p))),
    Mistake("your kernel is mirrored, top to bottom", _of(lambda x, w, b, s, p: (x, w[:, :, ::-1], b, s, p))),
    Mistake(
        "your kernel is transposed: did i and j swap?", _of(lambda x, w, b, s, p: (x, w.transpose(0, 1, 3, 2), b, s, p))
    ),
    Mistake("the bias is missing: each filter adds its own number", _of(lambda x, w, b, s, p: (x, w, None, s, p))),
    Mistake("the bias is subtracted: add it", _then(lambda y, w, b: y - 2 * b)),
    Mistake("the bias is added once a channel: add it once an output", _then(lambda y, w, b: y + (w.shape[1] - 1) * b)),
    Mistake(
        "the bias is added with each product: add it once an output", _then(lambda y, w, b: y + (w[0].size - 1) * b)
    ),
    Mistake(STRIDE, _of(lambda x, w, b, s, p: (x, w, b, 1, p))),
    Mistake("the stride counts for columns, too", _of(lambda x, w, b, s, p: (x, w, b, (s, 1), p))),
    Mistake("the stride counts for rows, too", _of(lambda x, w, b, s, p: (x, w, b, (1, s), p))),
    Mistake(
        "the padding is missing: put zeros on all four sides of each image first",
        _of(lambda x, w, b, s, p: (x, w, b, s, 0)),
    ),
    Mistake(
        "the padding repeats the edge: pad with zeros", _of(lambda x, w, b, s, p: (_stretched_edges(x, p), w, b, s))
    ),
    Mistake("only the first channel counts: add up over all", _of(lambda x, w, b, s, p: (x[:, :1], w[:, :1], b, s, p))),
    Mistake(
        "only the last channel counts: do not start again at 0",
        _of(lambda x, w, b, s, p: (x[:, -1:], w[:, -1:], b, s, p)),
    ),
    Mistake(
        O_FIRST + "reshape to (O, N, OH, OW) first, then swap the first two axes",
        _then(lambda y, w, b: y.transpose(1, 0, 2, 3).reshape(y.shape)),
    ),
    Mistake(O_FIRST + "swap the first two axes at the end", _then(lambda y, w, b: y.transpose(1, 0, 2, 3))),
    Mistake(
        "your filters are mixed up: weight.reshape(C*KH*KW, O) tears them apart; reshape to (O, C*KH*KW), then turn it",
        _of(lambda x, w, b, s, p: (x, _mixed(w), b, s, p)),
    ),
)

CONVOLUTION_CASES = (
    case("the seminar's 4 x 4 example", x=SEMINAR_X, weight=SEMINAR_W),
    case("the same with bias 3", x=SEMINAR_X, weight=SEMINAR_W, bias=SEMINAR_BIAS),
    case("the seminar's three channels", x=SEMINAR_X3, weight=SEMINAR_W3),
    case("two filters", x=images(1, 1, 4, 5), weight=filters(2, 1, 2, 3)),
    case("two images, three channels, bias", x=images(2, 3, 5, 7), weight=filters(4, 3, 3, 2), bias=vector(4)),
    case("padding 1", x=images(1, 1, 5, 5), weight=filters(1, 1, 3, 3), padding=1),
    case("stride 2", x=images(1, 1, 7, 8), weight=filters(1, 1, 3, 3), stride=2),
    case("stride 3, padding 2", x=images(2, 2, 6, 5), weight=filters(3, 2, 3, 3), bias=vector(3), stride=3, padding=2),
    case(
        "a 1 x 1 kernel, float64", x=normal(2, 5, 4, 3, dtype=float), weight=normal(2, 5, 1, 1, dtype=float), bias=None
    ),
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
        "x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))\n"
        "y = np.zeros((N, O, OH, OW), dtype=x.dtype)\n"
        "in the loops over image, filter_, row, column:\n"
        "    total = 0 if bias is None else bias[filter_]\n"
        "    in the loops over channel, i, j:\n"
        "        total += x[image, channel, row * stride + i, column * stride + j] * weight[filter_, channel, i, j]\n"
        "    y[image, filter_, row, column] = total",
    ),
    mistakes=CONVOLUTION_MISTAKES,
    rung=Rung("plain loops", WORK, _work(), BATCH),
)


# im2col


def _patches(x: Array, kernel_size: Size, stride: int, padding: int) -> Array:
    """The columns with every axis apart: (C, KH, KW, N, OH, OW)."""
    (n, c), size = x.shape[:2], ops.conv2d_output_size(x.shape[2:], kernel_size, stride, padding)
    return ops.im2col(x, kernel_size, stride, padding).reshape(c, *kernel_size, n, *size)


def _columns_in_order(*axes: int) -> Function:
    """A mistake in the order of the six axes; the first three still make the rows."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        patches = _patches(x, kernel_size, stride, padding)
        rows = patches[..., 0, 0, 0].size
        return np.ascontiguousarray(patches.transpose(axes)).reshape(rows, -1)

    return wrong


def _columns_then(change: Callable[[Array], Array]) -> Function:
    """A mistake after the right columns were made."""

    def wrong(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
        return np.ascontiguousarray(change(ops.im2col(x, kernel_size, stride, padding)))

    return wrong


def _turned_windows(x: Array, kernel_size: Size, stride: int = 1, padding: int = 0) -> Array:
    patches = _patches(x, kernel_size, stride, padding)
    return patches[:, ::-1, ::-1].reshape(patches[..., 0, 0, 0].size, -1)


def _whichever(*mistakes: Function) -> Function:
    """What all these mistakes make, where the case cannot tell them apart; ValueError where it can."""

    def wrong(**inputs: Any) -> Array:
        first, *others = (mistake(**inputs) for mistake in mistakes)
        if any(not np.array_equal(first, other) for other in others):
            raise ValueError("the mistakes differ")
        return first

    return wrong


WINDOWS_BY_COLUMN = _columns_in_order(0, 2, 1, 3, 4, 5)
POSITIONS_BY_COLUMN = _columns_in_order(0, 1, 2, 3, 5, 4)

im2col = Spec(
    reference=ops.im2col,
    answers=(blocks.Block.unroll,),
    cases=[
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
    ],
    points=3,
    hints=(
        "One column is one window, flattened. Make an empty matrix, visit the windows in the order of the columns, "
        "and write each into its column. The loops may stay: this exercise is about order, not speed.",
        "Window (n, row, column) of the padded x is x[n, :, top : top + KH, left : left + KW] with top = row * stride "
        "and left = column * stride: shape (C, KH, KW), and .reshape(-1) gives it in just the order of the rows. "
        "Its column has the number (n * OH + row) * OW + column.",
        "columns = np.empty((C * KH * KW, N * OH * OW), dtype=x.dtype)\n"
        "at = 0\n"
        "in the loops over image, row, column:\n"
        "    window = x[image, :, top : top + KH, left : left + KW]\n"
        "    columns[:, at] = window.reshape(-1)\n"
        "    at += 1",
    ),
    mistakes=[
        Mistake(
            "only the first column is written: is `return` inside a loop?", _columns_then(lambda c: _first_of(c, 1))
        ),
        Mistake("only the first row is written: is `return` inside a loop?", _columns_then(lambda c: _first_of(c, 0))),
        Mistake(
            "out of order: go row by row, inside a window and from window to window",
            _whichever(WINDOWS_BY_COLUMN, POSITIONS_BY_COLUMN),
        ),
        Mistake("each of your rows is a window: windows stand in columns, so transpose", _columns_then(lambda c: c.T)),
        Mistake(
            "one window a row, reshaped, is not one window a column: transpose",
            _columns_then(lambda c: c.T.reshape(c.shape)),
        ),
        Mistake("rows out of order: they go (C, KH, KW); yours go (KH, KW, C)", _columns_in_order(1, 2, 0, 3, 4, 5)),
        Mistake("rows out of order: flatten each window row by row; yours go column by column", WINDOWS_BY_COLUMN),
        Mistake("columns out of order: they go (N, OH, OW); yours go (OH, OW, N)", _columns_in_order(0, 1, 2, 4, 5, 3)),
        Mistake("columns out of order: the window moves row by row; yours moves column by column", POSITIONS_BY_COLUMN),
        Mistake("your windows are turned by 180 degrees: read them as they lie in the image", _turned_windows),
        Mistake(STRIDE, lambda x, kernel_size, stride=1, padding=0: ops.im2col(x, kernel_size, 1, padding)),
        Mistake(
            "the padding is missing: put zeros on all four sides before you cut the windows",
            lambda x, kernel_size, stride=1, padding=0: ops.im2col(x, kernel_size, stride),
        ),
    ],
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
        "y = weight.reshape(O, -1) @ ops.im2col(x, (KH, KW), stride, padding)\n"
        "if bias is not None: y = y + bias[:, None]\n"
        "return y.reshape(O, N, OH, OW).swapaxes(0, 1)",
    ),
    mistakes=CONVOLUTION_MISTAKES,
    speed=Speed(
        baseline=ops.conv2d_positions,
        inputs={"x": images(8, 1, 56, 56), "weight": filters(8, 1, 3, 3), "padding": 1},
        at_least=2.5,
        points=1,
        against="a loop over output positions, on 8 images of 56 x 56 with 8 filters",
    ),
    rung=Rung("one matrix product", WORK, _work(), BATCH),
)
