"""Variants of lesson 04 for dense layers: slopes along a direction, weights (D, M), smoothed labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.exercises.l04_backprop.dense_gradients import ADD_UP, LOG_OF_0, MEAN_TWICE, OVERFLOWS
from unrolled.checks.exercises.l04_backprop.gradients import CLOSE, Known, with_item
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

# numeric_gradient_directional


@dataclass(frozen=True)
class Asked(Known):
    """A function with a known gradient that counts how often it is asked."""

    calls: list[int] = field(default_factory=list)

    def __call__(self, x: Any) -> float:
        self.calls.append(1)
        return super().__call__(x)


def slope_along(function: Callable[[Array], Any], x: Array, direction: Array, step: float = 1e-5) -> float:
    """How fast function grows from x along the direction: the gradient times the direction, added up."""
    way = step * np.asarray(direction, np.float64)
    return float((function(x + way) - function(x - way)) / (2 * step))


def counted(known: Known) -> Asked:
    return Asked(known.function, known.gradient, known.planted)


def directed(draw: Function) -> Function:
    """Random cases of numeric_gradient, with a direction; none of its values is small, so that no error hides."""

    def drawn(rng: np.random.Generator) -> Inputs:
        inputs = draw(rng)
        shape = np.shape(inputs["x"])
        direction = rng.uniform(0.5, 1.5, shape) * rng.choice([-1, 1], shape)
        return {**inputs, "function": counted(inputs["function"]), "direction": direction}

    return drawn


def is_a_judge_along(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Whether a slope is the expected one, from two calls, and tells a planted error from the right gradient."""
    known, x, direction = inputs["function"], np.asarray(inputs["x"], np.float64), np.asarray(inputs["direction"])
    found = mismatch(got, expected, CLOSE)
    try:
        slope = None if isinstance(got, (list, tuple)) or np.ndim(got) else float(got)
    except (TypeError, ValueError):
        slope = None
    if slope is None:
        return found
    gradient = known.gradient(x)
    scale = np.abs(gradient * direction).sum()
    if found is not None and abs(slope - expected) <= CLOSE * scale:
        found = None  # shares of both signs may nearly cancel: what counts is how large they are
    if found is None and len(known.calls) != 2:
        line = f"right, but you asked the function {len(known.calls)} times: two are enough, however large x is"
        return Mismatch((line,))
    if known.planted is None:
        return found
    right, wrong = (abs((g * direction).sum() - slope) / scale for g in (gradient, known.planted(x)))
    if found is None and right <= CLOSE < wrong:
        return None
    line = f"held against your slope, the right gradient is {right:.1g} off and the wrong one {wrong:.1g}"
    return Mismatch((*(found.lines if found else ()), line))


def _along(
    slope: Callable[[Callable[[Array], Any], Array, Array, float], Any], dtype: type | None = np.float64
) -> Function:
    """A mistake: `slope(function, x, direction, step)` with both arrays copied into this dtype, None: as they are."""

    def wrong(function: Callable[[Array], Any], x: Array, direction: Array, step: float = 1e-5) -> Any:
        return slope(function, np.array(x, dtype), np.array(direction, dtype), step)

    return wrong


def _in_float32(function: Callable[[Array], Any], x: Array, direction: Array, step: float) -> Any:
    way = np.float32(step) * direction
    return (function(x + way) - function(x - way)) / (2 * step)


def _as_given(function: Callable[[Array], Any], x: Array, direction: Array, step: float) -> Any:
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step)


def _unit(direction: Array) -> Array:
    return np.asarray(direction / np.sqrt((direction**2).sum()))


ONE_SIDED = "the step goes to one side only, whose error grows with h; to both sides, it grows with h squared"
ALL_ASKED = "this asks the function twice for every value of x: move x as a whole, by step * direction, and ask twice"
IN_FLOAT32 = "computed in float32, which loses the small differences that count here: convert x to float64 first"
DIRECTION_MISTAKES = (
    Mistake(
        "you divide by step, but from one point to the other it is 2 * step",
        _along(lambda f, x, d, step: 2 * slope_along(f, x, d, step)),
    ),
    Mistake(
        "the sign is turned: subtract the value behind from the value ahead",
        _along(lambda f, x, d, step: -slope_along(f, x, d, step)),
    ),
    Mistake(ONE_SIDED, _along(lambda f, x, d, step: (f(x + step * d) - f(x)) / step)),
    Mistake(ONE_SIDED, _along(lambda f, x, d, step: (f(x) - f(x - step * d)) / step)),
    Mistake(
        "you gave the direction the length 1: take it as it is; a direction twice as long has twice the slope",
        _along(lambda f, x, d, step: slope_along(f, x, _unit(d), step)),
    ),
    Mistake(
        "every value of x moves by the same step: the direction says how far each of them goes",
        _along(lambda f, x, d, step: slope_along(f, x, np.ones_like(d), step)),
    ),
    Mistake(ALL_ASKED, _along(lambda f, x, d, step: ops.numeric_gradient(f, x, step))),
    Mistake(ALL_ASKED, _along(lambda f, x, d, step: ops.numeric_gradient(f, x, step) * d)),
    Mistake(IN_FLOAT32, _along(_in_float32, np.float32)),
    Mistake(IN_FLOAT32, _along(_as_given, None)),
    *(
        Mistake(
            f"your step is {fixed:g}, whatever is asked: use the one you are given",
            _along(lambda f, x, d, step, fixed=fixed: slope_along(f, x, d, fixed)),  # type: ignore[misc]
        )
        for fixed in (0.1, 0.01, 1e-5)
    ),
)


