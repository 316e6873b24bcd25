"""Gradients by trying: functions whose gradient is known, errors planted in it, and the judge of gradients.

Also for results of several items: comparing them by name, and mistakes in one of them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, agree, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Function, Mistake, called_by_name, given, result
from unrolled.checks.spec import Compare, Inputs
from unrolled.device import Array

CLOSE = 1e-6  # of the largest value: what a numeric gradient in float64 keeps, and what no planted error hides under
NEARLY = 0.05  # of the largest value: what is left of it in float32


@dataclass(frozen=True)
class Known:
    """A function of one array that gives one number; its gradient derived by hand, and with a planted error."""

    function: Callable[[Array], Any]
    gradient: Callable[[Array], Array]
    planted: Callable[[Array], Array] | None = None

    def __call__(self, x: Any) -> float:
        return float(self.function(np.asarray(x, np.float64)))


def is_a_judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether a numeric gradient is the expected one, and tells the right gradient from the planted error."""
    found = mismatch(got, expected, CLOSE)
    known, x = inputs["function"], np.asarray(inputs["x"], np.float64)
    if not isinstance(got, np.ndarray) or got.shape != np.shape(expected):
        return found
    in_float32 = inputs["x"].dtype == np.float32 and agree(got, expected, NEARLY) and not agree(got, expected, CLOSE)
    if found is not None and in_float32:
        return dataclasses.replace(found, lines=(*found.lines, IN_FLOAT32))
    if known.planted is None:
        return found
    right, wrong = (float(np.abs(g - got).max() / np.abs(got).max()) for g in (known.gradient(x), known.planted(x)))
    if found is None and right <= CLOSE < wrong:
        return None
    verdict = (
        f"held against yours, the right gradient is {right:.1g} off and the wrong one {wrong:.1g}: "
        f"a judge passes what is within {CLOSE:g}, and rejects the rest"
    )
    return Mismatch((*(found.lines if found else ()), verdict))


def named(*names: str, least: Callable[[Inputs], float] = lambda inputs: 0.0) -> Compare:
    """Compare results item by item, and call the items by their names.

    A value is near if it is so beside the largest of its item, of the input that this item replaces, or `least`: what
    nearly cancels keeps the rounding of its terms.
    """

    def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        if not isinstance(got, (tuple, list)) or len(got) != len(names):
            found = mismatch(got, expected, 1e-4)
            assert found is not None
            return dataclasses.replace(found, lines=(*found.lines, f"return {', '.join(names)}"))
        for name, item, wanted in zip(names, got, expected, strict=True):
            if item is None:
                return Mismatch((f"{name}: you return None for it",))
            size, beside = _largest(wanted), max(_largest(inputs.get(name, 0)), least(inputs))
            if item_found := mismatch(item, wanted, 1e-4 * max(1.0, beside / size if size else 0)):
                first, *rest = item_found.lines
                return dataclasses.replace(item_found, lines=(f"{name}: {first}", *rest))
        return None

    return compare


def _largest(y: Any) -> float:
    return float(np.abs(y).max())


def in_item(index: int, says: str, change: Function) -> Mistake:
    """Return the mistake of making `change(item, …)` of one item of the tuple that the reference returned."""
    return result(
        says, lambda items, **known: (*items[:index], called_by_name(change, known, items[index]), *items[index + 1 :])
    )


in_x, in_weight, in_bias = (functools.partial(in_item, index) for index in range(3))
by_layer = named("grad_x", "grad_weight", "grad_bias")


# Functions with known gradients.


def _growing(x: Array) -> Array:
    return np.exp(x) * np.arange(1, x.size + 1).reshape(x.shape)


SQUARES = Known(lambda x: (x**2).sum(), lambda x: 2 * x)
GROWING = Known(lambda x: _growing(x).sum(), _growing)
# With a step of 0.01 the kink at 0 lies between the two points, and the step can be read off the result.
KINKED = Known(lambda x: np.abs(x).sum(), np.sign)


