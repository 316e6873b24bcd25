"""Activations: one function of each value."""

from __future__ import annotations

from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_shape


def relu(x: Array) -> Array:
    """max(x, 0), any shape, dtype as x; NaN stays NaN."""
    return array_module(x).maximum(x, 0)


def relu_backward(grad: Array, x: Array) -> Array:
    """grad where x > 0, else 0 (at 0 too, as frameworks choose). Raises ValueError if the shapes differ."""
    module = array_module(grad, x)
    check_shape("grad", grad, x.shape, f"x {x.shape}")
    return module.where(x > 0, grad, 0)
