"""Arrays on a device, and what to say when its memory is used up."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from unrolled.device import Array, array_module


class OutOfDeviceMemoryError(MemoryError):
    """A device has no room for an array. The message names the array and its size, and a smaller batch."""


def empty(like: Array, name: str, shape: tuple[int, ...], dtype: Any = None) -> Array:
    """Return a new array (N, ...) of undefined values in the module of `like`, of its dtype unless another is given.

    Raises OutOfDeviceMemoryError; `name` says there what the array is for.
    """
    dtype = dtype or like.dtype
    try:
        return array_module(like).empty(shape, dtype=dtype)
    except MemoryError as error:
        size = f"{shape} of {np.dtype(dtype)}, {prod(shape) * np.dtype(dtype).itemsize / 1e6:,.0f} MB"
        raise OutOfDeviceMemoryError(f"no memory left for {name}, {size}{_smaller(shape[0])} ({error})") from error


def named(error: MemoryError, where: str, batch: int) -> OutOfDeviceMemoryError:
    """Return an OutOfDeviceMemoryError that also says where the error happened, and what a smaller batch is."""
    if isinstance(error, OutOfDeviceMemoryError):
        return OutOfDeviceMemoryError(f"{where}: {error}")
    return OutOfDeviceMemoryError(f"{where}: no memory left for its result{_smaller(batch)} ({error})")


def _smaller(batch: int) -> str:
    return f"; try a batch of {batch // 2} instead of {batch}" if batch > 1 else ""
