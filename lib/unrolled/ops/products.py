"""Matrix products into arrays that are there already: with cuBLAS on a GPU, where a transpose is a flag and no copy."""

from __future__ import annotations

from unrolled import kernels
from unrolled.device import Array, array_module


def matmul(a: Array, weight: Array, out: Array | None = None) -> Array:
    """Return a (..., N, K) @ weight (..., M, K) transposed, in `out` if given."""
    return _product(a, weight, out, kernels.TURN_B)


def plain_matmul(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a (..., N, K) @ b (..., K, M), in `out` if given."""
    return _product(a, b, out, kernels.PLAIN)


def matmul_of_columns(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return a (K, N) transposed @ b (K, M), in `out` if given."""
    return _product(a, b, out, kernels.TURN_A)


def _product(a: Array, b: Array, out: Array | None, layout: kernels.Constants) -> Array:
    """On a GPU nothing is copied to turn a matrix: cuBLAS reads it in either order."""
    module, turn_a, turn_b = array_module(a), layout["transpose_a"], layout["transpose_b"]
    if kernels.take(a, b):
        if out is None:
            rows, columns = a.shape[-1 if turn_a else -2], b.shape[-2 if turn_b else -1]
            out = module.empty((*a.shape[:-2], rows, columns), dtype=a.dtype)
        kernels.product((a, b), (out,), layout)
        return out
    a, b = _turned(a) if turn_a else a, _turned(b) if turn_b else b
    return module.matmul(a, b) if out is None else module.matmul(a, b, out=out)


def _turned(a: Array) -> Array:
    """A view with the last two axes exchanged."""
    return a.transpose(*range(a.ndim - 2), -1, -2)
