"""Lesson 01: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np


class slow:
    """Right, and a loop wherever speed is asked for."""

    matmul_rows = {"y[i] = a[i] @ b": "y[i] = [sum(p * q for p, q in zip(a[i], column)) for column in b.T]"}
    batch_affine = {"x @ weight.T + bias": "np.array([weight @ row + bias for row in x])"}


class off_by_one:
    """Loops that end one step early."""

    merge = {"i < len(a) and j < len(b)": "i < len(a) - 1 and j < len(b) - 1"}
    matmul_rows = {"y = np.empty": "y = np.zeros", "range(len(a))": "range(len(a) - 1)"}

    def lines_touched(shape, strides, axis):
        return len({step * strides[axis] // 64 for step in range(shape[axis] - 1)})


class another_way:
    """Right, by other ways than the lesson's."""

    def merge(a, b):
        import heapq

        return list(heapq.merge(a, b))

    def matmul_rows(a, b):
        return np.stack([np.dot(row, b) for row in a])

    def lines_touched(shape, strides, axis):
        reach = (shape[axis] - 1) * strides[axis]
        return shape[axis] if strides[axis] >= 64 else reach // 64 + 1

    def batch_affine(x, weight, bias):
        ones = np.ones((len(x), 1), dtype=x.dtype)
        return np.hstack([x, ones]) @ np.vstack([weight.T, bias])

    def amdahl_speedup(fraction, factor):
        return factor / (factor - fraction * (factor - 1))
