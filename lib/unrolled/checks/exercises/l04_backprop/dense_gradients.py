"""The way back through dense layers and through the loss, with labels as they are or smoothed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.exercises.l04_backprop.gradients import in_bias, in_item, in_weight, in_x
from unrolled.checks.mistakes import Function, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array

ADD_UP = "add up. A loss that is a mean has put its 1/N into grad already"
ORDER = "the order is grad_x, grad_weight, grad_bias"

MEAN_TWICE = result(
    f"grad_weight and grad_bias are divided by N: {ADD_UP}", lambda y, x: (y[0], y[1] / len(x), y[2] / len(x))
)
WEIGHT_FIRST = result(ORDER, lambda y: (y[1], y[0], y[2]))

AFFINE_MISTAKES = (
    in_x("grad_x: weight is the wrong way round: grad (N, M) @ weight (M, D)", lambda _, grad, weight: grad @ weight.T),
    in_weight("grad_weight is transposed: it is (M, D), as weight is", lambda grad_weight: grad_weight.T),
    in_weight("grad_weight: multiply by x, not by weight", lambda _, grad, weight: grad.T @ weight),
    in_bias("the sign of grad_bias is turned", lambda grad_bias: -grad_bias),
    in_bias("grad_bias is summed over the outputs: sum over the samples, axis 0", lambda _, grad: grad.sum(1)),
    in_bias("grad_bias is summed over everything: one number an output", lambda _, grad: grad.sum()),
    in_bias(f"grad_bias is the mean over the samples: {ADD_UP}", lambda _, grad: grad.mean(axis=0)),
    MEAN_TWICE,
    in_weight(f"grad_weight is divided by N: {ADD_UP}", lambda grad_weight, x: grad_weight / len(x)),
    in_bias("keepdims=True leaves an axis of size 1: grad_bias is (M,)", lambda grad_bias: grad_bias[None]),
    in_bias("grad_bias has no sum over the samples: (N, M) must become (M,)", lambda _, grad: grad),
    WEIGHT_FIRST,
    result(ORDER, lambda y: (y[1], y[2], y[0])),
)


def any_layer(rng: np.random.Generator) -> Inputs:
    """Draw grad (N, M), x (N, D) and weight (M, D)."""
    n, d, m = (edge_size(rng, 8) for _ in range(3))
    return any_arrays(rng, grad=(n, m), weight=(m, d), x=(n, d))


def any_labelled(rng: np.random.Generator) -> Inputs:
    """Draw scores (N, M), with ties, far from 0, or so far apart that probabilities become 0, and labels (N,)."""
    n, m = edge_size(rng, 7), edge_size(rng, 7, low=2)
    dtype, far = (("f4", 200), ("f8", 1e9))[rng.integers(2)]  # float32 has no fractions there
    scores = rng.choice([1, 3, 100]) * rng.standard_normal((n, m)) + rng.choice([0, 0, -far, far])
    scores = (np.round(scores) if rng.random() < 0.3 else scores).astype(dtype)
    return {"scores": scores, "labels": rng.integers(0, m, n)}


def any_smoothed(rng: np.random.Generator) -> Inputs:
    """Draw scores (N, M), labels (N,) and a smoothing, or none."""
    smoothing = {} if rng.random() < 0.3 else {"smoothing": float(rng.choice([0, rng.random()]))}
    return any_labelled(rng) | smoothing


def smoothed_cross_entropy(scores: Array, labels: Array, smoothing: float = 0.1) -> tuple[Array, Array]:
    """Return the cross entropy, with targets of smoothing / M for every class and 1 - smoothing more for the label.

    C. Szegedy and others, 2016: Rethinking the Inception Architecture for Computer Vision, section 7.
    """
    return _cross_entropy(scores, _smoothed(scores, labels, smoothing))


def _cross_entropy(scores: Array, targets: Array) -> tuple[Array, Array]:
    """Return the sum of -target * log(softmax) over the classes, mean over N, and (softmax - targets) / N, (N, M)."""
    shifted = scores - _row_max(scores)
    sums = np.exp(shifted).sum(axis=1, keepdims=True)
    losses = (targets * (np.log(sums) - shifted)).sum(axis=1)
    return losses.mean(), (np.exp(shifted) / sums - targets) / len(scores)


def _row_max(scores: Array) -> Array:
    return np.asarray(scores.max(axis=1, keepdims=True))


def _targets(scores: Array, labels: Array, others: float, own: float) -> Array:
    """Return targets as scores (N, M): `own` at the label of each row, and `others` elsewhere."""
    targets = np.full_like(scores, others)
    targets[np.arange(len(labels)), labels] = own
    return targets


def _smoothed(scores: Array, labels: Array, smoothing: float) -> Array:
    """Return the right targets, as scores (N, M)."""
    share = smoothing / scores.shape[1]
    return _targets(scores, labels, share, 1 - smoothing + share)


def _chosen(values: Array, labels: Array, smoothing: float) -> Array:
    """Return, for each row of values (N, M), the sum of target times value, from the label's value and the mean."""
    own: Array = values[np.arange(len(labels)), labels]
    return (1 - smoothing) * own + smoothing * values.mean(axis=1) if smoothing else own


