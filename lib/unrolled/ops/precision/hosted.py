"""What runs in NumPy alone says so by its name."""

from __future__ import annotations

import numpy as np

from unrolled.device import Array, is_simulated
from unrolled.ops.arguments import check_arrays


def check_host(operation: str, **arrays: Array) -> None:
    """Raise TypeError unless all are NumPy arrays of real numbers; it names the operation and the arrays."""
    module = check_arrays(**arrays)
    if module is not np:
        where = "the simulated GPU" if is_simulated(module) else getattr(module, "__name__", "a device")
        names = " and ".join(arrays)
        raise TypeError(f"{operation} runs in NumPy, but {names} lie on {where}: device.to_host brings arrays back")


def check_dtype(operation: str, dtype: str, **arrays: Array) -> None:
    """Raise TypeError unless all are NumPy arrays of this dtype, and ValueError unless they are matrices."""
    check_host(operation, **arrays)
    for name, x in arrays.items():
        if x.dtype != dtype:
            raise TypeError(f"{name} is {x.dtype}; {operation} expects {dtype}")
        if x.ndim != 2:
            raise ValueError(f"{name} has shape {x.shape}; expected 2 axes")
