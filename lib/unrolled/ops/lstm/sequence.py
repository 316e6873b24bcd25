"""All steps of all layers, in a form by name."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.device import Array, array_module
from unrolled.ops.lstm.cell import activated, states
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights

FORMS = ("naive", "combined", "streams", "fused", "transposed", "inputs_at_once", "wavefront", "persistent")


def lstm(
    x: Array,
    weights: Sequence[LSTMWeights],
    state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
    mask: Array | None = None,
) -> tuple[Array, tuple[Array, Array]]:
    """Return the last layer's outputs (T, N, H) and the last states (h, c), each (L, N, H), of x (T, N, D).

    `weights` holds a layer's LSTMWeights each; `state` is (h, c) before the first step, zeros unless given. `form` is
    one of FORMS, the fastest that fits if None. Where `mask` (T, N) is False there is no step: the state stays, and the
    output is 0.
    """
    kept, state = lstm_with_gates(x, weights, state, form=form, mask=mask)
    return kept[-1].y, state


def lstm_with_gates(
    x: Array,
    weights: Sequence[LSTMWeights],
    state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
    mask: Array | None = None,
) -> tuple[list[LSTMGates], tuple[Array, Array]]:
    """Return what each layer computed, for `lstm_backward`, and the last states (h, c), each (L, N, H)."""
    module, (steps, n, _) = array_module(x), x.shape
    size = weights[0].weight_hh.shape[1]
    if state is None:
        state = tuple(module.zeros((len(weights), n, size), dtype=x.dtype) for _ in "hc")
    kept, ends = [], []
    for layer, h, c in zip(weights, *state, strict=True):
        y, cs = (module.empty((steps, n, size), dtype=x.dtype) for _ in "hc")
        gates = module.empty((steps, n, 4 * size), dtype=x.dtype)
        for t in range(steps):
            gates[t] = activated(x[t] @ layer.weight_ih.T + h @ layer.weight_hh.T + layer.bias)
            h, c = states(gates[t], c)
            y[t], cs[t] = h, c
        kept.append(LSTMGates(y, cs, gates))
        ends.append((h, c))
        x = y
    last = tuple(module.concatenate([end[k][None] for end in ends]) for k in range(2))
    return kept, (last[0], last[1])
