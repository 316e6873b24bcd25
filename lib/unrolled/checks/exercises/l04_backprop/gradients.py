"""Gradients to judge: functions whose gradient is known, errors planted in it, and results whose parts have names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Compare, Function, Inputs, Mistake
from unrolled.device import Array

CLOSE = 1e-6
"""Of the largest value: what a numeric gradient in float64 keeps, and what no planted error hides under."""
KINK = 0.05
"""Inputs of a ReLU stay so far away from 0: at the kink itself there is no gradient to find."""


@dataclass(frozen=True)
class Known:
    """A function of one array that gives one number; its gradient derived by hand; the same with a planted error."""

    function: Callable[[Array], Any]
    gradient: Callable[[Array], Array]
    planted: Callable[[Array], Array] | None = None

    def __call__(self, x: Any) -> float:
        return float(self.function(np.asarray(x, np.float64)))


def distance(a: Array, b: Array) -> float:
    """The largest difference between two gradients, relative to the largest value of b."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def is_a_judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Whether a numeric gradient is the expected one, and tells the right gradient from one with a planted error."""
    found = mismatch(got, expected, CLOSE)
    known, x = inputs["function"], np.asarray(inputs["x"], np.float64)
    if known.planted is None or not isinstance(got, np.ndarray) or got.shape != np.shape(expected):
        return found
    right, wrong = distance(known.gradient(x), got), distance(known.planted(x), got)
    if found is None and right <= CLOSE < wrong:
        return None
    lines = found.lines if found else ()
    verdict = (
        f"held against yours, the right gradient is {right:.1g} off and the wrong one {wrong:.1g}: "
        f"a judge passes what is within {CLOSE:g}, and rejects the rest"
    )
    return Mismatch((*lines, verdict))


def named(*names: str) -> Compare:
    """Compare a tuple of results item by item, and call the items by their names."""

    def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        if not isinstance(got, tuple) or len(got) != len(names):
            found = mismatch(got, expected, 1e-4)
            assert found is not None
            return dataclasses.replace(found, lines=(*found.lines, f"return {', '.join(names)}"))
        for name, item, wanted in zip(names, got, expected, strict=True):
            if item is None:
                return Mismatch((f"{name}: you return None for it",))
            item_found = mismatch(item, wanted, 1e-4)
            if item_found is not None:
                first, *rest = item_found.lines
                return dataclasses.replace(item_found, lines=(f"{name}: {first}", *rest))
        return None

    return compare


def with_item(function: Function, index: int, change: Callable[..., Any]) -> Function:
    """A mistake in one of several results: `change(item, **inputs)` in place of that item of the right tuple."""

    def wrong(**inputs: Any) -> Any:
        items = list(function(**inputs))
        items[index] = change(items[index], **inputs)
        return tuple(items)

    return wrong


# Functions with known gradients.


def _squares(x: Array) -> float:
    return float((x**2).sum())


def _growing(x: Array) -> float:
    return float((np.exp(x) * np.arange(1, x.size + 1).reshape(x.shape)).sum())


SQUARES = Known(_squares, lambda x: 2 * x)
GROWING = Known(_growing, lambda x: np.exp(x) * np.arange(1, x.size + 1).reshape(x.shape))
# With a step of 0.01 the kink at 0 lies between the two points, and the step can be read off the result.
KINKED = Known(lambda x: float(np.abs(x).sum()), np.sign)


def any_function(rng: np.random.Generator) -> Inputs:
    """A smooth function of an array of any shape, of whole numbers now and then."""
    shape = tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(1, 4))))
    weight = rng.standard_normal(shape)
    known = Known(
        lambda x: float(np.sin(weight * x).sum() + (x**3).sum()), lambda x: weight * np.cos(weight * x) + 3 * x**2
    )
    return {"function": known, "x": rng.integers(-2, 3, shape) if rng.random() < 0.3 else rng.standard_normal(shape)}


# Five errors that people make in a gradient, each in a loss where it matters.


def _loss_of_scores(scores: Array, labels: Array) -> float:
    return float(ops.softmax_cross_entropy(scores, labels)[0])


def _random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape)


def _classes(rng: np.random.Generator, n: int, m: int) -> Array:
    """Labels among which every class can be found, if there are enough."""
    return rng.permutation(np.arange(n) % m)


def sign_error(rng: np.random.Generator) -> Inputs:
    """The gradient by the bias of a dense layer, negated."""
    x, weight, labels = _random(rng, 5, 3), _random(rng, 4, 3), _classes(rng, 5, 4)

    def gradient(bias: Array) -> Array:
        _, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels)
        return ops.affine_backward(grad, x, weight)[2]

    known = Known(
        lambda bias: _loss_of_scores(ops.affine(x, weight, bias), labels), gradient, lambda bias: -gradient(bias)
    )
    return {"function": known, "x": _random(rng, 4)}


def mean_forgotten(rng: np.random.Generator) -> Inputs:
    """The gradient by the scores, without the 1/N of the mean over N samples."""
    labels = _classes(rng, 4, 3)

    def gradient(scores: Array) -> Array:
        return ops.softmax_cross_entropy(scores, labels)[1]

    known = Known(
        lambda scores: _loss_of_scores(scores, labels), gradient, lambda scores: len(labels) * gradient(scores)
    )
    return {"function": known, "x": _random(rng, 4, 3)}


