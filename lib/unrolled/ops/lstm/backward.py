"""Backward through time: from the last step to the first, and from the last layer to the first.

At each step the gradient by the gates' sums gives four more: by the output before, by the input and by both weights.
Only the first is needed for the next step. So the other three can wait, and be three products for all steps together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_arrays, check_shape, rounds_once
from unrolled.ops.lstm import cell, columns
from unrolled.ops.lstm.forms import Beside
from unrolled.ops.lstm.sequence import chosen
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights, check_stack, check_state
from unrolled.ops.products import matmul_of_columns, plain_matmul

Gradients: TypeAlias = "tuple[Array | None, LSTMWeights]"
"""By a layer's inputs, and by its weights."""
AT_ONCE = ("inputs_at_once", "wavefront", "persistent")
NOT_FUSED = ("naive", "combined", "streams")
BESIDE = ("streams", "fused", "transposed")


@rounds_once
def lstm_backward(
    grad: Array,
    x: Array,
    weights: Sequence[LSTMWeights],
    kept: Sequence[LSTMGates],
    state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
    input_gradient: bool = True,
) -> tuple[Array | None, list[LSTMWeights]]:
    """Return the gradients by x (T, N, D), None without `input_gradient`, and by each layer's weights.

    grad (T, N, H) is the gradient by the last layer's outputs; `kept` is what `lstm_with_gates` returned for the same
    x, weights and state.

    Forms are those of `lstm`. naive makes 16 products a step, one for each gate and gradient; combined 4; streams lets
    three of these run beside the next step; fused and transposed do the rest in one launch a step. From inputs_at_once
    on it is one product a step, and three at the end. wavefront goes back layer by layer, as inputs_at_once.
    """
    x, weights = check_stack(x, weights)
    layers, (steps, n, _), hidden = len(weights), x.shape, weights[0].weight_hh.shape[1]
    check_arrays(grad=grad, x=x)
    check_shape("grad", grad, (steps, n, hidden), f"(T, N, H) of x {tuple(x.shape)} and weights")
    _check_kept(kept, layers, (steps, n, hidden))
    check_state(state, (layers, n, hidden), x)
    form = chosen(form, x, hidden, layers)
    h, c = state or [array_module(x).zeros((layers, n, hidden), dtype=x.dtype)] * 2
    grad, by_weights = grad.astype(x.dtype, copy=False), []
    for k in reversed(range(layers)):
        first = h[k].astype(x.dtype, copy=False), c[k].astype(x.dtype, copy=False)
        layer = Layer(kept[k - 1].y if k else x, weights[k], kept[k], *first)
        products = (AtOnce if form in AT_ONCE else ByStep)(layer, form, input_gradient or k > 0)
        grad, by_layer = products.finish(_through_time(grad, layer, form, products))
        by_weights.append(by_layer)
    return grad, by_weights[::-1]


class Layer(NamedTuple):
    """A layer, what went into it, and what it computed."""

    x: Array
    weights: LSTMWeights
    kept: LSTMGates
    h: Array
    """(N, H), before the first step; and so is c."""
    c: Array

    def before(self, t: int) -> tuple[Array, Array]:
        """Return h and c before step t."""
        return (self.kept.y[t - 1], self.kept.c[t - 1]) if t else (self.h, self.c)


def _through_time(grad: Array, layer: Layer, form: str, products: ByStep | AtOnce) -> Array:
    """Return the gradients by the gates' sums of all steps (T, N, 4 * H)."""
    module, weight_hh, kept = array_module(grad), layer.weights.weight_hh, layer.kept
    by_sums = module.empty(kept.gates.shape, dtype=grad.dtype)
    grad_h = grad_c = module.zeros(layer.h.shape, dtype=grad.dtype)
    if form == "persistent":
        outputs = by_sums, module.empty(grad_h.shape, dtype=grad.dtype), grad_h.copy()
        inputs = grad, kept.c, kept.gates, weight_hh, layer.c, grad_h, grad_c
        kernels.lstm_persistent_backward(inputs, outputs, kernels.constants(hidden=grad_h.shape[1]))
        return by_sums
    back: columns.Back = partial(_back, layer, form, products)
    if form in AT_ONCE and module is np:
        by_sums, back = columns.all_in_columns(by_sums), columns.back(weight_hh, kept, layer.c)
    for t in reversed(range(len(grad))):
        grad_h, grad_c = back(t, grad[t], grad_h, grad_c, by_sums[t])
        products.step(t, by_sums[t])
    return by_sums


