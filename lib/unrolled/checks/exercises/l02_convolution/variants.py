"""The variant of lesson 02: im2col of images in NHWC."""

from __future__ import annotations

import numpy as np

from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import exercises, nhwc
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X
from unrolled.checks.spec import Inputs, case, normal, random_case, variant

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
