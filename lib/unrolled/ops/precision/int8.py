"""Symmetric int8: a value is a whole number from -127 to 127 times a scale, so 0 stays 0 (Jacob and others, 2018)."""

from __future__ import annotations

import numpy as np

from unrolled.device import Array
from unrolled.ops.precision.hosted import check_host

LARGEST = 127  # -128 is left out: the range is symmetric


def int8_scale(x: Array, axis: int | None = None, percentile: float = 100.0) -> Array:
    """Return the float32 scale of x: 0-d, or one a channel along `axis`, in a shape that fits x.

    The largest magnitude becomes 127 (min-max calibration); with a lower `percentile` larger ones will be clipped, and
    all others are finer. Values that are all 0 get scale 1. Raises ValueError for no values and for any not finite.
    """
    check_host("int8_scale", x=x)
    if not 0 < percentile <= 100:
        raise ValueError(f"percentile is {percentile}; expected above 0 and at most 100")
    if not x.size or not np.isfinite(x).all():
        raise ValueError(f"x has shape {x.shape}; expected values to calibrate with, all of them finite")
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis is {axis}; x has {x.ndim} axes")
    others = None if axis is None else tuple(at for at in range(x.ndim) if at != axis % x.ndim)
    magnitude = np.abs(x.astype(np.float32))
    if percentile == 100:
        largest = magnitude.max(axis=others, keepdims=axis is not None)
    else:
        largest = np.percentile(magnitude, percentile, axis=others, keepdims=axis is not None)
    scale = np.asarray(largest / LARGEST, np.float32)
    return np.where(scale > 0, scale, np.float32(1))


def quantize_int8(x: Array, scale: Array) -> Array:
    """Return round(x / scale) in int8, ties to even; beyond 127 it is clipped: see `clipped_share`.

    Raises ValueError for a scale that is not positive, and for NaN, which no integer holds.
    """
    check_host("quantize_int8", x=x)
    _check_scale(scale)
    if np.isnan(x).any():
        raise ValueError("x has NaN; expected numbers: int8 has none")
    return np.clip(np.rint(x / scale), -LARGEST, LARGEST).astype(np.int8)


def clipped_share(x: Array, scale: Array) -> float:
    """Return the share of values that `quantize_int8` clips: those that round beyond 127. No values: 0."""
    check_host("clipped_share", x=x)
    _check_scale(scale)
    return float((np.abs(np.rint(x / scale)) > LARGEST).mean()) if x.size else 0.0


def _check_scale(scale: Array) -> None:
    check_host("int8", scale=scale)
    if not (np.isfinite(scale) & (np.asarray(scale) > 0)).all():
        raise ValueError(f"scale is {scale}; expected finite numbers above 0")
