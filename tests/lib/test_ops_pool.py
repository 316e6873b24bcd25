"""Max- and average-pooling: the seminar's numbers, PyTorch over random shapes, the first maximum, NaN, errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Geometry, agrees_with_torch, pooling_geometries

from unrolled import ops
from unrolled.ops import maxima


def with_indices(*arguments: Any, **options: Any) -> Any:
    """The values of `max_pool2d_with_indices`."""
    return ops.max_pool2d_with_indices(*arguments, **options)[0]


every_way = pytest.mark.parametrize("pool", [ops.max_pool2d, ops.max_pool2d_loops, with_indices])


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


@settings(max_examples=60, deadline=None)
@given(pooling_geometries())
def test_pooling_and_its_gradients_are_pytorchs(g: Geometry) -> None:
    """Of few different values, most windows have several maxima, and the first of them must get the gradient."""
    x, options = np.random.default_rng(g.seed).choice([-np.inf, -1.0, 0.0, 1.0], (g.n, g.c, *g.size)), g[4:7]

    def backward(grad: Any) -> Any:
        indices = ops.max_pool2d_indices(x, *options)
        grad_x = ops.max_pool2d_backward(grad, x, *options)
        np.testing.assert_allclose(ops.max_unpool2d(grad, indices, g.size), grad_x, rtol=1e-12, atol=1e-12)
        return grad_x

    for pool in (ops.max_pool2d, ops.max_pool2d_loops, with_indices):
        agrees_with_torch(lambda f, x: f.max_pool2d(x, *options), [x], lambda x, p=pool: p(x, *options), backward)
    agrees_with_torch(
        lambda f, x: f.avg_pool2d(x, *options, count_include_pad=True),
        [g.arrays()[0]],
        lambda x: ops.avg_pool2d(x, *options),
        lambda grad: ops.avg_pool2d_backward(grad, x.shape, *options),
    )


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
    x, options = np.random.default_rng(g.seed).choice(palette, (g.n, g.c, *g.size)), g[4:7]
    values, indices = first_maxima(x, *options)
    with mock.patch.object(maxima, "BLOCK_BYTES", block_bytes):
        y, found = ops.max_pool2d_with_indices(x, *options)
    assert (y.dtype, found.dtype) == (x.dtype, np.int64)
    np.testing.assert_array_equal(y, values)
    np.testing.assert_array_equal(found, indices)
    np.testing.assert_array_equal(ops.max_pool2d_indices(x, *options), indices)
    np.testing.assert_array_equal(ops.max_pool2d(x, *options), values)
    np.testing.assert_array_equal(ops.max_pool2d_loops(x, *options), values)


@pytest.mark.parametrize(
    ("size", "kernel_size"),
    [
        ((3, 253), (2, 3)),
        ((3, 254), (2, 3)),
        ((3, 300), (2, 2)),
        ((1, 400), (1, 300)),
        ((300, 2), (290, 2)),
        ((300, 300), (290, 290)),
    ],
)
def test_maxima_far_from_the_first_pixel_of_their_window_are_found(size: Any, kernel_size: Any) -> None:
    # Distances of up to 255 pixels take one byte, up to 65535 two, and more than that four.
    x = np.arange(size[0] * size[1], dtype=np.float32).reshape(1, 1, *size)
    for image in (x, x[..., ::-1, ::-1], x % 7):
        _, indices = first_maxima(image, kernel_size, (1, 1), (0, 0))
        np.testing.assert_array_equal(ops.max_pool2d_indices(image, kernel_size, 1), indices)


def test_a_call_does_not_change_what_an_earlier_one_gave() -> None:
    # The buffers of a block serve the next call too.
    x = np.random.default_rng(0).normal(size=(2, 3, 6, 6))
    y, indices = ops.max_pool2d_with_indices(x, 3, 2, 1)
    copies = y.copy(), indices.copy()
    ops.max_pool2d_with_indices(-x, 3, 2, 1)
    np.testing.assert_array_equal((y, indices), copies)


def test_threads_do_not_share_buffers() -> None:
    batches = np.random.default_rng(0).normal(size=(40, 8, 8, 20, 20))
    expected = [ops.max_pool2d_indices(x, 2) for x in batches]
    with ThreadPoolExecutor(4) as threads:
        for found, indices in zip(threads.map(lambda x: ops.max_pool2d_indices(x, 2), batches), expected, strict=True):
            np.testing.assert_array_equal(found, indices)


def test_means_of_integers_are_floats_and_padding_counts_as_zeros() -> None:
    y = ops.avg_pool2d(np.array([[255, 255], [255, 0]], np.uint8)[None, None], 2)
    assert (y.item(), y.dtype) == (191.25, np.float32)
    assert ops.avg_pool2d(np.full((1, 1, 2, 2), 4.0), 2, 2, 1)[0, 0].tolist() == [[1, 1], [1, 1]]


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
