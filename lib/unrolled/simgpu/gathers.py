"""Reading and writing what index arrays name. Indices that are out of range wrap around, as they do on CuPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.command import InvalidCommandError, Options

Array: TypeAlias = Any
Operation: TypeAlias = Callable[[Sequence[Any], Sequence[Array], Options], None]


def scalar(x: Any) -> Any:
    """Return x if it is a Python number of at most 64 bits, to compute with which takes a bounded time.

    It may come from a socket. Raises InvalidCommandError for anything else.
    """
    if type(x) not in (bool, int, float, complex):
        raise InvalidCommandError(f"an operand of type {type(x).__name__}; expected a View or a Python number")
    if type(x) is int and not -(2**63) <= x < 2**64:
        raise InvalidCommandError("a whole number of more than 64 bits")
    return x


def addressed(shape: Sequence[int], indices: Sequence[Sequence[int]], options: Options) -> int:
    """Return how many elements of an array indices of these shapes name: each of theirs, on the axes that have none.

    Raises InvalidCommandError for axes that do not fit.
    """
    axes = options["axes"]
    if not isinstance(axes, (list, tuple)) or len(axes) != len(indices) or len(set(axes)) != len(axes):
        raise InvalidCommandError(f"axes are {axes!r:.80}; expected one for each of {len(indices)} indices")
    if not all(type(axis) is int and 0 <= axis < len(shape) for axis in axes):
        raise InvalidCommandError(f"axes are {axes!r:.80}; expected axes of an array with {len(shape)}")
    named = np.broadcast_shapes(*(tuple(index) for index in indices))
    return prod(named) * prod(n for axis, n in enumerate(shape) if axis not in axes)


def _index(x: Array, indices: Sequence[Any], options: Options) -> tuple[Any, ...]:
    """The index that addresses x: the given one on the axes named, all of the other axes. Wraps around."""
    addressed(x.shape, [np.shape(index) for index in indices], options)
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(options["axes"], indices, strict=True):
        key[axis] = _wrapped(index, x.shape[axis])
    return tuple(key)


def _wrapped(index: Any, size: int) -> Any:
    if np.asarray(index).dtype.kind not in "iu":
        raise InvalidCommandError("an index is no integer")
    if not size:
        if np.size(index):
            raise InvalidCommandError("an index into an axis of length 0")
        return index
    return index % size


def getitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    x, *indices = inputs
    (out,) = outputs
    check_size(addressed(x.shape, [np.shape(index) for index in indices], options), out)
    np.copyto(out, x[_index(x, indices, options)])


def setitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    value, *indices = inputs
    (x,) = outputs
    x[_index(x, indices, options)] = value


def at(function: np.ufunc) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        value, *indices = inputs
        (x,) = outputs
        function.at(x, _index(x, indices, options), value)

    return compute


def check_size(size: int, out: Array) -> None:
    """Raise InvalidCommandError unless the output has `size` values, before NumPy makes a result that would not fit."""
    if size != out.size:
        raise InvalidCommandError(f"a result of {size:,} values does not go into an output of {out.size:,}")
