"""What a layer of an LSTM holds, and what its forward pass leaves for the backward pass."""

from __future__ import annotations

from typing import NamedTuple

from unrolled.device import Array


class LSTMWeights(NamedTuple):
    """The weights of one layer. Rows stand in four blocks of H, in the order of the gates: i, f, g, o.

    These are PyTorch's `weight_ih_l0` and `weight_hh_l0`; `bias` is the sum of its `bias_ih_l0` and `bias_hh_l0`.
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
