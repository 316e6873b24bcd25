"""Whole numbers of 8 bits: values and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Draw, Inputs, draw_all
from unrolled.device import Array

MOST = 127
EDGE = 1e-3  # of a step: who rounds a tie the other way is as near


def quantize_int8(x: Array, limit: Array) -> tuple[Array, Array]:
    """Return x (C, ...) in int8, and the scale (C,) of each channel: limit / 127, or 1 where limit is 0."""
    scale = np.where(limit > 0, limit / np.float32(MOST), np.float32(1)).astype(np.float32)
    return np.clip(np.rint(in_steps(x, scale)), -MOST, MOST).astype(np.int8), scale


def in_steps(x: Array, scale: Array) -> Array:
    """Return x (C, ...) divided by the scale (C,) of each channel."""
    return np.asarray(x / scale.reshape(-1, *[1] * (x.ndim - 1)))


def judge(got: Any, expected: tuple[Array, Array], inputs: Inputs) -> Mismatch | None:
    """Judge scales by their values, and whole numbers by how near they come."""
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return Mismatch.of(f"a {type(got).__name__} came back: return q, scale")
    if found := first_mismatch([("scale", got[1], expected[1])], 1e-6):
        return found
    (q, _), x = got, inputs["x"]
    found = mismatch(q, expected[0], 0)
    if not isinstance(q, np.ndarray) or q.dtype != np.int8 or q.shape != x.shape:
        return found
    if (q == -128).any():
        return Mismatch.of("q: holds -128, and the range is symmetric: -127 to 127")
    channels = (-1, *[1] * (x.ndim - 1))
    scale, most = expected[1].reshape(channels), inputs["limit"].reshape(channels)
    off = np.abs(q * scale - np.clip(x, -most, most)) / scale
    if (off > 0.5 + EDGE).any():
        lines = found.lines if found else ()
        return Mismatch.of(f"q * scale is up to {off.max():.3g} steps from x; half a step is possible", *lines)
    return None


def any_values(rng: np.random.Generator) -> Inputs:
    """Draw values of any size, and limits at the largest magnitudes, below or above. Now and then a channel is 0."""
    x = rng.standard_normal([edge_size(rng, 4) for _ in range(rng.integers(1, 5))])
    rows = x.reshape(len(x), -1)
    rows *= 10.0 ** rng.integers(-6, 6) * rng.uniform(0.1, 10, (len(x), 1))
    rows[rng.random(len(x)) < 0.2] = 0
    x = x.astype(np.float32)
    most = np.abs(x.reshape(len(x), -1)).max(axis=1)
    return {"x": x, "limit": most * rng.choice(np.array([0.5, 1, 1, 1.5], np.float32))}


def clipped(rng: np.random.Generator) -> Inputs:
    """Draw filters (3, 5, 2, 4) of which some values lie beyond the limit."""
    x = (rng.standard_normal((3, 5, 2, 4)) * np.array([1, 5, 0.1])[:, None, None, None]).astype(np.float32)
    return {"x": x, "limit": np.percentile(np.abs(x), 90, axis=(1, 2, 3)).astype(np.float32)}


QUANTIZE_MISTAKES = (
    result(
        "what lies beyond the limit wraps round: clip before you make int8 of it",
        lambda y, x: (np.rint(in_steps(x, y[1])).astype(np.int64).astype(np.int8), y[1]),
    ),
    result(
        "the numbers are cut off: round to the nearest",
        lambda y, x: (np.clip(np.trunc(in_steps(x, y[1])), -MOST, MOST).astype(np.int8), y[1]),
    ),
    result("the scale is 1 where limit is 0", lambda y, limit: (y[0], limit / np.float32(MOST))),
    given("127 stands for the limit, and not 128: limit / 127", limit=lambda limit: limit * np.float32(127 / 128)),
    given("each channel has a scale of its own", limit=lambda limit: np.full_like(limit, limit.max())),
    given(
        "the scale follows from limit, and not from the largest magnitude in x",
        limit=lambda x: np.abs(x).reshape(len(x), -1).max(axis=1),
    ),
)


def factors(n: int, k: int, m: int, least: int = -MOST) -> Inputs:
    """Return draws of matrices (N, K) and (K, M) of int8 values."""

    def whole(*shape: int) -> Draw:
        return Draw(lambda rng: rng.integers(least, 128, shape).astype(np.int8))

    return {"a": whole(n, k), "b": whole(k, m)}


def any_factors(rng: np.random.Generator) -> Inputs:
    """Draw matrices of any sizes, of any values or of the largest."""
    n, m = edge_size(rng, 6), edge_size(rng, 6)
    return draw_all(factors(n, edge_size(rng, 90), m, least=int(rng.choice([-128, 127]))), rng)


def _multiplied_in(dtype: type, says: str) -> Mistake:
    """Return the mistake of a product of factors in this dtype."""
    return Mistake(says, lambda a, b: (a.astype(dtype) @ b.astype(dtype)).astype(np.int32))


PRODUCT_MISTAKES = (
    Mistake(
        "products of int8 wrap round at 128, before they are summed: give the factors a type with room for them",
        lambda a, b: (a[:, :, None] * b).sum(axis=1, dtype=np.int32),
    ),
    _multiplied_in(np.int8, "sums of int8 wrap round at 128: NumPy keeps the type of the factors"),
    _multiplied_in(np.int16, "sums of 16 bits wrap round at 32,768"),
    _multiplied_in(np.float32, "float32 counts to 2^24 exactly, and no further"),
)
