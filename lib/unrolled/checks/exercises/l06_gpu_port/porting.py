"""Functions that run wherever their arrays are: the references of lesson 06, and usual mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Inputs, Mistake
from unrolled.device import Array, array_module

KINDS = ("step", "relu", "leaky_relu", "sigmoid")
FEW = 12
"""Images in the largest case of a convolution."""


def activate(kind: str, x: Array) -> Array:
    """The activation of this name."""
    return {"step": ops.step, "relu": ops.relu, "leaky_relu": ops.leaky_relu, "sigmoid": ops.sigmoid}[kind](x)


def convolution(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """`ops.conv2d` with stride 1."""
    return ops.conv2d(x, weight, bias, 1, padding)


def image_by_image(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """A convolution with a product for each image: right, and many small launches. A baseline for speed.

    A few images are taken together: so it keeps to the budget of the cases, as a baseline must.
    """
    if len(x) <= FEW:
        return convolution(x, weight, bias, padding)
    oh, ow = ops.conv2d_output_size(x.shape[2:], weight.shape[2:], 1, padding)
    y = array_module(x).empty((len(x), len(weight), oh, ow), dtype=x.dtype)
    for i in range(len(x)):
        y[i : i + 1] = ops.conv2d(x[i : i + 1], weight, bias, 1, padding)
    return y


def pooling(x: Array, kernel_size: int) -> tuple[Array, Array]:
    """(the largest pixels, where they lie): `ops.max_pool2d_with_indices`."""
    y, indices = ops.max_pool2d_with_indices(x, kernel_size)
    return y, indices


def epoch(
    images: Array, labels: Array, weight: Array, bias: Array, batch_size: int, rate: float
) -> tuple[Array, Array, Array]:
    """(weight, bias, loss of each step) after an epoch of softmax regression."""
    starts = range(0, len(images), batch_size)
    losses = array_module(images).zeros(len(starts), dtype=weight.dtype)
    for step, start in enumerate(starts):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses[step] = loss
    return weight, bias, losses


def any_epoch(rng: np.random.Generator) -> Inputs:
    """Six steps or so, the last one smaller."""
    batch_size = int(rng.integers(5, 9))
    return epoch_of(rng, 5 * batch_size + int(rng.integers(1, batch_size)), batch_size)


def epoch_of(rng: np.random.Generator, count: int, batch_size: int) -> Inputs:
    """An epoch of `count` images of 1 x 4 x 4 and three classes."""
    return {
        "images": rng.standard_normal((count, 1, 4, 4)).astype(np.float32),
        "labels": rng.integers(0, 3, count),
        "weight": (0.1 * rng.standard_normal((3, 16))).astype(np.float32),
        "bias": (0.1 * rng.standard_normal(3)).astype(np.float32),
        "batch_size": batch_size,
        "rate": 0.5,
    }


def _leaky(slope: float) -> Any:
    return lambda kind, x: np.maximum(x, slope * x) if kind == "leaky_relu" else activate(kind, x)


ACTIVATION_MISTAKES = (
    Mistake("the slope below zero is 0.01", _leaky(0.1)),
    Mistake(
        "the sign in the exponent is wrong: sigmoid is 1 / (1 + exp(-x))",
        lambda kind, x: ops.sigmoid(-x) if kind == "sigmoid" else activate(kind, x),
    ),
    Mistake(
        "your step is 1 at 0, too: it is 1 where x > 0",
        lambda kind, x: (x >= 0).astype(x.dtype) if kind == "step" else activate(kind, x),
    ),
)

CONVOLUTION_MISTAKES = (
    Mistake("the bias is missing", lambda x, weight, bias, padding=0: convolution(x, weight, 0 * bias, padding)),
    Mistake("the padding is missing", lambda x, weight, bias, padding=0: convolution(x, weight, bias)),
    Mistake(
        "your kernels are flipped, as in the mathematical convolution: deep learning leaves them as they are",
        lambda x, weight, bias, padding=0: convolution(x, weight[:, :, ::-1, ::-1], bias, padding),
    ),
)


def _with_indices(change: Any) -> Any:
    """A mistake in the indices alone: change(indices, x, kernel_size)."""

    def wrong(x: Array, kernel_size: int) -> tuple[Array, Array]:
        y, indices = pooling(x, kernel_size)
        return y, change(indices, x, kernel_size)

    return wrong


def _last_maximum(x: Array, kernel_size: int) -> tuple[Array, Array]:
    """Of equal maxima the last one."""
    h, w = x.shape[2:]
    k, oh, ow = kernel_size, h // kernel_size, w // kernel_size
    cut = x[:, :, : oh * k, : ow * k]
    y, indices = pooling(cut[:, :, ::-1, ::-1], k)
    turned = cut.shape[2] * cut.shape[3] - 1 - indices[:, :, ::-1, ::-1]
    return y[:, :, ::-1, ::-1], turned // (ow * k) * w + turned % (ow * k)


POOLING_PORT_MISTAKES = (
    Mistake("of equal maxima the first wins: take a new leader only where it is larger, not equal", _last_maximum),
    Mistake(
        "your index is the place inside the window: in the image it is row * W + column",
        _with_indices(
            lambda indices, x, k: indices // x.shape[3] % k * k + indices % x.shape[3] % k,
        ),
    ),
    Mistake(
        "your index is column * H + row: it is row * W + column",
        _with_indices(lambda indices, x, k: indices % x.shape[3] * x.shape[2] + indices // x.shape[3]),
    ),
    Mistake(
        "your index says where the window begins: add the place of the winner inside it",
        _with_indices(
            lambda indices, x, k: indices // x.shape[3] // k * k * x.shape[3] + indices % x.shape[3] // k * k
        ),
    ),
)


def _steps(change: Any) -> Any:
    """An epoch on other arguments."""

    def wrong(**inputs: Any) -> tuple[Array, Array, Array]:
        return epoch(**change(dict(inputs)))

    return wrong


def _without_the_last(inputs: Inputs) -> Inputs:
    whole = len(inputs["images"]) // inputs["batch_size"] * inputs["batch_size"]
    return {**inputs, "images": inputs["images"][:whole], "labels": inputs["labels"][:whole]}


def _bias_stays(**inputs: Any) -> tuple[Array, Array, Array]:
    weight, _, losses = epoch(**inputs)
    return weight, inputs["bias"], losses


EPOCH_MISTAKES = (
    Mistake(
        "the step goes uphill: go against the gradient", _steps(lambda inputs: {**inputs, "rate": -inputs["rate"]})
    ),
    Mistake("the last, smaller batch is left out", _steps(_without_the_last)),
    Mistake("the weights did not move", _steps(lambda inputs: {**inputs, "rate": 0.0})),
    Mistake("you return the bias that came in", _bias_stays),
)
