"""One step of an optimizer as a pure function, and the usual mistakes in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.checks.domain import any_arrays, edge_size
from unrolled.checks.mistakes import Function, Mistake, called_by_name, given, result
from unrolled.checks.spec import Inputs
from unrolled.device import Array

State = tuple[Array, ...]

UPHILL = given("the step goes uphill: subtract it", learning_rate=lambda learning_rate: -learning_rate)


def momentum_update(
    parameters: Array,
    gradient: Array,
    velocity: Array,
    learning_rate: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> State:
    """Step as PyTorch's SGD: the velocity gathers gradients; weight decay is a gradient, too."""
    velocity = momentum * velocity + gradient + weight_decay * parameters
    return parameters - learning_rate * velocity, velocity


def some(rng: np.random.Generator, **options: float) -> dict[str, float]:
    """Return some of these options: what has a default may be left to it."""
    return {name: float(value) for name, value in options.items() if rng.random() < 0.7}


def any_momentum(rng: np.random.Generator) -> Inputs:
    """Draw parameters and all that a step needs; momentum and weight decay may be missing."""
    shape = (edge_size(rng, 9),)
    arrays = any_arrays(rng, parameters=shape, gradient=shape, velocity=shape)
    options = some(rng, momentum=rng.integers(0, 16) / 16, weight_decay=rng.integers(0, 16) / 16)
    return {**arrays, "learning_rate": float(rng.integers(1, 17) / 16), **options}


def _weighed(says: str, factor: Callable[[float, float], float], **arguments: Any) -> Mistake:
    """Return the mistake of a gradient, with its weight decay, times `factor(learning_rate, momentum)`."""
    return given(
        says,
        gradient=lambda gradient, learning_rate, momentum: factor(learning_rate, momentum) * gradient,
        weight_decay=lambda weight_decay, learning_rate, momentum: factor(learning_rate, momentum) * weight_decay,
        **arguments,
    )


MOMENTUM_MISTAKES = (
    UPHILL,
    result("you return the old velocity: the next step needs the new one", lambda y, velocity: (y[0], velocity)),
    given("the weight decay is missing", weight_decay=0),
    Mistake(
        "you shrink the parameters beside the step; here weight decay is part of the gradient, and so of the velocity",
        given={"weight_decay": 0},
        result=lambda y, parameters, learning_rate, weight_decay: (
            y[0] - learning_rate * weight_decay * parameters,
            y[1],
        ),
    ),
    _weighed(
        "the velocity points downhill already, so two signs cancel: gather gradients with +, step with -",
        lambda rate, momentum: -1,
    ),
    _weighed(
        "the learning rate is inside your velocity. Some books have it there; here the velocity gathers gradients, "
        "and the rate counts in the step",
        lambda rate, momentum: rate,
        learning_rate=1,
    ),
    _weighed(
        "the learning rate is inside your velocity (with a minus): here it counts in the step only",
        lambda rate, momentum: -rate,
        learning_rate=-1,
    ),
    result(
        "the step takes the old velocity: first the velocity, then the step",
        lambda y, parameters, velocity, learning_rate: (parameters - learning_rate * velocity, y[1]),
    ),
    _weighed("the gradient is weighed with 1 - momentum: here it counts in full", lambda rate, momentum: 1 - momentum),
    given("momentum is missing: the old velocity counts momentum times", momentum=1),
    given(
        "the weight decay counts twice: it is weight_decay * parameters",
        weight_decay=lambda weight_decay: 2 * weight_decay,
    ),
    given(
        "the weight decay is of the parameters: yours takes the gradient",
        gradient=lambda gradient, weight_decay: (1 + weight_decay) * gradient,
        weight_decay=0,
    ),
    result("the order is parameters, velocity", lambda y: y[::-1]),
    _weighed("momentum multiplies the gradient as well: it is for the old velocity", lambda rate, momentum: momentum),
    given(
        "the weight decay has the wrong sign: it pulls the parameters towards 0",
        weight_decay=lambda weight_decay: -weight_decay,
    ),
)


def adam_update(
    parameters: Array,
    gradient: Array,
    m: Array,
    v: Array,
    t: int,
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> State:
    """Step as D. Kingma and J. Ba, 2015: Adam, arXiv:1412.6980, algorithm 1."""
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    return parameters - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon), m, v


