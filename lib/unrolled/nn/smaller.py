"""Networks with fewer and smaller numbers, made of a network that is built; that one stays as it is. `half` goes
to a GPU; the others stay on the host."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn.built import Network
from unrolled.nn.layers import Conv2d, Layer, Linear
from unrolled.nn.smaller_layers import BinaryLinear, Half, Int8, PrunedConv2d, PrunedLinear
from unrolled.ops import precision
from unrolled.ops.arguments import check_arrays

N = TypeVar("N", bound=Network)
WEIGHTED = (Linear, Conv2d)


def half(network: N) -> N:
    """Return the network with the weights of dense and convolution layers in float16, summed in float32.

    The network may lie on a GPU, where tensor cores multiply.

    Raises OverflowError, which names the layer, where a weight is beyond float16.
    """

    def halved(number: int, layer: Layer) -> Layer:
        if type(layer) not in WEIGHTED:
            return _bare(layer)
        found = Half(_bare(layer))  # type: ignore[arg-type]
        try:
            halves = {name: precision.to_half(to_host(value)) for name, value in layer.parameters.items()}
        except OverflowError as error:
            raise OverflowError(f"layer {number}, {layer!r}: {error}") from None
        found.constants = {name: to_device(value, array_module(network.parameters)) for name, value in halves.items()}
        return found

    _check_built(network, anywhere=True)
    found = _converted(network, halved)
    weighted = [layer for layer in found.layers if isinstance(layer, Half)]
    for layer in weighted[-1:]:
        layer.last = True
    return found


def quantize(network: N, calibration: Array, percentile: float = 100.0) -> N:
    """Return the network with dense and convolution layers in int8: a scale a filter, and one for what comes in.

    The latter comes from what reaches each layer for the images `calibration` (N, ...); with a lower `percentile`
    the largest values are clipped, and the others are finer.
    """
    check_arrays(calibration=calibration)
    _check_built(network)
    if not len(calibration):
        raise ValueError(f"calibration has shape {calibration.shape}; expected at least one image")
    x, scales = calibration, []
    for layer in network.layers:
        scales.append(precision.int8_scale(x, percentile=percentile) if type(layer) in WEIGHTED else None)
        x = layer.forward(x)

    def quantized(number: int, layer: Layer) -> Layer:
        if type(layer) not in WEIGHTED:
            return _bare(layer)
        found, weight = Int8(_bare(layer)), layer.parameters["weight"]  # type: ignore[arg-type]
        scale = precision.int8_scale(weight, axis=0)
        found.constants = {"weight": precision.quantize_int8(weight, scale), "weight_scale": scale.reshape(-1)}
        found.constants |= {"input_scale": scales[number], "bias": layer.parameters["bias"].astype(np.float32)}
        return found

    return _converted(network, quantized)


def prune(network: N, fraction: float) -> N:
    """Return the network with that fraction of its weights, the smallest of all, at 0; they stay 0 in training.

    Layers are compared with each other: a small convolution, whose weights are larger, keeps more of them.
    Weights of dense and convolution layers count, no biases.
    """
    _check_built(network)
    kinds: dict[type, type[Layer]] = {Linear: PrunedLinear, Conv2d: PrunedConv2d}
    found = _converted(network, lambda _, layer: _bare(layer, kinds.get(type(layer))))
    layers = [layer for layer in found.layers if isinstance(layer, (PrunedLinear, PrunedConv2d))]
    weights = [layer.parameters["weight"] for layer in layers]
    if not weights:
        raise ValueError("this network has no dense or convolution layer to prune")
    mask = precision.magnitude_mask(np.concatenate([weight.ravel() for weight in weights]), fraction)
    ends = np.cumsum([weight.size for weight in weights])[:-1]
    for layer, weight, part in zip(layers, weights, np.split(mask, ends), strict=True):
        layer.state["mask"] = part.reshape(weight.shape)
        layer.forget()
    return found


def binarize(network: N) -> N:
    """Return the network with binary dense layers, but for the first and the last layer with weights; train it further.

    Raises ValueError where there is no dense layer between these two.
    """
    _check_built(network)
    weighted = [number for number, layer in enumerate(network.layers) if layer.parameter_shapes]
    inner = [number for number in weighted[1:-1] if type(network.layers[number]) is Linear]
    if not inner:
        raise ValueError("this network has no dense layer between its first and last layer with weights")
    return _converted(network, lambda number, layer: _bare(layer, BinaryLinear if number in inner else None))


def _converted(network: N, convert: Callable[[int, Layer], Layer]) -> N:
    """A network of the converted layers, with the parameters and state that they have in common."""
    layers = [convert(number, layer) for number, layer in enumerate(network.layers)]
    kind: Callable[..., N] = type(network)
    found = kind(*layers, loss=network.loss, seed=network.seed, dtype=network.dtype)
    found.build(network.input_shape or (), array_module(network.parameters))
    for old, new in zip(network.layers, found.layers, strict=True):
        for there, values in ((new.parameters, old.parameters), (new.state, old.state)):
            there.update({name: value for name, value in values.items() if name in there})
    return found


def _bare(layer: Layer, kind: type[Layer] | None = None) -> Layer:
    """A copy without a network and arrays, as a layer of another kind if given."""
    found = copy.copy(layer)
    found.network, found.is_first = None, False
    if kind is not None:
        found.__class__ = kind
    return found


def _check_built(network: Network, anywhere: bool = False) -> None:
    if network.input_shape is None:
        raise ValueError("this network has no parameters yet: train it or build it first")
    if not anywhere and array_module(network.parameters) is not np:
        raise TypeError("smaller networks run in NumPy, but this one lies on a device: build it on the host")
