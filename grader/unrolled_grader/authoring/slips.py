"""Wrong answers made of a right one without a look at its code: what it does for some inputs, or to them, is spoiled.

Which inputs: those with a feature of `unrolled.checks.domain`, as "x.shape[0] == 1". A check that never shows such
inputs to a function cannot notice, whatever it compares.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.checks.domain import features_of

Function = Callable[..., Any]
Slip = tuple[str, str, Callable[[Function], Function]]  # its kind, what it does in words, and what makes it
NARROWER = {"float32": np.float16, "float64": np.float32}


@dataclass
class Calls:
    """What a function was called with and gave: the features of each call, and what arrays went in and came out."""

    features: list[set[str]] = field(default_factory=list)
    arrays: set[str] = field(default_factory=set)  # the arguments that were arrays
    functions: set[str] = field(default_factory=set)  # and those that were functions
    axes: int = 0  # of results, at most
    dtypes: set[str] = field(default_factory=set)  # of results

    def often(self, share: float) -> set[str]:
        """Return the features that this share of the calls has, or more."""
        counts = Counter(feature for call in self.features for feature in call)
        return {feature for feature, count in counts.items() if count >= share * len(self.features)}


def watched(function: Function, calls: Calls) -> Function:
    """Return the function, which notes its calls."""

    @functools.wraps(function)
    def watching(*positional: Any, **named: Any) -> Any:
        given = arguments(function, positional, named)
        calls.features.append(set(features_of(given)))
        calls.arrays |= {name for name, x in given.items() if hasattr(x, "dtype") and x.ndim}
        calls.functions |= {name for name, x in given.items() if callable(x)}
        y = function(*positional, **named)
        for each in y if isinstance(y, tuple) else (y,):
            if hasattr(each, "dtype"):
                calls.axes = max(calls.axes, each.ndim)
                calls.dtypes.add(each.dtype.name if each.ndim else "")
        return y

    return watching


def arguments(function: Function, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call by name, with those that are left to their defaults."""
    bound = inspect.signature(function).bind(*positional, **named)
    bound.apply_defaults()
    ranked = bound.arguments.get("comm")
    sizes = {} if ranked is None else {"comm.size": ranked.size, "comm.rank": ranked.rank}
    return {**bound.arguments, **sizes}


def slips(calls: Calls, share: float) -> Iterator[Slip]:
    """Yield the slips that change something in such calls: wrong where a feature holds that this share of them has, and
    wrong whatever the inputs."""
    for feature in sorted(calls.often(share)):
        yield "wrong for some inputs", f"wrong where {feature}", functools.partial(_where, feature=feature)
    for axis in range(calls.axes):
        text = f"right in the first place along axis {axis} alone"
        yield "the first alone", text, functools.partial(_first, axis=axis)
    for name in sorted(calls.arrays):
        yield "an input is changed", f"adds 1 to {name} after all is done", functools.partial(_changing, name=name)
    for name in sorted(calls.functions):
        text = f"{name} gets arrays of two axes"
        yield "an array is flattened on its way", text, functools.partial(_flattening, name=name)
    if calls.arrays and calls.dtypes:
        yield "a result is kept", "gives what it gave before for arrays of such shapes", _keeping
    if calls.dtypes & {"float32", "float64"}:
        text = "results went through float16, or float32 in float64"
        yield "a dtype is narrowed", text, functools.partial(_each, change=_narrowed)
    if "float32" in calls.dtypes:
        yield "a dtype is widened", "results in float64", functools.partial(_each, change=_widened)


def _where(right: Function, feature: str) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        found = set(features_of(arguments(right, positional, named)))
        if feature not in found:
            return right(*positional, **named)
        writes = "return " not in inspect.getsource(right)  # into its arguments
        return None if writes else spoiled(right(*positional, **named))

    return wrong


def spoiled(y: Any) -> Any:
    """Return something near a result that is not it, beyond any tolerance."""
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
    if not getattr(y, "size", 1):
        return np.ones(1)
    try:
        return y + 1 + int(abs(y).max() if hasattr(y, "max") else abs(y)) // 100
    except (TypeError, ValueError, OverflowError):  # no number, or not finite
        return None


def _changing(right: Function, name: str) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        y = right(*positional, **named)
        x: Any = arguments(right, positional, named)[name]
        if x is not y and hasattr(x, "dtype"):
            x += 1
        return y

    return wrong


def _flattening(right: Function, name: str) -> Function:
    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        bound = inspect.signature(right).bind(*positional, **named)
        given = bound.arguments.get(name)
        if given is not None:
            bound.arguments[name] = lambda *arrays: given(*map(_flat, arrays))
        return right(*bound.args, **bound.kwargs)

    return wrong


def _flat(x: Any) -> Any:
    return x.reshape(len(x), -1) if getattr(x, "ndim", 0) > 2 else x


def _keeping(right: Function) -> Function:
    kept = dict[str, Any]()

    @functools.wraps(right)
    def wrong(*positional: Any, **named: Any) -> Any:
        y = right(*positional, **named)
        form = repr([getattr(x, "shape", None) or x for x in arguments(right, positional, named).values()])
        return y if "<" in form else kept.setdefault(form, y)  # not what objects gave: another may have their place

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
    narrower = NARROWER.get(str(getattr(y, "dtype", None)))
    return y.astype(narrower).astype(y.dtype) if narrower else y


def _widened(y: Any) -> Any:
    return y.astype(np.float64) if getattr(y, "dtype", None) == np.float32 and y.ndim else y
