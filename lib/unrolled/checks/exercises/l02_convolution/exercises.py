"""Lesson 02: sliding windows, im2col, one matrix product."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import windows
from unrolled.checks.spec import Inputs, Rung, Spec, Speed, case, filters, images, random_case, vector

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

BY_PLACES = (
    "each trip of a loop has its price, however little it does: a trip for each place (i, j) inside the window is "
    "enough, with all windows and images in it"
)

WORK = "convolution forward only, x 60,000 images"
BATCH = 8


DIGIT_BATCH = {"x": images(BATCH, 1, 28, 28), "weight": filters(10, 1, 3, 3), "bias": vector(10), "padding": 1}
"""The convolution of every rung."""


def random_sizes(rng: np.random.Generator, kernels: int = 4, room: int = 9) -> Inputs:
    """Size, kernel of at most `kernels` each way, stride and padding that fit, for one image."""
    kernel = tuple(edge_size(rng, kernels) for _ in range(2))
    stride, padding = edge_size(rng, 3), edge_size(rng, 2, low=0)
    # Some window meets the image: it does not lie between two of them.
    least = (max(1, k - 2 * padding, stride if k <= padding else 1) for k in kernel)
    size = tuple(low + edge_size(rng, room, low=0) for low in least)
    return {"size": size, "kernel_size": kernel, "stride": stride, "padding": padding}


def any_images(rng: np.random.Generator) -> Inputs:
    """x, kernel_size, stride, padding: one to three images and channels, sizes as they come."""
    sizes = random_sizes(rng, kernels=3, room=4)
    return {**any_arrays(rng, x=(edge_size(rng, 3), edge_size(rng, 3), *sizes.pop("size"))), **sizes}


def any_convolution(rng: np.random.Generator) -> Inputs:
    sizes = random_sizes(rng, kernels=3, room=4)
    n, c, o = (edge_size(rng, 3) for _ in range(3))
    drawn = any_arrays(rng, x=(n, c, *sizes.pop("size")), weight=(o, c, *sizes.pop("kernel_size")), bias=(o,))
    return {**drawn, **sizes, **({"bias": None} if rng.random() < 0.25 else {})}


conv2d_output_size = Spec(
    reference=ops.conv2d_output_size,
    cases=[
        case("the seminar's 4 x 4 image, 3 x 3 kernel", size=(4, 4), kernel_size=(3, 3)),
        case("a digit, 3 x 3 kernel, padding 1", size=(28, 28), kernel_size=(3, 3), padding=1),
        case("a digit, stride 2", size=(28, 28), kernel_size=(3, 3), stride=2),
        case("stride 3, padding 1", size=(9, 15), kernel_size=(4, 2), stride=3, padding=1),
        case("most of a step is left over", size=(8, 8), kernel_size=(3, 3), stride=3),
        case("a kernel that is larger than the image", size=(2, 3), kernel_size=(4, 4), padding=1),
    ],
    domain=random_case("any sizes that fit", random_sizes),
    points=1,
    hints=(
        "Count along one axis first. The window starts at the left edge of the padded image. How far can it still "
        "move to the right, and how many steps of length `stride` fit into that?",
        "A padded axis has size + 2 * padding pixels, because there is padding at both ends. The free way is that "
        "minus the kernel. Steps that fit: the free way // stride. Positions: one more than steps.",
        "oh = (size[0] + 2 * padding - kernel_size[0]) // stride + 1\now = (the same with [1])\nreturn oh, ow",
    ),
    mistakes=windows.SIZE_MISTAKES,
)

CONVOLUTION_CASES = (
    case("the seminar's 4 x 4 example", x=SEMINAR_X, weight=SEMINAR_W),
    case("the same with bias 3", x=SEMINAR_X, weight=SEMINAR_W, bias=SEMINAR_BIAS),
    case("the seminar's three channels", x=SEMINAR_X3, weight=SEMINAR_W3),
    case("two images, three channels, bias", x=images(2, 3, 5, 7), weight=filters(4, 3, 3, 2), bias=vector(4)),
    case("padding 1", x=images(1, 1, 5, 5), weight=filters(1, 1, 3, 3), padding=1),
    case("stride 2", x=images(1, 1, 7, 8), weight=filters(1, 1, 3, 3), stride=2),
    case("stride 3, padding 2", x=images(2, 2, 6, 5), weight=filters(3, 2, 2, 2), bias=vector(3), stride=3, padding=2),
)
ANY_CONVOLUTION = random_case("any images and filters", any_convolution)

conv2d_loops = Spec(
    reference=ops.conv2d_loops,
    allows=(ops.conv2d_output_size,),
    cases=CONVOLUTION_CASES,
    domain=ANY_CONVOLUTION,
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
    mistakes=windows.CONVOLUTION_MISTAKES,
    rung=Rung("plain loops", WORK, DIGIT_BATCH, BATCH),
)

COLUMN_CASES = (
    case("the seminar's 3 x 3 image, 2 x 2 kernel", x=SEMINAR_PATCHES, kernel_size=(2, 2)),
    case("the seminar's 4 x 4 image, 2 x 2 kernel", x=SEMINAR_X, kernel_size=(2, 2)),
    case("3 rows of 4, kernel 2 x 3", x=np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4), kernel_size=(2, 3)),
    case("two images, three channels", x=images(2, 3, 4, 5), kernel_size=(3, 2)),
    case("padding 1", x=images(1, 1, 3, 3), kernel_size=(3, 3), padding=1),
    case("stride 2", x=images(1, 1, 5, 7), kernel_size=(2, 3), stride=2),
    case("stride 3, padding 2", x=images(2, 2, 6, 5), kernel_size=(2, 2), stride=3, padding=2),
)
ANY_COLUMNS = random_case("any images and windows", any_images)

im2col = Spec(
    reference=ops.im2col,
    allows=(ops.conv2d_output_size,),
    cases=COLUMN_CASES,
    domain=ANY_COLUMNS,
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
    mistakes=windows.COLUMN_MISTAKES,
)


im2col_fast = Spec(
    reference=ops.im2col,
    allows=(ops.conv2d_output_size,),
    cases=COLUMN_CASES,
    domain=ANY_COLUMNS,
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
    mistakes=windows.FAST_MISTAKES,
    speed=Speed(
        windows.im2col_loops,
        {"x": images(4, 1, 56, 56), "kernel_size": (3, 3), "padding": 1},
        at_least=20,
        against="a loop over windows, on 4 images of 56 x 56",
        advice=BY_PLACES,
    ),
)

conv2d_gemm = Spec(
    reference=ops.conv2d,
    allows=(ops.conv2d_output_size, ops.im2col),
    cases=CONVOLUTION_CASES,
    domain=ANY_CONVOLUTION,
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
    mistakes=windows.CONVOLUTION_MISTAKES,
    speed=Speed(
        ops.conv2d_positions,
        {"x": images(100, 1, 32, 32), "weight": filters(2, 1, 2, 2)},
        at_least=4.5,
        against="a loop over output positions, on 100 images of 32 x 32 with 2 filters of 2 x 2",
        advice="each trip of a loop, over rows or images, calls NumPy again, and a call has its price before it "
        "computes anything: one call of ops.im2col and one @ take all images at once",
        loops=False,
    ),
    rung=Rung("one matrix product", WORK, DIGIT_BATCH, BATCH),
)
