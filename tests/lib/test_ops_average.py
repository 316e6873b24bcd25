"""Average-pooling: plain means, padding, the gradient, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, numeric_gradient, pooling_geometries

from unrolled import ops


@settings(max_examples=40, deadline=None)
@given(pooling_geometries())
def test_it_is_the_mean_of_every_window_and_the_way_back_its_gradient(g: Geometry) -> None:
    x, (kh, kw), (sh, sw), (ph, pw) = g.arrays()[0], g.kernel_size, g.stride, g.padding
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), (2, 3))[:, :, ::sh, ::sw]
    options = (g.kernel_size, g.stride, g.padding)
    y = ops.avg_pool2d(x, *options)
    np.testing.assert_allclose(y, windows.mean(axis=(4, 5)), rtol=1e-12, atol=1e-12)
    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    numeric = numeric_gradient(lambda v: ops.avg_pool2d(v, *options), x[:1, :1], grad[:1, :1])
    np.testing.assert_allclose(ops.avg_pool2d_backward(grad, x.shape, *options)[:1, :1], numeric, rtol=1e-6, atol=1e-8)


def test_padding_counts_as_zeros() -> None:
    assert ops.avg_pool2d(np.full((1, 1, 2, 2), 4.0), 2, 2, 1)[0, 0].tolist() == [[1, 1], [1, 1]]
    grad_x = ops.avg_pool2d_backward(np.full((1, 1, 2, 2), 4.0), (1, 1, 2, 2), 2, 2, 1)
    assert grad_x[0, 0].tolist() == [[1, 1], [1, 1]]


def test_pixels_that_no_window_covers_get_no_gradient() -> None:
    grad_x = ops.avg_pool2d_backward(np.ones((1, 1, 1, 1), np.float32), (1, 1, 3, 3), 2)
    assert grad_x[0, 0].tolist() == [[0.25, 0.25, 0], [0.25, 0.25, 0], [0, 0, 0]]


def test_integers_have_means_that_are_floats() -> None:
    y = ops.avg_pool2d(np.array([[255, 255], [255, 0]], np.uint8)[None, None], 2)
    assert y.item() == 191.25
    assert y.dtype == np.float32


def test_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"grad has shape \(1, 1, 3, 3\); expected \(1, 1, 2, 2\) to fit x_shape"):
        ops.avg_pool2d_backward(np.zeros((1, 1, 3, 3)), (1, 1, 4, 4), 2)
    with pytest.raises(ValueError, match=r"x_shape is \(4, 4\); expected 4 sizes"):
        ops.avg_pool2d_backward(np.zeros((1, 1, 3, 3)), (4, 4), 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"kernel_size is \(5, 5\).*larger than x_shape \(1, 1, 4, 4\)"):
        ops.avg_pool2d_backward(np.zeros((1, 1, 1, 1)), (1, 1, 4, 4), 5)
