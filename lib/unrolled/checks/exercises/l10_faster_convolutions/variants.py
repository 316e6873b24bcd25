"""Variants of the exercises of lesson 10: counts for each result, mathematics' convolution, rows, NHWC, gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l10_faster_convolutions import choosing, counts, exercises, transforms
from unrolled.checks.mistakes import Mistake, converted, given, result
from unrolled.checks.spec import Inputs, case, gpu_case, normal, random_case, variant
from unrolled.device import Array

Shape = tuple[int, int, int, int, int]


# counts for each result


def for_each_result(method: str, shape: Shape) -> float:
    """Return the multiplications that a result takes on average."""
    n, _, o, size, _ = shape
    return counts.multiplications(method, shape) / (n * o * size**2)


def _each(count: Callable[[str, Shape], int]) -> Callable[[str, Shape], float]:
    """The mistake of a total, for each result."""
    return lambda method, shape: count(method, shape) / (shape[0] * shape[2] * shape[3] ** 2)


count_multiplications_each = variant(
    exercises.count_multiplications,
    reference=for_each_result,
    hints=(
        "Count for one image, one channel and one filter first, and divide by the number of results, size * size. Each "
        "result sums over all channels.",
        *exercises.count_multiplications.hints[1:2],
        'if method == "direct":\n'
        "    plane = size**2 * kernel**2\n"
        'elif method == "fft":\n'
        "    length = size + kernel - 1\n"
        "    plane = 4 * ...\n"
        "else:\n"
        '    m = 2 if method == "winograd 2x2" else 4\n'
        "    plane = (-(-size // m)) ** 2 * ...\n"
        "return c * plane / size**2",
    ),
    mistakes=(
        Mistake("a tile is computed whole: round the number of tiles up", _each(counts.tiles_not_rounded)),
        Mistake(
            "a real image needs half of the frequencies, length // 2 + 1 in a row: the others follow",
            _each(counts.all_frequencies),
        ),
        Mistake("a complex multiplication takes 4 real ones", _each(counts.complex_as_one)),
        Mistake("the number asked is that for one result, not for all of them", counts.multiplications),
        given("each of the c channels counts", shape=lambda shape: (shape[0], 1, *shape[2:])),
    ),
)


# what mathematics calls convolution


def flipped_by_fft(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return the convolution of mathematics (N, O, OH, OW): the weight is turned round."""
    return transforms.through_frequencies(x, weight, bias, padding)