def any_function(rng: np.random.Generator) -> Inputs:
    """Draw a smooth function of an array of any shape and dtype, and a step or none."""
    shape = tuple(edge_size(rng, 3) for _ in range(edge_size(rng, 3)))
    weight = rng.standard_normal(shape)
    known = Known(lambda x: (np.sin(weight * x) + x**3).sum(), lambda x: weight * np.cos(weight * x) + 3 * x**2)
    x = rng.standard_normal(shape).astype(rng.choice(["f4", "f8"]))
    step = {} if rng.random() < 0.5 else {"step": float(10.0 ** rng.uniform(-5, -3))}
    return {"function": known, "x": rng.integers(-2, 3, shape) if rng.random() < 0.3 else x, **step}


# Five errors that people make in a gradient, each in a loss where it matters.


def _planted(x: Array, loss: Function, backward: Function, error: Function) -> Inputs:
    """Return x and a function with its gradient, and with an error in it.

    loss(x) returns the value, and grad, its gradient by a step on the way; backward(grad, x) goes on to x, and
    error(gradient, grad) makes it wrong.
    """

    def gradient(x: Array) -> Any:
        return backward(loss(x)[1], x)

    return {"function": Known(lambda x: loss(x)[0], gradient, lambda x: error(gradient(x), loss(x)[1])), "x": x}


def _classes(rng: np.random.Generator, n: int, m: int) -> Array:
    """Draw labels among which every class can be found, if there are enough."""
    return rng.permutation(np.arange(n) % m)


def sign_error(rng: np.random.Generator) -> Inputs:
    """Draw the gradient by the bias of a dense layer, negated."""
    x, weight, labels = rng.standard_normal((5, 3)), rng.standard_normal((4, 3)), _classes(rng, 5, 4)
    return _planted(
        rng.standard_normal(4),
        lambda bias: ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels),
        lambda grad, bias: ops.affine_backward(grad, x, weight)[2],
        lambda gradient, grad: -gradient,
    )


def mean_forgotten(rng: np.random.Generator) -> Inputs:
    """Draw the gradient by the scores, without the 1/N of the mean over N samples."""
    labels = _classes(rng, 4, 3)
    return _planted(
        rng.standard_normal((4, 3)),
        lambda scores: ops.softmax_cross_entropy(scores, labels),
        lambda grad, scores: grad,
        lambda gradient, grad: len(labels) * gradient,
    )


def transposed_weight(rng: np.random.Generator) -> Inputs:
    """Draw the gradient by a square weight matrix, transposed: the shape cannot tell."""
    x, bias, labels = rng.standard_normal((5, 4)), rng.standard_normal(4), _classes(rng, 5, 4)
    return _planted(
        rng.standard_normal((4, 4)),
        lambda weight: ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels),
        lambda grad, weight: ops.affine_backward(grad, x, weight)[1],
        lambda gradient, grad: gradient.T,
    )


def relu_let_through(rng: np.random.Generator) -> Inputs:
    """Draw the gradient by the inputs of a ReLU that lets the gradient pass at negative inputs, too."""
    labels = _classes(rng, 3, 4)
    x = rng.standard_normal((3, 4))
    x[0], x[1] = -np.abs(x[0]), np.abs(x[1])  # at least a whole row is cut off, and another is not: else all would be 0
    x += np.copysign(0.05, x)  # away from the kink at 0, where there is no gradient to find
    return _planted(
        x, lambda x: ops.softmax_cross_entropy(ops.relu(x), labels), ops.relu_backward, lambda gradient, grad: grad
    )


