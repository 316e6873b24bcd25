"""Lesson 03: max-pooling, where a maximum came from, and putting values back there."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution.exercises import BY_PLACES, SEMINAR_X, SEMINAR_X3
from unrolled.checks.exercises.l03_pooling import pooling, unpooling
from unrolled.checks.spec import Case, Draw, Drawing, Inputs, Rung, Spec, Speed, case, images, normal, random_case
from unrolled.device import Array

WORK = "values put back after max-pooling, x 60,000 images"
BATCH = 8


# After a ReLU: zeros that tie in three windows of four, once with a winner that is not among them.
TIED = array([0, 0, 2, 0], [0, 0, 1, 2], [0, 4, 0, 0], [1, 4, 0, 0])[None, None]
FOUR_VALUES = array([1, 2], [3, 4])[None, None]
# One pixel is the largest of all four windows of 3 x 3, and the values that meet there add up to 11.
PEAK = array([0, 1, 0, 2], [1, 0, 7, 0], [0, 3, 0, 1], [2, 0, 1, 0])[None, None]
FOUR_OTHERS = array([1, 2], [3, 5])[None, None]
NEARLY = np.nextafter(np.ones((1, 1, 2, 2), np.float32), array([0, 2], [1, 1]))
"""The second pixel is the largest of the window, by the least that float32 can tell."""
SEMINAR_INDICES = ops.max_pool2d_indices(SEMINAR_X, 2)


def small_integers(*shape: int) -> Draw:
    """Draw images (N, C, H, W) of -1, 0, 1 and 2: ties in nearly every window."""
    return Draw(lambda rng: rng.integers(-1, 3, shape).astype(np.float32))


def _positive(*shape: int) -> Draw:
    """Draw values (N, C, OH, OW) from 1 to 5: where they are, no 0 is."""
    return Draw(lambda rng: rng.uniform(1, 5, shape).astype(np.float32))


def any_images(rng: np.random.Generator, least: int) -> Array:
    """Draw one to three images and channels, at least so many pixels each way; in half of draws with many ties."""
    n, c = edge_size(rng, 3), edge_size(rng, 3)
    h, w = (least + edge_size(rng, 6, low=0) for _ in range(2))
    x = any_arrays(rng, x=(n, c, h, w))["x"]
    return x if rng.random() < 0.5 else small_integers(*x.shape).make(rng).astype(x.dtype)


def _any_pooling(rng: np.random.Generator) -> Inputs:
    """Draw x and kernel_size."""
    kernel_size = edge_size(rng, 7)
    return {"x": any_images(rng, kernel_size), "kernel_size": kernel_size}


def _any_stride(rng: np.random.Generator) -> Inputs:
    return {**_any_pooling(rng), "stride": edge_size(rng, 7)}


def _with_values(rng: np.random.Generator, draw: Drawing) -> Inputs:
    """Draw the inputs of a pooling, and values for its outputs."""
    inputs = draw(rng)
    x, k = inputs["x"], inputs["kernel_size"]
    places = ops.conv2d_output_size(x.shape[2:], (k, k), inputs.get("stride") or k)
    values = any_arrays(rng, values=(*x.shape[:2], *places))["values"]
    return {"values": values.astype(np.result_type(values, x)), **inputs}


max_pool2d = Spec(
    reference=ops.max_pool2d,
    allows=(ops.conv2d_output_size,),
    cases=[
        case("the seminar's 4 x 4 image, window 2", x=SEMINAR_X, kernel_size=2),
        case("the seminar's three channels", x=SEMINAR_X3, kernel_size=2),
        case("all pixels far below 0", x=-1e10 * (np.abs(SEMINAR_X3) + 1), kernel_size=2),
        case("three images, two channels, window 3", x=images(3, 2, 9, 6), kernel_size=3),
        case("5 rows of 7, window 2: an edge is left over", x=images(1, 1, 5, 7), kernel_size=2),
    ],
    new=True,
    domain=random_case("any images and window", _any_pooling),
    points=2,
    hints=(
        "Go through the outputs, row by row. Cut the window of each out of x, and take its largest pixel. Slices can "
        "do that for all images and channels at once.",
        "y is (N, C, H // kernel_size, W // kernel_size), in x's dtype. The window of output (row, column) begins at "
        "top = row * kernel_size, left = column * kernel_size; x[:, :, top : top + kernel_size, left : left + "
        "kernel_size] is (N, C, kernel_size, kernel_size). Its last two axes are the ones to take the largest over.",
        "y = np.empty((N, C, H // kernel_size, W // kernel_size), dtype=x.dtype)\n"
        "in the loops over row, column:\n"
        "    top, left = row * kernel_size, column * kernel_size\n"
        "    y[:, :, row, column] = x[:, :, top : top + kernel_size, left : left + kernel_size].max(axis=(2, 3))",
    ),
    mistakes=pooling.POOLING_MISTAKES,
)


def _places(rng: np.random.Generator, n: int, c: int, h: int, w: int, kernel_size: int) -> Inputs:
    """Draw values, an index for each in a window of its own, and the size of images: what is known after a pooling."""
    shape = n, c, h // kernel_size, w // kernel_size
    rows = np.arange(shape[2])[:, None] * kernel_size + rng.integers(0, kernel_size, shape)
    columns = np.arange(shape[3]) * kernel_size + rng.integers(0, kernel_size, shape)
    return {**any_arrays(rng, values=shape), "indices": rows * w + columns, "size": (h, w)}


def _any_places(rng: np.random.Generator) -> Inputs:
    kernel_size = edge_size(rng, 7)
    h, w = (kernel_size + edge_size(rng, 9, low=0) for _ in range(2))
    return _places(rng, edge_size(rng, 3), edge_size(rng, 3), h, w, kernel_size)


max_unpool2d = Spec(
    reference=ops.max_unpool2d,
    cases=[
        case("the seminar's 4 x 4 image, window 2", values=FOUR_VALUES, indices=SEMINAR_INDICES, size=(4, 4)),
        random_case("four images", _places, 4, 1, 6, 3, 3),
        random_case("two images, three channels, window 3", _places, 2, 3, 6, 9, 3),
        random_case("5 rows of 7: an edge is left over", _places, 2, 2, 5, 7, 2),
    ],
    domain=random_case("any values and places", _any_places),
    points=2,
    hints=(
        "Give each image and channel one long row of H * W zeros. Then `indices` says where in its row each value "
        "goes. As with the windows, name both: the number of the row, and the place in it.",
        "result is (N*C, H*W); values and indices become (N*C, OH*OW). The numbers of the rows are np.arange(N*C), as "
        "a column, (N*C, 1), so that each of them is paired with its own OH*OW indices. At the end, reshape to "
        "(N, C, H, W).",
        "result = np.zeros((N * C, H * W), dtype=values.dtype)\n"
        "rows = np.arange(N * C)[:, None]\n"
        "result[rows, indices.reshape(N * C, -1)] = values.reshape(N * C, -1)\n"
        "return result.reshape(N, C, H, W)",
    ),
    mistakes=unpooling.BY_INDEX_MISTAKES,
)

max_unpool2d_mask = Spec(
    reference=ops.max_unpool2d_mask,
    allows=(ops.max_pool2d,),
    cases=[
        case("the seminar's 4 x 4 image, window 2", values=FOUR_VALUES, x=SEMINAR_X, kernel_size=2),
        case("ties, as after a ReLU", values=FOUR_VALUES, x=TIED, kernel_size=2),
        case("all pixels equal", values=_positive(1, 1, 2, 2), x=np.ones((1, 1, 6, 6), np.float32), kernel_size=3),
        case("many ties", values=normal(2, 1, 4, 6), x=small_integers(2, 1, 8, 12), kernel_size=2),
        case("two images, three channels, window 3", values=normal(2, 3, 2, 3), x=images(2, 3, 6, 9), kernel_size=3),
        case("5 rows of 7: an edge is left over", values=normal(2, 2, 2, 3), x=images(2, 2, 5, 7), kernel_size=2),
        case("nearly a tie", values=_positive(1, 1, 1, 1), x=NEARLY, kernel_size=2),
    ],
    domain=random_case("any values and images", _with_values, _any_pooling),
    points=2,
    hints=(
        "A place inside the window, such as the upper left, is a slice of x with steps: it holds that pixel of all "
        "windows at once. Go through the places, row by row. Where the pixel equals the largest of its window, the "
        "value goes there, unless the window has given its value away before.",
        "largest = ops.max_pool2d(x, kernel_size) is (N, C, OH, OW), and so is x[:, :, i : i + OH * kernel_size : "
        "kernel_size, j : j + OW * kernel_size : kernel_size], the pixels at place (i, j). A mask `waiting` of that "
        "shape, first all True, says which windows still have their value.",
        "waiting = np.ones(values.shape, dtype=bool)\n"
        "in the loops over i, j:\n"
        "    at = (..., slice(i, i + OH * kernel_size, kernel_size), slice(j, j + OW * kernel_size, kernel_size))\n"
        "    here = waiting & (x[at] == largest)\n"
        "    result[at] = here * values\n"
        "    waiting = waiting & ~here",
    ),
    mistakes=unpooling.UNPOOLING_MISTAKES + unpooling.ROW_MISTAKES,
    speed=Speed(
        baseline=ops.max_unpool2d_loops,
        inputs={"values": normal(4, 10, 14, 14), "x": images(4, 10, 28, 28), "kernel_size": 2},
        at_least=20,
        against="plain loops over all windows, on 4 images of 28 x 28 with 10 channels",
        advice=BY_PLACES,
    ),
    rung=Rung(
        "by masks", WORK, {"values": normal(BATCH, 10, 14, 14), "x": images(BATCH, 10, 28, 28), "kernel_size": 2}, BATCH
    ),
)

max_pool2d_overlapping = Spec(
    reference=ops.max_pool2d,
    allows=(ops.conv2d_output_size,),
    cases=[
        case("the seminar's 4 x 4 image, window 2, stride 1", x=SEMINAR_X, kernel_size=2, stride=1),
        case("all pixels far below 0", x=-1e10 * (np.abs(SEMINAR_X3) + 1), kernel_size=2, stride=1),
        case("6 rows of 10, window 4, stride 2", x=images(1, 1, 6, 10), kernel_size=4, stride=2),
        case("two images, three channels", x=images(2, 3, 7, 9), kernel_size=3, stride=2),
        case("6 rows of 9, window 3, stride 2: an edge is left over", x=images(1, 1, 6, 9), kernel_size=3, stride=2),
        case("gaps between windows", x=images(2, 1, 7, 9), kernel_size=2, stride=3),
    ],
    domain=random_case("any images, window and stride", _any_stride),
    points=1,
    hints=(
        "Change the order of the loops. Outside, go through the places inside the window, 16 for a window of 4. For "
        "each, compare one pixel of all windows at once with the largest so far.",
        "OH = (H - kernel_size) // stride + 1, and OW alike. The pixels at place (i, j) of all windows are a slice of "
        "OH rows and OW columns: rows i, i + stride, ..., i + (OH - 1) * stride, and columns alike. "
        "np.maximum(a, b) takes the larger of each pair.",
        "y = x[:, :, : OH * stride : stride, : OW * stride : stride]\n"
        "in the loops over i, j:\n"
        "    rows = slice(i, i + OH * stride, stride)\n"
        "    columns = slice(j, j + OW * stride, stride)\n"
        "    y = np.maximum(y, x[:, :, rows, columns])",
    ),
    mistakes=pooling.OVERLAPPING_MISTAKES,
    speed=Speed(
        baseline=ops.max_pool2d_loops,
        inputs={"x": images(1, 2, 80, 80), "kernel_size": 4, "stride": 2},
        at_least=30,
        against="plain loops over all windows, on 2 channels of 80 x 80, window 4, stride 2",
        advice=BY_PLACES,
    ),
)


def _overlapping(name: str, values: Draw | Array, x: Draw | Array, kernel_size: int, stride: int) -> Case:
    return case(name, values=values, x=x, kernel_size=kernel_size, stride=stride)


max_unpool2d_overlapping = Spec(
    reference=ops.max_unpool2d_mask,
    allows=(ops.conv2d_output_size, ops.max_pool2d),
    cases=[
        _overlapping("one pixel wins in all four windows", FOUR_OTHERS, PEAK, 3, stride=1),
        _overlapping("many ties", normal(2, 1, 4, 7), small_integers(2, 1, 6, 9), 3, stride=1),
        _overlapping("the seminar's 4 x 4 image, window 3, stride 1", FOUR_VALUES, SEMINAR_X, 3, stride=1),
        _overlapping("all pixels equal", _positive(1, 1, 3, 3), np.ones((1, 1, 4, 4), np.float32), 2, stride=1),
        _overlapping("6 rows of 10, window 4, stride 2", normal(1, 1, 2, 4), images(1, 1, 6, 10), 4, stride=2),
        _overlapping("two images, three channels", normal(2, 3, 3, 4), images(2, 3, 7, 9), 3, stride=2),
        _overlapping("nearly a tie", _positive(1, 1, 1, 1), NEARLY, 2, stride=1),
        _overlapping("gaps, values in float64", normal(2, 1, 2, 3, dtype=float), images(2, 1, 7, 9), 2, stride=3),
    ],
    domain=random_case("any values, images and stride", _with_values, _any_stride),
    points=2,
    hints=(
        "It is your mask again, with two changes: slices that step by the stride, and a plus where values are put "
        "down, because another window may have left one on the same pixel.",
        "At each place (i, j): here, waiting and values are (N, C, OH, OW), and result[:, :, rows, columns] is the "
        "slice of the same shape, with rows = slice(i, i + OH * stride, stride). Within one slice no pixel "
        "occurs twice, so += adds as it should.",
        "in the loops over i, j:\n"
        "    rows = slice(i, i + OH * stride, stride)\n"
        "    columns = slice(j, j + OW * stride, stride)\n"
        "    here = waiting & (x[:, :, rows, columns] == largest)\n"
        "    result[:, :, rows, columns] += here * values\n"
        "    waiting = waiting & ~here",
    ),
    mistakes=unpooling.OVERLAP_MISTAKES + unpooling.UNPOOLING_MISTAKES,
    speed=Speed(
        baseline=ops.max_unpool2d_loops,
        inputs={"values": normal(1, 2, 39, 39), "x": images(1, 2, 80, 80), "kernel_size": 4, "stride": 2},
        at_least=15,
        against="plain loops over all windows, on 2 channels of 80 x 80, window 4, stride 2",
        advice=BY_PLACES,
    ),
)
