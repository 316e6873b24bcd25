"""Variants of the exercises of lesson 09: coupled gates, turned weights, samples first, and the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l04_backprop.gradients import named
from unrolled.checks.exercises.l09_lstm import exercises, fused, schedules, sequences
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Inputs, Spec, Speed, case, gpu_case, random_case, random_gpu_case, variant
from unrolled.device import Array, array_module

COUPLED = 3  # blocks: f, g, o


def _speed(spec: Spec, **changes: Any) -> Speed:
    assert spec.speed is not None
    return replace(spec.speed, **changes)


# coupled gates: what gets in is what is forgotten


def coupled(sums: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c), both (N, H), from the sums of f, g and o (N, 3 * H) and the c before; i is 1 - f."""
    size = c.shape[1]
    f, g, o = (sums[:, k * size : (k + 1) * size] for k in range(COUPLED))
    f = ops.sigmoid(f)
    c = f * c + (1 - f) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def coupled_step(x: Array, h: Array, c: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> tuple[Array, Array]:
    """Return the new (h, c) of a step with coupled gates; weights have three blocks of rows."""
    return coupled(x @ weight_ih.T + h @ weight_hh.T + bias, c)


def _three_blocks(inputs: Inputs) -> Inputs:
    """Return the inputs of a step without the first block of the weights."""
    size = inputs["c"].shape[1]
    return {
        name: value[size:] if name in ("weight_ih", "weight_hh", "bias") else value for name, value in inputs.items()
    }


def _any_coupled(*sizes: Any) -> Any:
    return lambda rng: _three_blocks({name: draw.make(rng) for name, draw in sequences.one_step(*sizes).items()})


def _reordered(*order: int) -> dict[str, Any]:
    def change(rows: Array) -> Array:
        return np.concatenate([np.split(rows, COUPLED)[k] for k in order])

    return {
        "weight_ih": lambda weight_ih: change(weight_ih),
        "weight_hh": lambda weight_hh: change(weight_hh),
        "bias": lambda bias: change(bias),
    }


F_AND_I = "f is what stays, and 1 - f what gets in: yours has them the other way round"


def _exchanged(sums: Array, c: Array) -> tuple[Array, Array]:
    size = c.shape[1]
    return coupled(np.concatenate([-sums[:, :size], sums[:, size:]], axis=1), c)


lstm_step_coupled = variant(
    exercises.lstm_step,
    reference=coupled_step,
    cases=[
        random_case("two samples, three inputs, four units", _any_coupled(2, 3, 4)),
        random_case("in float64, and how fast h and c change", _any_coupled(3, 4, 2, np.float64)),
        random_gpu_case("on the GPU", _any_coupled(5, 4, 3), Budget()),
        random_case("any size", lambda rng: _three_blocks(sequences.any_step(rng))),
    ],
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
        given("the blocks are in the order f, o, g: the second block is g, the third o", **_reordered(0, 2, 1)),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("what c held has no part in it: c is f * c + (1 - f) * g", c=lambda c: 0 * c),
        Mistake(
            F_AND_I,
            lambda x, h, c, weight_ih, weight_hh, bias: _exchanged(x @ weight_ih.T + h @ weight_hh.T + bias, c),
        ),
    ),
)


