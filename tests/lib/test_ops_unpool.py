"""Max-unpooling: four ways that agree, PyTorch's where windows do not overlap, indices of any integer dtype, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from ops_cases import Geometry, pooling_geometries

from unrolled import ops


def by_index(values: Any, x: Any, *options: Any) -> Any:
    """`max_unpool2d` with the arguments of the other two."""
    return ops.max_unpool2d(values, ops.max_pool2d_indices(x, *options), x.shape[2:])


EVERY_WAY = (by_index, ops.max_unpool2d_mask, ops.max_unpool2d_loops, ops.max_pool2d_backward)
every_way = pytest.mark.parametrize("unpool", EVERY_WAY)


@settings(max_examples=60, deadline=None)
@given(pooling_geometries())
def test_every_way_gives_the_same(g: Geometry) -> None:
    rng = np.random.default_rng(g.seed)
    x = rng.choice([0.0, 1.0, 2.0, -np.inf, np.nan], (g.n, g.c, *g.size), p=[0.4, 0.3, 0.2, 0.05, 0.05])
    options = g[4:7]
    values = rng.normal(size=ops.max_pool2d(x, *options).shape)
    expected = ops.max_unpool2d_loops(values, x, *options)
    np.testing.assert_allclose(expected.sum(), values.sum(), rtol=1e-9, atol=1e-9)  # nothing is lost
    for unpool in EVERY_WAY:
        np.testing.assert_allclose(unpool(values, x, *options), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(pooling_geometries())
def test_without_overlap_it_is_pytorchs(g: Geometry) -> None:
    """Where windows overlap, PyTorch keeps one of the values that meet on a pixel; ours add up."""
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    x, options = g.arrays()[0], (g.kernel_size, tuple(map(max, g.kernel_size, g.stride)), g.padding)
    y, indices = ops.max_pool2d_with_indices(x, *options)
    tensors = torch.tensor(y), torch.tensor(indices)
    expected = torch.nn.functional.max_unpool2d(*tensors, *options, output_size=g.size)
    for unpool in EVERY_WAY:
        np.testing.assert_array_equal(unpool(y, x, *options), expected)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_indices_may_repeat_and_come_in_any_order_and_integer_dtype(dtype: str) -> None:
    values = np.array([[1, 2, 4], [8, 16, 32]], np.float32).reshape(1, 2, 1, 3)
    indices = np.array([[5, 0, 5], [1, 2, 3]], dtype).reshape(1, 2, 1, 3)
    result = ops.max_unpool2d(values, indices, (2, 3))
    assert result.tolist() == [[[[2, 0, 0], [0, 0, 5]], [[0, 8, 16], [32, 0, 0]]]]


VALUES, IMAGE = np.zeros((1, 1, 2, 2)), np.zeros((1, 1, 4, 4))


@pytest.mark.parametrize(
    ("values", "indices", "message"),
    [
        (VALUES, np.full((1, 1, 2, 2), 16), "indices run from 16 to 16; expected 0 to 15 in 4 x 4"),
        (VALUES, np.full((1, 1, 2, 2), -1), "indices run from -1 to -1; expected 0 to 15 in 4 x 4"),
        (VALUES, np.zeros((1, 1, 2, 3), int), r"indices has shape \(1, 1, 2, 3\); expected \(1, 1, 2, 2\) to fit val"),
        (VALUES[0], np.zeros((1, 2, 2), int), r"values has shape \(1, 2, 2\); expected 4 axes \(N, C, OH, OW\)"),
        (VALUES, VALUES, "indices are float64; expected integers"),
    ],
)
def test_values_and_indices_that_do_not_fit_are_named(values: Any, indices: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ops.max_unpool2d(values, indices, (4, 4))


@every_way
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((5,), r"kernel_size is \(5, 5\).*larger than x of shape \(1, 1, 4, 4\)"),
        ((2, 0), "stride is 0; expected at least 1"),
        ((2, 2, 2), r"padding \(2, 2\) must be smaller than kernel_size \(2, 2\)"),
    ],
)
def test_errors_name_the_argument(unpool: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpool(VALUES, IMAGE, *options)
