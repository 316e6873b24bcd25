"""Activations as layers: one function of each value. What its backward pass needs is kept: the input, or the output."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled import ops
from unrolled.device import Array
from unrolled.nn.habits import answering
from unrolled.nn.layers import Layer


@answering("it has no options")
class ReLU(Layer):
    """max(x, 0)."""

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        return ops.relu(x)

    def backward(self, grad: Array) -> Array | None:
        return ops.relu_backward(grad, self.kept())


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
class Softplus(Layer):
    """log(1 + exp(x)): a ReLU without the corner."""

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        return ops.softplus(x)

    def backward(self, grad: Array) -> Array | None:
        return ops.softplus_backward(grad, self.kept())


@answering("it has no options")
class Sigmoid(Layer):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Array, training: bool = False) -> Array:
        y = ops.sigmoid(x)
        self._kept = y if training else None
        return y

    def backward(self, grad: Array) -> Array | None:
        return ops.sigmoid_backward(grad, self.kept())


@answering("it has no options")
class Tanh(Layer):
    """The hyperbolic tangent."""

    def forward(self, x: Array, training: bool = False) -> Array:
        y = ops.tanh(x)
        self._kept = y if training else None
        return y

    def backward(self, grad: Array) -> Array | None:
        return ops.tanh_backward(grad, self.kept())