def point_wise_coupled(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return the new (h, c), both (N, H), from two sums (N, 3 * H), the bias (3 * H,) and the c before."""
    return coupled(from_x + from_h + bias, c)


def _any_coupled_sums(rng: np.random.Generator) -> Inputs:
    n, hidden = int(rng.integers(3, 12)), int(rng.integers(5, 60))
    return {name: draw.make(rng) for name, draw in fused.sums(n, hidden, COUPLED).items()}


THREE = replace(
    fused.ONCE,
    bytes_read=lambda inputs: fused.MORE * fused.FLOAT * float(inputs["c"].size) * (3 * COUPLED + 1),
)


def _coupled_one_by_one(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    size = c.shape[1]
    parts = [slice(k * size, (k + 1) * size) for k in range(COUPLED)]
    f, g, o = (from_x[:, part] + from_h[:, part] + bias[part] for part in parts)
    f = ops.sigmoid(f)
    c = f * c + (1 - f) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


fused_cell_coupled = variant(
    exercises.fused_cell,
    reference=point_wise_coupled,
    cases=[
        gpu_case("one sample, one unit", fused.ODD, **fused.sums(1, 1, COUPLED)),
        gpu_case("four samples, 64 units", THREE, **fused.sums(4, 64, COUPLED)),
        gpu_case("three samples, 96 units", THREE, **fused.sums(3, 96, COUPLED)),
        random_gpu_case("any size", _any_coupled_sums, fused.ODD),
    ],
    hints=(
        "A thread for each unit of each sample. It needs three sums, one from each block, and the c before; it writes "
        "two numbers.",
        "With row and unit, the sums of f are from_x[row, unit] + from_h[row, unit] + bias[unit], those of g the same "
        "at unit + hidden, of o at unit + 2 * hidden. A sigmoid of z is ONE / (ONE + cp.exp(-z)), and i is ONE - f.",
        "f = ONE / (ONE + cp.exp(-(from_x[row, unit] + ...)))\n"
        "g = from_x[row, unit + hidden] + ...\n"
        "... the others in the same way\n"
        "now = f * c[row, unit] + ...\n"
        "c_new[row, unit] = now\n"
        "h_new[row, unit] = cp.tanh(now) / ...",
    ),
    mistakes=(
        result("you return c before h: h comes first", lambda y: (y[1], y[0])),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("from_h has no part in it: both sums are added", from_h=lambda from_h: 0 * from_h),
        given("what c held has no part in it: c is f * c + (1 - f) * g", c=lambda c: 0 * c),
        Mistake(F_AND_I, lambda from_x, from_h, bias, c: _exchanged(from_x + from_h + bias, c)),
    ),
    compare=named("h", "c"),
    speed=_speed(exercises.fused_cell, baseline=_coupled_one_by_one, inputs=fused.sums(8, 128, COUPLED)),
)


# turned weights, as Keras keeps them


def two_products_turned(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (T, N, H) with two products a step, from weight_ih (D, 4 * H) and weight_hh (H, 4 * H)."""
    return sequences.two_products(x, weight_ih.T, weight_hh.T, bias)


def by_gate_turned(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (T, N, H) with eight products a step, from weight_ih (D, 4 * H) and weight_hh (H, 4 * H)."""
    return sequences.by_gate(x, weight_ih.T, weight_hh.T, bias)


def _layer_turned(steps: int, n: int, inputs: int, hidden: int) -> Inputs:
    rows, drawn = sequences.GATES * hidden, sequences.layer(steps, n, inputs, hidden)
    return drawn | {
        "weight_ih": sequences.uniform(inputs, rows, most=2 / inputs**0.5),
        "weight_hh": sequences.uniform(hidden, rows, most=2 / hidden**0.5),
    }


def _any_turned(rng: np.random.Generator) -> Inputs:
    n, inputs, hidden = (int(size) for size in rng.integers(2, 7, 3))
    return {name: draw.make(rng) for name, draw in _layer_turned(5, n, inputs, hidden).items()}


combined_gates_turned = variant(
    exercises.combined_gates,
    reference=two_products_turned,
    cases=[
        case("one step, NumPy", **_layer_turned(1, 2, 3, 2)),
        case("seven steps, NumPy", **_layer_turned(7, 3, 4, 5)),
        gpu_case("six steps, GPU", exercises.few(6, 12), **_layer_turned(6, 4, 3, 2)),
        random_gpu_case("any size, five steps, GPU", _any_turned, exercises.few(5, 10)),
    ],
    hints=(
        "The four blocks of the weights stand side by side already. A product with all of them gives all four sums "
        "side by side.",
        "In each step: x[t] @ weight_ih is (N, 4 * H), and h @ weight_hh too. Cut their sum into blocks as in "
        "lstm_step. One sigmoid over all 4 * H columns costs less than three over a part, even if one block of it is "
        "thrown away.",
        "for t in range(steps):\n"
        "    sums = x[t] @ ... + h @ ... + bias\n"
        "    gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])\n"
        "    c = gates[:, size : 2 * size] * c + ...\n"
        "    y[t] = h = ...",
    ),
    mistakes=[
        mistake for mistake in exercises.SEQUENCE_MISTAKES if not {"weight_ih", "weight_hh"} <= set(mistake.given)
    ],
    speed=_speed(exercises.combined_gates, baseline=by_gate_turned, inputs=_layer_turned(400, 1, 28, 64)),
)


# samples first


def all_inputs_first(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (N, T, H) of x (N, T, D) with T + 1 products."""
    return _exchanged_axes(sequences.all_inputs(_exchanged_axes(x), weight_ih, weight_hh, bias))


def two_products_first(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (N, T, H) of x (N, T, D) with two products a step."""
    return _exchanged_axes(sequences.two_products(_exchanged_axes(x), weight_ih, weight_hh, bias))


def _exchanged_axes(x: Array) -> Array:
    """A copy of x with its first two axes exchanged."""
    return array_module(x).ascontiguousarray(x.swapaxes(0, 1))


def _any_first(rng: np.random.Generator) -> Inputs:
    n, inputs, hidden = (int(size) for size in rng.integers(2, 7, 3))
    return {name: draw.make(rng) for name, draw in sequences.layer(n, 5, inputs, hidden).items()}


inputs_at_once_samples_first = variant(
    exercises.inputs_at_once,
    reference=all_inputs_first,
    cases=[
        case("one step, NumPy", **sequences.layer(2, 1, 3, 2)),
        case("seven steps, NumPy", **sequences.layer(3, 7, 4, 5)),
        gpu_case("six steps, GPU", exercises.few(6, 7), **sequences.layer(4, 6, 3, 2)),
        random_gpu_case("any size, five steps, GPU", _any_first, exercises.few(5, 6)),
    ],
    hints=(
        "What the input gives does not depend on any step before. So it can be computed for all steps, before the "
        "first one.",
        "A product takes rows: x.reshape(n * steps, inputs) has a row for each step of each sample. What comes out is "
        "reshaped to (n, steps, 4 * H), and step t of all samples is sums[:, t].",
        "sums = (x.reshape(...) @ weight_ih.T + bias).reshape(n, steps, -1)\n"
        "for t in range(steps):\n"
        "    now = sums[:, t] + h @ ...\n"
        "    ... as before, and y[:, t] = h",
    ),
    mistakes=(
        result("the axes are (T, N, H): the samples come first here", lambda y: y.swapaxes(0, 1)),
        result("this is the last output only: the outputs of all steps are asked, (N, T, H)", lambda y: y[:, -1]),
        given("the bias is missing", bias=lambda bias: 0 * bias),
        given("the bias is in it twice: once with the inputs, and once more in each step", bias=lambda bias: 2 * bias),
        given("the last output has no part in it: h @ weight_hh.T", weight_hh=lambda weight_hh: 0 * weight_hh),
    ),
    speed=_speed(exercises.inputs_at_once, baseline=two_products_first, inputs=sequences.layer(2, 60, 2048, 64)),
)


# the way back


def back(layers: int, steps: int) -> schedules.Schedule:
    """Return the cells of each slot on the way back: the last layer at the last step fires first."""
    return [
        [(layers - 1 - layer, steps - 1 - step) for layer, step in slot] for slot in schedules.diagonals(layers, steps)
    ]


wavefront_backward = variant(
    exercises.wavefront,
    reference=back,
    hints=(
        "A cell can fire in the slot after the later of the two that it needs: the layer above at the same step, and "
        "the same layer at the step after. Write that number into each square of a small grid, from the upper right.",
        "Layer layers - 1 at step steps - 1 fires in slot 0. Layer l at step t is (layers - 1 - l) + (steps - 1 - t) "
        "away from it.",
        "slots = [[] for _ in range(layers + steps - 1)]\n"
        "for layer in range(layers):\n"
        "    for step in range(steps):\n"
        "        ... which slot gets (layer, step)?",
    ),
    compare=schedules.judge_back,
)
