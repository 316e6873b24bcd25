"""Training with values of 16 bits, sums and master weights of 32 (Micikevicius and others, 2018, arXiv:1710.03740)."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.device import Array, array_module
from unrolled.nn.built import Network
from unrolled.ops.precision import LossScale, bfloat16, next_loss_scale

PRECISIONS = "float32", "float16", "bfloat16"


def check_precision(precision: str, loss_scale: LossScale | None) -> None:
    """Raise ValueError or TypeError unless these arguments of `fit` go together."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected one of {', '.join(PRECISIONS)}")
    if loss_scale is None:
        return
    if not isinstance(loss_scale, LossScale):
        raise TypeError(f"loss_scale is {loss_scale!r}; expected where to begin, such as LossScale(2.0**15)")
    if precision != "float16":
        raise ValueError(f"loss_scale is {loss_scale} and precision {precision!r}; only float16 has a loss scale")


class Mixed:
    """Forward and backward passes whose values have 16 bits; the parameters stay what they are, in float32.

    Images, weights, what each layer gives, and all gradients are rounded to 16 bits; a layer sums in float32. Rounded
    values lie in arrays of the network's dtype, since NumPy has no float16 product: this shows what float16 does to
    accuracy, and takes longer. In float16 the gradients carry `state.scale`; bfloat16 has float32's range, and scale 1.
    """

    def __init__(self, network: Network, precision: str, loss_scale: LossScale | None) -> None:
        self._network, self._module = network, array_module(network.parameters)
        if precision == "bfloat16" and self._module is not np:
            raise TypeError("bfloat16 trains in NumPy, with ml_dtypes; on a device take float16")
        self._kind: Any = bfloat16() if precision == "bfloat16" else np.dtype(np.float16)
        self._scaled = precision == "float16"
        self.state = (loss_scale or LossScale()) if self._scaled else LossScale(1.0)

    def step(self, images: Array, labels: Array) -> tuple[Array, Array, bool]:
        """Fill the gradients, in float32 and without the scale; return loss (0-d), scores and whether all are finite.

        Where they are not, the update is to be skipped; the scale is halved already. A GPU is waited for, as its answer
        decides. Raises OverflowError, which names the layer, where a value is beyond 16 bits before any gradient.
        """
        network = self._network
        weights = network.parameters.copy()
        network.parameters[...] = self._rounded(weights)
        try:
            scores = self._forward(images)
            loss, grad = network.loss(scores, labels)
            self._backward(grad)
            if not self._scaled:
                return loss, scores, True
            finite = bool(self._module.isfinite(network.gradients).all())
            if not finite and not self._module.isfinite(loss):
                self._name_overflow(images)
        finally:
            network.parameters[...] = weights
        if finite:
            network.gradients[...] /= self.state.scale
        self.state = next_loss_scale(self.state, finite)
        return loss, scores, finite

    def _forward(self, images: Array) -> Array:
        x = self._rounded(images)
        for layer in self._network.layers:
            x = self._rounded(layer.forward(x, training=True))
        return x

    def _backward(self, grad: Any) -> None:
        if self._scaled:
            grad = grad * self.state.scale
        for layer in reversed(self._network.layers):
            grad = layer.backward(self._rounded(grad))
            if grad is None:
                break
        self._network.gradients[...] = self._rounded(self._network.gradients)

    def _name_overflow(self, images: Array) -> None:
        """Raise where a finite value became infinite by rounding. What float32 cannot hold either is for `Watch`."""
        x = self._within(images, "the input")
        for number, layer in enumerate(self._network.layers):
            for name, value in layer.parameters.items():
                if self._module.isinf(value).any():
                    raise OverflowError(f"layer {number}, {layer!r}: {name} is beyond float16, which ends at 65504")
            x = self._within(layer.forward(x, training=True), f"layer {number}, {layer!r}")

    def _within(self, x: Array, giver: str) -> Array:
        """x, rounded. Raises OverflowError if that makes a finite x infinite."""
        rounded = self._rounded(x)
        if self._module.isfinite(x).all() and not self._module.isfinite(rounded).all():
            most = float(abs(x).max())
            raise OverflowError(f"{giver}: gives values up to {most:.6g}; float16 ends at 65504: scale the images down")
        return rounded

    def _rounded(self, x: Any) -> Any:
        with np.errstate(over="ignore"):
            return x.astype(self._kind).astype(x.dtype)
