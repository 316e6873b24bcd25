"""All steps of all layers, in a form by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.allocation import empty
from unrolled.ops.arguments import rounds_once
from unrolled.ops.lstm import columns, forms
from unrolled.ops.lstm.wavefront import wavefront
from unrolled.ops.lstm.weights import LSTMGates, LSTMWeights, check_stack, check_state

STEPPING = {
    form.__name__: form
    for form in (forms.naive, forms.combined, forms.streams, forms.fused, forms.transposed, forms.inputs_at_once)
}
FORMS = (*STEPPING, "wavefront", "persistent")
"""Each does what the one before it does, in fewer calls, or keeps more of it on the chip."""
ON_GPU = ("streams", "persistent")


@rounds_once
def lstm(
    x: Array,
    weights: Sequence[LSTMWeights],
    state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
) -> tuple[Array, tuple[Array, Array]]:
    """Return the last layer's outputs (T, N, H) and the last states (h, c), each (L, N, H), of x (T, N, D).

    `weights` holds an LSTMWeights for each layer; `state` is (h, c) before the first step, zeros unless given. `form`
    is one of FORMS, the fastest that fits if None; all give the same numbers, to rounding.

    In NumPy the fastest form keeps nothing here but outputs, where a cache holds the weights
    (`unrolled.ops.lstm.columns.outputs`): its last digits are not those of `lstm_with_gates`.

    The same call repeats its bits on the host. On a GPU it multiplies by cuBLAS, which promises them only while a
    single stream is active, or where the environment has CUBLAS_WORKSPACE_CONFIG=:4096:8: see "Results reproducibility"
    in its documentation. Seen on an H200 that four processes shared: "streams", "fused" and "transposed" varied, the
    other forms did not, and with that setting none did.

    float32 in, float32 out; integers count as float32. Raises ValueError, which names the argument, for shapes that do
    not fit, for no steps, and for a form that is unknown or cannot run here.
    """
    x, weights, state, form = _arguments(x, weights, state, form)
    if _in_columns(x, form) and all(map(columns.cached, weights)):
        y, last = x, []
        for layer, h, c in zip(weights, *state, strict=True):
            y, c = columns.outputs(y, layer, h, c)
            last.append((y[-1], c))
        h, c = map(np.stack, zip(*last, strict=True))
        return y, (h, c)
    kept, state = lstm_with_gates(x, weights, state, form=form)
    return kept[-1].y, state


@rounds_once
def lstm_with_gates(
    x: Array,
    weights: Sequence[LSTMWeights],
    state: tuple[Array, Array] | None = None,
    *,
    form: str | None = None,
) -> tuple[list[LSTMGates], tuple[Array, Array]]:
    """Return what each layer computed, for `lstm_backward`, and the last states (h, c), each (L, N, H).

    Arguments and errors are those of `lstm`.
    """
    x, weights, (h, c), form = _arguments(x, weights, state, form)
    module = array_module(x)
    if form == "wavefront":
        kept = wavefront(x, weights, (h, c))
    else:
        kept = []
        for number, layer in enumerate(weights):
            kept.append(_layer(kept[-1].y if kept else x, layer, h[number], c[number], form))
    return kept, tuple(module.concatenate(tuple(layer[k][-1:] for layer in kept)) for k in range(2))


def _arguments(
    x: Array, weights: Sequence[LSTMWeights], state: tuple[Array, Array] | None, form: str | None
) -> tuple[Array, list[LSTMWeights], tuple[Array, Array], str]:
    """x, the layers and the states (h, c), each (L, N, H), checked and in one float dtype, and the form's name."""
    x, weights = check_stack(x, weights)
    layers, n, hidden = len(weights), x.shape[1], weights[0].weight_hh.shape[1]
    check_state(state, (layers, n, hidden), x)
    h, c = state or [array_module(x).zeros((layers, n, hidden), dtype=x.dtype)] * 2
    states = h.astype(x.dtype, copy=False), c.astype(x.dtype, copy=False)
    return x, weights, states, chosen(form, x, hidden, layers)


def _in_columns(x: Array, form: str) -> bool:
    """Whether this form has a column for each sample here: in NumPy."""
    return form == "inputs_at_once" and array_module(x) is np


def chosen(form: str | None, x: Array, hidden: int, layers: int) -> str:
    """Return the form's name, the fastest that fits if None. Raises ValueError for one that cannot run here."""
    on_gpu = kernels.take(x)
    if form is None:
        if kernels.persists(x, hidden):
            return "persistent"
        return "wavefront" if on_gpu and layers > 1 else "inputs_at_once"
    if form not in FORMS:
        raise ValueError(f"form is {form!r}; expected one of {', '.join(FORMS)}, or None for the fastest that fits")
    if form in ON_GPU and not on_gpu:
        raise ValueError(f"form {form!r} needs float32 or float64 arrays on a GPU; here x is {x.dtype} elsewhere")
    if form == "persistent" and not kernels.persists(x, hidden):
        raise ValueError(
            f"form 'persistent' keeps the weights on the chip: float32, and a hidden size of 64, 128 ... 512 that the "
            f"GPU has room for; got {x.dtype} and {hidden}"
        )
    return form


def _layer(x: Array, layer: LSTMWeights, h: Array, c: Array, form: str) -> LSTMGates:
    """What a layer computed on its inputs x (T, N, D), from h and c (N, H)."""
    shape = (*x.shape[:2], h.shape[1])
    y, cells = (empty(x, f"the LSTM's {name}", shape) for name in ("outputs", "cell states"))
    kept = LSTMGates(y, cells, empty(x, "the LSTM's gates", (*shape[:2], 4 * shape[2])))
    if form == "persistent":
        sums = empty(x, "the LSTM's sums", kept.gates.shape)
        forms.sums_of_inputs(x, layer, sums)
        inputs = sums, layer.weight_hh, layer.bias, h, c
        kernels.lstm_persistent(inputs, kept, kernels.constants(hidden=shape[2]))
        return kept
    if _in_columns(x, form):
        kept = columns.kept_in_columns(kept)
        step = columns.inputs_at_once(x, layer, kept)
    else:
        step = STEPPING[form](x, layer, kept)
    for t in range(len(x)):
        step(t, h, c)
        h, c = kept.y[t], kept.c[t]
    return kept
