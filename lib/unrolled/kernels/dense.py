"""A dense layer for few samples: what takes time is reading the weights, so each of them is read once a pass.

A thread holds a sum for each of the BATCH samples, so every weight that it loads serves all of them.
"""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Kernel, Options, source


def forward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    """Write x (N, D) @ weight (O, D).T + bias (O,) to y (N, O), without what is negative if `relu`."""
    (x, weight, bias), (y, *_) = inputs, outputs
    y[...] = x @ weight.T + bias
    if options["relu"]:
        np.maximum(y, 0, out=y)


def backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    """Write the gradients by x (if `inputs`, and 0 where x is if `masked`), weight and bias, from that by y (N, O)."""
    (grad, x, weight), (grad_x, grad_weight, grad_bias, *_) = inputs, outputs
    if options["inputs"]:
        grad_x[...] = grad @ weight * (x > 0) if options["masked"] else grad @ weight
    grad_weight[...] = grad.T @ x
    grad_bias[...] = grad.sum(axis=0)


def flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    """Return the operations of one product: the number of samples times the number of weights, twice."""
    return int(2 * inputs[0].shape[0] * inputs[1].size)


def backward_flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    """Return the operations of the products of the backward pass."""
    return int(2 * inputs[0].shape[0] * inputs[2].size * (1 + options["inputs"]))


dense = Kernel(
    "dense", source("dense"), forward, flops, threads=lambda size, options: int(options["o"] * options["block"])
)


dense_backward = Kernel(
    "dense_backward",
    source("dense_backward"),
    backward,
    backward_flops,
    threads=lambda size, options: int(-(-options["d"] // 32) * options["block"]),
)
