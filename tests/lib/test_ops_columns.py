"""im2col and col2im: order of rows and columns, the transposed pair, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, geometries

from unrolled import ops


def test_rows_run_over_channels_and_places_in_the_window_and_columns_over_images_and_windows() -> None:
    x = np.arange(2 * 2 * 2 * 3).reshape(2, 2, 2, 3)
    columns = ops.im2col(x, 2)
    assert columns.tolist() == [
        [0, 1, 12, 13],
        [1, 2, 13, 14],
        [3, 4, 15, 16],
        [4, 5, 16, 17],
        [6, 7, 18, 19],
        [7, 8, 19, 20],
        [9, 10, 21, 22],
        [10, 11, 22, 23],
    ]


@settings(max_examples=30, deadline=None)
@given(geometries())
def test_every_column_is_a_window(g: Geometry) -> None:
    x = g.arrays()[0]
    (ph, pw), (sh, sw), (kh, kw) = g.padding, g.stride, g.kernel_size
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    oh, ow = ops.conv2d_output_size(g.size, g.kernel_size, g.stride, g.padding)
    columns = ops.im2col(x, g.kernel_size, g.stride, g.padding)
    assert columns.shape == (g.c * kh * kw, g.n * oh * ow)
    for index, (image, row, column) in enumerate(np.ndindex(g.n, oh, ow)):
        window = padded[image, :, row * sh : row * sh + kh, column * sw : column * sw + kw]
        np.testing.assert_array_equal(columns[:, index], window.ravel())


@settings(max_examples=30, deadline=None)
@given(geometries())
def test_col2im_is_the_transpose_of_im2col(g: Geometry) -> None:
    # <im2col(x), c> = <x, col2im(c)> for every x and c is what transposed means.
    x = g.arrays()[0]
    columns = ops.im2col(x, g.kernel_size, g.stride, g.padding)
    other = np.random.default_rng(g.seed + 1).normal(size=columns.shape)
    back = ops.col2im(other, x.shape, g.kernel_size, g.stride, g.padding)
    assert back.shape == x.shape
    np.testing.assert_allclose((columns * other).sum(), (x * back).sum(), rtol=1e-9, atol=1e-9)
    by_windows = ops.col2im_loops(other, x.shape, g.kernel_size, g.stride, g.padding)
    np.testing.assert_allclose(by_windows, back, rtol=1e-9, atol=1e-9)


def test_pixels_that_no_window_meets_get_nothing_back() -> None:
    columns = np.ones((4, 1))
    assert ops.col2im(columns, (1, 1, 3, 3), 2, stride=2)[0, 0].tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize("col2im", [ops.col2im, ops.col2im_loops])
def test_where_windows_overlap_it_adds_up(col2im: Callable[..., Any]) -> None:
    columns = np.ones((4, 4))
    assert col2im(columns, (1, 1, 3, 3), 2)[0, 0].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


def test_errors_name_the_argument_and_both_shapes() -> None:
    with pytest.raises(
        ValueError, match=r"columns has shape \(4, 5\); expected \(4, 4\) to fit x_shape \(1, 1, 3, 3\)"
    ):
        ops.col2im(np.ones((4, 5)), (1, 1, 3, 3), 2)
    with pytest.raises(ValueError, match=r"x_shape is \(3, 3\); expected 4 sizes"):
        ops.col2im(np.ones((4, 4)), (3, 3), 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"x has shape \(3, 3\); expected 4 axes"):
        ops.im2col(np.ones((3, 3)), 2)
    with pytest.raises(ValueError, match=r"kernel_size is \(4, 4\).*larger than x of shape \(1, 1, 3, 3\)"):
        ops.im2col(np.ones((1, 1, 3, 3)), 4)
    with pytest.raises(ValueError, match="kernel_size is 0; expected at least 1"):
        ops.im2col(np.ones((1, 1, 3, 3)), 0)
