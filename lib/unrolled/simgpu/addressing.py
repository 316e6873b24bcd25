"""Reading and writing what index arrays name. Indices that are out of range wrap around, as they do on CuPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.command import InvalidCommandError, Options
from unrolled.simgpu.conversion import converted

Array: TypeAlias = Any


def check_size(size: int, out: Array) -> None:
    """Raise InvalidCommandError unless the output has `size` values, before NumPy makes a result that would not fit."""
    if size != out.size:
        raise InvalidCommandError(f"a result of {size:,} values does not go into an output of {out.size:,}")


def addressed(shape: Sequence[int], indices: Sequence[Sequence[int]], options: Options) -> int:
    """Return how many elements of an array indices of these shapes name: each of theirs, on the axes that have none.

    Raises InvalidCommandError for axes that do not fit.
    """
    axes = options["axes"]
    if not isinstance(axes, (list, tuple)) or len(axes) != len(indices) or len(set(axes)) != len(axes):
        raise InvalidCommandError(f"axes are {axes!r:.80}; expected one for each of {len(indices)} indices")
    if not all(type(axis) is int and 0 <= axis < len(shape) for axis in axes):
        raise InvalidCommandError(f"axes are {axes!r:.80}; expected axes of an array with {len(shape)}")
    named = indices[0] if len(indices) == 1 else np.broadcast_shapes(*(tuple(index) for index in indices))
    return prod(named) * prod(n for axis, n in enumerate(shape) if axis not in axes)


def index_of(x: Array, indices: Sequence[Any], options: Options) -> tuple[Any, ...]:
    """Return the index that addresses x: the given one on the axes named, all of the other axes. Wraps around."""
    addressed(x.shape, [np.shape(index) for index in indices], options)
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(options["axes"], indices, strict=True):
        array, length = np.asarray(index), x.shape[axis]
        if array.dtype.kind not in "iu":
            raise InvalidCommandError("an index is no integer")
        if array.size and not length:
            raise InvalidCommandError("an index into an axis of length 0")
        key[axis] = array.astype(np.int64, copy=False) % length if length else index
    return tuple(key)


def getitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """Write what the indices name to the output."""
    (x, *indices), (out,) = inputs, outputs
    check_size(addressed(x.shape, [np.shape(index) for index in indices], options), out)
    np.copyto(out, x[index_of(x, indices, options)])


def setitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """Write a value where the indices say."""
    (value, *indices), (x,) = inputs, outputs
    x[index_of(x, indices, options)] = value


def at(function: np.ufunc) -> Callable[[Any, Any, Options], None]:
    """Return the operation that applies a function where the indices say, as often as each is named."""
    numbers: dict[np.ufunc, np.ufunc] = {np.maximum: np.fmax, np.minimum: np.fmin}
    function = numbers.get(function, function)  # of NaN and a number, the number

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (value, *indices), (x,) = inputs, outputs
        function.at(x, index_of(x, indices, options), converted(value, x.dtype))  # else uint64 goes by float64

    return compute
