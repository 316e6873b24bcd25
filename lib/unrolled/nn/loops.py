"""A network in plain loops: to compare it with the fast one, on the same weights."""

from __future__ import annotations

from unrolled import ops
from unrolled.device import Array
from unrolled.nn.layers import Conv2d, Layer, Linear, MaxPool2d
from unrolled.nn.network import Sequential


def predict_with_loops(network: Sequential, images: Array) -> Array:
    """Return `network.predict(images)` from loops over every axis: thousands of times slower, fit for a few images."""
    x = images
    network.build(images.shape[1:])
    for layer in network.layers:
        x = _forward_in_loops(layer, x)
    return x.argmax(axis=1)


def _forward_in_loops(layer: Layer, x: Array) -> Array:
    """A layer's output: from plain loops where it has any to unroll, else from its forward pass."""
    if isinstance(layer, Conv2d):
        weight, bias = layer.parameters["weight"], layer.parameters["bias"]
        return ops.conv2d_loops(x, weight, bias, layer.stride, layer.padding)
    if isinstance(layer, MaxPool2d):
        return ops.max_pool2d_loops(x, *layer.window)
    if isinstance(layer, Linear):
        return ops.matmul_loops(x, layer.parameters["weight"].T) + layer.parameters["bias"]
    return layer.forward(x)
