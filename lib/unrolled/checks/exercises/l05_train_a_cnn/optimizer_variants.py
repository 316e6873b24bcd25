"""Variants of lesson 05 for one step of an optimizer: Nesterov's momentum, Adam with decoupled weight decay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.checks.exercises.l05_train_a_cnn.optimizer_steps import (
    State,
    adam_update,
    any_adam,
    momentum_update,
    wrong_momentum,
)
from unrolled.checks.spec import Function, Inputs, Mistake
from unrolled.device import Array

# momentum_step_nesterov


def nesterov_update(
    parameters: Array,
    gradient: Array,
    velocity: Array,
    learning_rate: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
) -> State:
    """As PyTorch's SGD with nesterov=True: I. Sutskever and others, 2013: On the importance of initialization and
    momentum in deep learning, in the form that needs the gradient at the parameters themselves."""
    gradient = gradient + weight_decay * parameters
    velocity = momentum * velocity + gradient
    return parameters - learning_rate * (gradient + momentum * velocity), velocity


NESTEROV_MISTAKES = (
    Mistake(
        "this is momentum without the look ahead: step along the gradient plus momentum times the new velocity",
        momentum_update,
    ),
    Mistake(
        "the look ahead takes the old velocity, which makes it plain momentum: take the new one",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (g + d * p + m * v), v)),
    ),
    Mistake(
        "the step is along velocity plus momentum times velocity: its first part is the gradient",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (1 + m) * (m * v + g + d * p), m * v + g + d * p)),
    ),
    Mistake(
        "the step is along gradient plus velocity: the velocity counts `momentum` times in it",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (m * v + 2 * (g + d * p)), m * v + g + d * p)),
    ),
    Mistake(
        "the step leaves the gradient out: it is the gradient plus momentum times the new velocity",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * m * (m * v + g + d * p), m * v + g + d * p)),
    ),
    Mistake(
        "you return the look ahead as velocity: keep momentum * velocity + gradient",
        wrong_momentum(
            lambda p, g, v, r, m, d: (
                p - r * (g + d * p + m * (m * v + g + d * p)),
                g + d * p + m * (m * v + g + d * p),
            )
        ),
    ),
    Mistake(
        "the order is parameters, velocity",
        wrong_momentum(lambda p, g, v, r, m, d: nesterov_update(p, g, v, r, m, d)[::-1]),
    ),
    Mistake(
        "the step goes uphill: subtract it",
        wrong_momentum(lambda p, g, v, r, m, d: (p + r * (g + d * p + m * (m * v + g + d * p)), m * v + g + d * p)),
    ),
    Mistake(
        "you return the old velocity: the next step needs the new one",
        wrong_momentum(lambda p, g, v, r, m, d: (nesterov_update(p, g, v, r, m, d)[0], v)),
    ),
    Mistake(
        "the learning rate is inside your velocity: here the velocity gathers gradients, and the rate counts in the "
        "step",
        wrong_momentum(lambda p, g, v, r, m, d: nesterov_update(p, r * (g + d * p), v, 1, m)),
    ),
    Mistake("the weight decay is missing", wrong_momentum(lambda p, g, v, r, m, d: nesterov_update(p, g, v, r, m))),
    Mistake(
        "the weight decay is in the velocity and not in the gradient of the step: add it to the gradient first",
        wrong_momentum(lambda p, g, v, r, m, d: (p - r * (g + m * (m * v + g + d * p)), m * v + g + d * p)),
    ),
    Mistake(
        "you shrink the parameters beside the step; here weight decay is part of the gradient, and so of the velocity",
        wrong_momentum(lambda p, g, v, r, m, d: (nesterov_update(p, g, v, r, m)[0] - r * d * p, m * v + g)),
    ),
)


# adam_step_decoupled


def decoupled_update(
    parameters: Array,
    gradient: Array,
    m: Array,
    v: Array,
    t: int,
    learning_rate: float = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> State:
    """I. Loshchilov and F. Hutter, 2019: Decoupled Weight Decay Regularization, algorithm 2 (AdamW), with the learning
    rate on the decay as well, as in PyTorch."""
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient**2
    step = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
    return parameters - learning_rate * (step + weight_decay * parameters), m, v


def any_decoupled(rng: np.random.Generator) -> Inputs:
    return {**any_adam(rng), "weight_decay": float(rng.uniform(0.05, 0.9))}


def _instead(update: Function) -> Function:
    """A mistake in place of the step with decay: update(rate, weight_decay, parameters=…, gradient=…, …)."""

    def wrong(learning_rate: float = 0.001, weight_decay: float = 0.01, **given: Any) -> Any:
        return update(learning_rate, weight_decay, **given)

    return wrong


def _in_the_gradient(rate: float, decay: float, *, parameters: Array, gradient: Array, **given: Any) -> State:
    return adam_update(parameters, gradient + decay * parameters, learning_rate=rate, **given)


def _with_old_rate(rate: float, decay: float, *, parameters: Array, **given: Any) -> State:
    stepped, m, v = adam_update(parameters, learning_rate=rate, **given)
    return stepped - decay * parameters, m, v


def _after_the_step(rate: float, decay: float, **given: Any) -> State:
    stepped, m, v = adam_update(learning_rate=rate, **given)
    return stepped * (1 - rate * decay), m, v


def _in_the_means(rate: float, decay: float, *, parameters: Array, gradient: Array, **given: Any) -> State:
    _, m, v = adam_update(parameters, gradient + decay * parameters, learning_rate=rate, **given)
    stepped = decoupled_update(parameters, gradient, learning_rate=rate, weight_decay=decay, **given)[0]
    return stepped, m, v


def _with_growth(rate: float, decay: float, **given: Any) -> State:
    return decoupled_update(learning_rate=rate, weight_decay=-decay, **given)


def _uncorrected(
    rate: float,
    decay: float,
    *,
    parameters: Array,
    m: Array,
    v: Array,
    epsilon: float = 1e-8,
    **given: Any,
) -> State:
    _, m, v = adam_update(parameters, m=m, v=v, epsilon=epsilon, **given)
    return parameters - rate * (m / (np.sqrt(v) + epsilon) + decay * parameters), m, v


def _divided(by: Callable[[Array, float], Array]) -> Function:
    """The step divided by another function of v, corrected, and epsilon."""

    def update(
        rate: float,
        decay: float,
        *,
        parameters: Array,
        t: int,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **given: Any,
    ) -> State:
        _, m, v = adam_update(parameters, t=t, beta1=beta1, beta2=beta2, epsilon=epsilon, **given)
        step = m / (1 - beta1**t) / by(v / (1 - beta2**t), epsilon)
        return parameters - rate * (step + decay * parameters), m, v

    return update


def _corrected_kept(
    rate: float, decay: float, *, t: int, beta1: float = 0.9, beta2: float = 0.999, **given: Any
) -> State:
    stepped, m, v = decoupled_update(t=t, beta1=beta1, beta2=beta2, learning_rate=rate, weight_decay=decay, **given)
    return stepped, m / (1 - beta1**t), v / (1 - beta2**t)


def _counting(shift: int) -> Function:
    return lambda rate, decay, *, t, **given: decoupled_update(
        learning_rate=rate, weight_decay=decay, t=t + shift, **given
    )


def _uphill(rate: float, decay: float, *, parameters: Array, **given: Any) -> State:
    stepped, m, v = adam_update(parameters, learning_rate=-rate, **given)
    return stepped - rate * decay * parameters, m, v


DECOUPLED_MISTAKES = (
    Mistake(
        "the weight decay is part of the gradient, as in Adam with L2: there it is divided by sqrt(v) as well. Keep it "
        "out of m and v, and subtract it from the parameters",
        _instead(_in_the_gradient),
    ),
    Mistake(
        "the weight decay is missing",
        _instead(lambda rate, decay, **given: adam_update(learning_rate=rate, **given)),
    ),
    Mistake(
        "the decay takes weight_decay of the parameters: here it is learning_rate * weight_decay",
        _instead(_with_old_rate),
    ),
    Mistake(
        "you shrink the parameters after the step, and so the step as well: the decay is of those that came in",
        _instead(_after_the_step),
    ),
    Mistake("m and v have the weight decay in them: they are means of the gradient alone", _instead(_in_the_means)),
    Mistake("the weight decay has the wrong sign: it pulls the parameters towards 0", _instead(_with_growth)),
    Mistake("the bias correction is missing: divide by 1 - beta1**t and 1 - beta2**t", _instead(_uncorrected)),
    Mistake(
        "you return the corrected means: the correction is for this step only, the next needs m and v themselves",
        _instead(_corrected_kept),
    ),
    Mistake("the square root is missing: the step is along m / sqrt(v)", _instead(_divided(lambda v, e: v + e))),
    Mistake("epsilon is under the root: it is added to sqrt(v)", _instead(_divided(lambda v, e: np.sqrt(v + e)))),
    Mistake("you count t one too high: it is 1 in the first step already", _instead(_counting(1))),
    Mistake("you count t from 0: in the first step it is 1", _instead(_counting(-1))),
    Mistake("the step goes uphill: subtract it", _instead(_uphill)),
)