# affine_backward_in_out


def in_out_backward(grad: Array, x: Array, weight: Array) -> tuple[Array, Array, Array]:
    """The way back through y = x @ weight + bias, with weight (D, M)."""
    return grad @ weight.T, x.T @ grad, grad.sum(axis=0)


def any_affine_in_out(rng: np.random.Generator) -> Inputs:
    n, d, m = (int(size) for size in rng.integers(1, 7, 3))
    shapes = {"grad": (n, m), "x": (n, d), "weight": (d, m)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _in_affine(index: int, change: Callable[[Array, Array, Array, Array], Any]) -> Function:
    """A mistake in one item: change(item, grad, x, weight)."""
    return with_item(in_out_backward, index, lambda item, grad, x, weight: change(item, grad, x, weight))


def _in_order(*order: int) -> Function:
    return lambda **inputs: tuple(in_out_backward(**inputs)[index] for index in order)


IN_OUT_MISTAKES = (
    Mistake(
        "this is the way back for a weight (M, D): here it is (D, M), inputs first",
        lambda grad, x, weight: ops.affine_backward(grad, x, weight),
    ),
    Mistake(
        "grad_x: weight is the wrong way round: grad (N, M) @ weight.T (M, D)",
        _in_affine(0, lambda r, g, x, w: g @ w),
    ),
    Mistake("grad_weight is transposed: it is (D, M), as weight is", _in_affine(1, lambda r, g, x, w: g.T @ x)),
    Mistake("grad_weight: multiply by x, not by weight", _in_affine(1, lambda r, g, x, w: w.T @ g)),
    Mistake(
        "grad_bias is summed over the outputs: sum over the samples, axis 0",
        _in_affine(2, lambda r, g, x, w: g.sum(1)),
    ),
    Mistake("grad_bias is summed over everything: one number an output", _in_affine(2, lambda r, g, x, w: g.sum())),
    Mistake("grad_bias is the mean over the samples: " + ADD_UP, _in_affine(2, lambda r, g, x, w: g.mean(0))),
    Mistake(MEAN_TWICE, lambda grad, x, weight: (grad @ weight.T, x.T @ grad / len(x), grad.mean(0))),
    Mistake("grad_bias has no sum over the samples: (N, M) must become (M,)", _in_affine(2, lambda r, g, x, w: g)),
    Mistake("the order is grad_x, grad_weight, grad_bias", _in_order(1, 0, 2)),
    Mistake("the order is grad_x, grad_weight, grad_bias", _in_order(1, 2, 0)),
)


# softmax_cross_entropy_smoothing


def smoothed_cross_entropy(scores: Array, labels: Array, smoothing: float = 0.1) -> tuple[Array, Array]:
    """Cross entropy with targets of smoothing / M for every class and 1 - smoothing more for the label.

    C. Szegedy and others, 2016: Rethinking the Inception Architecture for Computer Vision, section 7.
    """
    n, m = scores.shape
    rows = np.arange(n)
    shifted = scores - scores.max(axis=1, keepdims=True)
    grad = np.exp(shifted)
    sums = grad.sum(axis=1)
    losses = np.log(sums) - (1 - smoothing) * shifted[rows, labels] - smoothing * shifted.mean(axis=1)
    grad /= sums[:, None]
    grad -= smoothing / m
    grad[rows, labels] -= 1 - smoothing
    return losses.mean(), grad / n


def any_smoothed(rng: np.random.Generator) -> Inputs:
    n, m = (int(size) for size in rng.integers(2, 7, 2))
    scores = (3 * rng.standard_normal((n, m))).astype(np.float32)
    return {"scores": scores, "labels": rng.integers(0, m, n), "smoothing": float(rng.uniform(0.05, 0.5))}


def _targets(scores: Array, labels: Array, smoothing: float) -> Array:
    n, m = scores.shape
    targets = np.full((n, m), smoothing / m, scores.dtype)
    targets[np.arange(n), labels] += 1 - smoothing
    return targets


def _only_others(scores: Array, labels: Array, smoothing: float) -> Array:
    """The smoothing goes to the other classes alone."""
    n, m = scores.shape
    targets = np.full((n, m), smoothing / (m - 1), scores.dtype)
    targets[np.arange(n), labels] = 1 - smoothing
    return targets


def _share_forgotten(scores: Array, labels: Array, smoothing: float) -> Array:
    """The label gets 1 - smoothing, and no share of the smoothing."""
    n, m = scores.shape
    targets = np.full((n, m), smoothing / m, scores.dtype)
    targets[np.arange(n), labels] = 1 - smoothing
    return targets


def _not_shared_out(scores: Array, labels: Array, smoothing: float) -> Array:
    return _targets(scores, labels, smoothing) + smoothing * (1 - 1 / scores.shape[1])


def _with_targets(make: Callable[[Array, Array, float], Array]) -> Function:
    """Right but for the targets (N, M)."""

    def wrong(scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
        targets = make(scores, labels, smoothing)
        shifted = scores - scores.max(axis=1, keepdims=True)
        sums = np.exp(shifted).sum(axis=1, keepdims=True)
        losses = (targets * (np.log(sums) - shifted)).sum(axis=1)
        return losses.mean(), (np.exp(shifted) / sums - targets) / len(scores)

    return wrong


def _by_probabilities(shift: Callable[[Array], Any]) -> Function:
    """Probabilities first, their logarithm second: what the stable form avoids."""

    def wrong(scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
        exponentials = np.exp(scores - shift(scores))
        p = exponentials / exponentials.sum(axis=1, keepdims=True)
        targets = _targets(scores, labels, smoothing)
        return -(targets * np.log(p)).sum(axis=1).mean(), (p - targets) / len(p)

    return wrong


def _picked_of_probabilities(scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
    rows, p = np.arange(len(scores)), ops.softmax(scores)
    losses = -(1 - smoothing) * np.log(p[rows, labels]) - smoothing * np.log(p).mean(axis=1)
    return losses.mean(), (p - _targets(scores, labels, smoothing)) / len(p)


def _plain_logarithm_of_sum(scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
    exponentials, targets = np.exp(scores), _targets(scores, labels, smoothing)
    sums = exponentials.sum(axis=1, keepdims=True)
    losses = np.log(sums[:, 0]) - (targets * scores).sum(axis=1)
    return losses.mean(), (exponentials / sums - targets) / len(scores)


def _in_loss(index: int, change: Callable[[Any, Array, Array, float], Any]) -> Function:
    """A mistake in the loss (0) or in its gradient (1): change(item, scores, labels, smoothing)."""

    def changed(item: Any, scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
        return change(item, scores, labels, smoothing)

    return with_item(smoothed_cross_entropy, index, changed)


def _plain(scores: Array, labels: Array, smoothing: float = 0.1) -> Any:
    return ops.softmax_cross_entropy(scores, labels)


SMOOTHING_MISTAKES = (
    Mistake("the labels are not smoothed: this is the plain cross entropy", _plain),
    Mistake(
        "the loss is the plain one: the other classes have a share in it as well",
        _in_loss(0, lambda r, s, t, e: ops.softmax_cross_entropy(s, t)[0]),
    ),
    Mistake(
        "the gradient is the plain one: subtract the targets, not one-hot",
        _in_loss(1, lambda r, s, t, e: ops.softmax_cross_entropy(s, t)[1]),
    ),
    Mistake(
        "you give the smoothing to the other classes alone; here all M classes get smoothing / M, the label's, too",
        _with_targets(_only_others),
    ),
    Mistake(
        "the label gets its share of the smoothing as well: 1 - smoothing + smoothing / M, so that targets add up to 1",
        _with_targets(_share_forgotten),
    ),
    Mistake("the smoothing is shared out: each class gets smoothing / M", _with_targets(_not_shared_out)),
    Mistake(
        "your smoothing is 0.1, whatever is asked: use the one you are given",
        lambda scores, labels, smoothing=0.1: smoothed_cross_entropy(scores, labels),
    ),
    Mistake(LOG_OF_0, _by_probabilities(lambda scores: scores.max(axis=1, keepdims=True))),
    Mistake(LOG_OF_0, _picked_of_probabilities),
    Mistake(OVERFLOWS, _by_probabilities(lambda scores: 0)),
    Mistake(OVERFLOWS, _plain_logarithm_of_sum),
    Mistake("subtract the maximum of each row (axis=1), not of the whole array", _by_probabilities(np.max)),
    Mistake("the loss is a mean over the samples: yours is the sum", _in_loss(0, lambda r, s, t, e: r * len(s))),
    Mistake(
        "loss and gradient are those of the sum over the samples: divide both by N",
        lambda scores, labels, **e: tuple(len(scores) * r for r in smoothed_cross_entropy(scores, labels, **e)),
    ),
    Mistake("the sign of the loss is turned: it is minus a logarithm", _in_loss(0, lambda r, s, t, e: -r)),
    Mistake(
        "the gradient is not divided by N: the loss is a mean, so each sample has a share of 1/N",
        _in_loss(1, lambda r, s, t, e: r * len(s)),
    ),
    Mistake(
        "these are the probabilities: subtract the targets, before you divide by N",
        _in_loss(1, lambda r, s, t, e: ops.softmax(s) / len(s)),
    ),
    Mistake("the sign of the gradient is turned: probabilities minus targets", _in_loss(1, lambda r, s, t, e: -r)),
)
