"""Random numbers of the device: those of numpy.random.default_rng, from a state that lies there.

`random` is what a program sees of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unrolled.simgpu.command import InvalidCommandError, Options

METHODS = ("random", "standard_normal", "normal", "uniform", "integers", "exponential", "permutation")
"""What can be drawn: each takes a bounded time for a value."""


def seed(inputs: Sequence[Any], outputs: Sequence[Any], options: Options) -> None:
    """The state of a new generator, made from a whole number or a few of them."""
    _save(np.random.PCG64(options["seed"]), outputs[0])


def draw(inputs: Sequence[Any], outputs: Sequence[Any], options: Options) -> None:
    """As numpy.random.Generator draws; outputs are values and state, which lies on the device, as cuRAND's does."""
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


def _load(state: Any) -> np.random.PCG64:
    """The generator that a device array of six uint64 holds: state and increment (low, high), the spare half."""
    _check_state(state)
    low, high, step_low, step_high, has_spare, spare = map(int, state)
    bits, numbers = np.random.PCG64(0), {"state": high << 64 | low, "inc": step_high << 64 | step_low}
    half = {"has_uint32": has_spare & 1, "uinteger": spare & 0xFFFFFFFF}
    bits.state = {"bit_generator": "PCG64", "state": numbers, **half}  # type: ignore[typeddict-item]
    return bits


def _save(bits: np.random.PCG64, state: Any) -> None:
    _check_state(state)
    kept: Any = bits.state
    numbers = kept["state"]["state"], kept["state"]["inc"]
    halves = [half for number in numbers for half in divmod(number, 2**64)[::-1]]
    state[...] = np.array([*halves, kept["has_uint32"], kept["uinteger"]], np.uint64)


def _check_state(state: Any) -> None:
    if state.shape != (6,) or state.dtype != np.uint64:
        raise InvalidCommandError("the state of a generator is six uint64")
