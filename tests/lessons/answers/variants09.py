"""Wrong and imperfect answers to the variants of lesson 09."""

from __future__ import annotations

from typing import Any

import kernel_specs
from answers import Mutant
from answers.lesson09 import (
    CELL,
    HEAD,
    SIZES,
    at_once_with_copies,
    blocks,
    diagonals,
    layer_by_layer,
    one_sigmoid_a_step,
    room,
    stacked_inputs,
    unit_by_unit,
    without_the_last,
)
from unrolled import device, ops
from unrolled.checks.exercises.l09_lstm import sequences, variants

# lstm_step_coupled


def coupled(x, h, c, weight_ih, weight_hh, bias, order=(0, 1, 2), turned=False):
    size = weight_hh.shape[1]
    sums = x @ weight_ih.T + h @ weight_hh.T + bias
    f, g, o = (sums[:, k * size : (k + 1) * size] for k in order)
    f = ops.sigmoid(-f if turned else f)
    c = f * c + (1 - f) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def coupled_of_the_host(x, h, c, weight_ih, weight_hh, bias):
    arrays = (device.to_host(a) for a in (x, h, c, weight_ih, weight_hh, bias))
    return tuple(device.array_module(x).asarray(a) for a in coupled(*arrays))


# combined_gates_turned: the answers of the lesson, with weights that are turned first


def turned(function: Any) -> Any:
    return lambda x, weight_ih, weight_hh, bias: function(x, weight_ih.T, weight_hh.T, bias)


def turned_one_sigmoid(x, weight_ih, weight_hh, bias):
    return one_sigmoid_a_step(x, weight_ih.T, weight_hh.T, bias)


def turned_stacked(x, weight_ih, weight_hh, bias):
    return stacked_inputs(x, weight_ih.T, weight_hh.T, bias)


def turned_unit_by_unit(x, weight_ih, weight_hh, bias):
    """By gate, and all of it twice."""
    unit_by_unit(x, weight_ih.T, weight_hh.T, bias)
    return unit_by_unit(x, weight_ih.T, weight_hh.T, bias)


def turned_without_state(x, weight_ih, weight_hh, bias):
    y, h, c = room(x, weight_hh.T)
    for t in range(len(x)):
        y[t], _ = sequences.gated(x[t] @ weight_ih + h @ weight_hh + bias, c)
    return y


# inputs_at_once_samples_first


def first(function: Any) -> Any:
    def answer(x, weight_ih, weight_hh, bias):
        xp = device.array_module(x)
        y = function(xp.ascontiguousarray(x.swapaxes(0, 1)), weight_ih, weight_hh, bias)
        return xp.ascontiguousarray(y.swapaxes(0, 1))

    return answer


def first_by_gate_of_the_step(x, weight_ih, weight_hh, bias):
    n, steps, inputs = x.shape
    xp, size = device.array_module(x), weight_hh.shape[1]
    sums = (x.reshape(n * steps, inputs) @ weight_ih.T + bias).reshape(n, steps, 4 * size)
    h = c = xp.zeros((n, size), dtype=x.dtype)
    y = xp.empty((n, steps, size), dtype=x.dtype)
    for t in range(steps):
        i, f, g, o = blocks(sums[:, t] + h @ weight_hh.T)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        y[:, t] = h
    return y


FIRST_WITH_COPIES = first(at_once_with_copies)


def first_with_copies(x, weight_ih, weight_hh, bias):
    return FIRST_WITH_COPIES(x, weight_ih, weight_hh, bias)


def first_twice(x, weight_ih, weight_hh, bias):
    variants.two_products_first(x, weight_ih, weight_hh, bias)
    return variants.two_products_first(x, weight_ih, weight_hh, bias)


# fused_cell_coupled

