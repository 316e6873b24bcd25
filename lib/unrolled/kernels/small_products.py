"""A matrix product that a CUDA graph can hold: `matmul(a, b, out)`, one thread for each value, no cuBLAS.

CuPy refuses to call cuBLAS while a stream is capturing. For the small matrices of a small batch a plain kernel is quick
enough; large ones want tiles (lesson 08) or cuBLAS.
"""

from __future__ import annotations

import numpy as np

from unrolled.device import Array, array_module
from unrolled.kernels.kernel import TYPES, Arrays, Options, constants, per_value

SMALL_PRODUCT = r"""
    Index row = at / COLUMNS, column = at % COLUMNS, rows = size / COLUMNS;
    T sum = 0;
    #pragma unroll 8
    for (Index j = 0; j < INNER; j++) {
        sum += left[TURN_A ? j * rows + row : row * INNER + j] *
            right[TURN_B ? column * INNER + j : j * COLUMNS + column];
    }
    out[at] = sum;
"""


def _small_product(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (a, b), (out,) = inputs, outputs
    a, b = a.T if options["turn_a"] else a, b.T if options["turn_b"] else b
    sizes = (options["inner"], options["columns"])
    if a.ndim != 2 or b.shape != sizes or out.shape != (len(a), b.shape[1]) or a.shape[1] != len(b):
        raise ValueError(f"{a.shape} times {b.shape} into {out.shape} does not fit {dict(options)}")
    np.matmul(a, b, out=out)


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    return 2 * int(outputs[0].size) * int(options["inner"])


small_product = per_value("small_product", "left, right -> out", SMALL_PRODUCT, _small_product, _flops, is_product=True)
"""out (M, N) = a (M, K) @ b (K, N); `turn_a` and `turn_b` say that a lies as (K, M), b as (N, K)."""


def matmul(a: Array, b: Array, out: Array) -> Array:
    """Write a (M, K) @ b (K, N) into out (M, N) in one launch, and return it; x.T costs nothing. Never calls cuBLAS.

    float32 or float64, one dtype for all three; arrays of NumPy go through NumPy. Raises ValueError where shapes or
    dtypes do not fit, or an array does not lie in one piece (a copy would be made, which a graph must not do).
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or out.shape != (a.shape[0], b.shape[1]):
        raise ValueError(f"a is {a.shape}, b {b.shape}, out {out.shape}; expected (M, K), (K, N) and (M, N)")
    if not a.dtype == b.dtype == out.dtype or a.dtype.char not in TYPES:
        raise ValueError(f"a is {a.dtype}, b {b.dtype}, out {out.dtype}; expected float32 for all, or float64")
    if array_module(out) is np:
        return np.matmul(a, b, out=out)
    turns = {name: not x.flags.c_contiguous for name, x in (("a", a), ("b", b))}
    lying = {name: x.T if turns[name] else x for name, x in (("a", a), ("b", b))}
    for name, x in {**lying, "out": out}.items():
        if not x.flags.c_contiguous:
            raise ValueError(f"{name} does not lie in one piece: write it into an array of its own first")
    sizes = constants(inner=a.shape[1], columns=b.shape[1], turn_a=turns["a"], turn_b=turns["b"])
    small_product([lying["a"], lying["b"]], [out], sizes)
    return out