def any_adam(rng: np.random.Generator) -> Inputs:
    """Draw parameters and all that a step needs; what has a default may be missing."""
    shape = (edge_size(rng, 9),)
    arrays = any_arrays(rng, parameters=shape, gradient=shape, m=shape, v=shape)
    rate, beta1, beta2, epsilon = rng.uniform(0.1, 0.9, 4).tolist()
    options = some(rng, learning_rate=rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
    return {**arrays, "v": np.abs(arrays["v"]), "t": edge_size(rng, 10 ** int(rng.integers(3, 7))), **options}


def _stepped(says: str, step: Function) -> Mistake:
    """Return the mistake of another step, before the learning rate: `step(…)` of what goes into it, by name.

    Those are m and v as they are returned, m_hat and v_hat, and the arguments.
    """

    def stepped(y: State, **known: Any) -> State:
        (_, m, v), t = y, known["t"]
        hats = {"m_hat": m / (1 - known["beta1"] ** t), "v_hat": v / (1 - known["beta2"] ** t)}
        with np.errstate(all="ignore"):
            step_taken = called_by_name(step, {**known, "m": m, "v": v, **hats})
            return known["parameters"] - known["learning_rate"] * step_taken, m, v

    return result(says, stepped)


def _corrected(says: str, by: Callable[[float, int], float]) -> Mistake:
    """Return the mistake of m and v divided by `by(beta, t)` for the step."""
    return _stepped(
        says, lambda m, v, t, beta1, beta2, epsilon: m / by(beta1, t) / (np.sqrt(v / by(beta2, t)) + epsilon)
    )


BOTH_WEIGHTS = "m becomes beta1 * m + (1 - beta1) * gradient"

ADAM_MISTAKES = (
    given("the bias correction is missing: divide by 1 - beta1**t and 1 - beta2**t", t=np.inf),  # beta**inf is 0
    given("you count t one too high: it is 1 in the first step already", t=lambda t: t + 1),
    given("t goes on beyond 1,000", t=lambda t: min(t, 1000)),
    given("you count t from 0: in the first step it is 1", t=lambda t: t - 1),
    result(
        "you return the corrected means: the correction is for this step only, the next needs m and v themselves",
        lambda y, t, beta1, beta2: (y[0], y[1] / (1 - beta1**t), y[2] / (1 - beta2**t)),
    ),
    _stepped("only m is corrected; v begins at 0, too", lambda m_hat, v, epsilon: m_hat / (np.sqrt(v) + epsilon)),
    _stepped("only v is corrected; m begins at 0, too", lambda m, v_hat, epsilon: m / (np.sqrt(v_hat) + epsilon)),
    _corrected("beta * t is no power: correct by 1 - beta**t", lambda beta, t: 1 - beta * t),
    _corrected("the correction divides: m / (1 - beta1**t)", lambda beta, t: 1 / (1 - beta**t)),
    _corrected(
        "the correction has a power, 1 - beta**t: without it, it is right in the first step only",
        lambda beta, t: 1 - beta,
    ),
    given(f"{BOTH_WEIGHTS}: the gradient counts in full in yours", m=lambda m, gradient, beta1: m + gradient),
    given(
        f"{BOTH_WEIGHTS}: yours are exchanged",
        m=lambda m, gradient, beta1: ((1 - beta1) * m + (2 * beta1 - 1) * gradient) / beta1,
        v=lambda v, gradient, beta2: ((1 - beta2) * v + (2 * beta2 - 1) * gradient**2) / beta2,
    ),
    given(
        "the square is of the gradient alone: (1 - beta2) * gradient**2",
        v=lambda v, gradient, beta2: v - (1 - beta2) * gradient**2,
    ),
    _stepped("epsilon is missing: it is added to the root", lambda m_hat, v_hat: m_hat / np.sqrt(v_hat)),
    _stepped(
        "epsilon belongs to the root: put it in brackets, / (np.sqrt(v_hat) + epsilon)",
        lambda m_hat, v_hat, epsilon, learning_rate: m_hat / np.sqrt(v_hat) + epsilon / learning_rate,
    ),
    _stepped("the square root is missing", lambda m_hat, v_hat, epsilon: m_hat / (v_hat + epsilon)),
    _stepped(
        "epsilon is inside the square root: add it after",
        lambda m_hat, v_hat, epsilon: m_hat / (v_hat + epsilon) ** 0.5,
    ),
    UPHILL,
    given(
        "beta1 belongs to m and beta2 to v: yours are exchanged", beta1=lambda beta2: beta2, beta2=lambda beta1: beta1
    ),
    given(  # in the new v, (1 - beta2) * gradient takes the place of the square
        "v is the mean of the gradient's square",
        v=lambda v, gradient, beta2: v + (1 - beta2) / beta2 * (gradient - gradient**2),
    ),
    _stepped(
        "the step takes the gradient itself: m, its mean, belongs there",
        lambda gradient, v_hat, epsilon: gradient / (np.sqrt(v_hat) + epsilon),
    ),
)
