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


def merge_forgets_the_rest_of_a(a, b):
    merged, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged + b[j:]


def merge_drops_equals(a, b):
    merged, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] < b[j]:
            merged.append(a[i])
            i += 1
        elif b[j] < a[i]:
            merged.append(b[j])
            j += 1
        else:
            merged.append(a[i])
            i += 1
            j += 1
    return merged + a[i:] + b[j:]


def merge_with_a_sentinel(a, b):
    a, b, merged, i, j = [*a, 10**9], [*b, 10**9], [], 0, 0
    while len(merged) < len(a) + len(b) - 2:
        if a[i] <= b[j]:
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged


def merge_without_zeros(a, b):
    return [value for value in sorted(a + b) if value]


def merge_in_a_tuple(a, b):
    return tuple(sorted(a + b))


def merge_by_popping(a, b):
    merged = []
    while a and b:
        merged.append(a.pop(0) if a[0] <= b[0] else b.pop(0))
    return merged + a + b


def merge_concatenated(a, b):
    return a + b


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


def merge_larger_first(a, b):
    return sorted(a + b, reverse=True)


def merge_as_a_set(a, b):
    return sorted(set(a) | set(b))


def rows_in_float64(a, b):
    y = np.zeros((len(a), b.shape[1]))
    for i in range(len(a)):
        y[i] = a[i] @ b
    return y


def rows_in_a_list(a, b):
    return [row @ b for row in a]


def rows_returns_too_early(a, b):
    for i in range(len(a)):
        return a[i] @ b
    return None


def rows_keeps_the_last(a, b):
    for i in range(len(a)):
        y = a[i] @ b
    return y


def rows_of_both(a, b):
    y = np.zeros((len(a), b.shape[1]), a.dtype)
    for i in range(len(a)):
        for j in range(b.shape[1]):
            y[i, j] = a[i] @ b.T[i]
    return y


def rows_entry_by_entry(a, b):
    return a * b


def rows_turned(a, b):
    return (a @ b).T


def rows_end_to_end(a, b):
    return np.concatenate([row @ b for row in a])


def rows_misses_the_last(a, b):
    y = np.zeros((len(a), b.shape[1]), a.dtype)
    for i in range(len(a) - 1):
        y[i] = a[i] @ b
    return y


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


