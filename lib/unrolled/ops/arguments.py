"""What every operation does with its arguments first: pairs, dtypes, and errors that name what does not fit."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from operator import index
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from unrolled.device import Array, Module, array_module

IntOrPair: TypeAlias = "int | tuple[int, int]"
NCHW: TypeAlias = tuple[int, int, int, int]  # the shape of images
P = ParamSpec("P")
R = TypeVar("R")
HALF = np.dtype("float16")


def pair(name: str, value: IntOrPair, least: int = 0) -> tuple[int, int]:
    """Return an int or a pair of ints as (vertical, horizontal).

    Raises TypeError for what is no integer, ValueError for another number of them and for one below `least`.
    """
    try:
        values = tuple(map(_whole, value if isinstance(value, (tuple, list)) else (value, value)))
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected an int or a pair of ints") from None
    if len(values) != 2:
        raise ValueError(f"{name} is {value!r}; expected an int or a pair of ints")
    if min(values) < least:
        raise ValueError(f"{name} is {value!r}; expected at least {least}")
    return values[0], values[1]


def check_arrays(**arrays: Array | None) -> Module:
    """Return the module that holds these arrays, given by the names of the caller's arguments; None is skipped.

    Raises TypeError for what is no array and for arrays of two modules, ValueError unless they hold real numbers.
    """
    plain = True
    for name, x in arrays.items():
        if type(x) is not np.ndarray or x.dtype.kind not in "fiub":  # hardly ever, and every operation asks
            plain = False
            if x is not None:
                check_array(name, x)
    return np if plain else array_module(*arrays.values())


def check_array(name: str, x: Array) -> None:
    """Raise TypeError unless x is an array (no list), ValueError unless it holds floats, integers or booleans."""
    if type(x) is np.ndarray and x.dtype.kind in "fiub":  # nearly always, and every operation asks
        return
    if not hasattr(x, "dtype"):
        raise TypeError(f"{name} is a {type(x).__name__}; expected an array, as numpy.array(...) makes one")
    if isinstance(x, (np.matrix, np.ma.MaskedArray)):
        cure = "numpy.asarray(...)" if isinstance(x, np.matrix) else "numpy.ma.filled(...)"
        raise TypeError(f"{name} is a {type(x).__name__}; expected a plain array, as {cure} makes one")
    if x.dtype.kind not in "fiub":
        raise ValueError(f"{name} is {x.dtype}; expected real numbers, such as float32")


def check_float(name: str, dtype: Any) -> None:
    """Raise ValueError unless dtype is float32 or float64."""
    if dtype not in (np.float32, np.float64):
        later = ": a network in float16 needs loss scaling, which lesson 11 brings" if dtype == np.float16 else ""
        raise ValueError(f"{name} is {dtype}; expected float32 or float64{later}")


def check_whole(name: str, value: int, least: int = 1) -> None:
    """Raise TypeError unless value is a whole number, and ValueError unless value >= least."""
    try:
        whole = _whole(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected a whole number") from None
    if whole < least:
        raise ValueError(f"{name} is {value}; expected at least {least}")


def _whole(value: Any) -> int:
    """The int. Raises TypeError for a fraction, and for a boolean, which Python takes for 0 or 1."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError
    return index(value)


def check_axes(name: str, x: Array, axes: str) -> None:
    """Raise ValueError unless x, checked before or None, has as many axes as `axes` names, as in "N, C, H, W"."""
    if getattr(x, "ndim", None) != axes.count(",") + 1:
        check_array(name, x)
        raise ValueError(f"{name} has shape {x.shape}; expected {axes.count(',') + 1} axes ({axes})")


def check_weight(x: Array, axes: str, weight: Array, weight_axes: str, what: str) -> None:
    """Raise ValueError unless x and weight have these axes, and as many of `what` on the second one of both."""
    check_axes("x", x, axes)
    check_axes("weight", weight, weight_axes)
    if x.shape[1] != weight.shape[1]:
        letter = axes.split(", ")[1]
        there, here = (f"has shape {array.shape} with {letter} = {array.shape[1]}" for array in (weight, x))
        raise ValueError(f"weight {there} {what}, but x {here}")


def check_shape(name: str, x: Array, expected: tuple[int, ...], because: str) -> None:
    """Raise ValueError unless x, checked before or None, has the expected shape; `because` names what asks for it."""
    if getattr(x, "shape", None) == expected:  # nearly always
        return
    check_array(name, x)
    if tuple(x.shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(x.shape)}; expected {tuple(expected)} to fit {because}")


def as_floats(*arrays: Array) -> tuple[Array, ...]:
    """Return the arrays in one float dtype: the widest of the floats given; integers and booleans count as float32.

    So float32 stays float32, one float64 makes all float64, and pixels (uint8) are computed in float32.
    """
    dtype = arrays[0].dtype
    if dtype.kind in "fc" and all(x.dtype is dtype for x in arrays):
        return arrays
    dtype = np.result_type(*(x.dtype if x.dtype.kind in "fc" else np.dtype("float32") for x in arrays))
    return tuple(x.astype(dtype, copy=False) for x in arrays)


def rounds_once(operation: Callable[P, R]) -> Callable[P, R]:
    """Make an operation compute float16 arrays in float32, and round its results to float16 once, on every device.

    A sum in float16 stands still at 2048, where adding 1 no longer changes it. Where the first array has another dtype,
    `as_floats` finds a wider one for all.
    """

    @functools.wraps(operation)
    def computed(*arguments: P.args, **options: P.kwargs) -> R:
        first = arguments[0] if arguments else next(iter(options.values()), None)
        if getattr(first, "dtype", None) != HALF:
            return operation(*arguments, **options)
        wide, named = _cast(arguments, np.float32), _cast(tuple(options.values()), np.float32)
        results = operation(*wide, **dict(zip(options, named, strict=True)))
        wider = any(x.dtype.kind == "f" and x.dtype != HALF for x in _arrays((*arguments, *options.values())))
        return results if wider else _cast(results, HALF, of=np.dtype("float32"))

    return computed


def _arrays(values: Iterable[Any]) -> Iterator[Any]:
    """The arrays in nested tuples and lists."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _arrays(value)
        elif hasattr(value, "dtype"):
            yield value


def _cast(value: Any, dtype: Any, of: np.dtype[Any] = HALF) -> Any:
    """The value with every array of one dtype in another one, also in tuples, named ones and lists."""
    if isinstance(value, (tuple, list)):
        items = [_cast(item, dtype, of) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value.astype(dtype) if getattr(value, "dtype", None) == of else value
