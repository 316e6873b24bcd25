"""Many layers side by side: layer l at step t needs layer l at t - 1 and layer l - 1 at t, so all of l + t = d can go.

A diagonal d is three calls for all its cells together: one batched product with the last outputs, one with the outputs
of the layers below, one point-wise pass. Arrays are kept by diagonal, (T + L, L, N, ...): what a diagonal needs lies in
one piece, in the row before.
"""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.device import Array, array_module
from unrolled.ops.lstm import cell
from unrolled.ops.lstm.forms import sums_of_inputs
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights
from unrolled.ops.products import plain_matmul


def wavefront(x: Array, weights: Sequence[LSTMWeights], state: tuple[Array, Array]) -> list[LSTMGates]:
    """Return what each layer computed for x (T, N, D) from `state`, (h, c), each (L, N, H)."""
    module, (steps, n, _), layers = array_module(x), x.shape, len(weights)
    hidden = state[0].shape[2]
    y, c = (module.empty((steps + layers, layers, n, hidden), dtype=x.dtype) for _ in state)
    gates = module.empty((steps + layers, layers, n, 4 * hidden), dtype=x.dtype)
    first = module.empty((steps, n, 4 * hidden), dtype=x.dtype)
    sums_of_inputs(x, weights[0], first)
    by_below = _stacked([layer.weight_ih for layer in weights[1:]])
    by_last = _stacked([layer.weight_hh for layer in weights])
    bias = module.concatenate(tuple(layer.bias[None] for layer in weights))
    sums = module.empty((layers, n, 4 * hidden), dtype=x.dtype)
    for layer in range(layers):
        y[layer, layer], c[layer, layer] = state[0][layer], state[1][layer]
    for d in range(steps + layers - 1):
        low, high = max(0, d - steps + 1), min(layers, d + 1)
        now, above = (d + 1, slice(low, high)), max(1, low)
        plain_matmul(y[d, low:high], by_last[low:high], out=sums[low:high])
        if d < steps:
            gates[d + 1, 0] = first[d]
        if above < high:
            below = y[d, above - 1 : high - 1]
            plain_matmul(below, by_below[above - 1 : high - 1], out=gates[d + 1, above:high])
        cell.fused(gates[now], sums[low:high], bias[low:high], c[d, low:high], gates[now], c[now], y[now])
    return [LSTMGates(*(a[k + 1 : k + 1 + steps, k] for a in (y, c, gates))) for k in range(layers)]


def _stacked(weights: list[Array]) -> Array:
    """The weights (4 * H, H) of several layers, each turned: (L, H, 4 * H)."""
    if not weights:
        return None
    return array_module(weights[0]).concatenate(tuple(weight.T[None] for weight in weights)).copy()
