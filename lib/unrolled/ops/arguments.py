"""What every operation does with its arguments first: pairs, dtypes, and errors that name what does not fit."""

from __future__ import annotations

from operator import index
from typing import TypeAlias

import numpy as np

from unrolled.device import Array

IntOrPair: TypeAlias = "int | tuple[int, int]"
NCHW: TypeAlias = tuple[int, int, int, int]  # the shape of images


def pair(name: str, value: IntOrPair, least: int = 0) -> tuple[int, int]:
    """Return an int or a pair of ints as (vertical, horizontal).

    Raises TypeError for what is no integer, ValueError for another number of them and for one below `least`.
    """
    try:
        values = (index(value), index(value)) if not isinstance(value, (tuple, list)) else tuple(map(index, value))
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected an int or a pair of ints") from None
    if len(values) != 2:
        raise ValueError(f"{name} is {value!r}; expected an int or a pair of ints")
    if min(values) < least:
        raise ValueError(f"{name} is {value!r}; expected at least {least}")
    return values[0], values[1]


def check_least(name: str, value: float, least: float = 1) -> None:
    """Raise ValueError unless value >= least."""
    if not value >= least:
        raise ValueError(f"{name} is {value}; expected at least {least}")


def check_axes(name: str, x: Array, axes: str) -> None:
    """Raise ValueError unless x has as many axes as `axes` names, as in "N, C, H, W"."""
    if x.ndim != axes.count(",") + 1:
        raise ValueError(f"{name} has shape {x.shape}; expected {axes.count(',') + 1} axes ({axes})")


def check_shape(name: str, x: Array, expected: tuple[int, ...], because: str) -> None:
    """Raise ValueError unless x has the expected shape; `because` names the argument that asks for it."""
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
