"""The dense (affine) layer: y = x @ weight.T + bias."""

from __future__ import annotations

from unrolled.device import Array, array_module
from unrolled.ops.arguments import as_floats, check_axes, check_shape


def affine(x: Array, weight: Array, bias: Array) -> Array:
    """x (N, D) times weight (M, D) plus bias (M,): (N, M). float32 in, float32 out; integers count as float32.

    Raises ValueError for shapes that do not fit.
    """
    x, weight, bias = _arguments(x, weight, bias)
    y = x @ weight.T
    y += bias
    return y


def affine_one_by_one(x: Array, weight: Array, bias: Array) -> Array:
    """`affine`, one sample at a time: what batching replaces."""
    x, weight, bias = _arguments(x, weight, bias)
    y = array_module(x).empty((len(x), len(weight)), dtype=x.dtype)
    for row in range(len(x)):
        y[row] = weight @ x[row] + bias
    return y


def affine_backward(grad: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """From grad (N, M): grad_x (N, D) = grad @ weight, grad_weight (M, D) = grad.T @ x, grad_bias (M,) = sums."""
    array_module(grad, x, weight)
    check_axes("x", x, "N, D")
    check_axes("weight", weight, "M, D")
    _check_features(x, weight)
    check_shape("grad", grad, (len(x), len(weight)), f"x {x.shape} and weight {weight.shape}")
    grad, x, weight = as_floats(grad, x, weight)
    return grad @ weight, grad.T @ x, grad.sum(axis=0)


def _arguments(x: Array, weight: Array, bias: Array) -> tuple[Array, ...]:
    array_module(x, weight, bias)
    check_axes("x", x, "N, D")
    check_axes("weight", weight, "M, D")
    _check_features(x, weight)
    check_shape("bias", bias, weight.shape[:1], f"weight {weight.shape}")
    return as_floats(x, weight, bias)


def _check_features(x: Array, weight: Array) -> None:
    if x.shape[1] != weight.shape[1]:
        raise ValueError(
            f"weight has shape {weight.shape} with D = {weight.shape[1]} features, "
            f"but x has shape {x.shape} with D = {x.shape[1]}"
        )
