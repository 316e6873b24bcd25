"""Wrong and imperfect answers to lesson 11."""

from __future__ import annotations

from operator import itemgetter

import numpy as np

from answers import Mutant, result_of
from unrolled.checks.exercises.l11_smaller_numbers import fewer, integers

# loss_scale_step


def without_skipping(gradients, scale, good_steps, every):
    found = gradients.astype(np.float32) / np.float32(scale)
    return (found, scale * 2, 0) if good_steps + 1 == every else (found, scale, good_steps + 1)


def of_the_sum(gradients, scale, good_steps, every):
    with np.errstate(over="ignore"):
        if not np.isfinite(gradients.sum()):
            return None, scale / 2, 0
    return without_skipping(gradients, scale, good_steps, every)


# quantize_int8 and int8_matmul


def asymmetric(x, limit):
    q, scale = integers.quantize_int8(x, limit)
    return np.where(q == -127, np.int8(-128), q), scale


# prune


def for_two_axes_alone(weight, fraction, updates):
    rows, columns = weight.shape
    return fewer.prune(weight, fraction, updates).reshape(rows, columns)


# binary_matmul


def one_by_one(a, b, k):
    """A loop over pairs of rows, and over the words of each."""
    y = np.empty((len(a), len(b)), np.int32)
    words = np.full(a.shape[1], 2**64 - 1, np.uint64)
    if k % 64:
        words[-1] = (1 << k % 64) - 1
    for i in range(len(a)):
        for j in range(len(b)):
            y[i, j] = k - 2 * sum(int(word).bit_count() for word in (a[i] ^ b[j]) & words)
    return y


def all_at_once(a, b, k):
    """Honest: one large array of all pairs."""
    differ = a[:, None] ^ b[None]
    if k % 64:
        differ[:, :, -1] &= np.uint64((1 << k % 64) - 1)
    return (k - 2 * np.bitwise_count(differ).sum(axis=2, dtype=np.int64)).astype(np.int32)


def row_by_row_in_python_numbers(a, b, k):
    """Honest: a mask for each row, sums of 64 bits, and a list that is joined at the end."""
    last = np.uint64((1 << k % 64) - 1) if k % 64 else np.uint64(2**64 - 1)
    rows = []
    for row in a:
        differ = np.bitwise_xor(row[None], b)
        differ[:, -1] = differ[:, -1] & last
        rows.append(k - 2 * np.bitwise_count(differ).astype(np.int64).sum(axis=1))
    return np.array(rows).astype(np.int32).reshape(len(a), len(b))


MUTANTS = {
    "loss_scale_step": [
        Mutant(without_skipping, "so None is expected"),
        Mutant(of_the_sum, "no None is expected"),
        Mutant(lambda gradients, scale, good_steps, every: gradients, "return gradients, scale, good_steps"),
    ],
    "quantize_int8": [
        Mutant(asymmetric, "-127 to 127"),
        Mutant(result_of("quantize_int8", itemgetter(0)), "return q, scale"),
    ],
    "prune": [
        Mutant(for_two_axes_alone, "too many values to unpack"),
    ],
    "binary_matmul": [
        Mutant(result_of("binary_matmul", np.int64), "dtype is int64, expected int32"),
    ],
    "straight_through": [
        Mutant(result_of("straight_through", lambda grads: grads[::-1]), "the gradient by x"),
    ],
}

HONEST = {"binary_matmul": [all_at_once, row_by_row_in_python_numbers]}
LOOP = {"binary_matmul": one_by_one}
