"""Backward through time: from the last step to the first, and from the last layer to the first."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.device import Array, array_module
from unrolled.ops.lstm.cell import lstm_step_backward
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights


def lstm_backward(
    grad: Array,
    x: Array,
    weights: Sequence[LSTMWeights],
    kept: Sequence[LSTMGates],
    state: tuple[Array, Array] | None = None,
    grad_state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
    mask: Array | None = None,
    input_gradient: bool = True,
) -> tuple[Array | None, list[LSTMWeights], tuple[Array, Array]]:
    """Return the gradients by x (T, N, D), by each layer's weights, and by the states (h, c) before the first step.

    grad (T, N, H) is the gradient by the last layer's outputs, `grad_state` by the last states, each (L, N, H), zeros
    unless given. `kept` is what `lstm_with_gates` returned for the same x, weights, state and mask. Without
    `input_gradient` the first is None.
    """
    module, (steps, n, size) = array_module(grad), grad.shape
    zeros = module.zeros((len(weights), n, size), dtype=grad.dtype)
    state, (last_h, last_c) = state or (zeros, zeros), grad_state or (zeros, zeros)
    grads, first = [], []
    for k in reversed(range(len(weights))):
        layer, there = weights[k], kept[k]
        below = x if k == 0 else kept[k - 1].y
        grad_sums = module.empty(there.gates.shape, dtype=grad.dtype)
        grad_h, grad_c = last_h[k], last_c[k]
        for t in reversed(range(steps)):
            before = there.c[t - 1] if t else state[1][k]
            grad_sums[t], grad_c = lstm_step_backward(grad[t] + grad_h, grad_c, there.gates[t], there.c[t], before)
            grad_h = grad_sums[t] @ layer.weight_hh
        flat = grad_sums.reshape(steps * n, 4 * size)
        h_before = module.concatenate([state[0][k][None], there.y[:-1]])
        by_ih, by_hh = flat.T @ below.reshape(steps * n, -1), flat.T @ h_before.reshape(steps * n, size)
        grads.append(LSTMWeights(by_ih, by_hh, flat.sum(axis=0)))
        first.append((grad_h, grad_c))
        grad = (flat @ layer.weight_ih).reshape(below.shape) if k or input_gradient else None
    return grad, grads[::-1], tuple(module.concatenate([one[j][None] for one in first[::-1]]) for j in range(2))
