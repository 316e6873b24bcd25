"""Convolution: the seminar's numbers, every way of computing it against PyTorch, memory, what float32 loses."""

import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Geometry, agrees_with_torch, geometries, pairs
from pictures import CHANNELS, KERNEL, KERNELS, SQUARE

from unrolled import ops


@st.composite
def long_geometries(draw: st.DrawFn) -> Geometry:
    """Images that FFT cuts into tiles along one axis or both, with any stride and padding."""
    kernel_size = draw(pairs(1, 6))
    size = draw(st.sampled_from([(9, 150), (150, 9), (70, 81), (6, 33)]))
    n, c, o = draw(st.sampled_from([1, 9])), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return Geometry(n, c, o, size, kernel_size, draw(pairs(1, 4)), draw(pairs(0, 7)), draw(st.integers(0, 2**16)))


@st.composite
def geometries_of_winograd(draw: st.DrawFn) -> Geometry:
    """3 x 3 kernels: images smaller than a tile, sizes that tiles do not divide, any padding, several blocks."""
    padding = draw(pairs(0, 5))
    size = tuple(draw(st.integers(max(1, 3 - 2 * p), 12)) for p in padding)
    n, c, o = draw(st.sampled_from([1, 2, 9, 17])), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return Geometry(n, c, o, size, (3, 3), (1, 1), padding, draw(st.integers(0, 2**16)))


class Way(NamedTuple):
    """A way to convolve, its backward pass if it has one of its own, and the shapes that it takes."""

    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    shapes: st.SearchStrategy[Geometry] = geometries()


