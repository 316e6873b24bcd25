"""An LSTM's step, forward over a sequence in three forms and back through time, all from zero states, and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled import device, ops
from unrolled.checks.compare import Mismatch, first_mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Budget, Draw, Function, Inputs, draw_all, normal
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


def any_step(rng: np.random.Generator) -> Inputs:
    """Draw a step of any size, in float32 or float64."""
    n, inputs, hidden = (edge_size(rng, 5) for _ in range(3))
    return draw_all(one_step(n, inputs, hidden, np.float32 if rng.random() < 0.5 else np.float64), rng)


def any_sequence(rng: np.random.Generator) -> Inputs:
    """Draw a sequence of any length and size."""
    steps, n, inputs, hidden = (edge_size(rng, most) for most in (7, 4, 5, 4))
    return draw_all(layer(steps, n, inputs, hidden), rng)


def with_slopes(function: Function, inputs: Inputs) -> Any:
    """Return the step's (h, c), and in float64 how fast both change if all arguments move, by central differences."""
    found = function(**inputs)
    if inputs["x"].dtype == np.float32 or not isinstance(found, (tuple, list)):
        return found
    ways = {name: np.cos(np.arange(value.size)).reshape(value.shape) for name, value in inputs.items()}
    after = function(**{name: value + NUDGE * ways[name] for name, value in inputs.items()})
    before = function(**{name: value - NUDGE * ways[name] for name, value in inputs.items()})
    return (*found, *((a - b) / (2 * NUDGE) for a, b in zip(after, before, strict=True)))


