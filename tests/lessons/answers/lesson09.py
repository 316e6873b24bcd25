"""Wrong and imperfect answers to lesson 09."""

from __future__ import annotations

from typing import Any

import numpy as np

from answers import Mutant, on_the_host, result_of, solution
from unrolled import device, ops
from unrolled.checks.exercises.l09_lstm import sequences

# lstm_step


def blocks(sums: Any) -> list[Any]:
    size = sums.shape[1] // 4
    return [sums[:, k * size : (k + 1) * size] for k in range(4)]


STEP = solution("09_lstm", "lstm_step")


def step_in_float32(x, h, c, weight_ih, weight_hh, bias):
    narrow = [a.astype(np.float32) for a in (x, h, c, weight_ih, weight_hh, bias)]
    return tuple(a.astype(x.dtype) for a in STEP(*narrow))


# combined_gates and inputs_at_once


def room(x: Any, weight_hh: Any) -> tuple[Any, Any, Any]:
    xp, shape = device.array_module(x), (x.shape[1], weight_hh.shape[1])
    zeros = xp.zeros(shape, dtype=x.dtype)
    return xp.empty((len(x), *shape), dtype=x.dtype), zeros, zeros


def one_sigmoid_a_step(x, weight_ih, weight_hh, bias):
    y, h, c = room(x, weight_hh)
    size = weight_hh.shape[1]
    for t in range(len(x)):
        sums = x[t] @ weight_ih.T + h @ weight_hh.T + bias
        gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])
        c = gates[:, size : 2 * size] * c + gates[:, :size] * g
        h = gates[:, 3 * size :] * ops.tanh(c)
        y[t] = h
    return y


def stacked_inputs(x, weight_ih, weight_hh, bias):
    """One product a step: x[t] and h side by side, and both weights, too."""
    xp = device.array_module(x)
    y, h, c = room(x, weight_hh)
    weight, size = xp.concatenate((weight_ih, weight_hh), axis=1).T.copy(), weight_hh.shape[1]
    for t in range(len(x)):
        sums = xp.concatenate((x[t], h), axis=1) @ weight + bias
        gates = ops.sigmoid(sums)
        c = gates[:, size : 2 * size] * c + gates[:, :size] * ops.tanh(sums[:, 2 * size : 3 * size])
        y[t] = h = gates[:, 3 * size :] * ops.tanh(c)
    return y


def unit_by_unit(x, weight_ih, weight_hh, bias):
    """By gate, and the weights are copied for each gate in each step."""
    y, h, c = room(x, weight_hh)
    size = weight_hh.shape[1]
    for t in range(len(x)):
        i, f, g, o = (
            x[t] @ weight_ih[k * size : (k + 1) * size].T.copy() + h @ weight_hh[k * size : (k + 1) * size].T.copy()
            + bias[k * size : (k + 1) * size]
            for k in range(4)
        )  # fmt: skip
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        y[t] = h = ops.sigmoid(o) * ops.tanh(c)
    return y


def at_once_by_gate_of_the_step(x, weight_ih, weight_hh, bias):
    """The inputs at once, and three sigmoids a step."""
    y, h, c = room(x, weight_hh)
    sums = (x.reshape(-1, x.shape[2]) @ weight_ih.T).reshape(*x.shape[:2], -1)
    for t in range(len(x)):
        i, f, g, o = blocks(sums[t] + h @ weight_hh.T + bias)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        y[t] = h
    return y


def at_once_with_copies(x, weight_ih, weight_hh, bias):
    """The inputs at once, copied before, and a list that is joined at the end."""
    xp = device.array_module(x)
    _, h, c = room(x, weight_hh)
    steps, n, inputs = x.shape
    sums = (x.copy().reshape(steps * n, inputs) @ weight_ih.T + bias).reshape(steps, n, -1)
    outputs = []
    for t in range(steps):
        i, f, g, o = blocks(sums[t] + h @ weight_hh.T)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        outputs.append(h)
    return xp.stack(outputs)


def two_products_twice(x, weight_ih, weight_hh, bias):
    """The sums of the inputs step by step, and all of it done a second time."""
    one_sigmoid_a_step(x, weight_ih, weight_hh, bias)
    return one_sigmoid_a_step(x, weight_ih, weight_hh, bias)


# fused_cell


def cell(*changes: tuple[str, str]) -> Any:
    """The right kernel with these words in place of others."""
    return solution("09_lstm", "fused_cell", *changes)


# wavefront


def diagonals(layers: int, steps: int) -> list[list[tuple[int, int]]]:
    slots: list[list[tuple[int, int]]] = [[] for _ in range(layers + steps - 1)]
    for layer in range(layers):
        for step_ in range(steps):
            slots[layer + step_].append((layer, step_))
    return slots


def layer_by_layer(layers, steps):
    return [[(layer, step_)] for layer in range(layers) for step_ in range(steps)]


def step_by_step(layers, steps):
    return [[(layer, step_) for layer in range(layers)] for step_ in range(steps)]


def steps_first(layers, steps):
    return [[(step_, layer) for layer, step_ in slot] for slot in diagonals(layers, steps)]


MUTANTS = {
    "lstm_step": [
        Mutant(step_in_float32, "the slope of h"),
        Mutant(solution("09_lstm", "lstm_step", ("    c = ", "    c[...] = ")), "changed its input c"),
        Mutant(on_the_host("lstm_step"), "transfers, none allowed"),
    ],
    "combined_gates": [
        Mutant(sequences.by_gate, "48 matrix products, at most 12 allowed"),
    ],
    "inputs_at_once": [
        Mutant(sequences.two_products, "12 matrix products, at most 7 allowed"),
    ],
    "fused_cell": [
        Mutant(sequences.point_wise, "no launch of a kernel of your own"),
        Mutant(cell(("bias[unit]\n", "bias[unit] * 0\n"), ("    if at", "    if at")), "differ"),
        Mutant(cell(("if at < size", "if size > 0")), "out of bounds"),
    ],
    "wavefront": [
        Mutant(layer_by_layer, "are enough"),
        Mutant(step_by_step, "the layer below"),
        Mutant(steps_first, "is not among"),
    ],
    "backward_through_time": [
        Mutant(
            solution("09_lstm", "backward_through_time", ("by_sums.sum(axis=0)", "by_sums.mean(axis=0)")), "grad_bias"
        ),
        Mutant(
            result_of("backward_through_time", lambda grads: grads[:2]),
            "return grad_weight_ih, grad_weight_hh, grad_bias",
        ),
    ],
}

HONEST = {
    "combined_gates": [one_sigmoid_a_step, stacked_inputs],
    "inputs_at_once": [at_once_by_gate_of_the_step, at_once_with_copies],
    "fused_cell": [cell(("= 256, np", "= 64, np")), cell(("= 256, np", "= 1024, np"))],
}
LOOP = {
    "combined_gates": unit_by_unit,
    "inputs_at_once": two_products_twice,
}
