"""Backward through time, for one layer from zero states: what it gives, and what goes wrong in it."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l09_lstm.sequences import layer
from unrolled.checks.mistakes import given
from unrolled.checks.spec import Drawing, Inputs, draw_all
from unrolled.device import Array

Gradients = tuple[Array, Array, Array]


def through_time(grad_y: Array, x: Array, weight_hh: Array, y: Array, c: Array, gates: Array) -> Gradients:
    """Return the gradients by weight_ih (4 * H, D), weight_hh (4 * H, H) and bias (4 * H,).

    grad_y (T, N, H) is the gradient by each output; y, c (T, N, H) and gates (T, N, 4 * H) are what went forward.
    """
    layer = ops.LSTMWeights(np.zeros((len(weight_hh), x.shape[2]), x.dtype), weight_hh, np.zeros_like(weight_hh[:, 0]))
    kept = ops.LSTMGates(y, c, gates)
    _, (found,), _ = ops.lstm_backward(grad_y, x, [layer], [kept], input_gradient=False)
    return tuple(found)


def forward(steps: int, n: int, inputs: int, hidden: int, last: bool = False) -> Drawing:
    """Return what draws a sequence that went forward, and gradients by its outputs: by the last one with `last`."""

    def make(rng: np.random.Generator) -> Inputs:
        drawn = draw_all(layer(steps, n, inputs, hidden), rng)
        x, weights = drawn.pop("x"), ops.LSTMWeights(**drawn)
        (kept,), _ = ops.lstm_with_gates(x, [weights])
        grad_y = rng.standard_normal(kept.y.shape).astype(np.float32)
        if last:
            grad_y[:-1] = 0
        arrays = {name: np.ascontiguousarray(value) for name, value in kept._asdict().items()}
        return {"grad_y": grad_y, "x": x, "weight_hh": weights.weight_hh, **arrays}

    return make


def step_by_step(
    grad_y: Array,
    x: Array,
    weight_hh: Array,
    y: Array,
    c: Array,
    gates: Array,
    h: bool = True,
    c_back: bool = True,
    before: int = 1,
) -> Gradients:
    """Return the gradients, step by step: without what comes back through `h` or c, where that is left out.

    `before` says how many steps before the output was that weight_hh multiplied.
    """
    zeros = np.zeros_like(y[0])
    grad_h, grad_c = zeros, zeros
    by_ih, by_hh, by_bias = np.zeros((len(weight_hh), x.shape[2]), x.dtype), 0 * weight_hh, 0 * weight_hh[:, 0]
    for t in reversed(range(len(x))):
        c_before = c[t - 1] if t else zeros
        by_sums, by_c = ops.lstm_step_backward(grad_y[t] + grad_h, grad_c, gates[t], c[t], c_before)
        by_ih += by_sums.T @ x[t]
        by_hh += by_sums.T @ (y[t - before] if t >= before else zeros)
        by_bias += by_sums.sum(axis=0)
        grad_h = by_sums @ weight_hh if h else zeros
        grad_c = by_c if c_back else zeros
    return by_ih, by_hh, by_bias


MISTAKES = (
    given(
        "nothing comes back from later steps: keep grad_h and grad_c between turns", step_by_step, h=False, c_back=False
    ),
    given("what comes back through c is lost: keep grad_c for the step before", step_by_step, c_back=False),
    given("what comes back through h is lost: by_sums @ weight_hh belongs to the step before", step_by_step, h=False),
    given(
        "weight_hh multiplied the output of the step before: y[t - 1], and zeros for the first", step_by_step, before=0
    ),
)
