"""What an LSTM does at each value of a step, in one launch: gates, cell state and output, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.kernels.kernel import Arrays, Options, per_value

# The sums may lie where the gates go: each thread reads its four before it writes them.
CELL = r"""
    Index first = at / HIDDEN * 4 * HIDDEN + at % HIDDEN, b = at / HIDDEN / SAMPLES * 4 * HIDDEN + at % HIDDEN;
    T sums[4];
    for (int k = 0; k < 4; ++k)
        sums[k] = sums_x[first + k * HIDDEN] + sums_h[first + k * HIDDEN] + bias[b + k * HIDDEN];
    T i = 1 / (1 + EXP(-sums[0])), f = 1 / (1 + EXP(-sums[1])), g = TANH(sums[2]), o = 1 / (1 + EXP(-sums[3]));
    T now = f * c_before[at] + i * g;
    gates[first] = i;
    gates[first + HIDDEN] = f;
    gates[first + 2 * HIDDEN] = g;
    gates[first + 3 * HIDDEN] = o;
    c[at] = now;
    h[at] = o * TANH(now);
"""
CELL_BACKWARD = r"""
    Index first = at / HIDDEN * 4 * HIDDEN + at % HIDDEN;
    T i = gates[first], f = gates[first + HIDDEN], g = gates[first + 2 * HIDDEN], o = gates[first + 3 * HIDDEN];
    T tanh_c = TANH(c[at]), by_h = grad_y[at] + grad_h[at], by_c = grad_c[at] + by_h * o * (1 - tanh_c * tanh_c);
    grad_sums[first] = by_c * g * i * (1 - i);
    grad_sums[first + HIDDEN] = by_c * c_before[at] * f * (1 - f);
    grad_sums[first + 2 * HIDDEN] = by_c * i * (1 - g * g);
    grad_sums[first + 3 * HIDDEN] = by_h * tanh_c * o * (1 - o);
    grad_c_before[at] = by_c * f;
"""


def _cell(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (sums_x, sums_h, bias, c_before), (gates, c, h) = inputs, outputs
    hidden, samples = options["hidden"], options["samples"]
    if c.shape != c_before.shape or c.shape[-2:] != (samples, hidden) or bias.shape[-1] != 4 * hidden:
        raise ValueError(f"a cell state {c_before.shape} and a bias {bias.shape} do not fit {dict(options)}")
    np.add(sums_x, sums_h, out=gates)
    gates += bias.reshape(*bias.shape[:-1], 1, 4 * hidden)
    c[...], h[...] = gated(gates, c_before)


def gated(gates: Any, c: Any) -> tuple[Any, Any]:
    """Make gates of the sums (..., 4 * H) in their place, and return the cell state and the output after c."""
    i, f, g, o = np.split(gates, 4, axis=-1)
    with np.errstate(over="ignore"):  # exp(-x) is infinite far below 0, and 1 / infinity = 0 is right
        for gate in (i, f, o):
            gate[...] = 1 / (1 + np.exp(-gate))
    np.tanh(g, out=g)
    c = f * c + i * g
    return c, o * np.tanh(c)


def _cell_backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad_y, grad_h, grad_c, gates, c, c_before), (grad_sums, grad_c_before) = inputs, outputs
    if c.shape != c_before.shape or c.shape[-1] != options["hidden"]:
        raise ValueError(f"cell states {c.shape} and {c_before.shape} do not fit {dict(options)}")
    grad_c_before[...] = gated_backward((grad_y + grad_h, grad_c), gates, c, c_before, grad_sums)


def gated_backward(grads: tuple[Any, Any], gates: Any, c: Any, c_before: Any, grad_sums: Any) -> Any:
    """Write the gradient by the sums, from those by h and c, and return that by the cell state before."""
    (grad_h, grad_c), (i, f, g, o), tanh_c = grads, np.split(gates, 4, axis=-1), np.tanh(c)
    grad_c = grad_c + grad_h * o * (1 - tanh_c * tanh_c)
    parts = grad_c * g * i * (1 - i), grad_c * c_before * f * (1 - f), grad_c * i * (1 - g * g)
    np.concatenate([*parts, grad_h * tanh_c * o * (1 - o)], axis=-1, out=grad_sums)
    return grad_c * f


def _one_a_unit(inputs: Arrays, outputs: Arrays) -> int:
    """A thread for each hidden unit of each sample."""
    return int(outputs[-1].size)


CELL_ARRAYS = "const T* sums_x, sums_h, bias, c_before -> T* gates, c, h"
lstm_cell = per_value("lstm_cell", CELL_ARRAYS, CELL, _cell, lambda i, o, _: 110 * o[-1].size, size=_one_a_unit)
"""(sums by the input, by the last output, both (..., N, 4 * H), bias (..., 4 * H), c (..., N, H)) to (gates, c, h)."""
lstm_cell_backward = per_value(
    "lstm_cell_backward",
    "grad_y, grad_h, grad_c, gates, c, c_before -> grad_sums, grad_c_before",
    CELL_BACKWARD,
    _cell_backward,
    lambda inputs, outputs, options: 45 * outputs[-1].size,
    size=_one_a_unit,
)
"""(gradients by y, by h from the step after, by c; gates, c, c before) to the gradients by (sums, c before)."""
