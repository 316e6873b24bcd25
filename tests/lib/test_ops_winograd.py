"""Winograd's convolution: SciPy, PyTorch, numeric gradients, the number of images, errors, what float32 loses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_cases import Call, Geometry, numeric_gradient, pairs
from scipy.signal import correlate

from unrolled import ops
from unrolled.ops import winograd

few = settings(max_examples=30, deadline=None)
EVERY_TILE = pytest.mark.parametrize("tile", [2, 4])


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def by_4(x: Any, weight: Any, bias: Any) -> Any:
    return ops.winograd_conv2d(x, weight, bias, 1, 1, tile=4)


def by_4_backward(grad: Any, x: Any, weight: Any) -> Any:
    return ops.winograd_conv2d_backward(grad, x, weight, 1, 1, tile=4)


X, WEIGHT, BIAS = floats(2, 3, 6, 5), floats(4, 3, 3, 3), floats(4)
GRAD = floats(2, 4, 6, 5)
CALLS = {
    "winograd_conv2d": Call(ops.winograd_conv2d, (X, WEIGHT, BIAS), (1, (1, 2))),
    "winograd_conv2d, no bias": Call(ops.winograd_conv2d, (X, WEIGHT)),
    "winograd_conv2d_backward": Call(ops.winograd_conv2d_backward, (GRAD, X, WEIGHT), (1, 1)),
}
"""For `test_ops_contract.py`."""
by_4.__name__, by_4_backward.__name__ = "winograd_conv2d", "winograd_conv2d_backward"
CALLS |= {"winograd_conv2d, 4": Call(by_4, (X, WEIGHT, BIAS))}
CALLS |= {"winograd_conv2d_backward, 4": Call(by_4_backward, (GRAD, X, WEIGHT))}


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    """3 x 3 kernels: images smaller than a tile, sizes that tiles do not divide, any padding."""
    padding = draw(pairs(0, 5))
    size = tuple(draw(st.integers(max(1, 3 - 2 * p), 12)) for p in padding)
    n, c, o = draw(st.sampled_from([1, 2, 9])), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    return Geometry(n, c, o, size, (3, 3), (1, 1), padding, draw(st.integers(0, 2**16)))


@EVERY_TILE
@few
@given(geometries())
def test_it_is_scipys_correlation_summed_over_channels(tile: int, g: Geometry) -> None:
    x, weight, bias = g.arrays()
    (ph, pw) = g.padding
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    expected = [[correlate(image, kernels, mode="valid", method="direct")[0] for kernels in weight] for image in padded]
    y = ops.winograd_conv2d(x, weight, bias, 1, g.padding, tile=tile)
    assert y.flags.c_contiguous
    np.testing.assert_allclose(y, np.array(expected) + bias[:, None, None], rtol=1e-9, atol=1e-9)


@EVERY_TILE
@few
@given(geometries())
def test_it_is_pytorchs_convolution_and_its_gradients(tile: int, g: Geometry) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    arrays = g.arrays()
    inputs = [torch.tensor(x, requires_grad=True) for x in arrays]
    expected = torch.nn.functional.conv2d(*inputs, padding=g.padding)
    y = ops.winograd_conv2d(*arrays, 1, g.padding, tile=tile)
    np.testing.assert_allclose(y, expected.detach(), rtol=1e-9, atol=1e-9)
    grad = np.random.default_rng(g.seed + 1).normal(size=y.shape)
    expected.backward(torch.tensor(grad))
    gradients = ops.winograd_conv2d_backward(grad, *arrays[:2], 1, g.padding, tile=tile)
    for gradient, tensor in zip(gradients, inputs, strict=True):
        np.testing.assert_allclose(gradient, tensor.grad, rtol=1e-9, atol=1e-9)


@EVERY_TILE
@pytest.mark.parametrize("padding", [0, (1, 2)])
def test_the_gradients_are_numeric_gradients(tile: int, padding: Any) -> None:
    x, weight, bias = Geometry(2, 2, 3, (5, 4), (3, 3), (1, 1), (0, 0), 0).arrays()
    options: Any = {"padding": padding, "tile": tile}
    grad = np.random.default_rng(9).normal(size=ops.winograd_conv2d(x, weight, bias, **options).shape)
    expected = (
        numeric_gradient(lambda v: ops.winograd_conv2d(v, weight, bias, **options), x, grad),
        numeric_gradient(lambda v: ops.winograd_conv2d(x, v, bias, **options), weight, grad),
        numeric_gradient(lambda v: ops.winograd_conv2d(x, weight, v, **options), bias, grad),
    )
    for gradient, numeric in zip(ops.winograd_conv2d_backward(grad, x, weight, **options), expected, strict=True):
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-7)


@EVERY_TILE
def test_without_the_gradient_by_the_input_the_others_are_the_same(tile: int) -> None:
    whole = ops.winograd_conv2d_backward(GRAD, X, WEIGHT, 1, 1, tile=tile)
    none, *others = ops.winograd_conv2d_backward(GRAD, X, WEIGHT, 1, 1, tile=tile, input_gradient=False)
    assert none is None
    for gradient, expected in zip(others, whole[1:], strict=True):
        np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize(("tile", "at_most"), [(2, 1.5e-6), (4, 1.5e-5)])
def test_what_float32_loses_grows_with_the_tile(tile: int, at_most: float) -> None:
    """Measured against float64, of the largest value: 5e-7 with tiles of 2, 4e-6 with 4, 4e-7 by one product."""
    x, weight, bias = Geometry(4, 32, 16, (14, 15), (3, 3), (1, 1), (1, 1), 0).arrays()
    y = ops.conv2d(x, weight, bias, padding=1)
    grad = np.random.default_rng(1).normal(size=y.shape)
    exact = (y, *ops.conv2d_backward(grad, x, weight, padding=1))
    single = [a.astype(np.float32) for a in (grad, x, weight, bias)]
    found = (
        ops.winograd_conv2d(*single[1:], padding=1, tile=tile),
        *ops.winograd_conv2d_backward(*single[:3], padding=1, tile=tile),
    )
    for value, expected in zip(found, exact, strict=True):
        assert value.dtype == np.float32
        assert np.abs(value - expected).max() < at_most * np.abs(expected).max()


@EVERY_TILE
@pytest.mark.parametrize("n", [1, 7, 8, 9, 17])
def test_the_number_of_images_in_a_block_changes_nothing(n: int, tile: int) -> None:
    x, weight, _ = Geometry(n, 2, 3, (6, 6), (3, 3), (1, 1), (1, 1), n).arrays()
    grad = np.random.default_rng(n).normal(size=(n, 3, 6, 6))
    np.testing.assert_allclose(ops.winograd_conv2d(x, weight, padding=1, tile=tile), ops.conv2d(x, weight, padding=1))
    found = ops.winograd_conv2d_backward(grad, x, weight, padding=1, tile=tile)
    for value, expected in zip(found, ops.conv2d_backward(grad, x, weight, padding=1), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)


@EVERY_TILE
def test_fewer_multiplications_is_what_the_matrices_are_for(tile: int) -> None:
    """Lavin and Gray, section 4: (m + 2)^2 products for m * m results of 9 multiplications each."""
    pixels, weights, results = (m[tile] for m in (winograd.PIXELS, winograd.WEIGHTS, winograd.RESULTS))
    assert (len(pixels), len(pixels[0])) == (tile + 2, tile + 2)
    assert (len(weights), len(weights[0])) == (tile + 2, 3)
    assert (len(results), len(results[0])) == (tile, tile + 2)
    assert 9 * tile**2 / (tile + 2) ** 2 == {2: 2.25, 4: 4.0}[tile]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": np.zeros((4, 3, 5, 5))}, r"weight has kernels of \(5, 5\); expected \(3, 3\) for Winograd"),
        ({"weight": np.zeros((4, 3, 3, 1))}, r"weight has kernels of \(3, 1\); expected \(3, 3\)"),
        ({"stride": 2}, r"stride is \(2, 2\); expected 1 for Winograd"),
        ({"stride": (1, 2)}, r"stride is \(1, 2\); expected 1"),
        ({"tile": 3}, "tile is 3; expected 2 or 4"),
        ({"x": np.zeros((3, 8, 8))}, r"x has shape \(3, 8, 8\); expected 4 axes \(N, C, H, W\)"),
        ({"weight": np.zeros((4, 2, 3, 3))}, r"weight has shape \(4, 2, 3, 3\).*x has shape \(2, 3, 8, 8\)"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3))} | changes
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d(**arguments)
    if "x" in changes or arguments["weight"].shape[1] == 2:
        return
    kernel, stride = arguments["weight"].shape[2:], arguments.get("stride", 1)
    grad = np.zeros((2, 4, *ops.conv2d_output_size((8, 8), kernel, stride)))
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d_backward(grad, **arguments)


def test_no_images_give_no_results_and_gradients_of_zero() -> None:
    assert ops.winograd_conv2d(X[:0], WEIGHT, BIAS).shape == (0, 4, 4, 3)
    grad_x, *gradients = ops.winograd_conv2d_backward(floats(0, 4, 4, 3), X[:0], WEIGHT)
    assert grad_x.shape == X[:0].shape
    assert [gradient.shape for gradient in gradients] == [WEIGHT.shape, BIAS.shape]
    assert not any(gradient.any() for gradient in gradients)
