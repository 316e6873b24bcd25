"""Wrong and imperfect answers to lesson 11."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from unrolled import ops
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


def with_128(x, limit):
    scale = np.where(limit > 0, limit / np.float32(128), 1).astype(np.float32)
    return np.clip(np.rint(x / scale.reshape(-1, *[1] * (x.ndim - 1))), -128, 127).astype(np.int8), scale


def asymmetric(x, limit):
    q, scale = integers.quantize_int8(x, limit)
    return np.where(q == -127, np.int8(-128), q), scale


def without_scale(x, limit):
    return integers.quantize_int8(x, limit)[0]


# prune


def of_two_axes(weight, fraction, updates):
    rows, columns = weight.shape
    return fewer.prune(weight, fraction, updates).reshape(rows, columns)


def pruned_once(weight, fraction, updates):
    return fewer.prune(weight, fraction, []) - sum(updates)


def pruned_at_the_end(weight, fraction, updates):
    return fewer.prune(weight - sum(updates), fraction, [])


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


def unsigned(a, b, k):
    differ = a[:, None] ^ b[None]
    if k % 64:
        differ[:, :, -1] &= np.uint64((1 << k % 64) - 1)
    return k - 2 * np.bitwise_count(differ).sum(axis=2)


def in_int64(a, b, k):
    return ops.precision.binary_matmul(a, b, k).astype(np.int64)


def with_the_tail(a, b, k):
    return (k - 2 * np.bitwise_count(a[:, None] ^ b[None]).sum(axis=2, dtype=np.int64)).astype(np.int32)


# straight_through


def of_the_values(grad, x, weight):
    return (grad @ weight) * (np.abs(x) <= 1), (grad.T @ x) * (np.abs(weight) <= 1)


def not_stopped(grad, x, weight):
    return grad @ ops.precision.binarize(weight), grad.T @ ops.precision.binarize(x)


MUTANTS = {
    "loss_scale_step": [
        Mutant(without_skipping, "so None is expected"),
        Mutant(of_the_sum, "no None is expected"),
        Mutant(lambda gradients, scale, good_steps, every: gradients, "return gradients, scale, good_steps"),
    ],
    "quantize_int8": [
        Mutant(with_128, "scale"),
        Mutant(asymmetric, "-127 to 127"),
        Mutant(without_scale, "return q, scale"),
    ],
    "int8_matmul": [
        Mutant(lambda a, b: (a @ b).astype(np.int32), "wrap round at 128"),
        Mutant(lambda a, b: (a.astype(np.int16) @ b.astype(np.int16)).astype(np.int32), "wrap round at 32,768"),
        Mutant(lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)).astype(np.int32), "2^24"),
    ],
    "prune": [
        Mutant(lambda weight, fraction, updates: fewer.prune(weight, fraction, []) - sum(updates), "grows again"),
        Mutant(
            lambda weight, fraction, updates: fewer.prune(weight - sum(updates), fraction, []),
            "before the first update",
        ),
        Mutant(of_two_axes, "too many values to unpack"),
    ],
    "binary_matmul": [
        Mutant(with_the_tail, "must not count"),
        Mutant(in_int64, "int32"),
        Mutant(unsigned, "below 0 unsigned numbers wrap round"),
    ],
    "straight_through": [
        Mutant(of_the_values, "has signs, too"),
        Mutant(not_stopped, "beyond 1 nothing passes"),
        Mutant(lambda grad, x, weight: fewer.straight_through(grad, x, weight)[::-1], "the gradient by x"),
    ],
}

HONEST = {"binary_matmul": [all_at_once, row_by_row_in_python_numbers]}
LOOP = {"binary_matmul": one_by_one}