def one_element_off(rng: np.random.Generator) -> Inputs:
    """Draw the gradient by the filters of a convolution, one of its values (of middling size) 1 % too large."""
    x, target = rng.standard_normal((2, 2, 5, 5)), rng.standard_normal((2, 3, 3, 3))

    def error(gradient: Array, grad: Array) -> Array:
        wrong = gradient.copy()
        wrong.flat[np.argsort(np.abs(gradient), axis=None)[gradient.size // 2]] *= 1.01
        return wrong

    return _planted(
        rng.standard_normal((3, 2, 3, 3)),
        lambda weight: ops.mean_squared_error(ops.conv2d(x, weight), target),
        lambda grad, weight: ops.conv2d_backward(grad, x, weight)[1],
        error,
    )


ERRORS: dict[str, Function] = {
    "a sign error": sign_error,
    "a missing factor 1/N": mean_forgotten,
    "a transposed weight gradient": transposed_weight,
    "ReLU at negative inputs": relu_let_through,
    "one element off by 1 %": one_element_off,
}


def _slope(function: Function, x: Array, direction: Array, step: float, ahead: int = 1, behind: int = 1) -> float:
    """Return how fast function grows along the direction, from `behind` steps before x to `ahead` steps after it."""
    way = step * direction
    return float((function(x + ahead * way) - function(x - behind * way)) / ((ahead + behind) * step))


def _by_differences(
    function: Function,
    x: Array,
    step: float = 1e-5,
    *,
    dtype: Any = float,
    drift: int = 0,
    ahead: int = 1,
    behind: int = 1,
) -> Array:
    """Return the gradient by differences from `behind` steps before each value of x to `ahead` steps after it.

    x is copied into this dtype, and a value that was moved stays `drift` steps back.
    """
    x = np.array(x, dtype)
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        one = np.zeros_like(x)
        one[index] = 1
        gradient[index] = _slope(function, x, one, step, ahead, behind)
        x = x - drift * step * one
    return gradient


IN_FLOAT32 = "computed in float32, which loses the small differences that count here: convert x to float64 first"
TO_ONE_SIDE = "this is {}, whose error grows with h; step to both sides, and it grows with h squared"
BACK_AT_X = "your second point is x itself: after += step go down by 2 * step, and put the value back"
FIXED = "your step is {}, whatever is asked: use the one you are given"
NUMERIC_MISTAKES = (
    result("you divide by step, but from x - step to x + step it is 2 * step", lambda gradient: 2 * gradient),
    result("the sign is turned: subtract the value at x - step from the one at x + step", lambda gradient: -gradient),
    result(
        "/ 2 * step divides by 2 and multiplies by step: write / (2 * step), with brackets",
        lambda gradient, step: gradient * step**2,
        _by_differences,
    ),
    result("you divide by 2, but the way is 2 * step", lambda gradient, step: gradient * step, _by_differences),
    result(
        "this is the difference alone: divide it by the way between the points, 2 * step",
        lambda gradient, step: gradient * 2 * step,
        _by_differences,
    ),
    result(
        "whole rows of x are moved at once: an index names a single number, as those of np.ndindex(x.shape) do",
        lambda gradient: np.broadcast_to(
            gradient.sum(axis=tuple(range(1, gradient.ndim)), keepdims=True), gradient.shape
        ),
    ),
    result(
        "up and down are the same point: each needs a copy of its own, x.copy() twice", lambda gradient: 0 * gradient
    ),
    result(
        "all values of x are moved at once: move one, and hold the others",
        lambda gradient, function, x, step: np.full_like(gradient, _slope(function, x, np.ones(x.shape), step)),
    ),
    given(TO_ONE_SIDE.format("(f(x + h) - f(x)) / h"), _by_differences, behind=0),
    given(TO_ONE_SIDE.format("(f(x) - f(x - h)) / h"), _by_differences, ahead=0),
    given(
        "x is not back in its place when the next value moves: start each time from a fresh copy",
        _by_differences,
        drift=1,
    ),
    result(BACK_AT_X, lambda gradient: gradient / 2, functools.partial(_by_differences, behind=0)),
    given(IN_FLOAT32, _by_differences, dtype=np.float32),
    given(FIXED.format(0.1), _by_differences, step=0.1),
    given(FIXED.format(0.01), _by_differences, step=0.01),
    given(FIXED.format("the same"), _by_differences, step=1e-5),
)