def flipped_positions(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return it by a loop over output positions."""
    return ops.conv2d_positions(x, weight[:, :, ::-1, ::-1], bias, padding=padding)


fft_conv2d = exercises.fft_conv2d
assert fft_conv2d.speed is not None

fft_conv2d_flipped = variant(
    fft_conv2d,
    reference=flipped_by_fft,
    hints=(
        fft_conv2d.hints[0],
        "The product of waves turns the kernel round by itself, so nothing is flipped here. The sum over channels is a "
        "product of matrices for each frequency: pixels as (LH, LW, N, C) @ weights as (LH, LW, C, O). In what comes "
        "back, the first result stands at row and column kernel - 1 - padding.",
        fft_conv2d.hints[2].replace("weight[:, :, ::-1, ::-1]", "weight"),
    ),
    mistakes=(
        given(
            "the weight is flipped: here the convolution of mathematics is asked, which turns it by itself",
            weight=lambda weight: weight[:, :, ::-1, ::-1],
        ),
        *transforms.wrong_ways(lambda weight: weight),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("the padding is missing", padding=0),
    ),
    speed=replace(fft_conv2d.speed, baseline=flipped_positions),
)


# rows alone: F(2, 3)


def row_transforms(tiles: Array, weight: Array, products: Array) -> transforms.Kept:
    """Return tiles (..., 4) and weight (..., 3) transformed, both (..., 4), and products (..., 2)."""
    b, g, a = transforms.matrices(tiles)
    return tiles @ b.T, weight @ g.T, products @ a.T


def _any_rows(rng: np.random.Generator) -> Inputs:
    n, c, o = (int(each) for each in rng.integers(1, 4, 3))
    drawn = {"tiles": normal(n, c, 5, 4), "weight": normal(o, c, 3), "products": normal(n, o, 5, 4)}
    return {name: draw.make(rng) for name, draw in drawn.items()}


def _unturned(tiles: Array, weight: Array, products: Array) -> tuple[Array, Array, Array]:
    b, g, a = transforms.matrices(tiles)
    return tiles @ b, weight @ g.T, products @ a.T


winograd_transforms_rows = variant(
    exercises.winograd_transforms,
    reference=row_transforms,
    cases=[
        case(
            "one row, one kernel",
            tiles=np.array([[1, 2, 4, 3]], np.float32),
            weight=np.array([[2, 1, -1]], np.float32),
            products=np.array([[1, 4, 9, 16]], np.float32),
        ),
        random_case("any number of them", _any_rows),
    ],
    hints=(
        "A matrix times a column of pixels gives the sums. Here the pixels lie in rows, the last axis, so the matrix "
        "comes from the right, transposed.",
        "Pixels: tiles @ B_T.T. The other two have the same form, each with its own matrix.",
        "transformed_pixels: return tiles @ B_T.T\n"
        "transformed_weights: the same, with G from the right\n"
        "results_of: the same, with A_T from the right",
    ),
    mistakes=(Mistake("the matrix of the pixels is given as B.T: from the right it is B_T.T", _unturned),),
    compare=named("the transformed pixels", "the transformed weights", "the results"),
)


# channels last


def _last(x: Array) -> Array:
    return x.transpose(0, 2, 3, 1)


def _first(x: Array) -> Array:
    return x.transpose(0, 3, 1, 2)


def by_winograd_nhwc(x: Array, weight: Array, bias: Array, padding: int = 1) -> Array:
    """Return the convolution (N, OH, OW, O) of x (N, H, W, C) with weight (O, 3, 3, C)."""
    return _last(transforms.by_winograd(_first(x), _first(weight), bias, padding))


def nhwc(inputs: Inputs) -> Inputs:
    """Return a convolution's inputs with their channels last."""
    return {
        **inputs,
        "x": np.ascontiguousarray(_last(inputs["x"])),
        "weight": np.ascontiguousarray(_last(inputs["weight"])),
    }


def _layer(n: int, c: int, size: int, o: int, padding: int) -> Inputs:
    return {"x": normal(n, size, size, c), "weight": normal(o, 3, 3, c), "bias": normal(o), "padding": padding}


def _fewer(inputs: Inputs) -> float:
    return exercises.fewer({**inputs, "x": _first(inputs["x"]), "weight": _first(inputs["weight"])})


_MIXED = [mistake for mistake in exercises.winograd_conv2d.mistakes if mistake.function is not None]

winograd_conv2d_nhwc = variant(
    exercises.winograd_conv2d,
    reference=by_winograd_nhwc,
    cases=[
        case("one tile, NumPy", **_layer(1, 1, 4, 1, 0)),
        case("three channels, two filters, NumPy", **_layer(2, 3, 8, 2, 1)),
        case("an odd size, NumPy", **_layer(2, 2, 7, 3, 1)),
        random_case("any size, NumPy", lambda rng: nhwc(transforms.any_layer_of_3(rng))),
        gpu_case(
            "128 channels, 128 filters, GPU", replace(exercises.FILTERED, flops=_fewer), **_layer(1, 128, 16, 128, 1)
        ),
    ],
    mistakes=(
        given(
            "the weight is flipped: only the way through frequencies needs that",
            weight=lambda weight: weight[:, ::-1, ::-1],
        ),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("rows and columns of the weight are turned", weight=lambda weight: weight.swapaxes(1, 2)),
        result("the channels come last: (N, OH, OW, O)", _first),
        *(
            converted(mistake, transforms.by_winograd, _last, x=_first, weight=lambda weight: _first(weight))
            for mistake in _MIXED
        ),
    ),
)


# gradients


choose_algorithm_backward = variant(exercises.choose_algorithm, compare=choosing.judge_back)