def transposed_weight(rng: np.random.Generator) -> Inputs:
    """The gradient by a square weight matrix, transposed: the shape cannot tell."""
    x, bias, labels = _random(rng, 5, 4), _random(rng, 4), _classes(rng, 5, 4)

    def gradient(weight: Array) -> Array:
        _, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels)
        return ops.affine_backward(grad, x, weight)[1]

    known = Known(
        lambda weight: _loss_of_scores(ops.affine(x, weight, bias), labels), gradient, lambda weight: gradient(weight).T
    )
    return {"function": known, "x": _random(rng, 4, 4)}


def relu_let_through(rng: np.random.Generator) -> Inputs:
    """The gradient by the inputs of a ReLU that lets the gradient pass at negative inputs, too."""
    labels = _classes(rng, 3, 4)
    x = _random(rng, 3, 4)
    x[0], x[1] = -np.abs(x[0]), np.abs(x[1])  # at least a whole row is cut off, and another is not: else all would be 0

    def passed(inputs: Array) -> Array:
        return ops.softmax_cross_entropy(ops.relu(inputs), labels)[1]

    known = Known(
        lambda inputs: _loss_of_scores(ops.relu(inputs), labels),
        lambda inputs: ops.relu_backward(passed(inputs), inputs),
        passed,
    )
    return {"function": known, "x": x + np.copysign(KINK, x)}


def one_element_off(rng: np.random.Generator) -> Inputs:
    """The gradient by the filters of a convolution, one of its values (of middling size) 1 % too large."""
    x, target = _random(rng, 2, 2, 5, 5), _random(rng, 2, 3, 3, 3)

    def gradient(weight: Array) -> Array:
        _, grad = ops.mean_squared_error(ops.conv2d(x, weight), target)
        return ops.conv2d_backward(grad, x, weight)[1]

    def planted(weight: Array) -> Array:
        wrong = gradient(weight)
        middling = np.argsort(np.abs(wrong), axis=None)[wrong.size // 2]
        wrong.flat[middling] *= 1.01
        return wrong

    def loss(weight: Array) -> float:
        return float(ops.mean_squared_error(ops.conv2d(x, weight), target)[0])

    return {"function": Known(loss, gradient, planted), "x": _random(rng, 3, 2, 3, 3)}


# What people write in place of central differences.


def _by_differences(
    along: Callable[[Callable[[Array], Any], Array, Any, float], float], dtype: type = np.float64
) -> Function:
    """A numeric gradient: `along(function, x, index, step)` for each index of a copy of x in this dtype."""

    def gradient(function: Callable[[Array], Any], x: Array, step: float = 1e-5) -> Array:
        point: Array = np.array(x, dtype)
        result = np.empty(point.shape)
        for index in np.ndindex(point.shape):
            result[index] = along(function, point, index, step)
        return result

    return gradient


def _moved(x: Array, index: Any, by: float) -> Array:
    moved = x.copy()
    moved[index] += by
    return moved


def _forward(function: Callable[[Array], Any], x: Array, index: Any, step: float) -> float:
    return float((function(_moved(x, index, step)) - function(x)) / step)


def _backward(function: Callable[[Array], Any], x: Array, index: Any, step: float) -> float:
    return float((function(x) - function(_moved(x, index, -step))) / step)


def _central(function: Callable[[Array], Any], x: Array, index: Any, step: float) -> float:
    return float((function(_moved(x, index, step)) - function(_moved(x, index, -step))) / (2 * step))


def _all_at_once(function: Callable[[Array], Any], x: Array, index: Any, step: float) -> float:
    return float((function(x + step) - function(x - step)) / (2 * step))


def _drifting(function: Callable[[Array], Any], x: Array, index: Any, step: float) -> float:
    """x is left at x - step."""
    x[index] += step
    up = function(x)
    x[index] -= 2 * step
    return float((up - function(x)) / (2 * step))


def _with_step(step: float) -> Function:
    return _by_differences(lambda function, x, index, _: _central(function, x, index, step))


NUMERIC_MISTAKES = (
    Mistake(
        "you divide by step, but from x - step to x + step it is 2 * step",
        _by_differences(lambda f, x, i, step: 2 * _central(f, x, i, step)),
    ),
    Mistake(
        "the sign is turned: subtract the value at x - step from the one at x + step",
        _by_differences(lambda f, x, i, step: -_central(f, x, i, step)),
    ),
    Mistake(
        "all values of x are moved at once: move one, and hold the others",
        _by_differences(_all_at_once),
    ),
    Mistake(
        "this is (f(x + h) - f(x)) / h, whose error grows with h; step to both sides, and it grows with h squared",
        _by_differences(_forward),
    ),
    Mistake(
        "this is (f(x) - f(x - h)) / h, whose error grows with h; step to both sides, and it grows with h squared",
        _by_differences(_backward),
    ),
    Mistake(
        "x is not back in its place when the next value moves: start each time from a fresh copy",
        _by_differences(_drifting),
    ),
    Mistake(
        "computed in float32, which loses the small differences that count here: convert x to float64 first",
        _by_differences(_central, np.float32),
    ),
    Mistake("your step is 0.1, whatever is asked: use the one you are given", _with_step(1e-1)),
    Mistake("your step is 0.01, whatever is asked: use the one you are given", _with_step(1e-2)),
    Mistake("your step is the same, whatever is asked: use the one you are given", _with_step(1e-5)),
)