few_images = geometries().map(lambda g: g._replace(n=2))
WAYS = {
    "loops": Way(ops.conv2d_loops, shapes=few_images),
    "positions": Way(ops.conv2d_positions),
    "gemm": Way(ops.conv2d, ops.conv2d_backward),
    "fft": Way(ops.fft_conv2d, ops.fft_conv2d_backward, st.one_of(geometries(), long_geometries())),
    **{
        f"winograd, {tile}": Way(
            partial(ops.winograd_conv2d, tile=tile),
            partial(ops.winograd_conv2d_backward, tile=tile),
            geometries_of_winograd(),
        )
        for tile in (2, 4)
    },
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
plain_ways = pytest.mark.parametrize("conv", [ops.conv2d, ops.conv2d_loops, ops.conv2d_positions])


@plain_ways
def test_the_seminars_examples(conv: Any) -> None:
    """Of "Software acceleration and deep learning", 2022. Its slide prints 39, 33, 15, 44 for the first."""
    np.testing.assert_array_equal(conv(CHANNELS[None], KERNELS[None]), [[[[39, 37], [16, 46]]]])
    biased = conv(SQUARE[None, None], KERNEL[None, None], np.array([3]))
    np.testing.assert_array_equal(biased, [[[[15, 12], [8, 17]]]])
    matrix = np.array([[2, 0, 1], [0, 2, 3], [1, 3, 1]])[None, None]
    np.testing.assert_array_equal(conv(matrix, np.array([[1, 0], [0, 2]])[None, None]), [[[[6, 6], [6, 4]]]])


@every_way
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_way_is_pytorchs_convolution_and_its_gradients(way: Way, data: st.DataObject) -> None:
    g = data.draw(way.shapes)
    arrays, options = g.arrays(), (g.stride, g.padding)

    def backward(grad: Any) -> Any:
        found = (way.backward or ops.conv2d_backward)(grad, *arrays[:2], *options)
        if way.backward is not None:
            none, *others = way.backward(grad, *arrays[:2], *options, input_gradient=False)
            assert none is None
            assert all((one == other).all() for one, other in zip(others, found[1:], strict=True))
        return found

    assert way.forward(*arrays, *options).flags.c_contiguous
    agrees_with_torch(
        lambda functional, *tensors: functional.conv2d(*tensors, *options),
        arrays,
        lambda *arrays: way.forward(*arrays, *options),
        backward,
    )


@pytest.mark.parametrize(
    ("way", "g", "most"),
    [
        ("gemm", Geometry(16, 8, 8, (12, 12), (3, 3), (1, 1), (1, 1), 0), 1e-5),
        ("fft", Geometry(2, 3, 4, (40, 40), (11, 11), (1, 1), (2, 2), 0), 1e-6),
        ("fft", Geometry(2, 3, 4, (200, 150), (9, 9), (1, 1), (2, 2), 0), 1e-6),
        ("winograd, 2", Geometry(4, 32, 16, (14, 15), (3, 3), (1, 1), (1, 1), 0), 1.5e-6),
        ("winograd, 4", Geometry(4, 32, 16, (14, 15), (3, 3), (1, 1), (1, 1), 0), 1.5e-5),
    ],
)
def test_what_float32_loses(way: str, g: Geometry, most: float) -> None:
    """Of the largest value, against float64. Measured: 4e-7 by gemm, 2e-7 by FFT, 5e-7 and 4e-6 with Winograd's."""
    x, weight, bias = g.arrays()
    y = ops.conv2d(x, weight, bias, padding=g.padding)
    grad = np.random.default_rng(1).normal(size=y.shape)
    exact = (y, *ops.conv2d_backward(grad, x, weight, padding=g.padding))
    grad, x, weight, bias = (array.astype(np.float32) for array in (grad, x, weight, bias))
    forward, backward, _ = WAYS[way]
    assert backward is not None
    found = (forward(x, weight, bias, padding=g.padding), *backward(grad, x, weight, padding=g.padding))
    for value, expected in zip(found, exact, strict=True):
        assert value.dtype == np.float32
        assert np.abs(value - expected).max() < most * np.abs(expected).max()


@settings(max_examples=40, deadline=None)
@given(geometries())
def test_im2col_and_col2im_are_pytorchs_unfold_and_fold(g: Geometry) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    x, options = g.arrays()[0], {"kernel_size": g.kernel_size, "stride": g.stride, "padding": g.padding}
    patches = torch.nn.functional.unfold(torch.tensor(x), **options)  # (N, C * KH * KW, OH * OW)
    columns = ops.im2col(x, **options)
    np.testing.assert_array_equal(columns, patches.permute(1, 0, 2).reshape(columns.shape))
    back = torch.nn.functional.fold(patches, g.size, **options)
    for col2im in (ops.col2im, ops.col2im_loops):
        np.testing.assert_allclose(col2im(columns, x.shape, **options), back, rtol=1e-12, atol=1e-12)


def test_memory_does_not_grow_with_the_columns_of_the_whole_batch() -> None:
    x, weight = np.ones((256, 3, 32, 32), np.float32), np.ones((4, 3, 5, 5), np.float32)
    columns = 256 * 75 * 28 * 28 * 4
    ops.conv2d(x[:1], weight)
    tracemalloc.start()
    ops.conv2d(x, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < columns / 4, f"{peak / 1e6:.1f} MB for columns of {columns / 1e6:.1f} MB"


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
        ({"stride": (1, 0)}, r"stride is \(1, 0\); expected at least 1"),
        ({"stride": (1, 1, 1)}, r"stride is \(1, 1, 1\); expected an int or a pair"),
        ({"stride": "2"}, "stride is '2'; expected an int or a pair of ints"),
        ({"padding": -1}, "padding is -1; expected at least 0"),
    ],
)
@every_way
def test_what_does_not_fit_is_named_with_both_shapes(way: Way, changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3)), "bias": np.zeros(4)} | changes
    with pytest.raises((TypeError, ValueError), match=message):
        way.forward(**arguments)


@every_way
def test_a_gradient_of_another_shape_is_named_with_both_shapes(way: Way) -> None:
    x, weight, backward = np.zeros((2, 3, 8, 8)), np.zeros((4, 3, 3, 3)), way.backward or ops.conv2d_backward
    with pytest.raises(ValueError, match=r"grad has shape \(2, 4, 8, 8\); expected \(2, 4, 6, 6\) to fit x"):
        backward(np.zeros((2, 4, 8, 8)), x, weight)
    with pytest.raises(ValueError, match=r"grad has shape \(4, 6, 6\); expected 4 axes"):
        backward(np.zeros((4, 6, 6)), x, weight)


@every_way
def test_no_images_give_no_results_and_gradients_of_zero(way: Way) -> None:
    none, weight = np.zeros((0, 3, 6, 5), np.float32), np.ones((4, 3, 3, 3), np.float32)
    assert way.forward(none, weight, np.ones(4, np.float32)).shape == (0, 4, 4, 3)
    if way.backward is not None:
        grad_x, *gradients = way.backward(np.zeros((0, 4, 4, 3), np.float32), none, weight)
        assert grad_x.shape == none.shape
        assert [gradient.shape for gradient in gradients] == [(4, 3, 3, 3), (4,)]
        assert not any(gradient.any() for gradient in gradients)
