"""The variant of lesson 13: a step with momentum and weight decay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unrolled.checks.exercises.l13_capstone import exercises, steps
from unrolled.checks.mistakes import given
from unrolled.checks.spec import Inputs, gpu_case, normal, random_gpu_case, variant
from unrolled.device import Array


def decay_step(
    x: Array, target: Array, weight: Array, velocity: Array, rate: Array, error: Array, grad: Array, decayed: Array
) -> None:
    """Take one step with momentum and weight decay, in place; the rate (1,) falls after it."""
    steps.step(x, target, weight, velocity, rate, error, grad, decayed)


def _buffers(n: int, inputs: int, outputs: int) -> Inputs:
    return {**steps.buffers(n, inputs, outputs, new_rate=True), "decayed": normal(inputs, outputs)}


def _any_buffers(rng: np.random.Generator) -> Inputs:
    drawn = steps.any_buffers(rng)
    return {**drawn, "decayed": np.full_like(drawn["weight"], 7)}


capturable_step_decay = variant(
    exercises.capturable_step,
    reference=decay_step,
    cases=[
        gpu_case("captured once, launched on three batches", exercises.CAPTURED, **_buffers(4, 3, 2)),
    ],
    domain=random_gpu_case("any size", _any_buffers, exercises.TWICE, anywhere=True),
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
    mistakes=[
        replace(mistake, function=steps.step)
        for mistake in (
            steps.FROZEN,
            steps.FROZEN_IN_CAPTURE,
            given("the weight decay is missing: 0.01 times the weight belongs to the gradient", decay=0),
            steps.A_SUM,
            steps.RATE_STAYS,
        )
    ],
)
