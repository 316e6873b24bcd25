"""Sixteen bits: float16 has 10 bits of fraction and ends at 65,504; bfloat16 has 7, and float32's range."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from unrolled.device import Array
from unrolled.ops.precision.hosted import check_host

LARGEST = float(np.finfo(np.float16).max)


def to_half(x: Array) -> Array:
    """Return x in float16, rounded to nearest; infinite and NaN stay what they are.

    Raises OverflowError where a finite value has no float16: it would become infinite without a word.
    """
    check_host("to_half", x=x)
    with np.errstate(over="ignore"):
        y = x.astype(np.float16)
    lost = np.isinf(y) & np.isfinite(x)
    if lost.any():
        most = float(np.abs(x[lost].astype(np.float64)).max())
        raise OverflowError(f"x has values up to {most:.6g}; float16 ends at {LARGEST:.0f}: scale x, or use bfloat16")
    return y


def bfloat16() -> Any:
    """Return the dtype bfloat16 of the package ml_dtypes. Raises ImportError, which says so, where that is absent."""
    try:
        return np.dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ImportError as error:
        raise ImportError("NumPy has no bfloat16, ml_dtypes brings it: pip install ml_dtypes") from error
