"""Convolution: the seminar's numbers, SciPy, numeric gradients, the four ways against each other, errors."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Geometry, geometries, numeric_gradient
from scipy.signal import correlate

from unrolled import ops
from unrolled.ops import blocks

few = settings(max_examples=30, deadline=None)
EVERY_WAY = pytest.mark.parametrize("conv", [ops.conv2d, ops.conv2d_loops, ops.conv2d_positions])

# From "Software acceleration and deep learning", a seminar of 2022. Its slide of the three-channel example prints
# 39, 33, 15, 44; these arrays give 39, 37, 16, 46.
SEMINAR_X = np.array(
    [
        [[1, 2, 4, 2], [0, 1, 2, 3], [3, 0, 1, 0], [2, 4, 0, 2]],
        [[4, 0, 3, 1], [0, 1, 0, 3], [3, 0, 2, 0], [1, 3, 0, 1]],
        [[1, 1, 2, 0], [0, 2, 1, 3], [2, 0, 1, 2], [3, 2, 0, 1]],
    ],
    np.float32,
)[None]
SEMINAR_W = np.array(
    [
        [[2, 0, 1], [0, 3, 0], [1, 0, 2]],
        [[0, 1, 3], [0, 1, 2], [1, 0, 0]],
        [[2, 0, 1], [0, 1, 2], [1, 0, 2]],
    ],
    np.float32,
)[None]


@EVERY_WAY
def test_the_seminars_example_with_one_channel(conv: Any) -> None:
    x = SEMINAR_X[:, 2:]
    weight = np.array([[2, 0, 1], [0, 2, 1], [1, 0, 1]], np.float32)[None, None]
    np.testing.assert_array_equal(conv(x, weight), [[[[12, 9], [5, 14]]]])
    np.testing.assert_array_equal(conv(x, weight, np.array([3], np.float32)), [[[[15, 12], [8, 17]]]])


@EVERY_WAY
def test_the_seminars_example_with_three_channels(conv: Any) -> None:
    np.testing.assert_array_equal(conv(SEMINAR_X, SEMINAR_W), [[[[39, 37], [16, 46]]]])


@EVERY_WAY
def test_the_seminars_matrix_example(conv: Any) -> None:
    x = np.array([[2, 0, 1], [0, 2, 3], [1, 3, 1]])[None, None]
    np.testing.assert_array_equal(conv(x, np.array([[1, 0], [0, 2]])[None, None]), [[[[6, 6], [6, 4]]]])


@few
@given(geometries())
def test_conv2d_is_scipys_correlation_summed_over_channels(g: Geometry) -> None:
    x, weight, bias = g.arrays()
    (ph, pw), (sh, sw) = g.padding, g.stride
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    expected = [[correlate(image, kernels, mode="valid", method="direct")[0] for kernels in weight] for image in padded]
    expected = np.array(expected)[..., ::sh, ::sw] + bias[:, None, None]
    np.testing.assert_allclose(ops.conv2d(x, weight, bias, g.stride, g.padding), expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(geometries())
def test_loops_and_positions_agree_with_conv2d(g: Geometry) -> None:
    x, weight, bias = g._replace(n=2).arrays()
    expected = ops.conv2d(x, weight, bias, g.stride, g.padding)
    np.testing.assert_allclose(ops.conv2d_loops(x, weight, bias, g.stride, g.padding), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        ops.conv2d_positions(x, weight, bias, g.stride, g.padding), expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    "g",
    [
        Geometry(2, 2, 3, (5, 4), (3, 2), (1, 1), (0, 0), 0),
        Geometry(2, 1, 2, (4, 5), (2, 3), (2, 3), (1, 2), 1),
        Geometry(1, 2, 2, (3, 3), (3, 3), (1, 1), (0, 0), 2),
        Geometry(1, 3, 2, (2, 3), (1, 1), (1, 2), (0, 1), 3),
    ],
)
def test_conv2d_backward_is_the_numeric_gradient(g: Geometry) -> None:
    x, weight, bias = g.arrays()
    options = (g.stride, g.padding)
    grad = np.random.default_rng(9).normal(size=ops.conv2d(x, weight, bias, *options).shape)
    expected = (
        numeric_gradient(lambda v: ops.conv2d(v, weight, bias, *options), x, grad),
        numeric_gradient(lambda v: ops.conv2d(x, v, bias, *options), weight, grad),
        numeric_gradient(lambda v: ops.conv2d(x, weight, v, *options), bias, grad),
    )
    for gradient, numeric in zip(ops.conv2d_backward(grad, x, weight, *options), expected, strict=True):
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 17])
def test_the_number_of_images_in_a_block_changes_nothing(n: int) -> None:
    rng = np.random.default_rng(n)
    x, weight = rng.normal(size=(n, 2, 6, 6)), rng.normal(size=(3, 2, 3, 3))
    grad = rng.normal(size=(n, 3, 6, 6))
    y = ops.conv2d(x, weight, padding=1)
    grad_x, grad_weight, _ = ops.conv2d_backward(grad, x, weight, padding=1)
    one_by_one = [ops.conv2d_backward(grad[i : i + 1], x[i : i + 1], weight, padding=1) for i in range(n)]
    np.testing.assert_allclose(y, np.concatenate([ops.conv2d(x[i : i + 1], weight, padding=1) for i in range(n)]))
    np.testing.assert_allclose(grad_x, np.concatenate([part[0] for part in one_by_one]))
    np.testing.assert_allclose(grad_weight, sum(part[1] for part in one_by_one))


def test_memory_does_not_grow_with_the_columns_of_the_whole_batch() -> None:
    x, weight = np.ones((64, 3, 32, 32), np.float32), np.ones((4, 3, 5, 5), np.float32)
    columns = 64 * 75 * 28 * 28 * 4
    ops.conv2d(x[:1], weight)
    tracemalloc.start()
    y = ops.conv2d(x, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < columns / 4, f"{peak / 1e6:.1f} MB for columns of {columns / 1e6:.1f} MB"
    assert y.nbytes < peak < y.nbytes + 3 * blocks.BLOCK_BYTES


@EVERY_WAY
def test_results_are_contiguous_and_as_large_as_promised(conv: Any) -> None:
    y = conv(np.ones((2, 1, 7, 8), np.float32), np.ones((3, 1, 3, 2), np.float32), stride=(2, 3), padding=(1, 0))
    assert y.shape == (2, 3, *ops.conv2d_output_size((7, 8), (3, 2), (2, 3), (1, 0)))
    assert y.flags.c_contiguous


@given(st.integers(1, 20), st.integers(1, 6), st.integers(1, 4), st.integers(0, 3))
def test_output_size_counts_the_places_of_the_window(size: int, kernel: int, stride: int, padding: int) -> None:
    places = len(range(-padding, size + padding - kernel + 1, stride))
    if places == 0:
        with pytest.raises(ValueError, match="window is larger"):
            ops.conv2d_output_size(size, kernel, stride, padding)
    else:
        assert ops.conv2d_output_size((size, size), kernel, stride, padding) == (places, places)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((3, 8, 8))}, r"x has shape \(3, 8, 8\); expected 4 axes \(N, C, H, W\)"),
        ({"weight": np.zeros((4, 3))}, r"weight has shape \(4, 3\); expected 4 axes \(O, C, KH, KW\)"),
        ({"weight": np.zeros((4, 2, 3, 3))}, r"weight has shape \(4, 2, 3, 3\).*x has shape \(2, 3, 8, 8\)"),
        ({"weight": np.zeros((4, 3, 9, 3))}, r"weight has shape \(4, 3, 9, 3\).*larger than x of shape \(2, 3, 8, 8\)"),
        ({"bias": np.zeros(3)}, r"bias has shape \(3,\); expected \(4,\) to fit weight \(4, 3, 3, 3\)"),
        ({"bias": np.zeros((4, 1))}, r"bias has shape \(4, 1\)"),
        ({"stride": 0}, "stride is 0; expected at least 1"),
        ({"stride": (1, 0)}, r"stride is \(1, 0\); expected at least 1"),
        ({"stride": (1, 1, 1)}, r"stride is \(1, 1, 1\); expected an int or a pair"),
        ({"padding": -1}, "padding is -1; expected at least 0"),
    ],
)
@EVERY_WAY
def test_what_does_not_fit_is_named_with_both_shapes(conv: Any, changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3)), "bias": np.zeros(4)} | changes
    with pytest.raises(ValueError, match=message):
        conv(**arguments)


@EVERY_WAY
@pytest.mark.parametrize("stride", [1.5, "2", None])
def test_a_stride_that_is_no_integer_is_a_type_error(conv: Any, stride: Any) -> None:
    with pytest.raises(TypeError, match=r"stride is .*; expected an int or a pair of ints"):
        conv(np.zeros((1, 1, 4, 4)), np.zeros((1, 1, 2, 2)), stride=stride)


def test_a_gradient_of_another_shape_is_named_with_both_shapes() -> None:
    x, weight = np.zeros((2, 3, 8, 8)), np.zeros((4, 3, 3, 3))
    with pytest.raises(ValueError, match=r"grad has shape \(2, 4, 8, 8\); expected \(2, 4, 6, 6\) to fit x"):
        ops.conv2d_backward(np.zeros((2, 4, 8, 8)), x, weight)
    with pytest.raises(ValueError, match=r"grad has shape \(4, 6, 6\); expected 4 axes"):
        ops.conv2d_backward(np.zeros((4, 6, 6)), x, weight)


def test_one_float64_makes_all_float64_and_pixels_count_as_float32() -> None:
    pixels, weight = np.ones((1, 1, 4, 4), np.uint8), np.ones((1, 1, 2, 2), np.float32)
    assert ops.conv2d(pixels, weight).dtype == np.float32
    assert ops.conv2d(pixels, weight, np.zeros(1)).dtype == np.float64


def test_float32_is_as_accurate_as_float32_can_be() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(16, 8, 12, 12)), rng.normal(size=(8, 8, 3, 3))
    grad = rng.normal(size=(16, 8, 12, 12))
    exact = ops.conv2d_backward(grad, x, weight, padding=1)
    rounded = ops.conv2d_backward(*(a.astype(np.float32) for a in (grad, x, weight)), padding=1)
    for value, expected in zip(rounded, exact, strict=True):
        assert np.abs(value - expected).max() < 1e-5 * np.abs(expected).max()