# Mistakes with plain labels as well, which have a smoothing of 0.


def _in_steps(losses: Function, subtract: Function, axis: int | None = 1) -> Function:
    """Return the loss from the exponentials of scores - subtract(scores), and from their sums along this axis.

    losses(shifted, sums, labels, smoothing) are those of the rows, by one of the functions below.
    """

    def wrong(_: Any, scores: Array, labels: Array, smoothing: float = 0) -> tuple[Any, Array]:
        shifted = scores - subtract(scores)
        exponentials = np.exp(shifted)
        sums = exponentials.sum(axis=axis, keepdims=True)
        grad = (exponentials / sums - _smoothed(scores, labels, smoothing)) / len(scores)
        return losses(shifted, sums, labels, smoothing).mean(), grad

    return wrong


def _by_sums(shifted: Array, sums: Array, labels: Array, smoothing: float) -> Any:
    """Return the stable form: right if the largest score of each row was subtracted."""
    return np.log(sums[:, 0]) - _chosen(shifted, labels, smoothing)


def _by_probabilities(shifted: Array, sums: Array, labels: Array, smoothing: float) -> Any:
    """Return what the stable form avoids: the logarithm of probabilities."""
    return -_chosen(np.log(np.exp(shifted) / sums), labels, smoothing)


def _by_all_probabilities(shifted: Array, sums: Array, labels: Array, smoothing: float) -> Any:
    """Return the same, with the products of targets and logarithms added up over all classes."""
    logs = np.log(np.exp(shifted) / sums)
    return -(_smoothed(logs, labels, smoothing) * logs).sum(axis=1)


def _with_targets(others: Callable[[float, int], float], own: Callable[[float], float]) -> Function:
    """Return the loss with other targets: others(smoothing, M), and own(smoothing) at the label."""
    return lambda _, scores, labels, smoothing: _cross_entropy(
        scores, _targets(scores, labels, others(smoothing, scores.shape[1]), own(smoothing))
    )


def _with_small(number: float) -> Function:
    """Return the loss of probabilities to which a small number is added."""
    return lambda _, scores, labels: -np.log(_chosen(ops.softmax(scores), labels, 0) + scores.dtype.type(number)).mean()


def _by_all_labels(_: Any, scores: Array, labels: Array) -> Any:
    """Return the loss in which every row is paired with every label."""
    shifted = scores - _row_max(scores)
    return (np.log(np.exp(shifted).sum(axis=1)) - shifted[:, labels]).mean()


def _less_one_at(scores: Array, place: Any) -> Array:
    p = ops.softmax(scores)
    p[place] -= 1
    return np.asarray(p / len(p))


in_loss, in_grad = (functools.partial(in_item, index) for index in range(2))

LOG_OF_0 = "a probability became 0 and its logarithm -inf: take the log of the sum, never of a probability"
EVERY_LABEL = "[:, labels] pairs every row with every label: name the rows as well, [np.arange(N), labels]"
WHOLE_ROWS = "1 is subtracted from whole rows: a label is the second index, grad[np.arange(N), labels]"
SMALL = "a small number inside the logarithm caps the loss: take the logarithm of the sum, log(sum) - score"
OF_EACH_ROW = "subtract the maximum of each row (axis=1), not of the whole array"
OVERFLOWS = "exp overflows: subtract the largest score of each row first; softmax stays the same"

