"""Keeping the last good parameters and state, and finding the first array that is not finite."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unrolled import ops
from unrolled.device import Array, array_module, to_host
from unrolled.nn.built import Network


class Snapshot:
    """Parameters and state of a network at one moment."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._values = network.parameters.copy(), network.state.copy()

    def take(self) -> None:
        """Keep what the network has now, in the same memory."""
        for kept, values in zip(self._values, (self._network.parameters, self._network.state), strict=True):
            kept[...] = values

    def restore(self) -> None:
        """Give the network what was kept."""
        self._network.parameters[...], self._network.state[...] = self._values


class Place(NamedTuple):
    """The first array that is not finite, or that makes the loss so: see `NonFiniteError`."""

    layer: str
    array: str
    why: str = ""


class NonFiniteError(ArithmeticError):
    """A loss or a parameter became NaN or infinite while training.

    step: the number of the step, counted from 1. layer: which layer, as "3: Linear(10)", or "the input", "the network".
    array: the first array that is not finite: the name of a parameter, "output", "images", "labels" or "loss". `why`
    takes the place of these words for labels that are finite, but no classes. `kept` says which parameters the network
    has, if not those of the last good step.
    """

    def __init__(self, step: int, layer: str, array: str, why: str = "", kept: str = "") -> None:
        kept = kept or ("of the last good step" if step > 1 else "that it began with")
        super().__init__(
            f"training stopped at step {step}: {why or f'the first array that is not finite is {array!r} of {layer}'}. "
            f"The network has the parameters {kept}. "
            + (f"Look at the {array}." if layer == "the input" else "A smaller learning rate often helps.")
        )
        self.step, self.layer, self.array = step, layer, array


class Watch:
    """Looks at the loss of every step, and keeps the parameters of the last one whose loss was finite.

    On a device it looks at every 100th step alone: to look at a loss is to wait for the GPU.
    """

    def __init__(self, network: Network) -> None:
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
            self._stop(first_non_finite(self._network, images, labels))
        self._good.take()

    def check_parameters(self) -> None:
        """Check all parameters after an epoch: the last update may have spoiled some that no loss has seen yet.

        Raises NonFiniteError unless all are finite.
        """
        if not self._module.isfinite(self._network.parameters).all():
            self._stop(first_parameter(self._network))

    def restore(self) -> None:
        """Give the network the last good parameters, and the state at that time."""
        self._good.restore()

    def _stop(self, place: Place) -> None:
        self.restore()
        raise NonFiniteError(self._steps, *place)


def first_non_finite(network: Network, images: Array, labels: Array) -> Place:
    """Return the place of the first array that is not finite on the way from the images to the loss.

    Where all are, labels that are no classes made the loss NaN: a GPU does not look at them before.
    """
    module = array_module(network.parameters)
    if not module.isfinite(images).all():
        return Place("the input", "images")
    if not module.isfinite(labels).all():
        return Place("the input", "labels")
    x = images
    for number, layer in enumerate(network.layers):
        for name, value in layer.parameters.items():
            if not module.isfinite(value).all():
                return Place(f"{number}: {layer!r}", name)
        x = layer.forward(x, training=True)
        if not module.isfinite(x).all():
            return Place(f"{number}: {layer!r}", "output")
    wrong = _no_class(labels, x.shape[1]) if network.loss is ops.softmax_cross_entropy else None
    if wrong is not None:
        return Place("the input", "labels", f"labels holds {wrong}; expected 0 to {x.shape[1] - 1}")
    return Place("the network", "loss")


def first_parameter(network: Network) -> Place:
    """Return the place of the first parameter that is not finite, or that of all of them where none is found."""
    module = array_module(network.parameters)
    for number, layer in enumerate(network.layers):
        for name, value in layer.parameters.items():
            if not module.isfinite(value).all():
                return Place(f"{number}: {layer!r}", name)
    return Place("the network", "parameters")


def _no_class(labels: Array, classes: int) -> int | None:
    """A label that is none of the classes, if there is one."""
    found = to_host(labels)
    wrong = found[(found < 0) | (found >= classes)]
    return int(wrong[0]) if len(wrong) else None
