"""Mistakes of dense layers and of the loss, and random arguments for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l04_backprop.gradients import with_item
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

ADD_UP = "add up. A loss that is a mean has put its 1/N into grad already"
MEAN_TWICE = f"grad_weight and grad_bias are divided by N: {ADD_UP}"

# affine_backward


def any_affine(rng: np.random.Generator) -> Inputs:
    n, d, m = (int(size) for size in rng.integers(1, 7, 3))
    shapes = {"grad": (n, m), "x": (n, d), "weight": (m, d)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _in_affine(index: int, change: Callable[[Array, Array, Array, Array], Any]) -> Function:
    """A mistake in one item: change(item, grad, x, weight)."""
    return with_item(ops.affine_backward, index, lambda item, grad, x, weight: change(item, grad, x, weight))


def _affine_in_order(*order: int) -> Function:
    return lambda **inputs: tuple(ops.affine_backward(**inputs)[index] for index in order)


AFFINE_MISTAKES = (
    Mistake(
        "grad_x: weight is the wrong way round: grad (N, M) @ weight (M, D)",
        _in_affine(0, lambda r, g, x, w: g @ w.T),
    ),
    Mistake("grad_weight is transposed: it is (M, D), as weight is", _in_affine(1, lambda r, g, x, w: x.T @ g)),
    Mistake("grad_weight: multiply by x, not by weight", _in_affine(1, lambda r, g, x, w: g.T @ w)),
    Mistake(
        "grad_bias is summed over the outputs: sum over the samples, axis 0",
        _in_affine(2, lambda r, g, x, w: g.sum(1)),
    ),
    Mistake("grad_bias is summed over everything: one number an output", _in_affine(2, lambda r, g, x, w: g.sum())),
    Mistake(
        "grad_bias is the mean over the samples: " + ADD_UP,
        _in_affine(2, lambda r, g, x, w: g.mean(0)),
    ),
    Mistake(
        MEAN_TWICE,
        lambda grad, x, weight: (grad @ weight, grad.T @ x / len(x), grad.mean(0)),
    ),
    Mistake("grad_bias has no sum over the samples: (N, M) must become (M,)", _in_affine(2, lambda r, g, x, w: g)),
    Mistake("the sign of grad_bias is turned", _in_affine(2, lambda r, g, x, w: -r)),
    Mistake("the order is grad_x, grad_weight, grad_bias", _affine_in_order(1, 0, 2)),
    Mistake("the order is grad_x, grad_weight, grad_bias", _affine_in_order(1, 2, 0)),
)


# softmax_cross_entropy


def any_labelled(rng: np.random.Generator) -> Inputs:
    n, m = (int(size) for size in rng.integers(2, 7, 2))
    scores = (3 * rng.standard_normal((n, m))).astype(np.float32)
    return {"scores": scores, "labels": rng.integers(0, m, n)}


def _by_probabilities(shift: Callable[[Array], Any], one_hot_sum: bool = False) -> Function:
    """Probabilities first, their logarithm second: what the stable form avoids. `shift(scores)` is subtracted."""

    def wrong(scores: Array, labels: Array) -> Any:
        n, m = scores.shape
        one_hot = np.eye(m, dtype=scores.dtype)[labels]
        exponentials = np.exp(scores - shift(scores))
        p = exponentials / exponentials.sum(axis=1, keepdims=True)
        losses = -(one_hot * np.log(p)).sum(axis=1) if one_hot_sum else -np.log(p[np.arange(n), labels])
        return losses.mean(), (p - one_hot) / n

    return wrong


def _plain_logarithm_of_sum(scores: Array, labels: Array) -> Any:
    n, m = scores.shape
    sums = np.exp(scores).sum(axis=1)
    grad = np.exp(scores) / sums[:, None] - np.eye(m, dtype=scores.dtype)[labels]
    return (np.log(sums) - scores[np.arange(n), labels]).mean(), grad / n


def _in_loss(index: int, change: Callable[[Any, Array, Array], Any]) -> Function:
    """A mistake in the loss (0) or in its gradient (1): change(item, scores, labels)."""
    return with_item(ops.softmax_cross_entropy, index, lambda item, scores, labels: change(item, scores, labels))


def _one_hot(scores: Array, labels: Array) -> Array:
    return np.eye(scores.shape[1], dtype=scores.dtype)[labels]


def _row_max(scores: Array) -> Array:
    return np.asarray(scores.max(axis=1, keepdims=True))


OVERFLOWS = "exp overflows: subtract the largest score of each row first; softmax stays the same"
LOG_OF_0 = "a probability became 0 and its logarithm -inf: take the log of the sum, never of a probability"

LOSS_MISTAKES = (
    Mistake(
        "0 * log(0) is NaN: pick the one logarithm you need by its label, and take it of the sum",
        _by_probabilities(_row_max, one_hot_sum=True),
    ),
    Mistake(LOG_OF_0, _by_probabilities(_row_max)),
    Mistake(OVERFLOWS, _by_probabilities(lambda scores: 0)),
    Mistake(OVERFLOWS, _by_probabilities(lambda scores: 0, one_hot_sum=True)),
    Mistake(OVERFLOWS, _plain_logarithm_of_sum),
    Mistake("subtract the maximum of each row (axis=1), not of the whole array", _by_probabilities(np.max)),
    Mistake("the loss is a mean over the samples: yours is the sum", _in_loss(0, lambda r, s, t: r * len(s))),
    Mistake(
        "loss and gradient are those of the sum over the samples: divide both by N",
        lambda scores, labels: tuple(len(scores) * r for r in ops.softmax_cross_entropy(scores, labels)),
    ),
    Mistake("the mean is over the N samples: you divided by N * M", _in_loss(0, lambda r, s, t: r / s.shape[1])),
    Mistake("the sign of the loss is turned: it is minus a logarithm", _in_loss(0, lambda r, s, t: -r)),
    Mistake("use the natural logarithm, np.log", _in_loss(0, lambda r, s, t: r / np.log(2))),
    Mistake(
        "the gradient is not divided by N: the loss is a mean, so each sample has a share of 1/N",
        _in_loss(1, lambda r, s, t: r * len(s)),
    ),
    Mistake(
        "these are the probabilities: subtract 1 at the right class of each row",
        _in_loss(1, lambda r, s, t: ops.softmax(s)),
    ),
    Mistake(
        "these are the probabilities / N: subtract 1 at the right class of each row, before you divide",
        _in_loss(1, lambda r, s, t: ops.softmax(s) / len(s)),
    ),
    Mistake("the sign of the gradient is turned: probabilities minus one-hot", _in_loss(1, lambda r, s, t: -r)),
    Mistake(
        "divide by N after you subtract the 1, not before",
        _in_loss(1, lambda r, s, t: ops.softmax(s) / len(s) - _one_hot(s, t)),
    ),
)
