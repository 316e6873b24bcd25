"""The variant of lesson 13: a step with momentum and weight decay."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.checks import graphs
from unrolled.checks.exercises.l13_capstone import exercises, steps
from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Function, Inputs, draw_all, gpu_case, normal, random_gpu_case, variant
from unrolled.device import Array, array_module

DECAY = 0.01


def decay_step(
    x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array, decayed: Array
) -> None:
    """Take one step with momentum and weight decay, in place; the rate (1,) falls after it."""
    decaying()(x, target, weight, velocity, rate, error, grad, decayed)


def decaying(
    frozen: float | None = None, mean: bool = True, decay: float = DECAY, falls: float = steps.FALLS
) -> Function:
    """Return the step, right as it is or with something wrong."""

    def step(
        x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array, decayed: Array
    ) -> None:
        kernels.matmul(x, weight, out=error)
        error -= target
        kernels.matmul(x.T, error, out=grad)
        grad /= len(x) if mean else 1
        array_module(x).multiply(weight, decay, out=decayed)
        grad += decayed
        grad *= rate if frozen is None else frozen
        velocity *= steps.MOMENTUM
        velocity -= grad
        weight += velocity
        rate *= falls

    return step


def _under_capture(function: Function, inputs: Inputs) -> Any:
    buffers = {name: inputs[name] for name in (*steps.BUFFERS, "decayed")}
    return graphs.replayed(function, buffers, inputs["batches"], steps.RESULTS)


def _buffers(n: int, inputs: int, outputs: int) -> Inputs:
    return {**steps.buffers(n, inputs, outputs, new_rate=True), "decayed": normal(inputs, outputs)}


def _any_buffers(rng: np.random.Generator) -> Inputs:
    n, inputs, outputs = (int(size) for size in rng.integers(2, 9, 3))
    return draw_all(_buffers(n, inputs, outputs), rng)


capturable_step_decay = variant(
    exercises.capturable_step,
    reference=decay_step,
    cases=[
        gpu_case("captured once, launched on three batches", exercises.CAPTURED, **_buffers(4, 3, 2)),
        random_gpu_case("any size", _any_buffers, exercises.CAPTURED),
    ],
    hints=(
        exercises.capturable_step.hints[0],
        "error (N, M) and grad (K, M) are where the two products go: matmul(x, weight, out=error). 0.01 * weight is an "
        "array, too, and decayed (K, M) is for it: the module's multiply takes out=. The rest is in place.",
        "xp = device.array_module(x)\n"
        "matmul(x, weight, out=error)\n"
        "... error and grad as they are\n"
        "xp.multiply(weight, ..., out=decayed)\n"
        "grad += decayed\n"
        "... then velocity, weight and rate, each in place",
    ),
    mistakes=(
        Mistake(exercises.capturable_step.mistakes[0].says, decaying(frozen=steps.FIRST_RATE)),
        Mistake(exercises.capturable_step.mistakes[1].says, decaying(frozen=steps.FIRST_RATE * steps.FALLS)),
        Mistake("the weight decay is missing: 0.01 times the weight belongs to the gradient", decaying(decay=0)),
        Mistake("the gradient is a sum over the samples: divide by len(x)", decaying(mean=False)),
        Mistake(exercises.RATE_STAYS, decaying(falls=1)),
    ),
    call=_under_capture,
)
