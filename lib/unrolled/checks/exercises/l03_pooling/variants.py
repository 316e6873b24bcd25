"""The variant of lesson 03: means in place of maxima, also of the smaller windows at the edge."""

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution.exercises import SEMINAR_X, SEMINAR_X3
from unrolled.checks.exercises.l03_pooling import exercises, pooling
from unrolled.checks.spec import Inputs, case, images, random_case, variant

ODD = array([1, 3, 5], [5, 7, 9], [2, 4, 6])[None, None]


def _any_pooling(rng: np.random.Generator) -> Inputs:
    """Draw x, in which nothing cancels, and kernel_size, at times larger than the images."""
    return {"x": np.abs(exercises.any_images(rng, 1)), "kernel_size": edge_size(rng, 9)}


max_pool2d_average = variant(
    exercises.max_pool2d,
    reference=pooling.pool,
    cases=[
        case("a 3 x 3 image, window 2: an edge is left over", x=ODD, kernel_size=2),
        case("the seminar's 4 x 4 image, window 2", x=SEMINAR_X, kernel_size=2),
        case("the seminar's three channels", x=SEMINAR_X3, kernel_size=2),
        case("6 rows of 8, window 3: only columns are left over", x=images(2, 2, 6, 8), kernel_size=3),
        case("7 rows of 9, window 4: edges of three rows and of one column", x=images(1, 2, 7, 9), kernel_size=4),
        case("the window is larger than the image", x=images(3, 2, 3, 4), kernel_size=5),
    ],
    domain=random_case("any images and window, no pixel negative", _any_pooling),
    hints=(
        "Go through the outputs, row by row. Cut the window of each out of x, and take its mean. A slice that reaches "
        "over the edge ends at the edge by itself, so the last windows need no case of their own.",
        "y is (N, C, OH, OW), in x's dtype, where OH is H / kernel_size rounded up: (H + kernel_size - 1) // "
        "kernel_size. The window of output (row, column) begins at top = row * kernel_size, left = column * "
        "kernel_size; x[:, :, top : top + kernel_size, left : left + kernel_size] holds the pixels that are there.",
        "OH, OW = (H + kernel_size - 1) // kernel_size, (W + kernel_size - 1) // kernel_size\n"
        "y = np.empty((N, C, OH, OW), dtype=x.dtype)\n"
        "in the loops over row, column:\n"
        "    top, left = row * kernel_size, column * kernel_size\n"
        "    y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].mean(axis=(2, 3))",
    ),
    mistakes=pooling.AVERAGE_MISTAKES,
)