def _back(
    layer: Layer,
    form: str,
    products: ByStep | AtOnce,
    t: int,
    grad_y: Array,
    grad_h: Array,
    grad_c: Array,
    by_sums: Array,
) -> tuple[Array, Array]:
    """Write the gradient by the sums of step t (N, 4 * H), and return those by h and c before it (N, H)."""
    gates, c, c_before = layer.kept.gates[t], layer.kept.c[t], layer.before(t)[1]
    if form in NOT_FUSED or not kernels.take(grad_y, gates):
        by_sums[...], by_c = cell.lstm_step_backward(grad_y + grad_h, grad_c, gates, c, c_before)
    else:
        by_c = array_module(c).empty(c.shape, dtype=c.dtype)
        sizes = kernels.constants(hidden=c.shape[1])
        kernels.lstm_cell_backward((grad_y, grad_h, grad_c, gates, c, c_before), (by_sums, by_c), sizes)
    return products.by_last(by_sums, layer.weights.weight_hh), by_c


class AtOnce:
    """The gradients by inputs and weights, in three products for all steps together."""

    def __init__(self, layer: Layer, form: str, input_gradient: bool) -> None:
        self.layer, self.wanted = layer, input_gradient

    def by_last(self, by_sums: Array, weight_hh: Array) -> Array:
        """Return the gradient by the last output, (N, 4 * H) @ (4 * H, H)."""
        return plain_matmul(by_sums, weight_hh)

    def step(self, t: int, by_sums: Array) -> None:
        """Leave it all for the end."""

    def finish(self, by_sums: Array) -> Gradients:
        """Return the gradients by the layer's inputs, None unless wanted, and by its weights."""
        layer, (steps, n, rows) = self.layer, by_sums.shape
        flat, hidden = by_sums.reshape(steps * n, rows), rows // 4
        before = array_module(by_sums).concatenate((layer.h[None], layer.kept.y[:-1])).reshape(steps * n, hidden)
        by_ih = matmul_of_columns(flat, layer.x.reshape(steps * n, layer.x.shape[2]))
        by_weights = LSTMWeights(by_ih, matmul_of_columns(flat, before), flat.sum(axis=0))
        by_x = plain_matmul(flat, layer.weights.weight_ih).reshape(layer.x.shape) if self.wanted else None
        return by_x, by_weights


class ByStep:
    """The gradients by inputs and weights, added up step by step: for each gate apart, or for all four together."""

    def __init__(self, layer: Layer, form: str, input_gradient: bool) -> None:
        module = array_module(layer.x)
        self.layer, self.parts = layer, 4 if form == "naive" else 1
        self.beside = Beside(layer.x, form in BESIDE)
        self.by_x = module.zeros(layer.x.shape, dtype=layer.x.dtype) if input_gradient else None
        self.by_ih, self.by_hh, self.by_bias = (module.zeros(a.shape, dtype=a.dtype) for a in layer.weights)

    def by_last(self, by_sums: Array, weight_hh: Array) -> Array:
        """Return the gradient by the last output, (N, 4 * H) @ (4 * H, H)."""
        return sum(plain_matmul(by_sums[:, rows], weight_hh[rows]) for rows in self._rows(by_sums))

    def step(self, t: int, by_sums: Array) -> None:
        """Add what step t gives."""
        self.beside.follow()
        with self.beside:
            for rows in self._rows(by_sums):
                part = by_sums[:, rows]
                self.by_ih[rows] += matmul_of_columns(part, self.layer.x[t])
                self.by_hh[rows] += matmul_of_columns(part, self.layer.before(t)[0])
                self.by_bias[rows] += part.sum(axis=0)
                if self.by_x is not None:
                    self.by_x[t] += plain_matmul(part, self.layer.weights.weight_ih[rows])

    def finish(self, by_sums: Array) -> Gradients:
        """Return the gradients by the layer's inputs, None unless wanted, and by its weights."""
        self.beside.join()
        return self.by_x, LSTMWeights(self.by_ih, self.by_hh, self.by_bias)

    def _rows(self, by_sums: Array) -> list[slice]:
        """The rows of the weights that one product takes."""
        size = by_sums.shape[1] // self.parts
        return [slice(k * size, (k + 1) * size) for k in range(self.parts)]


def _check_kept(kept: Sequence[LSTMGates], layers: int, shape: tuple[int, int, int]) -> None:
    if len(kept) != layers:
        raise ValueError(f"kept is of {len(kept)} layers; expected {layers}, what lstm_with_gates returned for weights")
    for k, layer in enumerate(kept):
        for name, array in zip(layer._fields, layer, strict=True):
            width = (4 if name == "gates" else 1) * shape[2]
            check_shape(f"kept[{k}].{name}", array, (*shape[:2], width), "x and weights")
