"""One bit a value: signs, 64 in a word, multiplied by xor and popcount (Rastegari and others, 2016, arXiv:1603.05279).

On a CPU this saves memory more than time: NumPy's popcount alone, in the cache and without xor or sums, takes about
half of the time of BLAS's float32 product (`records.precision()`, rows "binary, bitwise_count alone"), so NumPy cannot
be more than about twice as fast as BLAS, whatever the blocks; one pass that does all three would need C.

A bit is 1 where the value is above 0, so what a ReLU stopped counts as -1.
"""

from __future__ import annotations

import numpy as np

from unrolled.device import Array
from unrolled.ops.arguments import check_shape, check_whole
from unrolled.ops.precision.hosted import check_dtype, check_host

WORD = 64
ROWS, COLUMNS = 8, 4096  # a block of words, 256 KiB: long rows, since NumPy pays for each row that it begins


def binarize(x: Array) -> Array:
    """Return 1 where x is above 0 and -1 elsewhere, in float32."""
    check_host("binarize", x=x)
    return np.where(x > 0, np.float32(1), np.float32(-1))


def straight_through(grad: Array, x: Array) -> Array:
    """Return the gradient by x from that by its sign: grad where -1 <= x <= 1, else 0 (Bengio and others, 2013).

    The true gradient of a sign is 0 nearly everywhere, and nothing would learn.
    """
    check_host("straight_through", grad=grad, x=x)
    check_shape("grad", grad, x.shape, f"x {x.shape}")
    return grad * (np.abs(x) <= 1)


def pack_signs(x: Array) -> Array:
    """Return the signs of x (N, K) as uint64 (N, ceil(K / 64)); the bits after the last value are 0."""
    check_host("pack_signs", x=x)
    if x.ndim != 2:
        raise ValueError(f"x has shape {x.shape}; expected 2 axes (N, K)")
    words = -(-x.shape[1] // WORD)
    octets = np.zeros((len(x), words * WORD // 8), np.uint8)
    bits = np.packbits(x > 0, axis=1, bitorder="little")
    octets[:, : bits.shape[1]] = bits
    return octets.view(np.uint64)


def binary_matmul(a: Array, b: Array, k: int) -> Array:
    """Return the products of signs a (N, W) and b (M, W), packed, with k values in a row: (N, M) int32, exact.

    Where two signs agree their product is 1, else -1: k - 2 popcount(a xor b). Bits from the k-th on do not count.
    Raises ValueError unless W words hold k values.
    """
    check_dtype("binary_matmul", "uint64", a=a, b=b)
    check_whole("k", k, 0)
    words = -(-k // WORD)
    for name, x in (("a", a), ("b", b)):
        check_shape(name, x, (len(x), words), f"k = {k} values in words of {WORD} bits")
    a, b = _words_first(a, k), _words_first(b, k)
    y = np.empty((a.shape[1], b.shape[1]), np.int32)
    for top in range(0, a.shape[1], ROWS):
        for left in range(0, b.shape[1], COLUMNS):
            rows, columns = slice(top, top + ROWS), slice(left, left + COLUMNS)
            y[rows, columns] = _different(a[:, rows], b[:, columns])
    return k - 2 * y


def _different(a: Array, b: Array) -> Array:
    """How many bits differ between columns of a (W, R) and b (W, C): (R, C). Counts of three words fit into a byte."""
    shape = a.shape[1], b.shape[1]
    total = np.zeros(shape, np.int32)
    both, few, count = np.empty(shape, np.uint64), np.zeros(shape, np.uint8), np.empty(shape, np.uint8)
    for word in range(len(a)):
        np.bitwise_xor(a[word][:, None], b[word], out=both)
        np.bitwise_count(both, out=count)
        few += count
        if word % 3 == 2 or word == len(a) - 1:
            total += few
            few[...] = 0
    return total


def _words_first(x: Array, k: int) -> Array:
    """x (N, W) as (W, N), with the bits from the k-th on set to 0: a copy, also of a single row."""
    turned = x.T.copy()
    if k % WORD:
        turned[-1] &= np.uint64((1 << k % WORD) - 1)
    return turned
