"""A matrix product without the library's: entry by entry, and row by row."""

from __future__ import annotations

from unrolled.device import Array, array_module
from unrolled.ops.arguments import as_floats, check_arrays, check_axes


def matmul_loops(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (K, M), from three plain loops: (N, M). float32 in, float32 out.

    Integers count as float32. Raises ValueError for shapes that do not fit.
    """
    a, b = _arguments(a, b)
    y = array_module(a).empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for row in range(a.shape[0]):
        for column in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total = total + a[row, k] * b[k, column]
            y[row, column] = total
    return y


def matmul_rows(a: Array, b: Array) -> Array:
    """Return a (N, K) times b (K, M), one row of the result at a time: each row is independent of the others."""
    a, b = _arguments(a, b)
    y = array_module(a).empty((a.shape[0], b.shape[1]), dtype=a.dtype)
    for row in range(a.shape[0]):
        y[row] = a[row] @ b
    return y


def _arguments(a: Array, b: Array) -> tuple[Array, ...]:
    check_arrays(a=a, b=b)
    check_axes("a", a, "N, K")
    check_axes("b", b, "K, M")
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"b has shape {b.shape} with K = {b.shape[0]}, but a has shape {a.shape} with K = {a.shape[1]}"
        )
    return as_floats(a, b)
