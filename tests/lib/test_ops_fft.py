"""Convolution by FFT: SciPy, PyTorch, numeric gradients, tiles, and how much float32 loses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Call, Geometry, geometries, numeric_gradient, pairs
from scipy.signal import correlate

from unrolled import ops
from unrolled.ops import fft
from unrolled.ops.windows import Windows

few = settings(max_examples=30, deadline=None)


def floats(*shape: int, seed: int = 7) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


X, WEIGHT, BIAS = floats(2, 3, 6, 5), floats(4, 3, 3, 2), floats(4)
GRAD = floats(2, 4, 3, 8)
LONG, LONG_WEIGHT = floats(1, 1, 3, 90), floats(2, 1, 2, 3)
CALLS = {
    "fft_conv2d": Call(ops.fft_conv2d, (X, WEIGHT, BIAS), ((2, 1), (1, 2))),
    "fft_conv2d, no bias": Call(ops.fft_conv2d, (X, WEIGHT)),
    "fft_conv2d, tiles": Call(ops.fft_conv2d, (LONG, LONG_WEIGHT)),
    "fft_conv2d_backward": Call(ops.fft_conv2d_backward, (GRAD, X, WEIGHT), ((2, 1), (1, 2))),
    "fft_conv2d_backward, tiles": Call(ops.fft_conv2d_backward, (floats(1, 2, 2, 88), LONG, LONG_WEIGHT)),
}
"""For `test_ops_contract.py`."""


@st.composite
def long_geometries(draw: st.DrawFn) -> Geometry:
    """Images that are cut into tiles along one axis or both, with any stride and padding."""
    kernel_size = draw(pairs(1, 6))
    size = draw(st.sampled_from([(9, 150), (150, 9), (70, 81), (6, 33)]))
    n, c, o = draw(st.sampled_from([1, 9])), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return Geometry(n, c, o, size, kernel_size, draw(pairs(1, 4)), draw(pairs(0, 7)), draw(st.integers(0, 2**16)))


def scipys(x: Any, weight: Any, bias: Any, stride: Any, padding: Any) -> Any:
    (ph, pw), (sh, sw) = padding, stride
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    found = [[correlate(image, kernels, mode="valid", method="direct")[0] for kernels in weight] for image in padded]
    return np.array(found)[..., ::sh, ::sw] + bias[:, None, None]


@few
@given(st.one_of(geometries(), long_geometries()))
def test_it_is_scipys_correlation_summed_over_channels(g: Geometry) -> None:
    arrays = g.arrays()
    expected = scipys(*arrays, g.stride, g.padding)
    np.testing.assert_allclose(ops.fft_conv2d(*arrays, g.stride, g.padding), expected, rtol=1e-9, atol=1e-9)


@few
@given(st.one_of(geometries(), long_geometries()))
def test_it_is_pytorchs_convolution_and_its_gradients(g: Geometry) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    arrays = g.arrays()
    inputs = [torch.tensor(x, requires_grad=True) for x in arrays]
    expected = torch.nn.functional.conv2d(*inputs, g.stride, g.padding)
    y = ops.fft_conv2d(*arrays, g.stride, g.padding)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-9, atol=1e-9)
    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    expected.backward(torch.tensor(grad))
    gradients = ops.fft_conv2d_backward(grad, *arrays[:2], g.stride, g.padding)
    for gradient, tensor in zip(gradients, inputs, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "g",
    [
        Geometry(2, 2, 3, (5, 4), (3, 2), (1, 1), (0, 0), 0),
        Geometry(2, 1, 2, (4, 5), (2, 3), (2, 3), (1, 2), 1),
        Geometry(1, 1, 2, (2, 40), (2, 2), (1, 2), (1, 0), 2),
    ],
)
def test_the_gradients_are_numeric_gradients(g: Geometry) -> None:
    x, weight, bias = g.arrays()
    options = (g.stride, g.padding)
    grad = np.random.default_rng(9).normal(size=ops.fft_conv2d(x, weight, bias, *options).shape)
    expected = (
        numeric_gradient(lambda v: ops.fft_conv2d(v, weight, bias, *options), x, grad),
        numeric_gradient(lambda v: ops.fft_conv2d(x, v, bias, *options), weight, grad),
        numeric_gradient(lambda v: ops.fft_conv2d(x, weight, v, *options), bias, grad),
    )
    for gradient, numeric in zip(ops.fft_conv2d_backward(grad, x, weight, *options), expected, strict=True):
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


def test_without_the_gradient_by_the_input_the_others_are_the_same() -> None:
    whole = ops.fft_conv2d_backward(GRAD, X, WEIGHT, (2, 1), (1, 2))
    none, *others = ops.fft_conv2d_backward(GRAD, X, WEIGHT, (2, 1), (1, 2), input_gradient=False)
    assert none is None
    for gradient, expected in zip(others, whole[1:], strict=True):
        np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize(("size", "kernel"), [((40, 40), 11), ((200, 150), 9)])
def test_float32_loses_as_little_as_the_plain_sum(size: tuple[int, int], kernel: int) -> None:
    """Measured against float64, of the largest value: 2e-7 in each array at most, by one product 8e-7."""
    x, weight, bias = Geometry(2, 3, 4, size, (kernel, kernel), (1, 1), (2, 2), 0).arrays()
    y = ops.conv2d(x, weight, bias, padding=2)
    grad = np.random.default_rng(1).normal(size=y.shape)
    exact = (y, *ops.conv2d_backward(grad, x, weight, padding=2))
    single = [a.astype(np.float32) for a in (grad, x, weight, bias)]
    found = (ops.fft_conv2d(*single[1:], padding=2), *ops.fft_conv2d_backward(*single[:3], padding=2))
    for value, expected in zip(found, exact, strict=True):
        assert value.dtype == np.float32
        assert np.abs(value - expected).max() < 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize(("size", "tiles"), [(200, 1), (1024, 1), (3000, 9)])
def test_a_gpu_gets_few_tiles(size: int, tiles: int) -> None:
    tiling = fft.tiling_for(Windows.over(size, 5, 1, 0), 8, 2, 2, True)
    assert tiling.count((size, size)) == tiles


@few
@given(pairs(1, 400), pairs(1, 40), pairs(0, 5), st.integers(1, 64))
def test_tiles_cover_the_image_and_transforms_hold_a_tile_and_its_border(
    size: tuple[int, int], kernel: tuple[int, int], padding: tuple[int, int], channels: int
) -> None:
    kernel_size = min(size[0], kernel[0]), min(size[1], kernel[1])
    windows = Windows.over(size, kernel_size, 1, padding)
    tiling = fft.tiling_for(windows, 8, channels, channels)
    for axis in range(2):
        whole = size[axis] + 2 * padding[axis]
        if tiling.step[axis] == whole:
            assert tiling.length[axis] >= whole
        else:
            assert tiling.length[axis] == tiling.step[axis] + kernel_size[axis] - 1 < whole


@given(st.integers(1, 5000))
def test_fast_lengths_are_the_next_with_small_factors(least: int) -> None:
    def small(number: int) -> bool:
        for factor in (2, 3, 5, 7):
            while number % factor == 0:
                number //= factor
        return number == 1

    assert fft.fast_length(least) == next(n for n in range(least, 2 * least + 1) if small(n))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros((3, 8, 8))}, r"x has shape \(3, 8, 8\); expected 4 axes \(N, C, H, W\)"),
        ({"weight": np.zeros((4, 2, 3, 3))}, r"weight has shape \(4, 2, 3, 3\).*x has shape \(2, 3, 8, 8\)"),
        ({"weight": np.zeros((4, 3, 9, 3))}, r"weight has shape \(4, 3, 9, 3\).*larger than x of shape \(2, 3, 8, 8\)"),
        ({"bias": np.zeros(3)}, r"bias has shape \(3,\); expected \(4,\) to fit weight"),
        ({"stride": 0}, "stride is 0; expected at least 1"),
        ({"padding": -1}, "padding is -1; expected at least 0"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3)), "bias": np.zeros(4)} | changes
    with pytest.raises(ValueError, match=message):
        ops.fft_conv2d(**arguments)


def test_a_gradient_of_another_shape_is_named() -> None:
    with pytest.raises(ValueError, match=r"grad has shape \(2, 4, 8, 8\); expected \(2, 4, 6, 6\) to fit x"):
        ops.fft_conv2d_backward(np.zeros((2, 4, 8, 8)), np.zeros((2, 3, 8, 8)), np.zeros((4, 3, 3, 3)))


def test_float16_is_refused_by_name() -> None:
    half = [a.astype(np.float16) for a in (GRAD, X, WEIGHT)]
    with pytest.raises(ValueError, match="x is float16; expected float32 or float64"):
        ops.fft_conv2d(*half[1:])
    with pytest.raises(ValueError, match="x is float16; expected float32 or float64"):
        ops.fft_conv2d_backward(*half, (2, 1), (1, 2))


def test_no_images_give_no_results_and_gradients_of_zero() -> None:
    assert ops.fft_conv2d(X[:0], WEIGHT, BIAS).shape == (0, 4, 4, 4)
    grad_x, *gradients = ops.fft_conv2d_backward(floats(0, 4, 4, 4), X[:0], WEIGHT)
    assert grad_x.shape == X[:0].shape
    assert [gradient.shape for gradient in gradients] == [WEIGHT.shape, BIAS.shape]
    assert not any(gradient.any() for gradient in gradients)
