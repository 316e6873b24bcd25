"""A layer in NumPy, step by step, with a column for each sample: a step's gates are (4 * H, N), its states (H, N).

Weights then multiply as they lie, and stand on the left. A BLAS packs the left matrix and the right one in different
ways; for few samples its kernels are faster, some twice as fast, with the many rows on the left. A gate is one block of
memory, too. What is returned has the usual axes: views of these columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from unrolled.device import Array
from unrolled.ops import threads
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights

Back: TypeAlias = Callable[[int, Array, Array, Array, Array], "tuple[Array, Array]"]
"""back(t, grad_y, grad_h, grad_c, by_sums): writes by_sums (N, 4 * H), and returns the next grad_h, grad_c (N, H)."""

CACHED_BYTES = 4 << 20  # of weights that each step reads: near the processor, though not nearest
STRIP = 16  # rows, at least: more calls than these cost more than small products save


def in_columns(a: Array) -> Array:
    """Return a new array (T, N, H) with its memory as (T, H, N): a step's columns lie in one piece."""
    steps, n, rows = a.shape
    return a.reshape(steps, rows, n).transpose(0, 2, 1)


def all_in_columns(a: Array) -> Array:
    """Return a new array (T, N, H) with its memory as (H, T, N): all steps together are one matrix (H, T * N)."""
    steps, n, rows = a.shape
    return a.reshape(rows, steps, n).transpose(1, 2, 0)


def kept_in_columns(kept: LSTMGates) -> LSTMGates:
    """Return new arrays `kept` with columns for samples; outputs y stay as they are, for whoever gets them."""
    return LSTMGates(kept.y, in_columns(kept.c), in_columns(kept.gates))


def inputs_at_once(x: Array, layer: LSTMWeights, kept: LSTMGates) -> Callable[[int, Array, Array], None]:
    """Return the function of a step, as the form of that name, for `kept_in_columns`.

    The products with the inputs are one call, of which NumPy makes one of BLAS for each step. One matrix for all steps
    is a little faster to multiply, but a step's part of it lies scattered, and adding that costs more.
    """
    n, hidden = x.shape[1], kept.c.shape[2]
    # sigmoid(x) is 0.5 + 0.5 * tanh(x / 2): with half the weights, one tanh does all four gates. Halves are exact.
    half = np.repeat(np.array([0.5, 0.5, 1, 0.5], x.dtype), hidden)
    weight_ih, weight_hh = layer.weight_ih * half[:, None], layer.weight_hh * half[:, None]
    bias = np.repeat((layer.bias * half)[:, None], n, axis=1)  # in one piece it adds three times as fast as a column
    np.matmul(weight_ih, x.transpose(0, 2, 1), out=kept.gates.transpose(0, 2, 1))
    sums, part = np.empty_like(bias), np.empty((hidden, n), x.dtype)

    def step(t: int, h: Array, c: Array) -> None:
        gates, c_now = kept.gates[t].T, kept.c[t].T
        i, f, g, o = gates.reshape(4, hidden, n)
        np.matmul(weight_hh, h.T, out=sums)
        np.add(sums, bias, out=sums)
        np.add(sums, gates, out=gates)
        np.tanh(gates, out=gates)
        for sigmoids in (gates[: 2 * hidden], o):
            sigmoids *= 0.5
            sigmoids += 0.5
        np.multiply(f, c.T, out=c_now)
        np.multiply(i, g, out=part)
        np.add(c_now, part, out=c_now)
        np.tanh(c_now, out=part)
        np.multiply(o, part, out=kept.y[t].T)

    return step


def cached(layer: LSTMWeights) -> bool:
    """Return whether `outputs` pays for such a layer: each step reads all weights, so they have to stay in a cache."""
    return bool(layer.weight_ih.nbytes + layer.weight_hh.nbytes <= CACHED_BYTES)


