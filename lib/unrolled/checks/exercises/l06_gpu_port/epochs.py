"""An epoch of softmax regression, and the usual mistakes in it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from unrolled import ops
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l05_train_a_cnn.batches import LAST_LEFT_OUT
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array, array_module


def epoch(
    images: Array,
    labels: Array,
    weight: Array,
    bias: Array,
    batch_size: int,
    rate: float,
    *,
    weight_share: Callable[[int], float] = lambda count: 1,
    bias_share: Callable[[int], float] = lambda count: 1,
) -> tuple[Array, Array, Array]:
    """Return (weight, bias, loss of each step) after an epoch of softmax regression.

    Mistakes take a share of a step alone, by the `count` of images in it.
    """
    starts = range(0, len(images), batch_size)
    losses = array_module(images).zeros(len(starts), dtype=weight.dtype)
    for step, start in enumerate(starts):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
        weight = weight - weight_share(len(x)) * rate * (grad.T @ x)
        bias = bias - bias_share(len(x)) * rate * grad.sum(axis=0)
        losses[step] = loss
    return weight, bias, losses


def any_epoch(rng: np.random.Generator) -> Inputs:
    """Draw an epoch of up to three steps, the last of which may be smaller; images have one axis or three."""
    batch_size = edge_size(rng, 8)
    count, classes = int(rng.integers(1, 3 * batch_size + 1)), 1 + edge_size(rng, 4)
    shape = [(edge_size(rng, 9),), (edge_size(rng, 3), edge_size(rng, 4), edge_size(rng, 4))][rng.integers(0, 2)]
    return {**epoch_of(rng, count, batch_size, shape, classes), "rate": float(rng.choice([0.01, 0.5, 1.5]))}


def epoch_of(
    rng: np.random.Generator, count: int, batch_size: int, shape: tuple[int, ...] = (1, 4, 4), classes: int = 3
) -> Inputs:
    """Draw an epoch of `count` images of this shape."""
    return {
        "images": rng.standard_normal((count, *shape)).astype(np.float32),
        "labels": rng.integers(0, classes, count),
        "weight": (0.1 * rng.standard_normal((classes, math.prod(shape)))).astype(np.float32),
        "bias": (0.1 * rng.standard_normal(classes)).astype(np.float32),
        "batch_size": batch_size,
        "rate": 0.5,
    }


NO_MEAN = "grad has its 1/N already, since the loss is a mean: {}"

MISTAKES = (
    given("the step goes uphill: go against the gradient", rate=lambda rate: -rate),
    LAST_LEFT_OUT,
    given("the weights did not move", rate=0.0),
    given("the rate is missing: a step is rate times the gradient", rate=1.0),
    Mistake("the bias stays as it was: it takes a step, too", partial(epoch, bias_share=lambda count: 0)),
    Mistake("the weight stays as it was: it takes a step, too", partial(epoch, weight_share=lambda count: 0)),
    Mistake(NO_MEAN.format("do not divide it again"), partial(epoch, weight_share=lambda count: 1 / count)),
    Mistake(NO_MEAN.format("add up for the bias"), partial(epoch, bias_share=lambda count: 1 / count)),
    result("the order is weight, bias, losses", lambda y: (y[2], y[0], y[1])),
    result("you return the bias that came in", lambda y, bias: (y[0], bias, y[2])),
)
