"""Max-pooling: the seminar's numbers, ties, overlap, padding, NaN, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, numeric_gradient, pooling_geometries
from test_ops_conv import SEMINAR_X

from unrolled import ops

EVERY_WAY = pytest.mark.parametrize("pool", [ops.max_pool2d, ops.max_pool2d_loops])


@EVERY_WAY
def test_the_seminars_example(pool: Any) -> None:
    expected = [[[[2, 4], [4, 2]], [[4, 3], [3, 2]], [[2, 3], [3, 2]]]]
    np.testing.assert_array_equal(pool(SEMINAR_X, 2), expected)


@settings(max_examples=25, deadline=None)
@given(pooling_geometries())
def test_the_loops_agree(g: Geometry) -> None:
    x = g.arrays()[0]
    options = (g.kernel_size, g.stride, g.padding)
    np.testing.assert_array_equal(ops.max_pool2d(x, *options), ops.max_pool2d_loops(x, *options))


@pytest.mark.parametrize(
    "g",
    [
        Geometry(2, 2, 1, (4, 6), (2, 3), (2, 3), (0, 0), 0),
        Geometry(1, 2, 1, (5, 5), (3, 3), (1, 2), (1, 0), 1),
        Geometry(1, 1, 1, (3, 4), (3, 4), (1, 1), (0, 0), 2),
    ],
)
def test_backward_is_the_numeric_gradient_where_no_values_tie(g: Geometry) -> None:
    x = np.random.default_rng(g.seed).permutation(g.n * g.c * g.size[0] * g.size[1]).astype(float)
    x = x.reshape(g.n, g.c, *g.size)
    options = (g.kernel_size, g.stride, g.padding)
    grad = np.random.default_rng(9).normal(size=ops.max_pool2d(x, *options).shape)
    numeric = numeric_gradient(lambda v: ops.max_pool2d(v, *options), x, grad)
    np.testing.assert_allclose(ops.max_pool2d_backward(grad, x, *options), numeric, rtol=1e-6, atol=1e-8)


def test_of_equal_maxima_the_first_in_row_major_order_gets_the_gradient() -> None:
    x = np.zeros((1, 1, 2, 4), np.float32)
    x[0, 0, :, 2:] = [[1, 5], [5, 5]]
    grad = np.array([3, 7], np.float32).reshape(1, 1, 1, 2)
    assert ops.max_pool2d_backward(grad, x, 2)[0, 0].tolist() == [[3, 0, 0, 7], [0, 0, 0, 0]]


def test_overlapping_windows_add_up() -> None:
    x = np.zeros((1, 1, 3, 3))
    x[0, 0, 1, 1] = 1
    assert ops.max_pool2d_backward(np.full((1, 1, 2, 2), 2.0), x, 2, stride=1)[0, 0, 1, 1] == 8


@EVERY_WAY
def test_padding_never_wins(pool: Any) -> None:
    x = np.full((1, 1, 2, 2), -7, np.int8)
    np.testing.assert_array_equal(pool(x, 2, 1, 1), np.full((1, 1, 3, 3), -7))
    lowest = np.full((1, 1, 2, 2), -np.inf)
    np.testing.assert_array_equal(pool(lowest, 2, 1, 1), np.full((1, 1, 3, 3), -np.inf))


def test_no_gradient_is_lost_in_the_padding() -> None:
    x = np.full((1, 1, 2, 2), -np.inf)
    assert ops.max_pool2d_backward(np.ones((1, 1, 3, 3)), x, 2, 1, 1).sum() == 9


@EVERY_WAY
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.bool_, np.float16, np.float32])
def test_the_dtype_stays(pool: Any, dtype: Any) -> None:
    x = np.eye(4).astype(dtype)[None, None]
    y = pool(x, 2)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y[0, 0], np.eye(2).astype(dtype))


@EVERY_WAY
def test_nan_counts_as_the_largest(pool: Any) -> None:
    x = np.array([[3.0, np.nan], [5.0, 1.0]])[None, None]
    assert np.isnan(pool(x, 2)).all()
    assert ops.max_pool2d_backward(np.ones((1, 1, 1, 1)), x, 2)[0, 0].tolist() == [[0, 1], [0, 0]]


@EVERY_WAY
def test_pixels_past_the_last_window_are_left_out(pool: Any) -> None:
    assert pool(np.arange(25.0).reshape(1, 1, 5, 5), 2)[0, 0].tolist() == [[6, 8], [16, 18]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": np.zeros((4, 4))}, r"x has shape \(4, 4\); expected 4 axes"),
        ({"kernel_size": 5}, r"kernel_size is \(5, 5\).*larger than x of shape \(1, 1, 4, 4\)"),
        ({"stride": 0}, "stride is 0; expected at least 1"),
        ({"padding": 2}, r"padding \(2, 2\) must be smaller than kernel_size \(2, 2\)"),
    ],
)
@EVERY_WAY
def test_errors_name_the_argument(pool: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pool(**({"x": np.zeros((1, 1, 4, 4)), "kernel_size": 2} | arguments))


def test_a_gradient_of_another_shape_is_named_with_both_shapes() -> None:
    with pytest.raises(
        ValueError, match=r"grad has shape \(1, 1, 3, 3\); expected \(1, 1, 2, 2\) to fit x \(1, 1, 4, 4\)"
    ):
        ops.max_pool2d_backward(np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 4, 4)), 2)
