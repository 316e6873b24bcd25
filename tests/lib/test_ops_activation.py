"""Activations: known values, PyTorch's values and gradients, gradients by trying, values of any size."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from unrolled import ops

quick = settings(max_examples=40, deadline=None)
SHAPES = arrays.array_shapes(min_dims=0, max_dims=4, max_side=5)


class Activation(NamedTuple):
    """A function, its way back, and whether that needs the output."""

    function: Callable[[Any], Any]
    backward: Callable[[Any, Any], Any]
    needs_output: bool = False
    corner: bool = False  # not differentiable at 0
    peer: str = ""  # PyTorch's function of the same values

    def gradient(self, grad: Any, x: Any) -> Any:
        return self.backward(grad, self.function(x) if self.needs_output else x)


ACTIVATIONS = {
    "step": Activation(ops.step, ops.step_backward, corner=True),
    "relu": Activation(ops.relu, ops.relu_backward, corner=True, peer="relu"),
    "leaky_relu": Activation(ops.leaky_relu, ops.leaky_relu_backward, corner=True, peer="leaky_relu"),
    "leaky_relu, 0.3": Activation(
        partial(ops.leaky_relu, slope=0.3), partial(ops.leaky_relu_backward, slope=0.3), corner=True
    ),
    "softplus": Activation(ops.softplus, ops.softplus_backward, peer="softplus"),
    "sigmoid": Activation(ops.sigmoid, ops.sigmoid_backward, needs_output=True, peer="sigmoid"),
    "tanh": Activation(ops.tanh, ops.tanh_backward, needs_output=True, peer="tanh"),
    "softmax": Activation(ops.softmax, ops.softmax_backward, needs_output=True, peer="softmax"),
}
every = pytest.mark.parametrize("a", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())
with_peer = pytest.mark.parametrize("a", [a for a in ACTIVATIONS.values() if a.peer], ids=lambda a: a.peer)


def drawn(shape: tuple[int, ...], seed: int, size: float = 3.0) -> tuple[Any, Any]:
    """x and grad."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(0, size, shape)), np.asarray(rng.normal(size=shape))


def test_known_values() -> None:
    x = np.array([-2.0, 0.0, 3.0], dtype=np.float32)
    np.testing.assert_array_equal(ops.step(x), [0, 0, 1])
    np.testing.assert_array_equal(ops.relu(x), [0, 0, 3])
    np.testing.assert_allclose(ops.leaky_relu(x), [-0.02, 0, 3])
    np.testing.assert_allclose(ops.leaky_relu(x, 0.5), [-1, 0, 3])
    np.testing.assert_allclose(ops.softplus(x), [0.126928, 0.693147, 3.048587], rtol=1e-5)
    np.testing.assert_allclose(ops.sigmoid(x), [0.119203, 0.5, 0.952574], rtol=1e-5)
    np.testing.assert_allclose(ops.tanh(x), [-0.964028, 0, 0.995055], rtol=1e-5)
    np.testing.assert_allclose(
        ops.softmax(np.log([[1.0, 2.0, 5.0], [2.0, 2.0, 4.0]])), [[1 / 8, 2 / 8, 5 / 8], [0.25, 0.25, 0.5]]
    )


def test_gradients_at_0_are_those_of_the_flat_side() -> None:
    zero, one = np.zeros(1), np.ones(1)
    assert ops.relu_backward(one, zero) == 0
    assert ops.leaky_relu_backward(one, zero, 0.2) == 0.2
    assert ops.step_backward(one, zero) == 0


@every
@quick
@given(shape=SHAPES, seed=st.integers(0, 999))
def test_gradient_by_trying(a: Activation, shape: tuple[int, ...], seed: int) -> None:
    if a.peer == "softmax":
        shape = (*shape, 3)
    x, grad = drawn(shape, seed)
    if a.corner:
        x += np.sign(x) * 1e-3  # a corner nearer than the step gives the mean of both sides
    expected = ops.numeric_gradient(lambda x: (a.function(x) * grad).sum(), x)
    gradient = a.gradient(grad, x)
    assert np.shape(gradient) == shape
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-8)


