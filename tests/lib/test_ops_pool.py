"""Max-pooling and where the maxima are: the seminar's numbers, ties, overlap, padding, NaN, blocks, errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Geometry, numeric_gradient, pooling_geometries
from test_ops_conv import SEMINAR_X

from unrolled import ops
from unrolled.ops import maxima


def with_indices(*arguments: Any, **options: Any) -> Any:
    """The values of `max_pool2d_with_indices`."""
    return ops.max_pool2d_with_indices(*arguments, **options)[0]


EVERY_WAY = pytest.mark.parametrize("pool", [ops.max_pool2d, ops.max_pool2d_loops, with_indices])


def first_maxima(x: Any, kernel_size: Any, stride: Any, padding: Any) -> tuple[Any, Any]:
    """Values and indices by NumPy's argmax over every window: the first of equals, NaN above all."""
    (kh, kw), (sh, sw), (ph, pw) = kernel_size, stride, padding
    padded = np.pad(x.astype(float), ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    n, c, oh, ow = windows.shape[:4]
    windows = windows.reshape(n, c, oh, ow, kh * kw)
    row, column = np.divmod(windows.argmax(axis=-1), kw)
    row += sh * np.arange(oh)[:, None] - ph
    column += sw * np.arange(ow) - pw
    return windows.max(axis=-1), row * x.shape[3] + column


def images(g: Geometry, palette: Any) -> Any:
    """Images of few values, so that most windows have several maxima."""
    return np.random.default_rng(g.seed).choice(np.array(palette), (g.n, g.c, *g.size))


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


PALETTES = st.sampled_from(
    [
        np.array([0, 1, 2], np.uint8),
        np.array([-3, -2], np.int64),
        np.array([0.0, -0.0, 1.0]),
        np.array([0.0, np.nan, 2.0]),
    ]
)


@settings(max_examples=60, deadline=None)
@given(pooling_geometries(), PALETTES, st.sampled_from([1, 500, maxima.BLOCK_BYTES]))
def test_the_first_maximum_of_every_window_is_found(g: Geometry, palette: Any, block_bytes: int) -> None:
    x, options = images(g, palette), (g.kernel_size, g.stride, g.padding)
    values, indices = first_maxima(x, *options)
    with mock.patch.object(maxima, "BLOCK_BYTES", block_bytes):
        y, found = ops.max_pool2d_with_indices(x, *options)
    assert (y.dtype, found.dtype) == (x.dtype, np.int64)
    np.testing.assert_array_equal(y, values)
    np.testing.assert_array_equal(found, indices)
    np.testing.assert_array_equal(ops.max_pool2d_indices(x, *options), indices)
    np.testing.assert_array_equal(ops.max_pool2d(x, *options), values)


@pytest.mark.parametrize(
    ("size", "kernel_size"),
    [
        ((3, 253), (2, 3)),
        ((3, 254), (2, 3)),
        ((3, 300), (2, 2)),
        ((1, 400), (1, 300)),
        ((300, 2), (290, 2)),
        ((300, 300), 290),
    ],
)
def test_maxima_far_from_the_first_pixel_of_their_window_are_found(size: Any, kernel_size: Any) -> None:
    # Distances of up to 255 pixels take one byte, up to 65535 two, and more than that four.
    kernel_size = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    x = np.arange(size[0] * size[1], dtype=np.float32).reshape(1, 1, *size)
    for image in (x, x[..., ::-1, ::-1], x % 7):
        _, indices = first_maxima(image, kernel_size, (1, 1), (0, 0))
        np.testing.assert_array_equal(ops.max_pool2d_indices(image, kernel_size, 1), indices)


def test_of_a_map_of_zeros_after_relu_every_window_gives_its_first_pixel() -> None:
    assert ops.max_pool2d_indices(np.zeros((1, 1, 4, 4), np.float32), 2)[0, 0].tolist() == [[0, 2], [8, 10]]


def test_a_window_of_negative_infinity_gives_a_pixel_and_never_the_padding() -> None:
    lowest = np.full((1, 1, 3, 3), -np.inf)
    assert ops.max_pool2d_indices(lowest, 3, 2, 1)[0, 0].tolist() == [[0, 1], [3, 4]]
    assert ops.max_pool2d_indices(np.zeros((1, 1, 3, 3), bool), 3, 2, 1)[0, 0].tolist() == [[0, 1], [3, 4]]


def test_a_call_does_not_change_what_an_earlier_one_gave() -> None:
    # The buffers of a block serve the next call too.
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 6))
    y, indices = ops.max_pool2d_with_indices(x, 3, 2, 1)
    copies = y.copy(), indices.copy()
    ops.max_pool2d_with_indices(-x, 3, 2, 1)
    np.testing.assert_array_equal((y, indices), copies)


@EVERY_WAY
def test_windows_of_one_pixel_give_a_copy(pool: Any) -> None:
    x = np.arange(9.0).reshape(1, 1, 3, 3)
    y = pool(x, 1)
    np.testing.assert_array_equal(y, x)
    assert not np.shares_memory(y, x)
    np.testing.assert_array_equal(pool(x, 1, 2)[0, 0], [[0, 2], [6, 8]])


def test_threads_do_not_share_buffers() -> None:
    batches = np.random.default_rng(0).normal(size=(40, 8, 8, 20, 20))
    expected = [ops.max_pool2d_indices(x, 2) for x in batches]
    with ThreadPoolExecutor(4) as threads:
        for found, indices in zip(threads.map(lambda x: ops.max_pool2d_indices(x, 2), batches), expected, strict=True):
            np.testing.assert_array_equal(found, indices)


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
@pytest.mark.parametrize("pool", [ops.max_pool2d, ops.max_pool2d_loops, ops.max_pool2d_indices, ops.avg_pool2d])
def test_errors_name_the_argument(pool: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pool(**({"x": np.zeros((1, 1, 4, 4)), "kernel_size": 2} | arguments))


def test_a_gradient_of_another_shape_is_named_with_both_shapes() -> None:
    with pytest.raises(
        ValueError, match=r"grad has shape \(1, 1, 3, 3\); expected \(1, 1, 2, 2\) to fit x \(1, 1, 4, 4\)"
    ):
        ops.max_pool2d_backward(np.zeros((1, 1, 3, 3)), np.zeros((1, 1, 4, 4)), 2)
