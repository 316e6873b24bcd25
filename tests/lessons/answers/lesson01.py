"""Wrong and imperfect answers to the exercises of lesson 01."""

import numpy as np

from . import Mutant


def merge_until_one_is_empty(a, b):
    merged, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged


def merge_in_a_tuple(a, b):
    return tuple(sorted(a + b))


def merge_compares_without_looking(a, b):
    merged, i, j = [], 0, 0
    while len(merged) < len(a) + len(b):
        if a[i] <= b[j]:
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged


def rows_in_float64(a, b):
    y = np.zeros((len(a), b.shape[1]))
    for i in range(len(a)):
        y[i] = a[i] @ b
    return y


def rows_in_a_list(a, b):
    return [row @ b for row in a]


def rows_entry_by_entry(a, b):
    return a * b


def rows_turned(a, b):
    return (a @ b).T


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


def lines_as_numbers(shape, strides, axis):
    return shape[axis]


def lines_as_a_set(shape, strides, axis):
    return {i * strides[axis] // 64 for i in range(shape[axis])}


def lines_as_a_fraction(shape, strides, axis):
    return shape[axis] * strides[axis] / 64


def affine_not_turned(x, weight, bias):
    return x @ weight + bias


def affine_in_float64(x, weight, bias):
    return x.astype(float) @ weight.T + bias


def affine_list(x, weight, bias):
    return [weight @ sample + bias for sample in x]


def affine_in_chunks(x, weight, bias):
    return np.concatenate([x[i : i + 500] @ weight.T + bias for i in range(0, len(x), 500)])


def affine_turned_twice(x, weight, bias):
    return (weight @ x.T + bias[:, None]).T


def affine_sample_by_sample(x, weight, bias):
    return np.stack([weight @ sample + bias for sample in x])


def amdahl_except_for_none_of_it(fraction, factor):
    return 1 / ((1 - fraction) + fraction / factor) if fraction else 0


def amdahl_without_return(fraction, factor):
    1 / ((1 - fraction) + fraction / factor)


MUTANTS = {
    "merge": [
        Mutant(merge_in_a_tuple, "the values are right: return them as a list"),
        Mutant(merge_compares_without_looking, "IndexError"),
        Mutant(lambda a, b: [*merge_until_one_is_empty(a, b), b], "append adds it as one item"),
    ],
    "matmul_rows": [
        Mutant(rows_in_float64, "dtype is float64, expected float32"),
        Mutant(rows_in_a_list, "np.stack makes one of a list of arrays"),
        Mutant(rows_entry_by_entry, "could not be broadcast together"),
    ],
    "lines_touched": [
        Mutant(lines_as_numbers, "neighbours can share a line"),
        Mutant(lines_as_a_set, "expected a number"),
        Mutant(lines_as_a_fraction, "expected the whole number"),
    ],
    "batch_affine": [
        Mutant(affine_not_turned, "mismatch in its core dimension"),
        Mutant(affine_in_float64, "dtype is float64, expected float32"),
        Mutant(affine_list, "return them as an array"),
    ],
    "amdahl_speedup": [
        Mutant(lambda fraction, factor: (1 - fraction) + fraction / factor, "1 divided by it"),
        Mutant(amdahl_except_for_none_of_it, "got 0, expected 1"),
        Mutant(amdahl_without_return, "is the return statement missing"),
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
