"""Variants of the exercises of lesson 02: windows with gaps, images in NHWC."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import dilation, exercises, nhwc
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_BIAS, SEMINAR_W, SEMINAR_X, SEMINAR_X3, weighed
from unrolled.checks.spec import Inputs, Rung, case, filters, images, normal, random_case, variant, vector


def _with_gaps(sizes: Inputs, rng: np.random.Generator) -> Inputs:
    """A dilation, and an image that is larger by what the window then reaches further."""
    dilation = int(rng.integers(1, 4))
    size = tuple(s + (dilation - 1) * (k - 1) for s, k in zip(sizes["size"], sizes["kernel_size"], strict=True))
    return {**sizes, "size": size, "dilation": dilation}


conv2d_output_size_dilated = variant(
    exercises.conv2d_output_size,
    reference=dilation.output_size,
    cases=[
        case("a 7 x 7 image, 3 x 3 kernel, dilation 1", size=(7, 7), kernel_size=(3, 3)),
        case("a 7 x 7 image, 3 x 3 kernel, dilation 2", size=(7, 7), kernel_size=(3, 3), dilation=2),
        case("a digit, 3 x 3 kernel, padding 3, dilation 3", size=(28, 28), kernel_size=(3, 3), padding=3, dilation=3),
        case("a digit, stride 2, dilation 3", size=(28, 28), kernel_size=(3, 3), stride=2, dilation=3),
        case("9 rows of 16, 3 x 2 kernel, dilation 3", size=(9, 16), kernel_size=(3, 2), dilation=3),
        case("stride 3, padding 1", size=(12, 15), kernel_size=(4, 3), stride=3, padding=1, dilation=2),
        case("a 1 x 1 kernel, which has no gaps", size=(7, 5), kernel_size=(1, 1), stride=2, dilation=5),
        case("the window covers the image", size=(9, 11), kernel_size=(5, 6), dilation=2),
        random_case("sizes as they come", lambda rng: _with_gaps(exercises.random_sizes(rng), rng)),
    ],
    hints=(
        "Count along one axis first. A window of k pixels, d apart, reaches over more than k pixels of the image. Over "
        "how many? Then go on as without gaps: how far can it move, and how many steps fit into that?",
        "Between k pixels are k - 1 steps of d, and the first pixel counts as well: the reach is d * (k - 1) + 1. "
        "A padded axis has size + 2 * padding pixels. The free way is that minus the reach, and there is one position "
        "more than steps that fit.",
        "reach = dilation * (kernel_size[0] - 1) + 1\n"
        "oh = (size[0] + 2 * padding - reach) // stride + 1\now = (the same with [1])\nreturn oh, ow",
    ),
    mistakes=dilation.SIZE_MISTAKES,
)

DIGITS = array([1, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3], [4, 5, 6, 7])[None, None]
POWERS = array([1, 10], [100, 1000])[None, None]


def _random_dilated(rng: np.random.Generator) -> Inputs:
    inputs = exercises.random_convolution(rng)
    n, c, *size = inputs["x"].shape
    wider = _with_gaps({"size": size, "kernel_size": inputs["weight"].shape[2:]}, rng)
    x = rng.standard_normal((n, c, *wider["size"])).astype(np.float32)
    return inputs | {"x": x, "dilation": wider["dilation"]}


conv2d_loops_dilated = variant(
    exercises.conv2d_loops,
    reference=dilation.conv2d,
    cases=[
        case("the text's 4 x 4 example, dilation 2", x=DIGITS, weight=POWERS, dilation=2),
        case("the seminar's 4 x 4 example, without gaps", x=SEMINAR_X, weight=SEMINAR_W),
        case("the same with bias 3", x=SEMINAR_X, weight=SEMINAR_W, bias=SEMINAR_BIAS),
        case("the seminar's three channels, dilation 2", x=SEMINAR_X3, weight=filters(1, 3, 2, 2), dilation=2),
        case("two filters", x=images(1, 1, 7, 8), weight=filters(2, 1, 2, 3), dilation=3),
        weighed("two images, three channels, bias", (2, 3, 7, 9), (4, 3, 3, 2), bias=vector(4), dilation=2),
        case("padding 2", x=images(1, 1, 5, 5), weight=filters(1, 1, 3, 3), padding=2, dilation=2),
        case("stride 2", x=images(1, 1, 9, 10), weight=filters(1, 1, 3, 3), stride=2, dilation=2),
        weighed("stride 3, padding 2", (2, 2, 9, 8), (3, 2, 3, 3), bias=vector(3), stride=3, padding=2, dilation=2),
        weighed("a 1 x 1 kernel, float64", (2, 5, 4, 3), (2, 5, 1, 1), float, bias=None, dilation=3),
        case("the window covers the image", x=images(3, 2, 7, 9), weight=filters(2, 2, 4, 5), dilation=2),
        random_case("sizes as they come", _random_dilated),
    ],
    hints=(
        "Write four loops that visit every output (image, filter, row, column). For each, three more loops walk "
        "through the window and add up pixel times weight; the pixels of the window lie dilation apart.",
        "Pad H and W first; np.pad takes one (before, after) pair an axis, so N and C get (0, 0). A window reaches "
        "over dilation * (KH - 1) + 1 rows, and columns alike; with this reach as the kernel_size, "
        "ops.conv2d_output_size gives (OH, OW). Place (i, j) of the window of output (row, column) is the pixel "
        "(row * stride + i * dilation, column * stride + j * dilation).",
        "x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))\n"
        "y = np.zeros((N, O, OH, OW), dtype=x.dtype)\n"
        "in the loops over image, filter_, row, column:\n"
        "    total = 0 if bias is None else bias[filter_]\n"
        "    in the loops over channel, i, j:\n"
        "        pixel = x[image, channel, row * stride + i * dilation, column * stride + j * dilation]\n"
        "        total += pixel * weight[filter_, channel, i, j]\n"
        "    y[image, filter_, row, column] = total",
    ),
    mistakes=dilation.CONVOLUTION_MISTAKES,
)

PIXELS = array([[[1, 10], [2, 20]], [[3, 30], [4, 40]]])


def _random_nhwc(rng: np.random.Generator) -> Inputs:
    inputs = exercises.random_images(rng, 4)
    return inputs | {"x": nhwc.to_nhwc(inputs["x"])}


im2col_nhwc = variant(
    exercises.im2col,
    reference=nhwc.rows,
    answers=(nhwc.windows,),
    cases=[
        case("2 x 2 pixels of two channels, window 1 x 2", x=PIXELS, kernel_size=(1, 2)),
        case("the seminar's 4 x 4 image, 2 x 2 kernel", x=nhwc.to_nhwc(SEMINAR_X), kernel_size=(2, 2)),
        case("3 rows of 4, kernel 2 x 3", x=np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1), kernel_size=(2, 3)),
        case("two channels", x=np.arange(24, dtype=np.float32).reshape(1, 3, 4, 2), kernel_size=(2, 2)),
        case("three images", x=np.arange(36, dtype=np.float32).reshape(3, 3, 4, 1), kernel_size=(2, 3)),
        case("two images, three channels", x=normal(2, 4, 5, 3), kernel_size=(3, 2)),
        case("padding 1", x=normal(1, 3, 3, 1), kernel_size=(3, 3), padding=1),
        case("stride 2", x=normal(1, 5, 7, 1), kernel_size=(2, 3), stride=2),
        case("stride 3, padding 2", x=normal(2, 6, 5, 2), kernel_size=(3, 3), stride=3, padding=2),
        case("a 1 x 1 kernel, float64", x=normal(2, 2, 4, 3, dtype=float), kernel_size=(1, 1)),
        case("the kernel covers the image", x=normal(3, 3, 4, 2), kernel_size=(3, 4)),
        random_case("sizes as they come", _random_nhwc),
    ],
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
    mistakes=nhwc.ROW_MISTAKES,
)

ONE_PIXEL = array([[[3, 4]]])
TWO_FILTERS = array([10, 1], [100, 2])[None, None]
SEMINAR_IN_NHWC = nhwc.to_nhwc(SEMINAR_X)
SEMINAR_W_LAST = SEMINAR_W.transpose(2, 3, 1, 0).copy()


def _random_convolution_nhwc(rng: np.random.Generator) -> Inputs:
    inputs = exercises.random_convolution(rng)
    weight = np.ascontiguousarray(inputs["weight"].transpose(2, 3, 1, 0))
    return inputs | {"x": nhwc.to_nhwc(inputs["x"]), "weight": weight}


conv2d_gemm_nhwc = variant(
    exercises.conv2d_gemm,
    reference=nhwc.conv2d,
    cases=[
        case("one pixel of two channels, two filters", x=ONE_PIXEL, weight=TWO_FILTERS),
        case("the seminar's 4 x 4 example", x=SEMINAR_IN_NHWC, weight=SEMINAR_W_LAST),
        case("the same with bias 3", x=SEMINAR_IN_NHWC, weight=SEMINAR_W_LAST, bias=SEMINAR_BIAS),
        case("three channels", x=nhwc.to_nhwc(SEMINAR_X3), weight=normal(3, 3, 3, 1)),
        case("two filters", x=normal(1, 4, 5, 1), weight=normal(2, 3, 1, 2)),
        case("two images, three channels, bias", x=normal(2, 5, 7, 3), weight=normal(3, 2, 3, 4), bias=vector(4)),
        case("padding 1", x=normal(1, 5, 5, 1), weight=normal(3, 3, 1, 1), padding=1),
        case("stride 2", x=normal(1, 7, 8, 1), weight=normal(3, 3, 1, 1), stride=2),
        weighed("stride 3, padding 2", (2, 6, 5, 2), (3, 3, 2, 3), bias=vector(3), stride=3, padding=2),
        weighed("a 1 x 1 kernel, float64", (2, 4, 3, 5), (1, 1, 5, 2), float),
        case("the kernel covers the image", x=normal(3, 4, 5, 2), weight=normal(4, 5, 2, 2), bias=vector(2)),
        random_case("sizes as they come", _random_convolution_nhwc),
    ],
    hints=(
        "ops.im2col turned every window into a column, and turned round, .T, into a row. Turn every filter into a "
        "column. Row times column is one output, so windows times filters is all of them.",
        "ops.im2col wants NCHW, x.transpose(0, 3, 1, 2), and gives (C*KH*KW, N*OH*OW). The weight has to follow that "
        "order: weight.transpose(2, 0, 1, 3) is (C, KH, KW, O), and as a table (C*KH*KW, O). columns.T @ table is "
        "(N*OH*OW, O), so a bias (O,) joins as it is, and a reshape alone gives (N, OH, OW, O).",
        "columns = ops.im2col(x.transpose(0, 3, 1, 2), (KH, KW), stride, padding)\n"
        "table = weight.transpose(2, 0, 1, 3).reshape(-1, O)\n"
        "y = columns.T @ table\n"
        "if bias is not None: y = y + bias\n"
        "return y.reshape(N, OH, OW, O)",
    ),
    mistakes=nhwc.LAYOUT_MISTAKES,
    speed=replace(
        exercises.GEMM_SPEED,
        baseline=nhwc.conv2d_positions,
        inputs={"x": normal(4, 56, 56, 1), "weight": normal(3, 3, 1, 8), "padding": 1},
        at_least=7,
        against="a loop over output positions, on 4 images of 56 x 56 with 8 filters",
    ),
    rung=Rung(
        "one matrix product, NHWC",
        exercises.WORK,
        {"x": normal(exercises.BATCH, 28, 28, 1), "weight": normal(3, 3, 1, 10), "bias": vector(10), "padding": 1},
        exercises.BATCH,
    ),
)
