"""Wrong and imperfect answers to lesson 09."""

from typing import Any

import numpy as np

from answers import Mutant, in_place, solution
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


def gate_by_gate(x, h, c, weight_ih, weight_hh, bias):
    sums = [x @ w.T + h @ v.T + b for w, v, b in zip(*(rows_of(a) for a in (weight_ih, weight_hh, bias)), strict=True)]
    i, f, o = (1 / (1 + device.array_module(x).exp(-sums[k])) for k in (0, 1, 3))
    new = f * c + i * device.array_module(x).tanh(sums[2])
    return [o * ops.tanh(new), new]


def rows_of(array: Any) -> list[Any]:
    size = len(array) // 4
    return [array[k * size : (k + 1) * size] for k in range(4)]


# combined_gates and inputs_at_once


def of_three_axes(x, weight_ih, weight_hh, bias):
    """One product in three axes, and all of a sequence in columns."""
    xp, size, turned = device.array_module(x), weight_hh.shape[1], (x @ weight_ih.T + bias).transpose(0, 2, 1)
    h = c = xp.zeros((size, x.shape[1]), x.dtype)
    outputs = []
    for from_x in turned:
        sums = from_x + weight_hh @ h
        i, f, g, o = (sums[k : k + size] for k in range(0, 4 * size, size))
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * xp.tanh(g)
        h = ops.sigmoid(o) * xp.tanh(c)
        outputs.append(h.T)
    return xp.stack(outputs)


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


def as_soon_as_possible(layers, steps):
    """Each cell in the slot after the later of the two that it needs."""
    when = {}
    for layer in range(layers):
        for t in range(steps):
            when[layer, t] = 1 + max(when.get((layer - 1, t), -1), when.get((layer, t - 1), -1))
    return tuple(tuple(cell for cell in when if when[cell] == slot) for slot in range(max(when.values()) + 1))


def as_what_is_ready(layers, steps):
    left, done, slots = {(layer, t) for layer in range(layers) for t in range(steps)}, set(), []
    while left:
        ready = [(k, t) for k, t in left if (not k or (k - 1, t) in done) and (not t or (k, t - 1) in done)]
        slots.append(ready)
        done.update(ready)
        left.difference_update(ready)
    return slots


# backward_through_time


def products_at_the_end(grad_y, x, weight_hh, y, c, gates):
    """The gradients by all sums first, then a product for each weight."""
    by_sums = np.empty(gates.shape, x.dtype)
    before = [np.concatenate([np.zeros_like(a[:1]), a[:-1]]) for a in (y, c)]
    grad_h = grad_c = np.float32(0) * y[0]
    for t in range(len(x) - 1, -1, -1):
        by_sums[t], grad_c = ops.lstm_step_backward(grad_y[t] + grad_h, grad_c, gates[t], c[t], before[1][t])
        grad_h = by_sums[t] @ weight_hh
    rows = by_sums.reshape(-1, by_sums.shape[2])
    return [rows.T @ a.reshape(len(rows), -1) for a in (x, before[0])] + [rows.sum(axis=0)]


def gate_formulas(grad_y, x, weight_hh, y, c, gates):
    """The derivatives of a step written out, and einsum."""
    grad_ih, grad_hh, grad_bias = 0, np.zeros_like(weight_hh), 0
    into_h, into_c = np.zeros_like(y[0]), np.zeros_like(c[0])
    for t in reversed(range(len(x))):
        i, f, g, o = np.split(gates[t], 4, axis=1)
        h_before, c_before = (y[t - 1], c[t - 1]) if t > 0 else (0 * y[0], 0 * c[0])
        by_h, held = grad_y[t] + into_h, np.tanh(c[t])
        by_c = into_c + by_h * o * (1 - held**2)
        parts = by_c * g * i * (1 - i), by_c * c_before * f * (1 - f), by_c * i * (1 - g**2), by_h * held * o * (1 - o)
        by_sums, into_c = np.concatenate(parts, axis=1), by_c * f
        into_h = np.einsum("nr,rh->nh", by_sums, weight_hh)
        grad_ih, grad_bias = grad_ih + np.einsum("nr,nd->rd", by_sums, x[t]), grad_bias + by_sums.sum(0)
        grad_hh += np.einsum("nr,nh->rh", by_sums, h_before)
    return grad_ih, grad_hh, grad_bias


