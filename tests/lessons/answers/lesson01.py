"""Wrong and imperfect answers to the exercises of lesson 01."""

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


def lines_as_a_set(shape, strides, axis):
    return {i * strides[axis] // 64 for i in range(shape[axis])}


def lines_as_a_fraction(shape, strides, axis):
    return shape[axis] * strides[axis] / 64


def affine_in_chunks(x, weight, bias):
    return np.concatenate([x[i : i + 500] @ weight.T + bias for i in range(0, len(x), 500)])


def affine_turned_twice(x, weight, bias):
    return (weight @ x.T + bias[:, None]).T


def affine_sample_by_sample(x, weight, bias):
    return np.stack([weight @ sample + bias for sample in x])


MUTANTS = {
    "merge": [
        Mutant(merge_with(("i < len(a) and j < len(b)", "len(merged) < len(a) + len(b)")), "IndexError"),
        Mutant(merge_with(("merged + a[i:] + b[j:]", "[*merged, b]")), "append adds it as one item"),
    ],
    "matmul_rows": [
        Mutant(rows_in_a_list, "np.stack makes one of a list of arrays"),
        Mutant(lambda a, b: a * b, "could not be broadcast together"),
    ],
    "lines_touched": [
        Mutant(lines_as_a_set, "expected a number"),
        Mutant(lines_as_a_fraction, "expected the whole number"),
    ],
    "batch_affine": [
        Mutant(lambda x, weight, bias: x @ weight + bias, "mismatch in its core dimension"),
        Mutant(result_of("batch_affine", list), "return them as an array"),
    ],
    "amdahl_speedup": [
        Mutant(result_of("amdahl_speedup", lambda speedup: 0 if speedup == 1 else speedup), "got 0, expected 1"),
    ],
}

HONEST = {
    "matmul_rows": [rows_by_einsum, columns_instead],
    "batch_affine": [affine_in_chunks, affine_turned_twice],
}

LOOP = {
    "matmul_rows": rows_dot_by_dot,
    "batch_affine": affine_sample_by_sample,
}
