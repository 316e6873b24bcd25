"""Products of int8 matrices, exact: NumPy's own int8 product wraps round at 127 and has no BLAS.

float32 holds all whole numbers up to 2^24. A product of two int8 is at most 2^14, so BLAS sums 1024 of them exactly.
"""

from __future__ import annotations

import numpy as np

from unrolled.device import Array
from unrolled.ops.precision.hosted import check_dtype

BLOCK = 2**24 // 2**14
LONGEST = 2**31 // 2**14 - 1  # products that int32 surely holds


def int8_matmul(a: Array, b: Array) -> Array:
    """Return a (N, K) @ b (K, M) of int8 matrices in int32 (N, M), bit-exact; K of 0 gives zeros.

    Raises ValueError for shapes that do not fit, and for K above 131,071, where int32 may overflow.
    """
    check_dtype("int8_matmul", "int8", a=a, b=b)
    k = a.shape[1]
    if k != b.shape[0]:
        raise ValueError(f"b has shape {b.shape} with K = {b.shape[0]}, but a has shape {a.shape} with K = {k}")
    if k > LONGEST:
        raise ValueError(f"K is {k}; expected at most {LONGEST}, or the int32 sums may overflow")
    y = np.zeros((a.shape[0], b.shape[1]), np.int32)
    for start in range(0, k, BLOCK):
        part = slice(start, start + BLOCK)
        y += (a[:, part].astype(np.float32) @ b[part].astype(np.float32)).astype(np.int32)
    return y


def int8_matmul_in_float64(a: Array, b: Array) -> Array:
    """Compute `int8_matmul` in one float64 product: what blocks of float32 replace."""
    check_dtype("int8_matmul_in_float64", "int8", a=a, b=b)
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32)
