"""Memory on a device, and what to say when it is used up."""

from __future__ import annotations

from math import prod
from typing import Any

from unrolled.device import Array, array_module


class OutOfDeviceMemoryError(MemoryError):
    """A device has no room for an array. The message names the array and its size, and a smaller batch."""


def empty(like: Array, name: str, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """A new array (N, ...) beside `like`, of its dtype unless another is given.

    Raises OutOfDeviceMemoryError; `name` says there what the array is for.
    """
    dtype = dtype or like.dtype
    try:
        return array_module(like).empty(shape, dtype=dtype)
    except MemoryError as error:
        raise OutOfDeviceMemoryError(_words(name, shape, dtype, error)) from error


def _words(name: str, shape: tuple[int, ...], dtype: Any, error: MemoryError) -> str:
    import numpy as np

    size = prod(shape) * np.dtype(dtype).itemsize / 1e6
    smaller = f"; try a batch of {shape[0] // 2} instead of {shape[0]}" if shape and shape[0] > 1 else ""
    return f"no memory left for {name}, {shape} of {np.dtype(dtype)}, {size:,.0f} MB{smaller} ({error})"
