"""A network in plain loops: to compare it with the fast one, on the same weights."""

from __future__ import annotations

from functools import singledispatch

from unrolled import ops
from unrolled.device import Array
from unrolled.nn.layers import Conv2d, Layer, Linear, MaxPool2d
from unrolled.nn.network import Sequential


def predict_with_loops(network: Sequential, images: Array) -> Array:
    """Return `network.predict(images)` from loops over every axis: thousands of times slower, fit for a few images."""
    x = images
    network.build(images.shape[1:])
    for layer in network.layers:
        x = forward_in_loops(layer, x)
    return x.argmax(axis=1)


@singledispatch
def forward_in_loops(layer: Layer, x: Array) -> Array:
    """Return a layer's output: from plain loops where it has any to unroll, else from its forward pass."""
    return layer.forward(x)


@forward_in_loops.register
def _(layer: Conv2d, x: Array) -> Array:
    return ops.conv2d_loops(x, layer.parameters["weight"], layer.parameters["bias"], layer.stride, layer.padding)


@forward_in_loops.register
def _(layer: MaxPool2d, x: Array) -> Array:
    return ops.max_pool2d_loops(x, *layer.window)


@forward_in_loops.register
def _(layer: Linear, x: Array) -> Array:
    return ops.matmul_loops(x, layer.parameters["weight"].T) + layer.parameters["bias"]