def layer_by_layer(layers, steps):
    return [[(layer, step_)] for layer in range(layers) for step_ in range(steps)]


def step_by_step(layers, steps):
    return [[(layer, step_) for layer in range(layers)] for step_ in range(steps)]


def steps_first(layers, steps):
    return [[(step_, layer) for layer, step_ in slot] for slot in diagonals(layers, steps)]


MUTANTS = {
    "lstm_step": [Mutant(step_in_float32, "the slope of h")],
    "combined_gates": [Mutant(sequences.by_gate, "48 matrix products, at most 12 allowed")],
    "inputs_at_once": [Mutant(sequences.two_products, "12 matrix products, at most 7 allowed")],
    "fused_cell": [
        Mutant(sequences.point_wise, "no launch of a kernel of your own"),
    ],
    "wavefront": [
        Mutant(layer_by_layer, "are enough"),
        Mutant(step_by_step, "the layer below"),
        Mutant(steps_first, "is not among"),
    ],
}

STEPS = (
    ("(sums[:, k * size : (k + 1) * size] for k in range(4))", "device.array_module(x).split(sums, 4, axis=1)"),
    (
        "c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)",
        "c = sum(a * b for a, b in ((ops.sigmoid(f), c), (ops.sigmoid(i), ops.tanh(g))))",
    ),
    ("return h, c", "return [h, c]"),
    ("x @ weight_ih.T + h @ weight_hh.T + bias", "bias + (weight_ih @ x.T + weight_hh @ h.T).T"),
)
UNROLLED = "ops.sigmoid(sums)", "(1 / (1 + xp.exp(-sums)))"
RIGHT = {
    "lstm_step": [gate_by_gate, *in_place("lstm_step", *STEPS)],
    "combined_gates": in_place("combined_gates", UNROLLED),
    "inputs_at_once": [of_three_axes, *in_place("inputs_at_once", UNROLLED)],
    "fused_cell": [
        cell(("cp.tanh(now) / (ONE + cp.exp(-o))", "cp.tanh(now) * (ONE / (ONE + cp.exp(-o)))")),
        cell(("return h_new, c_new", "return [h_new, c_new]"), ("blocks, THREADS", "(blocks,), (THREADS,)")),
        cell(("row, unit = at // hidden, at % hidden", "row = at // hidden\n        unit = at - row * hidden")),
    ],
    "wavefront": [
        *(diagonals, as_soon_as_possible, as_what_is_ready),
        lambda layers, steps: [
            [(k, d - k) for k in range(max(0, d - steps + 1), min(layers, d + 1))] for d in range(layers + steps - 1)
        ],
    ],
    "backward_through_time": [
        *(products_at_the_end, gate_formulas),
        *in_place(
            "backward_through_time",
            ("grad_ih += by_sums.T @ x[t]", "grad_ih += sum(np.outer(a, b) for a, b in zip(by_sums, x[t]))"),
            ("(y[t - 1], c[t - 1]) if t else (zeros, zeros)", "[a[t - 1] * (t > 0) for a in (y, c)]"),
            ("return grad_ih, grad_hh, grad_bias", "return [grad_ih, grad_hh, grad_bias]"),
        ),
    ],
}
HONEST = {
    "combined_gates": [one_sigmoid_a_step, stacked_inputs],
    "inputs_at_once": [at_once_by_gate_of_the_step, at_once_with_copies],
    "fused_cell": [cell(("= 256, np", "= 64, np")), cell(("= 256, np", "= 1024, np"))],
}
LOOP = {
    "combined_gates": lambda **given: (unit_by_unit(**given), unit_by_unit(**given))[0],
    "inputs_at_once": two_products_twice,
}