COUPLED = CELL
for _old, _new in (
    ("        i = from_x[row, unit] + from_h[row, unit] + bias[unit]\n", ""),
    ("unit + hidden", "unit"),
    ("unit + 2 * hidden", "unit + hidden"),
    ("unit + 3 * hidden", "unit + 2 * hidden"),
    (
        "now = c[row, unit] / (ONE + cp.exp(-f)) + cp.tanh(g) / (ONE + cp.exp(-i))",
        "now = c[row, unit] / (ONE + cp.exp(-f)) + cp.tanh(g) / (ONE + cp.exp(f))",
    ),
):
    assert _old in COUPLED, _old
    COUPLED = COUPLED.replace(_old, _new)


def cell(*changes: tuple[str, str]) -> Any:
    """The right kernel with these words in place of others."""
    source = HEAD + SIZES + COUPLED
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return kernel_specs.answer(source)


BY_64, BY_1024 = cell(("= 256, np", "= 64, np")), cell(("= 256, np", "= 1024, np"))


def coupled_by_blocks_of_64(from_x, from_h, bias, c):
    return BY_64(from_x, from_h, bias, c)


def coupled_by_blocks_of_1024(from_x, from_h, bias, c):
    return BY_1024(from_x, from_h, bias, c)


def coupled_one_by_one(from_x, from_h, bias, c):
    return variants._coupled_one_by_one(from_x, from_h, bias, c)


# wavefront_backward


def back(layers: int, steps: int) -> list[list[tuple[int, int]]]:
    return [[(layers - 1 - layer, steps - 1 - step) for layer, step in slot] for slot in diagonals(layers, steps)]


MUTANTS = {
    "lstm_step_coupled": [
        Mutant(lambda **arrays: coupled(**arrays, order=(0, 2, 1)), "the second block is g, the third o"),
        Mutant(lambda **arrays: coupled(**arrays, turned=True), "1 - f what gets in"),
        Mutant(lambda **arrays: coupled(**arrays)[::-1], "h comes first"),
        Mutant(coupled_of_the_host, "transfers, none allowed"),
    ],
    "combined_gates_turned": [
        Mutant(turned(sequences.by_gate), "48 matrix products, at most 12 allowed"),
        Mutant(turned_without_state, "h and c of a step go into the next one"),
        Mutant(sequences.two_products, "matmul"),
    ],
    "inputs_at_once_samples_first": [
        Mutant(first(sequences.two_products), "12 matrix products, at most 7 allowed"),
        Mutant(sequences.all_inputs, "differ"),
        Mutant(lambda **arrays: first(sequences.all_inputs)(**arrays).swapaxes(0, 1), "the samples come first here"),
        Mutant(lambda **arrays: first(sequences.all_inputs)(**arrays)[:, -1], "the outputs of all steps are asked"),
    ],
    "fused_cell_coupled": [
        Mutant(variants.point_wise_coupled, "no launch of a kernel of your own"),
        Mutant(
            cell(("cp.exp(-f)", "cp.exp(f) "), ("(ONE + cp.exp(f))\n", "(ONE + cp.exp(-f))\n")), "1 - f what gets in"
        ),
        Mutant(cell(("if at < size", "if size > 0")), "out of bounds"),
        Mutant(cell(("return h_new, c_new", "return c_new, h_new")), "h comes first"),
    ],
    "wavefront_backward": [
        Mutant(diagonals, "and needs the step after"),
        Mutant(lambda layers, steps: layer_by_layer(layers, steps)[::-1], "are enough"),
        Mutant(lambda layers, steps: back(layers, steps)[:-1], "never fire"),
        Mutant(without_the_last, "never fire"),
    ],
}

HONEST = {
    "combined_gates_turned": [turned_one_sigmoid, turned_stacked],
    "inputs_at_once_samples_first": [first_by_gate_of_the_step, first_with_copies],
    "fused_cell_coupled": [coupled_by_blocks_of_64, coupled_by_blocks_of_1024],
}
LOOP = {
    "combined_gates_turned": turned_unit_by_unit,
    "inputs_at_once_samples_first": first_twice,
    "fused_cell_coupled": coupled_one_by_one,
}
