"""Numbers that change their dtype as on a GPU, which is neither NumPy's way nor the same on each CPU.

The whole part of a float is held at the ends of the register that takes it, and an integer below 32 bits keeps the last
bits of a 32-bit register: PTX ISA, "cvt". On x86 what is out of range gives the most negative number. NaN gives 0 in 32
bits that were a float32, else the highest bit alone. Of a complex number the real part is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

REGISTERS = str.maketrans("bhBH", "iiII")  # of the small types


def converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array or a number in another dtype; the array itself where nothing changes."""
    x = np.asarray(x)
    x = x.real if x.dtype.kind == "c" and dtype.kind in "iuf" else x
    return to_integers(x, dtype) if x.dtype.kind == "f" and dtype.kind in "iu" else x.astype(dtype, copy=False)


def to_integers(x: Any, dtype: Any) -> Any:
    """Return an array or a number of floats in an integer dtype."""
    dtype, x = np.dtype(dtype), np.asarray(x).real
    register = np.dtype(dtype.char.translate(REGISTERS))
    ends = np.iinfo(register)
    inside = np.trunc(x).astype(np.float64)
    whole = np.where((inside > ends.min) & (inside < ends.max), inside, 0).astype(register)
    held = np.where(inside >= ends.max, ends.max, np.where(inside <= ends.min, ends.min, whole))
    if max(x.itemsize, register.itemsize) == 8:
        held = np.where(np.isnan(x), np.array(1 << (ends.bits - 1), f"u{register.itemsize}").view(register), held)
    return held.astype(register).astype(dtype)
