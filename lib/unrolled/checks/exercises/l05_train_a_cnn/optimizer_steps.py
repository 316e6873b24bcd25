"""One step of an optimizer as a pure function, and the usual mistakes in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

State = tuple[Array, ...]


def momentum_update(
    parameters: Array,
    gradient: Array,
    velocity: Array,
    learning_rate: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> State:
    """As PyTorch's SGD: the velocity gathers gradients; weight decay is a gradient, too."""
    velocity = momentum * velocity + gradient + weight_decay * parameters
    return parameters - learning_rate * velocity, velocity


def wrong_momentum(step: Function) -> Function:
    """A mistake as a function of (p, g, v, rate, momentum, decay)."""

    def wrong(
        parameters: Array,
        gradient: Array,
        velocity: Array,
        learning_rate: float,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
    ) -> Any:
        return step(parameters, gradient, velocity, learning_rate, momentum, weight_decay)

    return wrong


def any_momentum(rng: np.random.Generator) -> Inputs:
    size = int(rng.integers(3, 9))
    arrays = {name: rng.standard_normal(size).astype(np.float32) for name in ("parameters", "gradient", "velocity")}
    rate, momentum, decay = (float(value) for value in rng.uniform(0.1, 0.9, 3))
    return {**arrays, "learning_rate": rate, "momentum": momentum, "weight_decay": decay}


def numbers(*values: float) -> Array:
    return np.array(values, np.float32)


MOMENTUM_MISTAKES: Sequence[Mistake] = [
    Mistake(
        "the step goes uphill: subtract it",
        wrong_momentum(lambda p, g, v, r, m, d: (p + r * (m * v + g + d * p), m * v + g + d * p)),
    ),
    Mistake(
        "the velocity points downhill already, so two signs cancel: gather gradients with +, step with -",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (m * v - g - d * p), m * v - g - d * p)),
    ),
    Mistake(
        "the learning rate is inside your velocity. Some books have it there; here the velocity gathers gradients, "
        "and the rate counts in the step",
        wrong_momentum(lambda p, g, v, r, m, d: (p - (m * v + r * (g + d * p)), m * v + r * (g + d * p))),
    ),
    Mistake(
        "the learning rate is inside your velocity (with a minus): here it counts in the step only",
        wrong_momentum(lambda p, g, v, r, m, d: (p + m * v - r * (g + d * p), m * v - r * (g + d * p))),
    ),
    Mistake(
        "the step takes the old velocity: first the velocity, then the step",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * v, m * v + g + d * p)),
    ),
    Mistake(
        "you return the old velocity: the next step needs the new one",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (m * v + g + d * p), v)),
    ),
    Mistake(
        "the gradient is weighed with 1 - momentum: here it counts in full",
        wrong_momentum(lambda p, g, v, r, m, d: momentum_update(p, (1 - m) * (g + d * p), v, r, m)),
    ),
    Mistake(
        "momentum multiplies the gradient as well: it is for the old velocity",
        wrong_momentum(lambda p, g, v, r, m, d: momentum_update(p, m * (g + d * p), v, r, m)),
    ),
    Mistake("the weight decay is missing", wrong_momentum(lambda p, g, v, r, m, d: momentum_update(p, g, v, r, m))),
    Mistake(
        "the weight decay has the wrong sign: it pulls the parameters towards 0",
        wrong_momentum(lambda p, g, v, r, m, d: momentum_update(p, g, v, r, m, -d)),
    ),
    Mistake(
        "you shrink the parameters beside the step; here weight decay is part of the gradient, and so of the velocity",
        wrong_momentum(lambda p, g, v, r, m, d: (p * (1 - r * d) - r * (m * v + g), m * v + g)),
    ),
]


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
    """D. Kingma and J. Ba, 2015: Adam, arXiv:1412.6980, algorithm 1."""
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return parameters - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon), m, v


def wrong_adam(step: Function) -> Function:
    """A mistake as a function of (p, g, m, v, t, rate, beta1, beta2, epsilon), m and v new and not yet corrected."""

    def wrong(
        parameters: Array,
        gradient: Array,
        m: Array,
        v: Array,
        t: int,
        learning_rate: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> Any:
        new_m = beta1 * m + (1 - beta1) * gradient
        new_v = beta2 * v + (1 - beta2) * gradient**2
        return step(parameters, gradient, new_m, new_v, t, learning_rate, beta1, beta2, epsilon)

    return wrong


def _adam_counting(shift: int) -> Function:
    def wrong(t: int, **given: Any) -> State:
        return adam_update(t=t + shift, **given)

    return wrong


def _adam_with_swapped_betas(beta1: float = 0.9, beta2: float = 0.999, **given: Any) -> State:
    return adam_update(beta1=beta2, beta2=beta1, **given)


def _adam_without_square(parameters: Array, gradient: Array, m: Array, v: Array, t: int, **given: Any) -> State:
    beta2 = given.get("beta2", 0.999)
    return adam_update(parameters, gradient, m, v + (1 - beta2) / beta2 * (gradient - gradient**2), t, **given)


def any_adam(rng: np.random.Generator) -> Inputs:
    size = int(rng.integers(3, 9))
    parameters, gradient, m = (rng.standard_normal(size).astype(np.float32) for _ in range(3))
    rate, beta1, beta2, epsilon = (float(value) for value in rng.uniform(0.1, 0.9, 4))
    return {
        "parameters": parameters,
        "gradient": gradient,
        "m": m,
        "v": rng.random(size, np.float32) + 0.1,
        "t": int(rng.integers(2, 6)),
        "learning_rate": rate,
        "beta1": beta1,
        "beta2": beta2,
        "epsilon": epsilon,
    }


ADAM_MISTAKES: Sequence[Mistake] = [
    Mistake(
        "the bias correction is missing: divide by 1 - beta1**t and 1 - beta2**t",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p - r * m / (np.sqrt(v) + e), m, v)),
    ),
    Mistake("you count t one too high: it is 1 in the first step already", _adam_counting(1)),
    Mistake("you count t from 0: in the first step it is 1", _adam_counting(-1)),
    Mistake(
        "you return the corrected means: the correction is for this step only, the next needs m and v themselves",
        wrong_adam(
            lambda p, g, m, v, t, r, b, c, e: (
                p - r * (m / (1 - b**t)) / (np.sqrt(v / (1 - c**t)) + e),
                m / (1 - b**t),
                v / (1 - c**t),
            )
        ),
    ),
    Mistake(
        "only m is corrected; v begins at 0, too",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p - r * m / (1 - b**t) / (np.sqrt(v) + e), m, v)),
    ),
    Mistake(
        "the square root is missing",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p - r * (m / (1 - b**t)) / (v / (1 - c**t) + e), m, v)),
    ),
    Mistake(
        "epsilon is inside the square root: add it after",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p - r * (m / (1 - b**t)) / np.sqrt(v / (1 - c**t) + e), m, v)),
    ),
    Mistake(
        "the step goes uphill: subtract it",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p + r * (m / (1 - b**t)) / (np.sqrt(v / (1 - c**t)) + e), m, v)),
    ),
    Mistake("beta1 belongs to m and beta2 to v: yours are exchanged", _adam_with_swapped_betas),
    Mistake("v is the mean of the gradient's square", _adam_without_square),
    Mistake(
        "the step takes the gradient itself: m, its mean, belongs there",
        wrong_adam(lambda p, g, m, v, t, r, b, c, e: (p - r * g / (np.sqrt(v / (1 - c**t)) + e), m, v)),
    ),
]
