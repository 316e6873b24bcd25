"""Matrix products by cuBLAS, one for each image of a batch, in one call and without copies.

`cupy.matmul` copies what is transposed, and makes lists of pointers on the device where one matrix serves all products:
three launches more. cuBLAS needs neither: a transpose is a flag, and a matrix that serves all has a stride of 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from unrolled.kernels.kernel import Arrays, Constants, Kernel, Options, constants, per_value

TYPES = {"f": 0, "e": 2, "b": 3, "i": 10}  # CUDA_R_32F, _16F, _8I and _32I of library_types.h
COMPUTE, DEFAULT = {"f": 68, "i": 72}, -1  # CUBLAS_COMPUTE_32F, _32I and CUBLAS_GEMM_DEFAULT of cublas_api.h
MOST = 65_535  # products in one call: the largest third side of a grid of blocks


class Product(Kernel):
    """out (N, M, K) = a (N, M, J) @ b (N, J, K) in float32 or float64; TF32 stays off.

    float16 is multiplied by tensor cores and summed in float32, into out of float16 or float32. int8 is summed in
    int32, into out of int32; J and K are to be multiples of 4 there, as cuBLAS asks.

    a or b may be one matrix for all, without its first axis; without it in all three it is one product. `transpose_a`
    and `transpose_b` say that a is (N, J, M), b (N, K, J).
    """

    def on_cupy(self, inputs: Arrays, outputs: Arrays, constants: Constants, floats: Options) -> None:
        (a, b), (out,) = inputs, outputs
        m, k = out.shape[-2:]
        n = out.shape[0] if out.ndim == 3 else 1
        if not a.size or not b.size:
            out.fill(0)
            return
        multiply, handle, one, zero = _cublas(a.dtype.char, out.dtype.char)
        # cuBLAS counts down the columns. Row by row, its matrices are ours transposed: out.T = b.T @ a.T.
        (rows_a, columns_a), (rows_b, columns_b) = a.shape[-2:], b.shape[-2:]
        step_a, step_b = rows_a * columns_a if a.ndim == 3 else 0, rows_b * columns_b if b.ndim == 3 else 0
        turn_a, turn_b = constants["transpose_a"], constants["transpose_b"]
        inner = rows_a if turn_a else columns_a
        for first in range(0, n, MOST):
            at_a, at_b = a.data.ptr + first * step_a * a.itemsize, b.data.ptr + first * step_b * b.itemsize
            to = out.data.ptr + first * m * k * out.itemsize
            of_a, of_b = (at_a, columns_a, step_a), (at_b, columns_b, step_b)
            multiply(handle(), turn_b, turn_a, k, m, inner, one, *of_b, *of_a, zero, to, k, m * k, min(MOST, n - first))


@cache
def _cublas(dtype: str, out: str) -> tuple[Any, Any, int, int]:
    """(the function for these dtypes, what gives the handle, addresses of 1 and 0 in host memory)."""
    from cupy.cuda import cublas, get_cublas_handle

    sums = {"e": "f", "b": "i"}.get(dtype, dtype)
    functions = {"f": cublas.sgemmStridedBatched, "d": cublas.dgemmStridedBatched}
    function = functions.get(dtype) or _mixed(cublas.gemmStridedBatchedEx, TYPES[dtype], TYPES[out], COMPUTE[sums])
    return function, get_cublas_handle, _number(1, sums).ctypes.data, _number(0, sums).ctypes.data


def _mixed(multiply: Any, kind: int, out: int, compute: int) -> Any:
    """A function with the arguments of `sgemmStridedBatched` that multiplies one type into another."""

    def call(handle: int, *rest: int) -> None:
        *sizes, one, b, ldb, step_b, a, lda, step_a, zero, to, ldc, step_c, count = rest
        ends = (zero, to, out, ldc, step_c, count, compute, DEFAULT)
        multiply(handle, *sizes, one, b, kind, ldb, step_b, a, kind, lda, step_a, *ends)

    return call


@cache
def _number(value: int, dtype: str) -> Any:
    """Kept for good: cuBLAS reads it at its address."""
    return np.array(value, dtype=dtype)


def _product(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (a, b), (out,) = inputs, outputs
    a = a.swapaxes(-1, -2) if options["transpose_a"] else a
    b = b.swapaxes(-1, -2) if options["transpose_b"] else b
    if a.dtype.char in "eb":
        sums = np.float32 if a.dtype.char == "e" else np.int32
        out[...] = np.matmul(a.astype(sums), b.astype(sums))
        return
    np.matmul(a, b, out=out)


def _flops(inputs: Arrays, outputs: Arrays, options: Options) -> int:
    return 2 * int(outputs[0].size) * int(inputs[0].shape[-2 if options["transpose_a"] else -1])


product = Product("product", "", _product, _flops, is_product=True)
PLAIN = constants(transpose_a=False, transpose_b=False)
TURN_A = constants(transpose_a=True, transpose_b=False)
TURN_B = constants(transpose_a=False, transpose_b=True)

FILTERS = r"""
    int k = at % (K + 1);
    Index o = at / (K + 1);
    rows[at] = k < K ? weight[o * K + k] : bias[o];
"""


def _filters(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (weight, bias), (rows,) = inputs, outputs
    rows[:, :-1] = weight.reshape(len(weight), -1)
    rows[:, -1] = bias


filters = per_value("filters", "weight, bias -> rows", FILTERS, _filters, lambda *_: 0)
"""Each filter of weight (O, K) as a row, its bias (O,) last: (O, K + 1)."""
