"""Activations: PyTorch's values and gradients over random shapes and sizes, corners, limits, what is refused."""

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
from ops_cases import agrees_with_torch

from unrolled import ops


class Activation(NamedTuple):
    """A function, its way back, whether that needs the output, and PyTorch's function of the same values."""

    function: Callable[[Any], Any]
    backward: Callable[[Any, Any], Any]
    peer: Callable[[Any, Any], Any]
    needs_output: bool = False

    def gradient(self, grad: Any, x: Any) -> Any:
        return self.backward(grad, self.function(x) if self.needs_output else x)


ACTIVATIONS = {
    "step": Activation(ops.step, ops.step_backward, lambda f, x: (x > 0) + 0 * x),
    "relu": Activation(ops.relu, ops.relu_backward, lambda f, x: f.relu(x)),
    "leaky_relu": Activation(ops.leaky_relu, ops.leaky_relu_backward, lambda f, x: f.leaky_relu(x)),
    "leaky_relu, 0.3": Activation(
        partial(ops.leaky_relu, slope=0.3),
        partial(ops.leaky_relu_backward, slope=0.3),
        lambda f, x: f.leaky_relu(x, 0.3),
    ),
    # PyTorch's is x itself above 20 unless told otherwise
    "softplus": Activation(ops.softplus, ops.softplus_backward, lambda f, x: f.softplus(x, threshold=700)),
    "sigmoid": Activation(ops.sigmoid, ops.sigmoid_backward, lambda f, x: f.sigmoid(x), needs_output=True),
    "tanh": Activation(ops.tanh, ops.tanh_backward, lambda f, x: f.tanh(x), needs_output=True),
    "softmax": Activation(ops.softmax, ops.softmax_backward, lambda f, x: f.softmax(x, dim=-1), needs_output=True),
}
every = pytest.mark.parametrize("a", ACTIVATIONS.values(), ids=ACTIVATIONS.keys())


@every
@settings(max_examples=40, deadline=None)
@given(
    shape=arrays.array_shapes(min_dims=0, max_dims=4, max_side=5),
    size=st.sampled_from([1.0, 10.0, 600.0]),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 999),
)
def test_values_and_gradients_are_pytorchs(a: Activation, shape: Any, size: float, dtype: str, seed: int) -> None:
    shape = (*shape, 3) if a is ACTIVATIONS["softmax"] else shape
    x = np.asarray(np.random.default_rng(seed).normal(0, size, shape)).astype(dtype)
    x[np.asarray(x == x.max(initial=0))] = 0  # at a corner the gradient is that of the flat side, as PyTorch's
    if dtype == "float32":
        x = np.clip(x, -80, 80)  # beyond, PyTorch's softplus of that threshold overflows
    tolerance = 1e-13 if dtype == "float64" else 2e-6
    agrees_with_torch(a.peer, [x], a.function, lambda grad: a.gradient(grad, x), tolerance)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_values_neither_overflow_nor_warn(a: Activation, dtype: Any) -> None:
    x = np.array([-1e30, -1e4, -1000, -89, -1, 1, 89, 1000, 1e4, 1e30], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y, gradient = a.function(x), a.gradient(np.ones_like(x), x)
    assert np.isfinite(y).all()
    assert np.isfinite(gradient).all()
    if a is not ACTIVATIONS["softmax"]:
        assert (np.diff(y) >= 0).all()  # each of them never falls


@every
def test_nan_stays_nan(a: Activation) -> None:
    y = a.function(np.array([[np.nan, 1.0], [-1.0, 2.0]], dtype=np.float32))
    assert np.isnan(y[0, 0])
    assert np.isfinite(y[1]).all()


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