# Of plain labels and of smoothed ones.
SMOOTHED_OR_NOT = (
    result(LOG_OF_0, _in_steps(_by_probabilities, _row_max)),
    *(
        result(OVERFLOWS, _in_steps(way, lambda scores: 0))
        for way in (_by_probabilities, _by_all_probabilities, _by_sums)
    ),
    *(result(OF_EACH_ROW, _in_steps(way, np.max)) for way in (_by_probabilities, _by_sums)),
    in_loss("the loss is a mean over the samples: yours is the sum", lambda loss, scores: loss * len(scores)),
    result(
        "loss and gradient are those of the sum over the samples: divide both by N",
        lambda y, scores: (y[0] * len(scores), y[1] * len(scores)),
    ),
    in_loss("the sign of the loss is turned: it is minus a logarithm", lambda loss: -loss),
    in_grad(
        "the gradient is not divided by N: the loss is a mean, so each sample has a share of 1/N",
        lambda grad, scores: grad * len(scores),
    ),
)

LOSS_MISTAKES = (
    result(
        "0 * log(0) is NaN: pick the one logarithm you need by its label, and take it of the sum",
        _in_steps(_by_all_probabilities, _row_max),
    ),
    *SMOOTHED_OR_NOT,
    result(
        "softmax belongs to a row: divide by the sum of each row, .sum(axis=1), not of the whole array",
        _in_steps(_by_sums, _row_max, axis=None),
    ),
    *(in_loss(SMALL, _with_small(number)) for number in (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15)),
    in_loss(EVERY_LABEL, _by_all_labels),
    in_grad(EVERY_LABEL, lambda _, scores, labels: _less_one_at(scores, (slice(None), labels))),
    in_grad(WHOLE_ROWS, lambda _, scores, labels: _less_one_at(scores, labels)),
    in_grad(WHOLE_ROWS, lambda _, scores: _less_one_at(scores, ...)),
    in_grad(
        "= -1 puts -1 in the place of the probability: subtract 1 from it, -= 1",
        lambda grad, scores, labels: np.where(_smoothed(scores, labels, 0) == 1, -1 / len(scores), grad),
    ),
    in_grad("the gradient is divided by N * M: the loss is a mean over N", lambda grad, scores: grad / scores.shape[1]),
    in_loss(
        "the score of the right class is added: it is log(sum) - score",
        lambda loss, scores, labels: loss + 2 * _chosen(scores - _row_max(scores), labels, 0).mean(),
    ),
    in_loss(
        "these are the losses of the samples: the loss is their mean",
        lambda _, scores, labels: -np.log(_chosen(ops.softmax(scores), labels, 0)),
    ),
    in_loss("the mean is over the N samples: you divided by N * M", lambda loss, scores: loss / scores.shape[1]),
    in_loss("use the natural logarithm, np.log", lambda loss: loss / np.log(2)),
    in_grad(
        "these are the probabilities: subtract 1 at the right class of each row", lambda _, scores: ops.softmax(scores)
    ),
    in_grad("the sign of the gradient is turned: probabilities minus one-hot", lambda grad: -grad),
    in_grad(
        "divide by N after you subtract the 1, not before",
        lambda _, scores, labels: ops.softmax(scores) / len(scores) - _smoothed(scores, labels, 0),
    ),
)

SMOOTHING_MISTAKES = (
    given("the labels are not smoothed: this is the plain cross entropy", smoothing=0),
    in_loss(
        "the loss is the plain one: the other classes have a share in it as well",
        lambda _, scores, labels: ops.softmax_cross_entropy(scores, labels)[0],
    ),
    in_grad(
        "the gradient is the plain one: subtract the targets, not one-hot",
        lambda _, scores, labels: ops.softmax_cross_entropy(scores, labels)[1],
    ),
    result(
        "you give the smoothing to the other classes alone; here all M classes get smoothing / M, the label's, too",
        _with_targets(lambda smoothing, m: smoothing / (m - 1), lambda smoothing: 1 - smoothing),
    ),
    result(
        "the label gets its share of the smoothing as well: 1 - smoothing + smoothing / M, so that targets add up to 1",
        _with_targets(lambda smoothing, m: smoothing / m, lambda smoothing: 1 - smoothing),
    ),
    result(
        "the smoothing is shared out: each class gets smoothing / M",
        _with_targets(lambda smoothing, m: smoothing, lambda smoothing: 1),
    ),
    given("your smoothing is 0.1, whatever is asked: use the one you are given", smoothing=0.1),
    result(LOG_OF_0, _in_steps(_by_all_probabilities, _row_max)),
    *SMOOTHED_OR_NOT,
    in_grad(
        "these are the probabilities: subtract the targets, before you divide by N",
        lambda _, scores: ops.softmax(scores) / len(scores),
    ),
    in_grad("the sign of the gradient is turned: probabilities minus targets", lambda grad: -grad),
)
