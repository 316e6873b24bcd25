"""An epoch of softmax regression where the arrays lie: what it is tried on, and usual mistakes."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l05_train_a_cnn.batches import LAST_LEFT_OUT
from unrolled.checks.mistakes import Function, Mistake, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array, array_module


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


def _steps(says: str, weight_step: Function, bias_step: Function) -> Mistake:
    """Return the mistake of other steps: weight_step(grad, x, rate) and bias_step(grad, rate)."""

    def wrong(
        images: Array, labels: Array, weight: Array, bias: Array, batch_size: int, rate: float
    ) -> tuple[Array, Array, Array]:
        losses = []
        for start in range(0, len(images), batch_size):
            x = images[start : start + batch_size].reshape(-1, weight.shape[1])
            loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
            weight, bias = weight - weight_step(grad, x, rate), bias - bias_step(grad, rate)
            losses.append(loss)
        return weight, bias, np.array(losses, weight.dtype)

    return Mistake(says, wrong)


def _for_weight(grad: Array, x: Array, rate: float) -> Array:
    return rate * (grad.T @ x)


def _for_bias(grad: Array, rate: float) -> Array:
    return np.asarray(rate * grad.sum(axis=0))


MEAN = "grad has its 1/N already, since the loss is a mean: {}"

MISTAKES = (
    given("the step goes uphill: go against the gradient", rate=lambda rate: -rate),
    LAST_LEFT_OUT,
    given("the weights did not move", rate=0.0),
    given("the rate is missing: a step is rate times the gradient", rate=1.0),
    _steps("the bias stays as it was: it takes a step, too", _for_weight, lambda grad, rate: 0),
    _steps("the weight stays as it was: it takes a step, too", lambda grad, x, rate: 0, _for_bias),
    _steps(MEAN.format("do not divide it again"), lambda grad, x, rate: rate * (grad.T @ x) / len(x), _for_bias),
    _steps(MEAN.format("add up for the bias"), _for_weight, lambda grad, rate: rate * grad.mean(axis=0)),
    result("the order is weight, bias, losses", lambda y: (y[2], y[0], y[1])),
    result("you return the bias that came in", lambda y, bias: (y[0], bias, y[2])),
)