def outputs(x: Array, layer: LSTMWeights, h: Array, c: Array) -> tuple[Array, Array]:
    """Return y (T, N, H) and the last cell states (N, H); gates and cells of all steps share one buffer in a cache.

    One product a step, of all weights and the bias with [h; x; 1], leaves nothing to add. The gates' order is o, i, f,
    g, then c: the sigmoids lie together, and the pairs (i, f) and (g, c) are multiplied in one call.
    """
    (steps, n, inputs), hidden = x.shape, h.shape[1]
    weights = np.empty((4, hidden, hidden + inputs + 1), x.dtype)
    for block, gate in zip(weights, (3, 0, 1, 2), strict=True):
        rows, half = slice(gate * hidden, (gate + 1) * hidden), 1 if gate == 2 else 0.5  # as in inputs_at_once
        np.multiply(layer.weight_hh[rows], half, out=block[:, :hidden])
        np.multiply(layer.weight_ih[rows], half, out=block[:, hidden:-1])
        np.multiply(layer.bias[rows], half, out=block[:, -1])
    state, known = np.empty((5, hidden, n), x.dtype), np.ones((weights.shape[2], n), x.dtype)
    products = strips(weights.reshape(4 * hidden, -1), state[:4].reshape(4 * hidden, n))
    gates, sigmoids, o, cells = state[:4], state[:3], state[0], state[4]
    i_and_f, g_and_c, pair = state[1:3], state[3:], np.empty((2, hidden, n), x.dtype)
    new, old = pair
    h_now, x_now, y = known[:hidden], known[hidden:-1], np.empty((steps, n, hidden), x.dtype)
    h_now[...], cells[...] = h.T, c.T
    for x_t, y_t in zip(x.transpose(0, 2, 1), y.transpose(0, 2, 1), strict=True):
        x_now[...] = x_t
        for rows_of_weights, sums in products:
            np.matmul(rows_of_weights, known, out=sums)
        np.tanh(gates, out=gates)
        sigmoids *= 0.5
        sigmoids += 0.5
        np.multiply(i_and_f, g_and_c, out=pair)
        np.add(new, old, out=cells)
        np.tanh(cells, out=new)
        np.multiply(o, new, out=h_now)
        y_t[...] = h_now
    return y, cells.T.copy()


def strips(weights: Array, sums: Array) -> list[tuple[Array, Array]]:
    """Cut weights (R, K) and sums (R, N) into strips of rows, all but the last in one array, where BLAS is faster so.

    It copies the weights of a large product into blocks first, here in each step. Those of a small one it may read as
    they lie.
    """
    (rows, known), n = weights.shape, sums.shape[1]
    height = threads.SMALL_PRODUCT // max(1, known * n)
    if not STRIP <= height < rows or not threads.multiplies_as_it_lies():
        return [(weights, sums)]
    count = rows // height
    end = count * height
    whole = weights[:end].reshape(count, height, known), sums[:end].reshape(count, height, n)
    return [whole, (weights[end:], sums[end:])]


def back(weight_hh: Array, kept: LSTMGates, c_first: Array) -> Back:
    """Return the function of a step back: as `cell.lstm_step_backward` and a product, in place, for any `kept`.

    What it returns lives until the next call.
    """
    (_, n, hidden), turned = kept.c.shape, weight_hh.T.copy()
    gates, by_gates = (np.empty((4 * hidden, n), weight_hh.dtype) for _ in range(2))
    by_h, by_c, tanh_c, part = (np.empty((hidden, n), weight_hh.dtype) for _ in range(4))
    (i, f, g, o), (by_i, by_f, by_g, by_o) = (a.reshape(4, hidden, n) for a in (gates, by_gates))

    def step(t: int, grad_y: Array, grad_h: Array, grad_c: Array, by_sums: Array) -> tuple[Array, Array]:
        gates[...] = kept.gates[t].T
        np.add(grad_y.T, grad_h.T, out=by_h)
        np.tanh(kept.c[t].T, out=tanh_c)
        np.subtract(1, gates, out=by_gates)  # the slope of sigmoid is y - y^2, that of tanh 1 - y^2
        np.multiply(by_gates, gates, out=by_gates)
        np.multiply(by_h, tanh_c, out=part)
        np.multiply(by_o, part, out=by_o)
        np.multiply(tanh_c, part, out=part)
        np.subtract(by_h, part, out=part)
        np.multiply(part, o, out=part)
        np.add(grad_c.T, part, out=by_c)
        np.multiply(g, g, out=by_g)
        np.subtract(1, by_g, out=by_g)
        for by_gate, other in ((by_i, g), (by_f, (kept.c[t - 1] if t else c_first).T), (by_g, i)):
            np.multiply(by_gate, other, out=by_gate)
            np.multiply(by_gate, by_c, out=by_gate)
        by_sums.T[...] = by_gates
        np.multiply(by_c, f, out=by_c)
        np.matmul(turned, by_gates, out=by_h)
        return by_h.T, by_c.T

    return step
