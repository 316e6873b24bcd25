"""Activations as layers: one function of each value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unrolled import ops
from unrolled.device import Array
from unrolled.nn.layers import Layer


@dataclass(eq=False, repr=False)
class Activation(Layer):
    """A function of each value, and its backward pass, which needs either the function's input or its output."""

    needs_output: ClassVar[bool] = False

    def function(self, x: Array) -> Array:
        """Return the function of each value of x. Raises TypeError in this class, which has none."""
        raise TypeError(f"{type(self).__name__} has no function")

    def way_back(self, grad: Array, kept: Array) -> Array:
        """Return the gradient by x, from that by the values and from x (or from the values, if `needs_output`).

        Raises TypeError in this class, which has none.
        """
        raise TypeError(f"{type(self).__name__} has no way back")

    def forward(self, x: Array, training: bool = False) -> Array:
        y = self.function(x)
        self._kept = (y if self.needs_output else x) if training else None
        return y

    def backward(self, grad: Array) -> Array | None:
        return self.way_back(grad, self.kept())


class ReLU(Activation):
    """max(x, 0)."""

    def function(self, x: Array) -> Array:
        return ops.relu(x)

    def way_back(self, grad: Array, kept: Array) -> Array:
        return ops.relu_backward(grad, kept)


@dataclass(eq=False, repr=False)
class LeakyReLU(Activation):
    """x above 0, slope * x below."""

    slope: float = 0.01

    def function(self, x: Array) -> Array:
        return ops.leaky_relu(x, self.slope)

    def way_back(self, grad: Array, kept: Array) -> Array:
        return ops.leaky_relu_backward(grad, kept, self.slope)


class Softplus(Activation):
    """log(1 + exp(x)): a ReLU without the corner."""

    def function(self, x: Array) -> Array:
        return ops.softplus(x)

    def way_back(self, grad: Array, kept: Array) -> Array:
        return ops.softplus_backward(grad, kept)


class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    needs_output = True

    def function(self, x: Array) -> Array:
        return ops.sigmoid(x)

    def way_back(self, grad: Array, kept: Array) -> Array:
        return ops.sigmoid_backward(grad, kept)


class Tanh(Activation):
    """The hyperbolic tangent."""

    needs_output = True

    def function(self, x: Array) -> Array:
        return ops.tanh(x)

    def way_back(self, grad: Array, kept: Array) -> Array:
        return ops.tanh_backward(grad, kept)
