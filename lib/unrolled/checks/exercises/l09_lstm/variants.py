"""The variant of lesson 09: a step with coupled gates, where what gets in is what is forgotten."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l09_lstm import exercises, sequences
from unrolled.checks.mistakes import given, result
from unrolled.checks.spec import Budget, Inputs, draw_all, random_case, random_gpu_case, variant
from unrolled.device import Array

COUPLED = 3  # blocks: f, g, o


def coupled_step(x: Array, h: Array, c: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> tuple[Array, Array]:
    """Return the new (h, c), both (N, H), of a step with coupled gates: weights have blocks for f, g and o."""
    sums, size = x @ weight_ih.T + h @ weight_hh.T + bias, c.shape[1]
    f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(COUPLED))
    f = ops.sigmoid(f)
    c = f * c + (1 - f) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def _three_blocks(rng: np.random.Generator, n: int, inputs: int, hidden: int, dtype: type = np.float32) -> Inputs:
    """Draw the inputs of a step, without the first block of the weights."""
    return _without_i(draw_all(sequences.one_step(n, inputs, hidden, dtype), rng))


def _without_i(drawn: Inputs) -> Inputs:
    """Return the inputs of a step without the first block of the weights."""
    hidden = drawn["c"].shape[1]
    return drawn | {name: drawn[name][hidden:] for name in ("weight_ih", "weight_hh", "bias")}


lstm_step_coupled = variant(
    exercises.lstm_step,
    reference=coupled_step,
    cases=[
        random_case("two samples, three inputs, four units", _three_blocks, 2, 3, 4),
        random_case("in float64, and how fast h and c change", _three_blocks, 3, 4, 2, np.float64),
        random_gpu_case("on the GPU", lambda rng: _three_blocks(rng, 5, 4, 3), Budget()),
    ],
    domain=random_case("any size", lambda rng: _without_i(sequences.any_step(rng))),
    hints=(
        "First all sums in one go: the input's part, the part of the last output, and the bias. Then three blocks of H "
        "columns, and each goes through its function.",
        "sums is (N, 3 * H); with H = weight_hh.shape[1], the block of number k is sums[:, k * H : (k + 1) * H], in "
        "the order f, g, o. Where f keeps much, 1 - f lets little in.",
        "sums = x @ weight_ih.T + h @ ... + bias\n"
        "f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(3))\n"
        "f = ops.sigmoid(f)\n"
        "c = f * c + ...\n"
        "h = ...",
    ),
    mistakes=(
        result("you return c before h: h comes first", lambda y: (y[1], y[0], *y[3:1:-1])),
        given(
            "the blocks are in the order f, o, g: the second block is g, the third o", **exercises.reordered(0, 2, 1)
        ),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("what c held has no part in it: c is f * c + (1 - f) * g", c=lambda c: 0 * c),
        given(
            "f is what stays, and 1 - f what gets in: yours has them the other way round",
            **exercises.changed_weights(
                lambda rows: np.concatenate([-(f := rows[: len(rows) // COUPLED]), rows[len(f) :]])
            ),
        ),
    ),
)
