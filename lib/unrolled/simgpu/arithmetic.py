"""Where a GPU computes in another way than NumPy: functions of arrays or numbers that have the loop's dtype already.

They are CuPy's formulas. A product and a sum after it are rounded once: CUDA's compiler makes one instruction of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.simgpu.conversion import to_integers


def fused(x: Any, y: Any, z: Any) -> Any:
    """Return x * y + z, rounded once: to float64, or to float32 where z is smaller."""
    if z.dtype != np.float64:
        return (np.multiply(x, y, dtype=np.float64) + z).astype(np.float32)
    scale = np.where(np.abs(z) > 2.0**1000, 0.5, 1.0)  # the product may be beyond what float64 holds
    x, z = x * scale, z * scale
    product = x * y
    total = product + z
    back = total - product
    (a, first), (b, second) = np.frexp(x), np.frexp(y)
    lost = np.ldexp(_lost(a, b), first + second) + ((product - (total - back)) + (z - back))
    return np.where(np.isfinite(lost) & (lost != 0), total + lost, total) / scale


def _lost(x: Any, y: Any) -> Any:
    """What the product of two float64 below 1 loses when it is rounded: Dekker, 1971."""
    (a, b), (c, d) = _halves(x), _halves(y)
    return ((a * c - x * y) + a * d + b * c) + b * d


def _halves(x: Any) -> tuple[Any, Any]:
    wide = x * (2.0**27 + 1)
    upper = wide - (wide - x)
    return upper, x - upper


def floor_divide(x: Any, y: Any) -> Any:
    """Return the quotient rounded down; a whole number divided by 0 is 0."""
    if x.dtype.kind == "f":
        quotient = np.divide(x, y, dtype=np.promote_types(x.dtype, np.float32))
        return np.floor(quotient if x.dtype == np.float64 else quotient * (abs(quotient) >= np.finfo("f").tiny))
    return np.floor_divide(x, np.where(y == 0, y.dtype.type(1), y)) * (y != 0)


def remainder(x: Any, y: Any) -> Any:
    """Return x - x // y * y: of floats NaN where y is infinite, and below 0 where the quotient was rounded up."""
    if x.dtype.kind == "f":
        return fused(-floor_divide(x, y), y, x)
    return np.remainder(x, np.where(y == 0, y.dtype.type(1), y)) * (y != 0)


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    quotient = floor_divide(x, y).astype(x.dtype)
    return quotient, fused(-quotient, y, x)


def shift(function: np.ufunc) -> Callable[..., Any]:
    """Return a shift: by the width or more, or by less than 0, it leaves 0, or the sign. By 64 bits, it looks at 32."""
    return lambda x, y: function(x, y & 0xFFFFFFFF if y.dtype.itemsize == 8 else y)


def _reciprocal(x: Any) -> Any:
    return np.reciprocal(np.where(x == 0, x.dtype.type(1), x)) * (x != 0)


def _fmod(x: Any, y: Any) -> Any:
    """Whole numbers are divided in float64."""
    return to_integers(np.fmod(x.astype(float), np.where(y == 0, 1, y).astype(float)), x.dtype) * (y != 0)


def unrooted(x: Any, y: Any) -> Any:
    """Return x, of which NumPy is to take the power y: of -inf to 0.5 it takes the root, NaN, and C the power, inf."""
    return np.where((y == 0.5) & ((x == 0) | np.isinf(x)), np.abs(x), x) if np.any(y == 0.5) else x


def nextafter(x: Any, y: Any) -> Any:
    """Of float16, nothing comes next to infinity."""
    return np.where(np.isinf(x) & (x.dtype == np.float16), x.dtype.type(np.nan), np.nextafter(x, y))


AS_A_GPU: dict[str, tuple[str, Callable[..., Any]]] = {
    "floor_divide": ("f", floor_divide),
    "remainder": ("f", remainder),
    "divmod": ("f", _divmod),
    "left_shift": ("iu", shift(np.left_shift)),
    "right_shift": ("iu", shift(np.right_shift)),
    "reciprocal": ("iu", _reciprocal),
    "fmod": ("iu", _fmod),
    "lcm": ("i", lambda x, y: np.abs(np.lcm(x, y))),  # too large a multiple keeps the last bits, without their sign
    "nextafter": ("f", nextafter),
}
"""By the name of NumPy's ufunc: the kinds of the dtypes that are computed so, and the function."""