def lines_of_the_other_axis(shape, strides, axis):
    return len({i * strides[1 - axis] // 64 for i in range(shape[1 - axis])})


def lines_of_16(shape, strides, axis):
    return len({i * strides[axis] // 16 for i in range(shape[axis])})


def lines_from_end_to_end(shape, strides, axis):
    return (shape[axis] - 1) * strides[axis] // 64 + 1


def lines_rounded_up(shape, strides, axis):
    return min(shape[axis], -(-shape[axis] * strides[axis] // 64))


def lines_of_all_bytes(shape, strides, axis):
    return -(-shape[axis] * strides[axis] // 64)


def lines_rounded_down(shape, strides, axis):
    return shape[axis] * strides[axis] // 64


def lines_of_the_array(shape, strides, axis):
    return -(-int(np.prod(shape)) * 4 // 64)


def lines_as_a_set(shape, strides, axis):
    return {i * strides[axis] // 64 for i in range(shape[axis])}


def lines_as_a_fraction(shape, strides, axis):
    return shape[axis] * strides[axis] / 64


def affine_without_bias(x, weight, bias):
    return x @ weight.T


def affine_bias_down(x, weight, bias):
    return x @ weight.T + bias.reshape(-1, 1)


def affine_not_turned(x, weight, bias):
    return x @ weight + bias


def affine_turned_result(x, weight, bias):
    return (x @ weight.T + bias).T


def affine_in_float64(x, weight, bias):
    return x.astype(float) @ weight.T + bias


def affine_adds_in_place(x, weight, bias):
    x += 0.5
    return x @ weight.T + bias


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


def merge_in_pairs(a, b):
    merged, i = [], 0
    while i < len(a) and i < len(b):
        merged += [a[i], b[i]] if a[i] <= b[i] else [b[i], a[i]]
        i += 1
    return merged + a[i:] + b[i:]


def rows_added_up(a, b):
    y = np.zeros((len(a), b.shape[1]), a.dtype)
    for row in a:
        y += row @ b
    return y


MUTANTS = {
    "merge": [
        Mutant(merge_until_one_is_empty, "your loop ends when one list runs out"),
        Mutant(merge_forgets_the_rest_of_a, "what is left of a when b runs out"),
        Mutant(merge_drops_equals, "of two equal front items one is lost"),
        Mutant(merge_with_a_sentinel, "got 1e+09, expected 1e+12"),
        Mutant(merge_without_zeros, "expected 8 items, got 6"),
        Mutant(merge_in_a_tuple, "the values are right: return them as a list"),
        Mutant(merge_by_popping, "changed its input a"),
        Mutant(merge_concatenated, "the second list stands behind the first"),
        Mutant(merge_compares_without_looking, "IndexError"),
        Mutant(merge_larger_first, "the order is falling"),
        Mutant(merge_in_pairs, "one position cannot serve both lists"),
        Mutant(lambda a, b: merge_until_one_is_empty(a, b) + a + b, "you append both lists as a whole"),
        Mutant(lambda a, b: [*merge_until_one_is_empty(a, b), b], "append adds it as one item"),
        Mutant(merge_as_a_set, "kept only once"),
    ],
    "matmul_rows": [
        Mutant(rows_in_float64, "dtype is float64, expected float32"),
        Mutant(rows_in_a_list, "np.stack makes one of a list of arrays"),
        Mutant(rows_returns_too_early, "does `return` stand inside the loop?"),
        Mutant(rows_keeps_the_last, "this is only the last row"),
        Mutant(rows_of_both, "values differ"),
        Mutant(rows_entry_by_entry, "could not be broadcast together"),
        Mutant(rows_turned, "its row i is made of row i of a"),
        Mutant(rows_end_to_end, "right and in order, only the shape is not"),
        Mutant(rows_misses_the_last, "does the loop end one too early"),
        Mutant(rows_added_up, "every row is the sum of all"),
    ],
    "lines_touched": [
        Mutant(lines_as_numbers, "neighbours can share a line"),
        Mutant(lines_of_the_other_axis, "a walk along the other axis"),
        Mutant(
            lambda shape, strides, axis: len({i * strides[axis] % 64 for i in range(shape[axis])}), "% 64 is the place"
        ),
        Mutant(lambda shape, strides, axis: len({i // 64 for i in range(shape[axis])}), "the stride is missing"),
        Mutant(lines_of_16, "strides are bytes already"),
        Mutant(lines_from_end_to_end, "a long step leaves lines out"),
        Mutant(lines_of_all_bytes, "a long step leaves lines out"),
        Mutant(lines_rounded_up, "not one step behind it"),
        Mutant(lines_rounded_down, "a line that is only partly used is missing"),
        Mutant(lines_of_the_array, "these are the lines of the whole array"),
        Mutant(lines_as_a_set, "expected a number"),
        Mutant(lines_as_a_fraction, "expected the whole number"),
    ],
    "batch_affine": [
        Mutant(affine_without_bias, "the bias is missing"),
        Mutant(affine_bias_down, "the bias is added along the wrong axis"),
        Mutant(affine_not_turned, "mismatch in its core dimension"),
        Mutant(lambda x, weight, bias: x @ weight.reshape(x.shape[1], -1) + bias, "a reshape does not turn the weight"),
        Mutant(lambda x, weight, bias: x @ weight.T * bias, "the bias is multiplied"),
        Mutant(affine_turned_result, "a row of it belongs to a sample"),
        Mutant(affine_in_float64, "dtype is float64, expected float32"),
        Mutant(affine_adds_in_place, "changed its input x"),
        Mutant(affine_list, "return them as an array"),
    ],
    "amdahl_speedup": [
        Mutant(lambda fraction, factor: (1 - fraction) + fraction / factor, "1 divided by it"),
        Mutant(lambda fraction, factor: (1 - fraction) + fraction * factor, "this averages the speedups"),
        Mutant(lambda fraction, factor: 1 / (fraction + (1 - fraction) / factor), "the two parts are swapped"),
        Mutant(lambda fraction, factor: 1 / (1 - fraction), "the limit for an infinite factor"),
        Mutant(lambda fraction, factor: factor / fraction, "the part that stays the same is missing"),
        Mutant(lambda fraction, factor: factor, "this is the factor itself"),
        Mutant(lambda fraction, factor: 1 / ((1 - fraction) + fraction * factor), "divide fraction by factor"),
        Mutant(lambda fraction, factor: 1 / (1 - fraction + 1e-30) + fraction / factor, "belongs in brackets"),
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
