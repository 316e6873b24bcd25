"""Layers with fewer and smaller numbers: float16 and int8 to use, pruned and binary ones to train as well."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unrolled import kernels, ops
from unrolled.device import Array, array_module
from unrolled.nn.layers import Conv2d, Layer, Linear, Shape, Weighted
from unrolled.ops import precision
from unrolled.ops.conv import half_conv2d


@dataclass(eq=False, repr=False)
class Fixed(Layer):
    """A dense or convolution layer whose weights are constants: it is used, not trained."""

    twin: Linear | Conv2d = field()
    """The layer that it stands for, without arrays: options and shapes."""

    def build(self, shape: Shape) -> Shape:
        found = self.twin.build(shape)
        if self.twin.weight_shape != self.constants["weight"].shape:
            raise ValueError(
                f"its weight is {self.constants['weight'].shape}; this input asks {self.twin.weight_shape}"
            )
        self.multiply_adds = self.twin.multiply_adds
        return found

    def backward(self, grad: Array) -> Array | None:
        raise TypeError(f"{self!r} has no backward pass: train the network first, then make it smaller")


class Half(Fixed):
    """Weights and what comes in are float16; products are summed in float32.

    On the host what goes out is float32. On a GPU tensor cores multiply, and what goes out is float16, but for the
    `last` layer; there a value beyond float16 becomes infinite: to look would be to wait.
    """

    last: bool = False

    def forward(self, x: Array, training: bool = False) -> Array:
        if kernels.runs_on(array_module(x)):
            return self._on_gpu(x.astype(np.float16, copy=False))
        weight, bias = (self.constants[name].astype(np.float32) for name in ("weight", "bias"))
        x = precision.to_half(x).astype(np.float32)
        if isinstance(self.twin, Linear):
            return ops.affine(x, weight, bias)
        return ops.conv2d(x, weight, bias, self.twin.stride, self.twin.padding, method=self.twin.method)

    def _on_gpu(self, x: Array) -> Array:
        weight, bias = self.constants["weight"], self.constants["bias"]
        out = np.float32 if self.last else np.float16
        if isinstance(self.twin, Conv2d):
            y = half_conv2d(x, weight, bias, self.twin.stride, self.twin.padding)
            return y.astype(out, copy=False)
        y = array_module(x).empty((len(x), len(weight)), dtype=out)
        kernels.product((x, weight), (y,), kernels.TURN_B)
        kernels.add_row((bias.astype(out, copy=False),), (y,), kernels.constants(columns=len(weight)))
        return y


class Int8(Fixed):
    """Weights and what comes in are int8, one scale a filter and one for all that comes in; sums are int32.

    What comes in beyond the calibration is clipped; `clipped` is its share in the last forward pass.
    """

    clipped: float = 0.0

    def forward(self, x: Array, training: bool = False) -> Array:
        weight, scale = self.constants["weight"], self.constants["input_scale"]
        self.clipped = precision.clipped_share(x, scale)
        q = precision.quantize_int8(x, scale)
        scales, bias = scale * self.constants["weight_scale"], self.constants["bias"]
        if isinstance(self.twin, Linear):
            return precision.int8_matmul(q, weight.T).astype(np.float32) * scales + bias
        columns = ops.im2col(q, self.twin.kernel_size, self.twin.stride, self.twin.padding)
        sums = precision.int8_matmul(weight.reshape(len(weight), -1), columns).astype(np.float32)
        y = sums * scales[:, None] + bias[:, None]
        filters, *size = self.twin.build(x.shape[1:])
        return np.ascontiguousarray(y.reshape(filters, len(x), *size).swapaxes(0, 1))


class Pruned(Weighted):
    """A layer some of whose weights stay 0: where its mask, which is state and so is saved, is 0."""

    def initial_state(self) -> dict[str, Array]:
        return {"mask": np.ones(self.weight_shape)}

    def forward(self, x: Array, training: bool = False) -> Array:
        self._prune()
        return super().forward(x, training)

    def backward(self, grad: Array) -> Array | None:
        found = super().backward(grad)
        self.gradients["weight"] *= self.state["mask"]
        return found

    def forget(self) -> None:
        """Let go of what `forward` kept. An optimizer's momentum may have moved a weight in the last step: 0 again."""
        super().forget()
        self._prune()

    def _prune(self) -> None:
        if self.parameters:
            self.parameters["weight"] *= self.state["mask"]


class PrunedLinear(Pruned, Linear):
    """A pruned dense layer."""


class PrunedConv2d(Pruned, Conv2d):
    """A pruned convolution."""


class BinaryLinear(Linear):
    """A dense layer of signs: sign(x) @ sign(weight).T, times the mean magnitude of each weight's row, plus bias.

    Training keeps float32 weights, and gradients pass straight through the signs. In use the signs are packed bits.
    """

    def forward(self, x: Array, training: bool = False) -> Array:
        self._kept = x if training else None
        weight = self.parameters["weight"]
        sums = precision.binary_matmul(precision.pack_signs(x), precision.pack_signs(weight), x.shape[1])
        return sums.astype(x.dtype) * _sizes(weight) + self.parameters["bias"]

    def backward(self, grad: Array) -> Array | None:
        x, weight = self.kept(), self.parameters["weight"]
        scaled = grad * _sizes(weight)
        by_weight = scaled.T @ precision.binarize(x)
        self.gradients["weight"] = precision.straight_through(by_weight, weight)
        self.gradients["bias"] = grad.sum(axis=0)
        return None if self.is_first else precision.straight_through(scaled @ precision.binarize(weight), x)


def _sizes(weight: Array) -> Array:
    """The mean magnitude of each row."""
    return np.abs(weight).mean(axis=1)
