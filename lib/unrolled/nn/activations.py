"""Activations as layers: one function of each value. What its backward pass needs is kept: the input, or the output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from unrolled import ops
from unrolled.device import Array
from unrolled.nn.habits import answering
from unrolled.nn.layers import Layer


class Activation(Layer):
    """A function without options. `_backward` takes the gradient by the output, and the input or `_by_output` that."""

    _function: ClassVar[Any]
    _backward: ClassVar[Any]
    _by_output: ClassVar[bool] = False

    def forward(self, x: Array, training: bool = False) -> Array:
        y: Array = self._function(x)
        self._kept = (y if self._by_output else x) if training else None
        return y

    def backward(self, grad: Array) -> Array | None:
        grad_x: Array = self._backward(grad, self.kept())
        return grad_x


@answering("it has no options")
class ReLU(Activation):
    """max(x, 0)."""

    _function, _backward = staticmethod(ops.relu), staticmethod(ops.relu_backward)


@answering("expected slope alone")
@dataclass(eq=False, repr=False)
class LeakyReLU(Layer):
    """x above 0, slope * x below."""

    slope: float = 0.01

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        return ops.leaky_relu(x, self.slope)

    def backward(self, grad: Array) -> Array | None:
        return ops.leaky_relu_backward(grad, self.kept(), self.slope)


@answering("it has no options")
class Softplus(Activation):
    """log(1 + exp(x)): a ReLU without the corner."""

    _function, _backward = staticmethod(ops.softplus), staticmethod(ops.softplus_backward)


@answering("it has no options")
class Sigmoid(Activation):
    """1 / (1 + exp(-x))."""

    _function, _backward, _by_output = staticmethod(ops.sigmoid), staticmethod(ops.sigmoid_backward), True


@answering("it has no options")
class Tanh(Activation):
    """The hyperbolic tangent."""

    _function, _backward, _by_output = staticmethod(ops.tanh), staticmethod(ops.tanh_backward), True
