"""Writing whole arrays: from another array, or one number everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.simgpu.array import SCALARS, check_fits, launch, ndarray


def assign(target: ndarray, value: Any) -> None:
    """Set target[...] = value, an array of the device or a number."""
    if isinstance(value, ndarray):
        if value.as_view() == target.as_view():
            return  # what x[key] += y ends with
        launch("copy", [fitting(value, target.shape)], [target])
        return
    fill(target, value)


def fill(x: ndarray, value: Any) -> None:
    """Write one number everywhere."""
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, ndarray)):
        if value.shape != ():
            kind = "numpy" if isinstance(value, np.ndarray) else "cupy"
            raise ValueError(f"non-scalar {kind}.ndarray cannot be used for fill")
        if isinstance(value, ndarray):
            launch("copy", [value], [x])
            return
        value = value.item()
    if not isinstance(value, SCALARS):
        raise TypeError(f"Unsupported type {type(value)}")
    check_fits(value, x.dtype)
    launch("fill", [value], [x])


def fitting(value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value that can be written to this shape, without surplus axes of length 1 in front.

    Raises ValueError if it does not fit, TypeError for what is neither an array of the device nor a number.
    """
    if not isinstance(value, ndarray):
        if not isinstance(value, SCALARS):
            raise TypeError(f"Unsupported type {type(value)}")
        return value
    sizes = value.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    fits = len(sizes) <= len(shape) and all(n in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False))
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {shape}")
    return value if len(sizes) == value.ndim else value.seen_as(value._layout.reshape(sizes))
