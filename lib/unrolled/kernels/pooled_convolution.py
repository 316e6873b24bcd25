"""Convolution, bias, ReLU and max-pooling in one launch, and the gradient of its weights in another.

The map between convolution and pooling is never written. A thread computes all places of one pooling window, keeps the
largest, and notes where it was: the route that the gradient takes back. Only these places have a gradient, so the
weights' is a sum over one place in KH * KW of the window.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.kernels.columns import check_windows
from unrolled.kernels.kernel import LAST_BLOCK, Arrays, Kernel, Options, of_blocks, source


def _windows(x: Any, weight: Any, options: Options) -> Any:
    """The windows (N, C, OH, OW, KH, KW) of x (N, C, H, W), padded, that meet weight (O, C, KH, KW)."""
    rows, columns = options["ph"], options["pw"]
    padded = np.pad(x, ((0, 0), (0, 0), (rows, rows), (columns, columns)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weight.shape[2:], (2, 3))
    return windows[:, :, :: options["sh"], :: options["sw"]]


def _pooled_convolution(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, weight, bias), (y, routes) = inputs, outputs
    check_windows(options, x)
    values = np.einsum("ncyxij,ocij->noyx", _windows(x, weight, options), weight, optimize=True)
    values = values + bias[:, None, None]
    room = options["rh"], options["rw"]
    values = np.pad(values, ((0, 0), (0, 0), *((r, r) for r in room)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(values, (options["qh"], options["qw"]), (2, 3))
    windows = windows[:, :, :: options["th"], :: options["tw"]].reshape(*y.shape, -1)
    routes[...] = windows.argmax(axis=-1)  # the first NaN, else the first of the largest
    largest = windows.max(axis=-1)
    y[...] = np.maximum(largest, 0) if options["relu"] else largest


def _convolution_weights(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, routes, x), (weight, bias, *_) = inputs, outputs
    check_windows(options, x)
    dense = unpooled(grad, routes, options)
    weight[...] = np.einsum("ncyxij,noyx->ocij", _windows(x, weight, options), dense, optimize=True)
    bias[...] = grad.sum(axis=(0, 2, 3))


def unpooled(grad: Any, routes: Any, options: Options) -> Any:
    """Return the gradient by the convolution's map (N, O, OH, OW)."""
    dense = np.zeros((*grad.shape[:2], options["oh"], options["ow"]), grad.dtype)
    rows = np.arange(options["yh"])[:, None] * options["th"] - options["rh"] + routes // options["qw"]
    columns = np.arange(options["yw"]) * options["tw"] - options["rw"] + routes % options["qw"]
    for places, size in zip((rows, columns), dense.shape[2:], strict=True):
        if places.size and not 0 <= places.min() <= places.max() < size:
            raise ValueError(f"routes lead out of maps of shape {dense.shape}")
    images, filters = np.ogrid[: grad.shape[0], : grad.shape[1]]
    np.add.at(dense, (images[..., None, None], filters[..., None, None], rows, columns), grad)
    return dense


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    map_size = outputs[0].shape[0] * options["o"] * options["oh"] * options["ow"]
    return int(2 * map_size * options["c"] * options["kh"] * options["kw"])


pooled_convolution = Kernel(
    "pooled_convolution", source("pooled_convolution"), _pooled_convolution, _flops, threads=of_blocks
)
"""x (N, C, H, W), weight, bias to y (N, O, YH, YW) and routes of the same shape, uint8: places inside the windows."""
convolution_weights = Kernel(
    "convolution_weights",
    LAST_BLOCK + source("convolution_weights"),
    _convolution_weights,
    lambda inputs, outputs, options: int(2 * inputs[0].size * options["c"] * options["kh"] * options["kw"]),
    size=lambda inputs, outputs: int(inputs[2].shape[0]),
    threads=of_blocks,
)
"""grad (N, O, YH, YW), routes, x to the gradients of weight and bias.

Scratch: sums of O * (C * KH * KW + 1) values for each split and each group of splits, and counters, int32, one for each
team of warps and for each of its groups, 0 before and after.
"""
