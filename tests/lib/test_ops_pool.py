"""Pooling and unpooling: PyTorch over random shapes, the first maximum, NaN, four ways back that agree, errors."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops_cases import Geometry, agrees_with_torch, pooling_geometries

from unrolled import ops
from unrolled.ops import maxima


def with_indices(*arguments: Any, **options: Any) -> Any:
    """The values of `max_pool2d_with_indices`."""
    return ops.max_pool2d_with_indices(*arguments, **options)[0]


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


PALETTES = np.array([0, 1, 2], np.uint8), np.array([-3, -2]), np.array([0.0, -0.0, 1.0]), np.array([0.0, np.nan, 2.0])


@given(pooling_geometries(), st.sampled_from(PALETTES), st.sampled_from([1, 500, maxima.BLOCK_BYTES]))
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
        *(((3, 253), (2, 3)), ((3, 254), (2, 3)), ((3, 300), (2, 2))),
        *(((1, 400), (1, 300)), ((300, 2), (290, 2)), ((300, 300), (290, 290))),
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


def by_index(values: Any, x: Any, *options: Any) -> Any:
    """`max_unpool2d` with the arguments of the other two."""
    return ops.max_unpool2d(values, ops.max_pool2d_indices(x, *options), x.shape[2:])


EVERY_WAY = (by_index, ops.max_unpool2d_mask, ops.max_unpool2d_loops, ops.max_pool2d_backward)


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


def unpooling(unpool: Any) -> Any:
    return lambda x, *options: unpool(VALUES, x, *options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((IMAGE[0, 0], 2), r"x has shape \(4, 4\); expected 4 axes"),
        ((IMAGE, 5), r"kernel_size is \(5, 5\).*larger than x of shape \(1, 1, 4, 4\)"),
        ((IMAGE, 2, 0), "stride is 0; expected at least 1"),
        ((IMAGE, 2, 2, 2), r"padding \(2, 2\) must be smaller than kernel_size \(2, 2\)"),
    ],
)
@pytest.mark.parametrize(
    "function",
    [
        *(ops.max_pool2d, ops.max_pool2d_loops, ops.max_pool2d_indices, ops.avg_pool2d),
        *map(unpooling, (ops.max_unpool2d_mask, ops.max_unpool2d_loops, ops.max_pool2d_backward)),
    ],
)
def test_errors_name_the_argument(function: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        function(*arguments)
