"""Wrong answers made of a right one without a look at its code: what it does for some inputs, or to them, is spoiled.

Which inputs: those with a feature of `unrolled.checks.domain`, as "x.shape[0] == 1". A check that never shows such
inputs to a function cannot notice, whatever it compares.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from unrolled.checks.domain import features_of

Function = Callable[..., Any]
Slip = tuple[str, str, Callable[[Function], Function]]  # its kind, what it does in words, and what makes it


def watched(function: Function, calls: list[set[str]]) -> Function:
    """Return the function, which notes the features of each call's arguments."""

    @functools.wraps(function)
    def watching(*positional: Any, **named: Any) -> Any:
        calls.append(set(features_of(arguments(function, positional, named))))
        return function(*positional, **named)

    return watching


def arguments(function: Function, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, with those that are left to their defaults."""
    bound = inspect.signature(function).bind(*positional, **named)
    bound.apply_defaults()
    ranked = bound.arguments.get("comm")
    sizes = {} if ranked is None else {"comm.size": ranked.size, "comm.rank": ranked.rank}
    return {**bound.arguments, **sizes}


def slips(features: Iterable[str]) -> Iterator[Slip]:
    """Yield every slip: wrong where one of these features holds, and what is wrong whatever the inputs."""
    for feature in sorted(features):
        yield "wrong for some inputs", f"wrong where {feature}", functools.partial(_where, feature=feature)
    for axis in (0, 1, -1):
        text = f"right in the first place along axis {axis} alone"
        yield "the first alone", text, functools.partial(_first, axis=axis)
    yield "an input is changed", "adds 1 to the first array that it is given, after all is done", _changing
    yield "a dtype is narrowed", "results went through float16", functools.partial(_each, change=_narrowed)
    yield "a dtype is widened", "results in float64", functools.partial(_each, change=_widened)
    yield "the work is done twice", "does all twice", _twice


def _where(right: Function, feature: str) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        found = set(features_of(arguments(right, positional, named)))
        if feature not in found:
            return right(*positional, **named)
        return spoiled(right(*positional, **named)) if _returns(right) else None

    return wrong


def _returns(right: Function) -> bool:
    """Whether a function returns something, rather than writing into its arguments."""
    return "return " in inspect.getsource(right)


def spoiled(y: Any) -> Any:
    """Return something near a result that is not it."""
    if isinstance(y, tuple) and y:
        return (spoiled(y[0]), *y[1:])
    if isinstance(y, list):
        return y[:-1] if y else [0]
    if isinstance(y, dict):
        return {name: spoiled(value) for name, value in y.items()}
    if isinstance(y, (bool, np.bool_)):
        return not y
    if isinstance(y, str) or y is None:
        return 0
    try:
        return y + 1 if getattr(y, "size", 1) else np.ones(1)
    except TypeError:
        return None


def _changing(right: Function) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        y = right(*positional, **named)
        for x in (*positional, *named.values()):
            if isinstance(x, np.ndarray) and x.size and x is not y:
                x.flat[0] += 1
                break
        return y

    return wrong


def _first(right: Function, axis: int) -> Function:
    def zeroed(y: Any) -> Any:
        if not hasattr(y, "shape") or not -len(y.shape) <= axis < len(y.shape):
            return y
        z, rest = y.copy(), [slice(None)] * y.ndim
        rest[axis] = slice(1, None)
        z[tuple(rest)] = 0
        return z

    return _each(right, zeroed)


def _each(right: Function, change: Callable[[Any], Any]) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        y = right(*positional, **named)
        return tuple(map(change, y)) if isinstance(y, tuple) else change(y)

    return wrong


def _narrowed(y: Any) -> Any:
    return y.astype(np.float16).astype(y.dtype) if getattr(y, "dtype", None) in (np.float32, np.float64) else y


def _widened(y: Any) -> Any:
    return y.astype(np.float64) if getattr(y, "dtype", None) == np.float32 and y.ndim else y


def _twice(right: Function) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        right(*positional, **named)
        return right(*positional, **named)

    return wrong