def compare_step(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Compare what `with_slopes` returned, item by item and by name."""
    if not isinstance(got, (tuple, list)) or len(got) != len(expected):
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


def through_steps(
    x: Array, weight_ih: Array, weight_hh: Array, bias: Array, change: Function = lambda *sums: sums, **changes: Any
) -> Array:
    """Return the outputs (T, N, H) of `cell` with these changes, and with change(i, f, g, o) for the gates' sums."""
    h, y = np.zeros((x.shape[1], weight_hh.shape[1]), x.dtype), []
    c = h
    for step in x:
        sums = np.split(step @ weight_ih.T + h @ weight_hh.T + bias, GATES, axis=1)
        h, c = cell(np.concatenate(change(*sums), axis=1), c, **changes)
        y.append(h)
    return np.stack(y)


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


MORE = 1.1  # times the fewest bytes: a block at the end may share a sector with another
FLOAT = 4


def point_wise(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return the new (h, c), both (N, H), from two sums (N, 4 * H), the bias (4 * H,) and the c before."""
    return gated(from_x + from_h + bias, c)


def one_by_one(from_x: Array, from_h: Array, bias: Array, c: Array) -> tuple[Array, Array]:
    """Return what `point_wise` does, with a launch for each operation and each gate: a baseline for speed."""
    size = c.shape[1]
    parts = [slice(k * size, (k + 1) * size) for k in range(GATES)]
    i, f, g, o = (from_x[:, part] + from_h[:, part] + bias[part] for part in parts)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def read(inputs: Inputs) -> float:
    """Return the bytes that a step reads: both sums, c, and the bias for each sample, since each warp asks for it."""
    return MORE * FLOAT * float(inputs["c"].size) * (3 * GATES + 1)


def written(inputs: Inputs) -> float:
    """Return the bytes of h and c."""
    return MORE * FLOAT * 2 * float(inputs["c"].size)


ONCE = Budget(launches=1, own=1, float64=0, read_sectors=MORE, bytes_read=read, bytes_written=written, working=0.25)
ODD = Budget(launches=1, own=1, float64=0)  # rows begin inside of sectors, so bytes say little


def sums(n: int, hidden: int) -> Inputs:
    """Return draws of what `point_wise` takes."""
    rows = GATES * hidden
    return {"from_x": normal(n, rows), "from_h": normal(n, rows), "bias": normal(rows), "c": normal(n, hidden)}


FAR = {
    "from_x": np.outer([1, -1], [150, -150, 150, 150, -150, 150, -150, 150]).astype(np.float32),
    "from_h": np.zeros((2, 8), np.float32),
    "bias": np.zeros(8, np.float32),
    "c": np.array([[5, -5], [0.5, 5]], np.float32),
}
"""Sums of which exp(sum) is infinite or 0 in float32."""


def any_sums(rng: np.random.Generator) -> Inputs:
    """Draw sums for any number of samples and units."""
    return draw_all(sums(edge_size(rng, 4), edge_size(rng, 40)), rng)


def _of_sums(says: str, change: Callable[[Array], Array] = np.asarray, **changes: Any) -> Mistake:
    """Return the mistake of other sums, or of a cell with these changes."""
    return Mistake(says, lambda from_x, from_h, bias, c: cell(change(from_x + from_h + bias), c, **changes))


FUSED_MISTAKES = (
    result("you return c before h: h comes first", lambda y: (y[1], y[0])),
    _of_sums(
        "the gates are in the order i, f, o, g: the third block is g, the fourth o",
        lambda sums: np.concatenate([np.split(sums, GATES, axis=1)[k] for k in (0, 1, 3, 2)], axis=1),
    ),
    given("the bias is missing", bias=lambda bias: 0 * bias),
    given(
        "each gate has a bias of its own: bias[unit] belongs to i, bias[unit + hidden] to f, and so on",
        bias=lambda bias: np.tile(bias[: len(bias) // GATES], GATES),
    ),
    given(
        "o has a bias, too: bias[unit + 3 * hidden]",
        bias=lambda bias: bias * (np.arange(len(bias)) < len(bias) // GATES * 3),
    ),
    _of_sums(
        "a sigmoid of z is ONE / (ONE + cp.exp(-z)): mind the sign",
        lambda sums: sums * np.repeat([-1, -1, 1, -1], sums.shape[1] // GATES).astype(sums.dtype),
    ),
    _of_sums("g goes through a tanh, not through a sigmoid: it may be below 0", g_by=ops.sigmoid),
    given("from_h has no part in it: both sums are added", from_h=lambda from_h: 0 * from_h),
    given("what c held has no part in it: c is f * c + i * g", c=lambda c: 0 * c),
    _of_sums(
        "the four gates of a unit stand in blocks, hidden columns apart, and not side by side",
        lambda sums: np.concatenate([sums[:, gate::GATES] for gate in range(GATES)], axis=1),
    ),
    _of_sums("a tanh is missing: h is o * tanh(c)", out_by=np.asarray),
    _of_sums("h is made of the old c: first the new c, then h from it", old=True),
)


Gradients = tuple[Array, Array, Array]


def through_time(grad_y: Array, x: Array, weight_hh: Array, y: Array, c: Array, gates: Array) -> Gradients:
    """Return the gradients by weight_ih (4 * H, D), weight_hh (4 * H, H) and bias (4 * H,).

    grad_y (T, N, H) is the gradient by each output; y, c (T, N, H) and gates (T, N, 4 * H) are what went forward.
    """
    weights = ops.LSTMWeights(
        np.zeros((len(weight_hh), x.shape[2]), x.dtype), weight_hh, np.zeros_like(weight_hh[:, 0])
    )
    kept = ops.LSTMGates(y, c, gates)
    _, (found,) = ops.lstm_backward(grad_y, x, [weights], [kept], input_gradient=False)
    return tuple(found)


def went_forward(rng: np.random.Generator, steps: int, n: int, inputs: int, hidden: int, last: bool = False) -> Inputs:
    """Draw a sequence that went forward, and gradients by its outputs: by the last one with `last`."""
    drawn = draw_all(layer(steps, n, inputs, hidden), rng)
    x, weights = drawn.pop("x"), ops.LSTMWeights(**drawn)
    (kept,), _ = ops.lstm_with_gates(x, [weights])
    grad_y = rng.standard_normal(kept.y.shape).astype(np.float32)
    if last:
        grad_y[:-1] = 0
    arrays = {name: np.ascontiguousarray(value) for name, value in kept._asdict().items()}
    return {"grad_y": grad_y, "x": x, "weight_hh": weights.weight_hh, **arrays}


def any_way_back(rng: np.random.Generator) -> Inputs:
    """Draw a sequence of any length and size that went forward."""
    steps, n, inputs, hidden = (edge_size(rng, most) for most in (6, 4, 4, 4))
    return went_forward(rng, steps, n, inputs, hidden, last=rng.random() < 0.2)


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
    wraps: bool = False,
    forward: bool = False,
) -> Gradients:
    """Return the gradients, step by step: without what comes back through `h` or c, where that is left out.

    `before` says how many steps before the output was that weight_hh multiplied. Before the first comes the last where
    it `wraps`; `forward` goes from the first step to the last.
    """
    zeros = np.zeros_like(y[0])
    grad_h, grad_c = zeros, zeros
    by_ih, by_hh, by_bias = np.zeros((len(weight_hh), x.shape[2]), x.dtype), 0 * weight_hh, 0 * weight_hh[:, 0]
    for t in range(len(x)) if forward else reversed(range(len(x))):
        c_before = c[t - 1] if t or wraps else zeros
        by_sums, by_c = ops.lstm_step_backward(grad_y[t] + grad_h, grad_c, gates[t], c[t], c_before)
        by_ih += by_sums.T @ x[t]
        by_hh += by_sums.T @ (y[t - before] if t >= before or wraps else zeros)
        by_bias += by_sums.sum(axis=0)
        grad_h = by_sums @ weight_hh if h else zeros
        grad_c = by_c if c_back else zeros
    return by_ih, by_hh, by_bias


AT_THE_FIRST = "at t = 0 the index t - 1 is that of the last step: before the first, y and c are zeros"
BACKWARD_MISTAKES = (
    given("go from the last step to the first: reversed(range(len(x)))", step_by_step, forward=True),
    given(AT_THE_FIRST, step_by_step, wraps=True),
    result("the order is grad_weight_ih, grad_weight_hh, grad_bias", lambda grads: (grads[1], grads[0], grads[2])),
    given(
        "nothing comes back from later steps: keep grad_h and grad_c between turns", step_by_step, h=False, c_back=False
    ),
    given("what comes back through c is lost: keep grad_c for the step before", step_by_step, c_back=False),
    given("what comes back through h is lost: by_sums @ weight_hh belongs to the step before", step_by_step, h=False),
    given(
        "weight_hh multiplied the output of the step before: y[t - 1], and zeros for the first", step_by_step, before=0
    ),
)
