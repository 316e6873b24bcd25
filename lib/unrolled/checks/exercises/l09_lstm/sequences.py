"""An LSTM over a sequence in three forms, from zero states: what the exercises ask, and what they are timed against."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import device, ops
from unrolled.checks.compare import Mismatch, first_mismatch, mismatch
from unrolled.checks.spec import Draw, Function, Inputs, normal, sized
from unrolled.device import Array

GATES = 4
NUDGE = 1e-6  # how far arguments move for a slope
RESULTS = "h", "c", "the slope of h", "the slope of c"


def layer(steps: int, n: int, inputs: int, hidden: int) -> Inputs:
    """Return draws of a sequence x (T, N, D) and of the weights of an LSTM that reads it."""
    return {"x": normal(steps, n, inputs), **weights(inputs, hidden)}


def weights(inputs: int, hidden: int) -> Inputs:
    """Return draws of weight_ih (4 * H, D), weight_hh (4 * H, H) and bias (4 * H,), of order 1 / sqrt(H or D)."""
    rows = GATES * hidden
    return {
        "weight_ih": uniform(rows, inputs, most=2 / inputs**0.5),
        "weight_hh": uniform(rows, hidden, most=2 / hidden**0.5),
        "bias": uniform(rows, most=1),
    }


def uniform(*shape: int, most: float) -> Draw:
    """Return a draw of an array of float32, even between -most and most."""
    return Draw(lambda rng: rng.uniform(-most, most, shape).astype(np.float32))


def one_step(n: int, inputs: int, hidden: int, dtype: type = np.float32) -> Inputs:
    """Return draws of what `ops.lstm_step` takes for N samples."""
    drawn = {"x": normal(n, inputs), "h": uniform(n, hidden, most=1), "c": normal(n, hidden), **weights(inputs, hidden)}
    return {name: cast(draw, dtype) for name, draw in drawn.items()}


def cast(draw: Draw, dtype: type) -> Draw:
    """Return the draw in another dtype."""
    return Draw(lambda rng: draw.make(rng).astype(dtype))


any_step = sized(one_step, 2, 7, 3)


def with_slopes(function: Function, inputs: Inputs) -> Any:
    """Return the step's (h, c), and in float64 how fast both change if all arguments move, by central differences."""
    found = function(**inputs)
    if inputs["x"].dtype == np.float32 or not isinstance(found, tuple):
        return found
    ways = {name: np.cos(np.arange(value.size)).reshape(value.shape) for name, value in inputs.items()}
    after = function(**{name: value + NUDGE * ways[name] for name, value in inputs.items()})
    before = function(**{name: value - NUDGE * ways[name] for name, value in inputs.items()})
    return (*found, *((a - b) / (2 * NUDGE) for a, b in zip(after, before, strict=True)))


def compare_step(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Compare what `with_slopes` returned, item by item and by name."""
    if not isinstance(got, tuple) or len(got) != len(expected):
        found = mismatch(got, expected, 1e-4)
        return Mismatch((*(found.lines if found else ()), "return h, c"))
    return first_mismatch(zip(RESULTS, got, expected, strict=False))


def by_gate(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (T, N, H) with eight products a step, for each gate two: the formulas as they are written."""
    xp, (steps, n, _), size = device.array_module(x), x.shape, weight_hh.shape[1]
    y = xp.empty((steps, n, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    rows = [slice(k * size, (k + 1) * size) for k in range(4)]
    for t in range(steps):
        i, f, g, o = (x[t] @ weight_ih[part].T + h @ weight_hh[part].T + bias[part] for part in rows)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
        h = ops.sigmoid(o) * ops.tanh(c)
        y[t] = h
    return y


def two_products(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (T, N, H) with two products a step, and one sigmoid for all gates."""
    xp, (steps, n, _), size = device.array_module(x), x.shape, weight_hh.shape[1]
    y = xp.empty((steps, n, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    for t in range(steps):
        sums = x[t] @ weight_ih.T + h @ weight_hh.T + bias
        gates, g = ops.sigmoid(sums), ops.tanh(sums[:, 2 * size : 3 * size])  # one block of the sigmoids is not used
        c = gates[:, size : 2 * size] * c + gates[:, :size] * g
        h = gates[:, 3 * size :] * ops.tanh(c)
        y[t] = h
    return y


def all_inputs(x: Array, weight_ih: Array, weight_hh: Array, bias: Array) -> Array:
    """Return the outputs (T, N, H) with T + 1 products: one for the inputs of all steps, then one a step."""
    xp, (steps, n, inputs), size = device.array_module(x), x.shape, weight_hh.shape[1]
    y = xp.empty((steps, n, size), x.dtype)
    h = c = xp.zeros((n, size), x.dtype)
    sums = (x.reshape(steps * n, inputs) @ weight_ih.T + bias).reshape(steps, n, len(bias))
    for t in range(steps):
        h, c = gated(sums[t] + h @ weight_hh.T, c)
        y[t] = h
    return y


def gated(sums: Array, c: Array) -> tuple[Array, Array]:
    """Return (h, c), both (N, H), from the sums of all gates (N, 4 * H) and the c before."""
    size = c.shape[1]
    g = ops.tanh(sums[:, 2 * size : 3 * size])
    gates = ops.sigmoid(sums)
    c = gates[:, size : 2 * size] * c + gates[:, :size] * g
    return gates[:, 3 * size :] * ops.tanh(c), c


def cell(sums: Array, c: Array, *, g_by: Function = ops.tanh, out_by: Function = ops.tanh, old: bool = False) -> Any:
    """Return (h, c) as `gated` does, gate by gate; mistakes take other functions for g and h, or h of the `old` c."""
    i, f, g, o = np.split(sums, GATES, axis=1)
    new = ops.sigmoid(f) * c + ops.sigmoid(i) * g_by(g)
    return ops.sigmoid(o) * out_by(c if old else new), new
