"""Random numbers: those of numpy.random.default_rng, from a state that lies on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.simgpu.command import InvalidCommandError, Options


def seed(inputs: Sequence[Any], outputs: Sequence[Any], options: Options) -> None:
    """Write the state of a new generator, made from a whole number or a few of them, to the output."""
    _save(np.random.PCG64(options["seed"]), outputs[0])


def draw(inputs: Sequence[Any], outputs: Sequence[Any], options: Options) -> None:
    """Draw as numpy.random.Generator does; outputs are values and state, which lies on the device, as cuRAND's does.

    Raises InvalidCommandError for a method that is not in METHODS.
    """
    values, state = outputs
    method, arguments = options["method"], dict(options.get("arguments") or {})
    if method not in METHODS:
        raise InvalidCommandError(f"method is {method!r:.40}; expected one of {', '.join(METHODS)}")
    if not all(isinstance(value, (int, float, str, type(None))) for value in arguments.values()):
        raise InvalidCommandError("arguments of a distribution are plain numbers")
    bits = _load(state)
    function = getattr(np.random.Generator(bits), method)
    drawn = function(values.size) if method == "permutation" else function(**arguments | {"size": values.shape})
    np.copyto(values, drawn, casting="unsafe")
    _save(bits, state)


METHODS = ("random", "standard_normal", "normal", "uniform", "integers", "exponential", "permutation")
"""What can be drawn: each takes a bounded time for a value."""


def _load(state: Any) -> np.random.PCG64:
    """The generator that a device array of six uint64 holds: state and increment (low, high), the spare half."""
    _check(state)
    state_low, state_high, inc_low, inc_high, has_spare, spare = (int(word) for word in state)
    bits = np.random.PCG64(0)
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": state_high << 64 | state_low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has_spare & 1,
        "uinteger": spare & 0xFFFFFFFF,
    }
    return bits


def _save(bits: np.random.PCG64, state: Any) -> None:
    _check(state)
    all_of_it: Any = bits.state
    words = [all_of_it["state"]["state"], all_of_it["state"]["inc"]]
    halves = [half for word in words for half in (word & (2**64 - 1), word >> 64)]
    state[...] = np.array([*halves, all_of_it["has_uint32"], all_of_it["uinteger"]], np.uint64)


def _check(state: Any) -> None:
    if state.shape != (6,) or state.dtype != np.uint64:
        raise InvalidCommandError("the state of a generator is six uint64")
