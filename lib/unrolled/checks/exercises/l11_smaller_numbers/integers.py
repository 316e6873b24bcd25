"""Whole numbers of 8 bits: values and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Inputs
from unrolled.device import Array

MOST = 127
EDGE = 1e-3  # of a step: who rounds a tie the other way is as near


def quantize_int8(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return x (C, ...) in int8, and the scale (C,) of each channel: limit / 127, or 1 where limit is 0."""
    scale = np.where(limit > 0, limit / np.float32(MOST), np.float32(1)).astype(np.float32)
    steps = np.rint(x / scale.reshape(-1, *[1] * (x.ndim - 1)))
    return np.clip(steps, -MOST, MOST).astype(np.int8), scale


def judge(got: Any, expected: tuple[Array, Array], inputs: Inputs) -> Mismatch | None:
    """Judge scales by their values, and whole numbers by how near they come."""
    if not isinstance(got, tuple) or len(got) != 2:
        return Mismatch((f"a {type(got).__name__} came back: return q, scale",))
    if found := mismatch(got[1], expected[1], 1e-6):
        return Mismatch((f"scale: {found.lines[0]}", *found.lines[1:]))
    q, x, limit = got[0], inputs["x"], inputs["limit"]
    if not isinstance(q, np.ndarray) or q.dtype != np.int8 or q.shape != x.shape:
        return mismatch(q, expected[0], 0)
    if (q == -128).any():
        return Mismatch(("q: holds -128, and the range is symmetric: -127 to 127",))
    channels = (-1, *[1] * (x.ndim - 1))
    scale, most = expected[1].reshape(channels), limit.reshape(channels)
    off = np.abs(q * scale - np.clip(x, -most, most)) / scale
    if (off > 0.5 + EDGE).any():
        found = mismatch(q, expected[0], 0)
        lines = found.lines if found else ()
        return Mismatch((f"q * scale is up to {off.max():.3g} steps from x; half a step is possible", *lines))
    return None


def any_weights(rng: np.random.Generator) -> Inputs:
    """Draw the weights of a convolution, and the largest magnitude of each filter as its limit."""
    o, c, k = (int(each) for each in rng.integers((2, 1, 1), (6, 5, 4)))
    sizes = rng.uniform(0.01, 10, (o, 1, 1, 1))
    x = (rng.standard_normal((o, c, k, k)) * sizes).astype(np.float32)
    return {"x": x, "limit": np.abs(x).max(axis=(1, 2, 3))}


def clipped(rng: np.random.Generator) -> Inputs:
    """Draw values of which some lie beyond the limit."""
    x = (rng.standard_normal((3, 40)) * np.array([[1], [5], [0.1]])).astype(np.float32)
    return {"x": x, "limit": np.percentile(np.abs(x), 90, axis=1).astype(np.float32)}


def wrapped(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return what comes out where values beyond the limit wrap round."""
    _, scale = quantize_int8(x, limit)
    steps = np.rint(x / scale.reshape(-1, *[1] * (x.ndim - 1)))
    return steps.astype(np.int64).astype(np.int8), scale


def cut_off(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return what comes out where numbers are cut off instead of rounded."""
    _, scale = quantize_int8(x, limit)
    steps = np.trunc(x / scale.reshape(-1, *[1] * (x.ndim - 1)))
    return np.clip(steps, -MOST, MOST).astype(np.int8), scale


def of_one_scale(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return what comes out with one scale for all channels."""
    return quantize_int8(x, np.full_like(limit, limit.max()))


def of_the_largest(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return what comes out where each channel's own largest magnitude takes the place of the limit."""
    return quantize_int8(x, np.abs(x).reshape(len(x), -1).max(axis=1))


# products


def int8_matmul(a: Array, b: Array) -> Array:
    """Return a (N, K) @ b (K, M) of int8 in int32."""
    return a.astype(np.int32) @ b.astype(np.int32)


def any_factors(rng: np.random.Generator) -> Inputs:
    """Draw two matrices of any int8 values."""
    n, k, m = (int(each) for each in rng.integers((1, 30, 1), (6, 90, 6)))
    return {"a": _whole(rng, n, k), "b": _whole(rng, k, m)}


def large_factors(rng: np.random.Generator) -> Inputs:
    """Draw matrices whose sums leave what float32 counts exactly."""
    a, b = (rng.integers(100, 128, shape).astype(np.int8) for shape in ((2, 3000), (3000, 3)))
    return {"a": a, "b": b}


def _whole(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-MOST, MOST + 1, shape).astype(np.int8)


def wrapping(a: Array, b: Array) -> Array:
    """Return the product as NumPy sums int8: modulo 256."""
    return (a @ b).astype(np.int32)


def in_int16(a: Array, b: Array) -> Array:
    """Return the product with sums of 16 bits."""
    return (a.astype(np.int16) @ b.astype(np.int16)).astype(np.int32)


def in_float32(a: Array, b: Array) -> Array:
    """Return the product with sums in float32, which counts to 2^24."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.int32)
