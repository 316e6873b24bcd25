"""A network read as stages that one kernel can do: a convolution with its activation and pooling, a dense layer.

What a program cannot do is told as a reason in words; the eager path does it then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unrolled import ops
from unrolled.nn.activations import ReLU
from unrolled.nn.layers import Conv2d, Dropout, Flatten, Layer, Linear, MaxPool2d, Shape
from unrolled.nn.network import Sequential
from unrolled.ops.arguments import pair
from unrolled.ops.windows import Windows

PASSES = "forward", "backward", "loss_and_scores"  # of a network: what a program takes the place of


class NotCompilableError(ValueError):
    """A network that no program can run; the message is the reason, in words."""


@dataclass(frozen=True)
class Convolution:
    """Convolution and bias, then ReLU and max-pooling where the network has them, in this order or the other.

    The largest value of a window stays the largest after a ReLU, so both orders give the same values.
    `inputs` (C, H, W), `convolved` (O, OH, OW), `outputs` (O, PH, PW), the same as `convolved` without pooling.
    """

    layer: Conv2d
    relu: bool
    pool: Windows | None
    inputs: Shape
    convolved: Shape
    outputs: Shape
    dropout: Dropout | None = None  # after all of it

    @property
    def kernel(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
        """Kernel size, stride and padding of the convolution, each (vertical, horizontal)."""
        layer = self.layer
        return pair("kernel_size", layer.kernel_size), pair("stride", layer.stride), pair("padding", layer.padding)


@dataclass(frozen=True)
class Dense:
    """A dense layer with a ReLU after it, where the network has one: (N, inputs) to (N, outputs)."""

    layer: Linear
    relu: bool
    inputs: int
    outputs: int
    dropout: Dropout | None = None  # after all of it


Stage = Convolution | Dense


def stages_of(network: Sequential, dropout: bool = False) -> list[Stage]:
    """Return the stages of a built network. Raises NotCompilableError, with the reason, for what none expresses.

    Only with `dropout` can a dropout stand after a stage. Raises ValueError for a network that is not built.
    """
    if network.input_shape is None:
        raise ValueError("the network is not built: build((1, 28, 28)) finds its shapes, or pass input_shape")
    if network.dtype != np.float32:
        raise NotCompilableError(f"the network computes in {network.dtype}; programs are for float32")
    if network.loss is not ops.softmax_cross_entropy:
        raise NotCompilableError("the loss is not ops.softmax_cross_entropy")
    for name in PASSES:
        if getattr(type(network), name) is not getattr(Sequential, name) or name in vars(network):
            raise NotCompilableError(f"{type(network).__name__} has a {name} of its own")
        for layer in network.layers:
            if name in vars(layer):
                raise NotCompilableError(f"{layer!r} was given a {name} of its own")
    found: list[Stage] = []
    shape, layers = network.input_shape, list(network.layers)
    while layers:
        layer = layers.pop(0)
        if type(layer) is Conv2d:
            stage: Stage = _convolution(layer, shape, _followers(layers, (ReLU, MaxPool2d)))
        elif type(layer) is Linear:
            stage = Dense(layer, bool(_followers(layers, (ReLU,))), shape[0], layer.features)
        elif type(layer) is Flatten:
            shape = layer.build(shape)
            continue
        elif dropout and type(layer) is Dropout and found and found[-1].dropout is None:
            found[-1] = replace(found[-1], dropout=layer)
            continue
        else:
            raise NotCompilableError(f"no program has {layer!r} at that place")
        found.append(stage)
        shape = stage.outputs if isinstance(stage, Convolution) else (stage.outputs,)
    if not found or not isinstance(found[-1], Dense) or found[-1].relu or found[-1].dropout:
        raise NotCompilableError("the last layer is not Linear")
    return found


def _followers(layers: list[Layer], kinds: Sequence[type[Layer]]) -> list[Layer]:
    """Take from the front of `layers` those of `kinds`, each kind at most once."""
    followers: list[Layer] = []
    while layers and type(layers[0]) in kinds and type(layers[0]) not in {type(each) for each in followers}:
        followers.append(layers.pop(0))
    return followers


def _convolution(layer: Conv2d, inputs: Shape, followers: Sequence[Layer]) -> Convolution:
    size = ops.conv2d_output_size((inputs[1], inputs[2]), layer.kernel_size, layer.stride, layer.padding)
    convolved = layer.filters, *size
    pools = [each for each in followers if isinstance(each, MaxPool2d)]
    if not pools:
        return Convolution(layer, bool(followers), None, inputs, convolved, convolved)
    windows = ops.pool.pooling_windows((1, *convolved), *pools[0].window)
    outputs = pools[0].build(convolved)
    return Convolution(layer, len(followers) > 1, windows, inputs, convolved, outputs)
