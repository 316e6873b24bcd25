"""Products of int8 matrices, exact: NumPy's own int8 product wraps round at 127 and has no BLAS.

float32 holds all whole numbers up to 2^24. A product of two int8 is at most 2^14, so BLAS sums 1024 of them exactly.
"""

from __future__ import annotations

import numpy as np

from unrolled import kernels
from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_arrays
from unrolled.ops.precision.hosted import check_dtype

BLOCK = 2**24 // 2**14
STEP = 16  # cuBLAS takes int8 sides in multiples of 4, and is faster at 16
LONGEST = 2**31 // 2**14 - 1  # products that int32 surely holds


def int8_matmul(a: Array, b: Array) -> Array:
    """Return a (N, K) @ b (K, M) of int8 matrices in int32 (N, M), bit-exact; K of 0 gives zeros.

    On a GPU cuBLAS multiplies int8 with its own units.

    Raises ValueError for shapes that do not fit, and for K above 131,071, where int32 may overflow.
    """
    module = check_arrays(a=a, b=b)
    on_gpu = kernels.runs_on(module) and a.dtype == b.dtype == np.int8 and a.ndim == b.ndim == 2
    if not on_gpu:
        check_dtype("int8_matmul", "int8", a=a, b=b)
    k = a.shape[1]
    if k != b.shape[0]:
        raise ValueError(f"b has shape {b.shape} with K = {b.shape[0]}, but a has shape {a.shape} with K = {k}")
    if k > LONGEST:
        raise ValueError(f"K is {k}; expected at most {LONGEST}, or the int32 sums may overflow")
    if on_gpu:
        return _on_gpu(a, b)
    y = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for start in range(0, k, BLOCK):
        part = slice(start, start + BLOCK)
        y += (a[:, part].astype(np.float32) @ b[part].astype(np.float32)).astype(np.int32)
    return y


def _on_gpu(a: Array, b: Array) -> Array:
    """`int8_matmul` by cuBLAS: its int8 units read both along K, and sides that they do not take get zeros."""
    module, (n, k), m = array_module(a), a.shape, b.shape[1]
    if a.size * b.size == 0:
        return module.zeros((n, m), dtype="int32")
    left, right = _padded(a, _up(n), _up(k)), _padded(b.T, _up(m), _up(k))
    y = module.empty((_up(n), _up(m)), dtype="int32")
    kernels.product((left, right), (y,), kernels.TURN_B)
    return y if y.shape == (n, m) else module.ascontiguousarray(y[:n, :m])


def _up(size: int) -> int:
    return -(-size // STEP) * STEP


def _padded(x: Array, rows: int, columns: int) -> Array:
    """x with zeros to that size."""
    if x.shape == (rows, columns):
        return x
    y = array_module(x).zeros((rows, columns), dtype=x.dtype)
    y[: x.shape[0], : x.shape[1]] = x
    return y
