"""Functions that run wherever their arrays are: the references of lesson 06, and usual mistakes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l05_train_a_cnn.batches import LAST_LEFT_OUT
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array, array_module

KINDS = ("step", "relu", "leaky_relu", "sigmoid")
FEW = 12
"""Images in the largest case of a convolution."""


def activate(kind: str, x: Array) -> Array:
    """Return the activation of this name."""
    return {"step": ops.step, "relu": ops.relu, "leaky_relu": ops.leaky_relu, "sigmoid": ops.sigmoid}[kind](x)


def convolution(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Return `ops.conv2d` with stride 1."""
    return ops.conv2d(x, weight, bias, 1, padding)


def image_by_image(x: Array, weight: Array, bias: Array, padding: int = 0) -> Array:
    """Convolve with a product for each image: right, and many small launches. A baseline for speed.

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
    """Return (the largest pixels, where they lie): `ops.max_pool2d_with_indices`."""
    y, indices = ops.max_pool2d_with_indices(x, kernel_size)
    return y, indices


def epoch(
    images: Array, labels: Array, weight: Array, bias: Array, batch_size: int, rate: float
) -> tuple[Array, Array, Array]:
    """Return (weight, bias, loss of each step) after an epoch of softmax regression."""
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
    """Draw an epoch of six steps, the last one smaller."""
    batch_size = int(rng.integers(5, 9))
    return epoch_of(rng, 5 * batch_size + int(rng.integers(1, batch_size)), batch_size)


def epoch_of(rng: np.random.Generator, count: int, batch_size: int) -> Inputs:
    """Draw an epoch of `count` images of 1 x 4 x 4 and three classes."""
    return {
        "images": rng.standard_normal((count, 1, 4, 4)).astype(np.float32),
        "labels": rng.integers(0, 3, count),
        "weight": (0.1 * rng.standard_normal((3, 16))).astype(np.float32),
        "bias": (0.1 * rng.standard_normal(3)).astype(np.float32),
        "batch_size": batch_size,
        "rate": 0.5,
    }


ACTIVATION_MISTAKES = (
    result("the slope below zero is 0.01", lambda y, kind, x: np.maximum(x, 0.1 * x) if kind == "leaky_relu" else y),
    given(
        "the sign in the exponent is wrong: sigmoid is 1 / (1 + exp(-x))",
        x=lambda kind, x: -x if kind == "sigmoid" else x,
    ),
    result(
        "your step is 1 at 0, too: it is 1 where x > 0",
        lambda y, kind, x: (x >= 0).astype(x.dtype) if kind == "step" else y,
    ),
)

CONVOLUTION_MISTAKES = (
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given("the padding is missing", padding=0),
    given(
        "your kernels are flipped, as in the mathematical convolution: deep learning leaves them as they are",
        weight=lambda weight: weight[:, :, ::-1, ::-1],
    ),
)


def _last_maximum(x: Array, kernel_size: int) -> tuple[Array, Array]:
    """Return as `pooling` does, but of equal maxima the last one."""
    h, w = x.shape[2:]
    k, oh, ow = kernel_size, h // kernel_size, w // kernel_size
    cut = x[:, :, : oh * k, : ow * k]
    y, indices = pooling(cut[:, :, ::-1, ::-1], k)
    turned = cut.shape[2] * cut.shape[3] - 1 - indices[:, :, ::-1, ::-1]
    return y[:, :, ::-1, ::-1], turned // (ow * k) * w + turned % (ow * k)


def _index(says: str, index: Callable[[Array, Array, int, int, int], Array]) -> Mistake:
    """Return the mistake of `index(row, column, height, width, kernel_size)` in place of row * width + column."""

    def changed(y: tuple[Array, Array], x: Array, kernel_size: int) -> tuple[Array, Array]:
        height, width = x.shape[2:]
        return y[0], index(y[1] // width, y[1] % width, height, width, kernel_size)

    return result(says, changed)


POOLING_PORT_MISTAKES = (
    Mistake("of equal maxima the first wins: take a new leader only where it is larger, not equal", _last_maximum),
    _index(
        "your index is the place inside the window: in the image it is row * W + column",
        lambda row, column, height, width, k: row % k * k + column % k,
    ),
    _index(
        "your index is column * H + row: it is row * W + column",
        lambda row, column, height, width, k: column * height + row,
    ),
    _index(
        "your index says where the window begins: add the place of the winner inside it",
        lambda row, column, height, width, k: row // k * k * width + column // k * k,
    ),
)

EPOCH_MISTAKES = (
    given("the step goes uphill: go against the gradient", rate=lambda rate: -rate),
    LAST_LEFT_OUT,
    given("the weights did not move", rate=0.0),
    result("you return the bias that came in", lambda y, bias: (y[0], bias, y[2])),
)