@with_peer
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 2e-6)])
@pytest.mark.parametrize("size", [1.0, 10.0, 1000.0])
def test_values_and_gradients_of_pytorch(a: Activation, dtype: Any, tolerance: float, size: float) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch comes with the extras `peers` and `dev`")
    x, grad = (array.astype(dtype) for array in drawn((5, 2, 7), 3, size))
    inputs = torch.tensor(x, requires_grad=True)
    options = {"dim": -1} if a.peer == "softmax" else {}
    expected = getattr(torch.nn.functional, a.peer)(inputs, **options)
    expected.backward(torch.tensor(grad))
    if a.peer == "softplus":  # PyTorch's is x itself above 20; the difference is below 3e-9
        tolerance = max(tolerance, 3e-9)
    np.testing.assert_allclose(a.function(x), expected.detach(), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.gradient(grad, x), inputs.grad, rtol=10 * tolerance, atol=tolerance)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_values_neither_overflow_nor_warn(a: Activation, dtype: Any) -> None:
    x = np.array([-1e30, -1e4, -1000, -89, -1, 1, 89, 1000, 1e4, 1e30], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, gradient = a.function(x), a.gradient(np.ones_like(x), x)
    assert np.isfinite(y).all()
    assert np.isfinite(gradient).all()
    if a.peer != "softmax":
        assert (np.diff(y) >= 0).all()  # each of them never falls


def test_small_results_keep_their_digits() -> None:
    x = np.array([-50, -30, -80], dtype=np.float32)
    exact = np.exp(x.astype(np.float64))  # to 13 digits, for sigmoid as for softplus
    np.testing.assert_allclose(ops.sigmoid(x), exact, rtol=1e-5)
    np.testing.assert_allclose(ops.softplus(x), exact, rtol=1e-5)


def test_infinity_has_its_limit() -> None:
    x = np.array([-np.inf, np.inf], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function, limits in (
            (ops.step, (0, 1)),
            (ops.relu, (0, np.inf)),
            (ops.leaky_relu, (-np.inf, np.inf)),
            (partial(ops.leaky_relu, slope=0), (0, np.inf)),
            (ops.softplus, (0, np.inf)),
            (ops.sigmoid, (0, 1)),
            (ops.tanh, (-1, 1)),
        ):
            np.testing.assert_array_equal(function(x), limits)


def test_softmax_gives_minus_infinity_no_probability() -> None:
    x = np.array([[0, -np.inf, 0], [-np.inf, 7, -np.inf]], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(ops.softmax(x), [[0.5, 0, 0.5], [0, 1, 0]])


@every
def test_nan_stays_nan(a: Activation) -> None:
    y = a.function(np.array([[np.nan, 1.0], [-1.0, 2.0]], dtype=np.float32))
    assert np.isnan(y[0, 0])
    assert np.isfinite(y[1]).all()


@quick
@given(
    x=arrays.arrays(
        np.float32, arrays.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.floats(-1e4, 1e4, width=32)
    )
)
def test_softmax_rows_are_probabilities_and_ignore_a_shift(x: Any) -> None:
    y = ops.softmax(x)
    assert (y >= 0).all()
    np.testing.assert_allclose(y.sum(axis=-1), 1, rtol=1e-5)
    doubles = x.astype(np.float64)
    np.testing.assert_allclose(ops.softmax(doubles + 1e4), ops.softmax(doubles), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_softmax_needs_classes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"x has shape \(.*\); expected a last axis"):
        ops.softmax(np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match=r"y has shape \(.*\); expected a last axis"):
        ops.softmax_backward(np.zeros(shape, np.float32), np.zeros(shape, np.float32))


@every
def test_a_grad_that_does_not_fit_is_named_with_both_shapes(a: Activation) -> None:
    with pytest.raises(ValueError, match=r"grad has shape \(1, 3\); expected \(2, 3\) to fit [xy] \(2, 3\)"):
        a.backward(np.ones((1, 3), np.float32), np.ones((2, 3), np.float32))


@pytest.mark.parametrize("slope", [-0.1, 1.5, np.nan])
def test_a_slope_out_of_range_is_named(slope: float) -> None:
    with pytest.raises(ValueError, match=f"slope is {slope}; expected 0 to 1"):
        ops.leaky_relu(np.ones(2), slope)
    with pytest.raises(ValueError, match=f"slope is {slope}; expected 0 to 1"):
        ops.leaky_relu_backward(np.ones(2), np.ones(2), slope)


def test_options_of_numpy_do_not_widen_the_result() -> None:
    x, slope = np.ones(3, np.float32), np.float64(0.1)
    assert ops.leaky_relu(x, slope).dtype == np.float32
    assert ops.leaky_relu_backward(x, x, slope).dtype == np.float32
