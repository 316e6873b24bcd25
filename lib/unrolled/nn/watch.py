"""Keeping the last good parameters and state, and finding the first array that is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from unrolled.device import Array, array_module
from unrolled.nn.layers import Layer


class Layered(Protocol):
    """A network as far as it is watched: layers, all their parameters in one array (P,), and their state (S,)."""

    @property
    def layers(self) -> Sequence[Layer]: ...
    @property
    def parameters(self) -> Array: ...
    @property
    def state(self) -> Array: ...


class Snapshot:
    """Parameters and state of a network at one moment."""

    def __init__(self, network: Layered) -> None:
        self._network = network
        self._values = network.parameters.copy(), network.state.copy()

    def take(self) -> None:
        """Keep what the network has now, in the same memory."""
        for kept, values in zip(self._values, (self._network.parameters, self._network.state), strict=True):
            kept[...] = values

    def restore(self) -> None:
        """Give the network what was kept."""
        self._network.parameters[...], self._network.state[...] = self._values


class NonFiniteError(ArithmeticError):
    """A loss or a parameter became NaN or infinite while training.

    step: the number of the step, counted from 1. layer: which layer, as "3: Linear(10)", or "the input", "the network".
    array: the first array that is not finite: the name of a parameter, "output", "images", "labels" or "loss".
    """

    def __init__(self, step: int, layer: str, array: str) -> None:
        super().__init__(
            f"training stopped at step {step}: the first array that is not finite is {array!r} of {layer}. "
            "The network has the parameters of the last good step. "
            + (f"Look at the {array}." if layer == "the input" else "A smaller learning rate often helps.")
        )
        self.step, self.layer, self.array = step, layer, array


class Watch:
    """Looks at the loss of every step, and keeps the parameters of the last one whose loss was finite.

    On a device it looks at every 100th step alone: to look at a loss is to wait for the GPU.
    """

    def __init__(self, network: Layered) -> None:
        self._network = network
        self._module = array_module(network.parameters)
        self._good = Snapshot(network)
        self._every = 1 if self._module is np else 100
        self._steps = 0

    def check(self, loss: Array, images: Array, labels: Array) -> None:
        """Check the loss of a step before its update. Raises NonFiniteError unless the loss is finite."""
        self._steps += 1
        if self._steps % self._every:
            return
        if not self._module.isfinite(loss):
            self._stop(*first_non_finite(self._network, images, labels))
        self._good.take()

    def check_parameters(self) -> None:
        """Check all parameters after an epoch: the last update may have spoiled some that no loss has seen yet.

        Raises NonFiniteError unless all are finite.
        """
        if not self._module.isfinite(self._network.parameters).all():
            self._stop(*_first_parameter(self._network))

    def restore(self) -> None:
        """Give the network the last good parameters, and the state at that time."""
        self._good.restore()

    def _stop(self, layer: str, array: str) -> None:
        self.restore()
        raise NonFiniteError(self._steps, layer, array)


def first_non_finite(network: Layered, images: Array, labels: Array) -> tuple[str, str]:
    """Return (layer, array) of the first array that is not finite on the way from the images to the loss."""
    module = array_module(network.parameters)
    if not module.isfinite(images).all():
        return "the input", "images"
    if not module.isfinite(labels).all():
        return "the input", "labels"
    x = images
    for number, layer in enumerate(network.layers):
        for name, value in layer.parameters.items():
            if not module.isfinite(value).all():
                return f"{number}: {layer!r}", name
        x = layer.forward(x, training=True)
        if not module.isfinite(x).all():
            return f"{number}: {layer!r}", "output"
    return "the network", "loss"


def _first_parameter(network: Layered) -> tuple[str, str]:
    module = array_module(network.parameters)
    return next(
        (f"{number}: {layer!r}", name)
        for number, layer in enumerate(network.layers)
        for name, value in layer.parameters.items()
        if not module.isfinite(value).all()
    )
