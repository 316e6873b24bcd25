"""Activations: a function of each value (softmax: of each row), and its backward pass.

A backward pass takes grad, the gradient by what the function returned, and returns the gradient by x. It needs x, or y,
what the function returned, where that is cheaper: sigmoid, tanh and softmax. Any shape; raises ValueError where the
shapes differ. Formulas are those of PyTorch's functions of the same names.
"""

from __future__ import annotations

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops import threads
from unrolled.ops.arguments import as_floats, check_arrays, check_shape, rounds_once


def step(x: Array) -> Array:
    """Return 1 where x > 0, else 0; NaN stays NaN. The neuron of the first perceptrons (Rosenblatt, 1958)."""
    module = check_arrays(x=x)
    (x,) = as_floats(x)
    return module.maximum(module.sign(x), 0)


def step_backward(grad: Array, x: Array) -> Array:
    """Return 0 everywhere: the step is flat, so nothing can be learned through it."""
    grad, x = _pair(grad, "x", x)
    return array_module(x).zeros(x.shape, dtype=grad.dtype)


def relu(x: Array) -> Array:
    """Return max(x, 0), any shape, dtype as x; NaN stays NaN."""
    module = check_arrays(x=x)
    if kernels.take(x) or kernels.take_half(x):
        y = module.empty(x.shape, dtype=x.dtype)
        (kernels.relu_wide if kernels.take_half(x) else kernels.relu)((x,), (y,))
        return y
    if threads.pay(x):
        y = np.empty_like(x)
        threads.share_rows(lambda rows: np.maximum(x[rows], 0, out=y[rows]), x)
        return y
    return module.maximum(x, 0)


def relu_backward(grad: Array, x: Array) -> Array:
    """Return grad where x > 0, else 0 (at 0 too, as frameworks choose); an infinite grad becomes NaN there.

    Raises ValueError if the shapes differ.
    """
    check_arrays(grad=grad, x=x)
    check_shape("grad", grad, x.shape, f"x {x.shape}")
    if kernels.take(grad, x):
        grad_x = array_module(x).empty(x.shape, dtype=x.dtype)
        kernels.relu_backward((grad, x), (grad_x,))
        return grad_x
    # `where` branches at every value: up to ten times slower where signs are mixed
    if threads.pay(grad):
        grad_x = np.empty_like(grad)
        threads.share_rows(lambda rows: np.multiply(grad[rows], x[rows] > 0, out=grad_x[rows]), grad)
        return grad_x
    return grad * (x > 0)


@rounds_once
def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Return x where x > 0, else slope * x. Raises ValueError unless 0 <= slope <= 1."""
    slope = _slope(slope)
    module = check_arrays(x=x)
    (x,) = as_floats(x)
    # slope * x is the larger of the two exactly where x is negative; with slope 0, infinity * 0 would be NaN.
    return module.maximum(x, slope * x if slope else 0)


@rounds_once
def leaky_relu_backward(grad: Array, x: Array, slope: float = 0.01) -> Array:
    """Return grad where x > 0, else slope * grad. Raises ValueError unless 0 <= slope <= 1."""
    slope = _slope(slope)
    grad, x = _pair(grad, "x", x)
    factor = array_module(x).maximum((x > 0).astype(grad.dtype), slope)  # no `where`: see relu_backward
    factor *= grad
    return factor


@rounds_once
def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), where nothing overflows."""
    module = check_arrays(x=x)
    (x,) = as_floats(x)
    y = module.log1p(module.exp(module.minimum(x, -x)))
    y += module.maximum(x, 0)
    return y


@rounds_once
def softplus_backward(grad: Array, x: Array) -> Array:
    """Return grad * sigmoid(x)."""
    grad, x = _pair(grad, "x", x)
    grad_x = sigmoid(x)
    grad_x *= grad
    return grad_x


@rounds_once
def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    check_arrays(x=x)
    (x,) = as_floats(x)
    with np.errstate(over="ignore"):  # far below 0, exp(-x) is infinite, and 1 / (1 + infinity) = 0 is right
        y = array_module(x).exp(-x)
    y += 1
    return 1 / y


@rounds_once
def sigmoid_backward(grad: Array, y: Array) -> Array:
    """Return grad * y * (1 - y), for y = sigmoid(x)."""
    grad, y = _pair(grad, "y", y)
    grad_x = 1 - y
    grad_x *= y
    grad_x *= grad
    return grad_x


@rounds_once
def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent of x."""
    check_arrays(x=x)
    (x,) = as_floats(x)
    return array_module(x).tanh(x)


@rounds_once
def tanh_backward(grad: Array, y: Array) -> Array:
    """Return grad * (1 - y^2), for y = tanh(x)."""
    grad, y = _pair(grad, "y", y)
    grad_x = y * y
    grad_x -= 1
    grad_x *= grad
    return -grad_x


@rounds_once
def softmax(x: Array) -> Array:
    """Return exp(x) / sum of exp(x) over the last axis: probabilities.

    The largest value is subtracted first, which changes nothing but keeps exp from overflowing. -inf has probability 0;
    a row of nothing but -inf, or with +inf in it, has no probabilities: NaN.
    Raises ValueError where the last axis is missing or empty.
    """
    check_arrays(x=x)
    if not x.ndim or not x.shape[-1]:
        raise ValueError(f"x has shape {x.shape}; expected a last axis (classes) of at least 1")
    (x,) = as_floats(x)
    y = x - x.max(axis=-1, keepdims=True)
    array_module(x).exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


@rounds_once
def softmax_backward(grad: Array, y: Array) -> Array:
    """Return (grad - sum of grad * y over the last axis) * y, for y = softmax(x).

    Raises ValueError where the last axis is missing or empty.
    """
    grad, y = _pair(grad, "y", y)
    if not y.ndim or not y.shape[-1]:
        raise ValueError(f"y has shape {y.shape}; expected a last axis (classes) of at least 1")
    grad_x = grad - (grad * y).sum(axis=-1, keepdims=True)
    grad_x *= y
    return grad_x


def _pair(grad: Array, name: str, values: Array) -> tuple[Array, ...]:
    """grad and the x or y that goes with it, checked, in one float dtype."""
    check_arrays(**{"grad": grad, name: values})
    check_shape("grad", grad, values.shape, f"{name} {values.shape}")
    return as_floats(grad, values)


def _slope(slope: float) -> float:
    """A plain number: a float64 of NumPy would make float32 arrays float64."""
    if not 0 <= slope <= 1:
        raise ValueError(f"slope is {slope}; expected 0 to 1")
    return float(slope)
