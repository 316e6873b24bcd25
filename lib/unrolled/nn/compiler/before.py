"""What a run of steps may change, kept as it was before: to take the same steps once more, and to leave no bad ones."""

from __future__ import annotations

from typing import Any

from unrolled.device import Array
from unrolled.nn.layers import Dropout
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer
from unrolled.nn.watch import Snapshot


class Before:
    """Parameters and state, the optimizer's memory and steps, and what dropouts draw next, at one moment."""

    def __init__(self, network: Sequential, optimizer: Optimizer) -> None:
        self._network, self._optimizer, self._snapshot = network, optimizer, Snapshot(network)
        self._dropouts = [layer for layer in network.layers if isinstance(layer, Dropout)]
        self._memory: list[Array] = []
        self._draws: list[Any] = []
        self._steps = 0

    def take(self) -> None:
        """Keep all as it is now. Raises ValueError for an optimizer whose memory from a file does not fit."""
        self._memory = [array.copy() for array in self._optimizer.prepare(self._network.parameters)]
        self._steps = self._optimizer.steps
        self._draws = [(layer.generator, _next_draws(layer.generator)) for layer in self._dropouts]
        self._snapshot.take()

    def restore(self) -> None:
        """Give back what was taken, in the same arrays."""
        self._snapshot.restore()
        for array, kept in zip(self._optimizer.prepare(self._network.parameters), self._memory, strict=True):
            array[...] = kept
        self._optimizer.steps = self._steps
        for layer, (generator, kept) in zip(self._dropouts, self._draws, strict=True):
            layer.generator = generator
            _draw_again(generator, kept)


def _next_draws(generator: Any) -> Any:
    """What decides the next numbers of a generator, as a copy: a dictionary of NumPy's, an array on a GPU.

    None before the first number: a generator on a GPU may not have its array yet.
    """
    if generator is None:
        return None
    bits = getattr(generator, "bit_generator", generator)
    if isinstance(state := getattr(bits, "state", None), dict):
        return state
    array = getattr(bits, "_state", None)  # CuPy, and so the simulated GPU, has no public name for it
    return None if array is None else array.copy()


def _draw_again(generator: Any, kept: Any) -> None:
    """Let a generator draw what it would have drawn when `kept` was taken."""
    if generator is None:
        return
    bits = getattr(generator, "bit_generator", generator)
    if isinstance(kept, dict):
        bits.state = kept
    elif kept is not None:
        bits._state[...] = kept
    elif hasattr(bits, "_state"):
        bits._state = None
