"""What a layer of an LSTM holds, and what its forward pass leaves for the backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unrolled.device import Array
from unrolled.ops.arguments import as_floats, check_arrays, check_axes, check_shape


class LSTMWeights(NamedTuple):
    """The weights of one layer. Rows stand in four blocks of H, in the order of the gates: i, f, g, o.

    These are PyTorch's `weight_ih_l0` and `weight_hh_l0`; `bias` is the sum of its `bias_ih_l0` and `bias_hh_l0`. Keras
    has the same order (it calls g c), but its arrays are transposed. An order of gates cannot be seen from shapes.
    """

    weight_ih: Array
    """(4 * H, D): from the layer's input to its gates."""
    weight_hh: Array
    """(4 * H, H): from its own output of the step before."""
    bias: Array
    """(4 * H,)."""


class LSTMGates(NamedTuple):
    """What one layer computed at every step."""

    y: Array
    """(T, N, H): the hidden states, which are the layer's output."""
    c: Array
    """(T, N, H): the cell states."""
    gates: Array
    """(T, N, 4 * H): i, f, g and o side by side, after sigmoid and tanh."""


def check_layer(layer: Sequence[Array], inputs: int, where: str = "") -> int:
    """Return the hidden size of a layer for so many inputs. Raises ValueError, with `where`, for what does not fit."""
    weight_ih, weight_hh, bias = layer
    check_axes(f"{where}weight_hh", weight_hh, "4 * H, H")
    rows, hidden = weight_hh.shape
    if not hidden or rows != 4 * hidden:
        turned = f"; transpose it: {rows} rows are a quarter of {hidden} columns" if hidden == 4 * rows else ""
        raise ValueError(f"{where}weight_hh has shape {weight_hh.shape}; expected (4 * H, H), H at least 1{turned}")
    check_shape(f"{where}weight_ih", weight_ih, (rows, inputs), f"{inputs} inputs and weight_hh {weight_hh.shape}")
    check_shape(f"{where}bias", bias, (rows,), f"weight_hh {weight_hh.shape}")
    return int(hidden)


def check_stack(x: Array, weights: Sequence[Sequence[Array]]) -> tuple[Array, list[LSTMWeights]]:
    """Return x and the layers in one float dtype. Raises TypeError or ValueError, by names, for what does not fit."""
    if not isinstance(weights, Sequence) or not weights or any(len(layer) != 3 for layer in weights):
        raise TypeError(f"weights is {weights!r:.80}; expected a list with an ops.LSTMWeights for each layer")
    names = ("weight_ih", "weight_hh", "bias")
    arrays = {
        f"weights[{k}].{name}": a for k, layer in enumerate(weights) for name, a in zip(names, layer, strict=True)
    }
    check_arrays(x=x, **arrays)
    check_axes("x", x, "T, N, D")
    if not len(x):
        raise ValueError(f"x has shape {x.shape}: a sequence needs at least one step")
    sizes = [x.shape[2]]
    for number, layer in enumerate(weights):
        sizes.append(check_layer(layer, sizes[-1], f"weights[{number}]."))
    if len(set(sizes[1:])) > 1:
        raise ValueError(f"the layers have hidden sizes {sizes[1:]}; expected one size for all")
    x, *flat = as_floats(x, *arrays.values())
    return x, [LSTMWeights(*flat[k : k + 3]) for k in range(0, len(flat), 3)]


def check_state(state: tuple[Array, Array] | None, shape: tuple[int, int, int], like: Array) -> None:
    """Raise unless state, (h, c), is two arrays (L, N, H), or None, in the library of `like`."""
    if state is None:
        return
    if not isinstance(state, (tuple, list)) or len(state) != 2:
        raise TypeError(f"state is {state!r:.80}; expected two arrays (h, c), each (layers, N, H) = {shape}")
    check_arrays(x=like, **{f"state[{k}]": part for k, part in enumerate(state)})
    for k, part in enumerate(state):
        check_shape(f"state[{k}]", part, shape, f"(layers, N, H) of weights and x {tuple(like.shape)}")
