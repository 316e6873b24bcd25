"""Wrong and imperfect answers to the exercises of lesson 01."""

from fractions import Fraction

import numpy as np

from . import Mutant, result_of, solution


def merge_with(*changes):
    return solution("01_matrix_parallelism", "merge", *changes)


def rows_in_a_list(a, b):
    return [row @ b for row in a]


def rows_by_einsum(a, b):
    return np.einsum("ik,kj->ij", a, b)


def columns_instead(a, b):
    y = np.empty((len(a), b.shape[1]), a.dtype)
    for j in range(b.shape[1]):
        y[:, j] = a @ b[:, j]
    return y


def rows_dot_by_dot(a, b):
    y = np.empty((len(a), b.shape[1]), a.dtype)
    for i in range(len(a)):
        for j in range(b.shape[1]):
            y[i, j] = a[i] @ b[:, j]
    return y


def lines_as_a_fraction(shape, strides, axis):
    return shape[axis] * strides[axis] / 64


def affine_in_chunks(x, weight, bias):
    return np.concatenate([x[i : i + 500] @ weight.T + bias for i in range(0, len(x), 500)])


def affine_turned_twice(x, weight, bias):
    return (weight @ x.T + bias[:, None]).T


def affine_sample_by_sample(x, weight, bias):
    return np.stack([weight @ sample + bias for sample in x])


# Right in other styles


def merge_from_copies(a, b):
    a, b, merged = list(a), list(b), []
    while a or b:
        merged.append((a if not b or (a and a[0] < b[0]) else b).pop(0))
    return merged


def merge_from_the_back(a, b):
    merged, i, j = [None] * (len(a) + len(b)), len(a) - 1, len(b) - 1
    for place in reversed(range(len(merged))):
        if j < 0 or (i >= 0 and a[i] > b[j]):
            merged[place], i = a[i], i - 1
        else:
            merged[place], j = b[j], j - 1
    return merged


def merge_by_inserting(a, b):
    merged, at = a.copy(), 0
    for item in b:
        while at < len(merged) and merged[at] < item:
            at += 1
        merged.insert(at, item)
    return merged


def merge_recursively(a, b):
    if not (a and b):
        return [*a, *b]
    return [a[0], *merge_recursively(a[1:], b)] if a[0] <= b[0] else [b[0], *merge_recursively(a, b[1:])]


def lines_walked(shape, strides, axis):
    lines, last, address = 0, -1, 0
    for _ in range(shape[axis]):
        lines += address // 64 != last
        last, address = address // 64, address + strides[axis]
    return lines


def speedup_exactly(fraction, factor):
    fraction, factor = Fraction(fraction), Fraction(factor)
    return 1 / (1 - fraction + fraction / factor)


MUTANTS = {
    "merge": [Mutant(merge_with(("merged + a[i:] + b[j:]", "[*merged, b]")), "append adds it as one item")],
    "matmul_rows": [Mutant(rows_in_a_list, "np.stack makes one of a list of arrays")],
    "lines_touched": [Mutant(lines_as_a_fraction, "expected the whole number")],
    "batch_affine": [
        Mutant(lambda x, weight, bias: x @ weight + bias, "mismatch in its core dimension"),
        Mutant(result_of("batch_affine", list), "return them as an array"),
    ],
}

HONEST = {"matmul_rows": [rows_by_einsum, columns_instead], "batch_affine": [affine_in_chunks, affine_turned_twice]}

LOOP = {"matmul_rows": rows_dot_by_dot, "batch_affine": affine_sample_by_sample}

RIGHT = {
    "merge": [merge_from_copies, merge_from_the_back, merge_by_inserting, merge_recursively],
    "matmul_rows": [
        lambda a, b: (a[:, :, None] * b[None]).sum(axis=1),
    ],
    "lines_touched": [
        lines_walked,
        lambda shape, strides, axis: np.unique(np.arange(shape[axis]) * strides[axis] // 64).size,
        lambda shape, strides, axis: len(dict.fromkeys((i * strides[axis]) >> 6 for i in range(shape[axis]))),
        lambda shape, strides, axis: float(min(shape[axis], (shape[axis] - 1) * strides[axis] // 64 + 1)),
    ],
    "batch_affine": [lambda x, weight, bias: np.einsum("nd,md->nm", x, weight) + bias],
    "amdahl_speedup": [
        speedup_exactly,
        lambda fraction, factor: 100.0 / (100.0 * (1 - fraction) + 100.0 * fraction / factor),
        lambda fraction, factor: np.float64(1.0) / (1 - (fraction - fraction / factor)),
        lambda fraction, factor: sum([1 - fraction, fraction * factor**-1.0]) ** -1,
    ],
}
