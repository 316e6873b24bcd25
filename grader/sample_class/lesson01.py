"""Lesson 01: the functions in which a student of the sample class differs from the solution, a class a student."""

import numpy as np


class slow:
    """Right, and a loop wherever speed is asked for."""

    def matmul_rows(a, b):
        y = np.zeros((len(a), b.shape[1]), dtype=a.dtype)
        for i in range(len(a)):
            for j in range(b.shape[1]):
                for k in range(len(b)):
                    y[i, j] += a[i, k] * b[k, j]
        return y

    def batch_affine(x, weight, bias):
        y = np.empty((len(x), len(weight)), dtype=x.dtype)
        for n in range(len(x)):
            y[n] = weight @ x[n] + bias
        return y


class off_by_one:
    """Loops that end one step early."""

    def merge(a, b):
        merged, i, j = [], 0, 0
        while i < len(a) - 1 and j < len(b) - 1:
            if a[i] <= b[j]:
                merged.append(a[i])
                i += 1
            else:
                merged.append(b[j])
                j += 1
        return merged + a[i:] + b[j:]

    def matmul_rows(a, b):
        y = np.zeros((len(a), b.shape[1]), dtype=a.dtype)
        for i in range(len(a) - 1):
            y[i] = a[i] @ b
        return y


class wrong_dtype:
    """float64, because np.zeros and np.ones say so."""

    def matmul_rows(a, b):
        y = np.zeros((len(a), b.shape[1]))
        for i in range(len(a)):
            y[i] = a[i] @ b
        return y

    def batch_affine(x, weight, bias):
        return x @ weight.T + np.ones((len(x), 1)) * bias


class raises:
    """Functions that raise: an index behind the end, shapes that do not fit."""

    def merge(a, b):
        merged, i, j = [], 0, 0
        while len(merged) < len(a) + len(b):
            if a[i] <= b[j]:
                merged.append(a[i])
                i += 1
            else:
                merged.append(b[j])
                j += 1
        return merged

    def batch_affine(x, weight, bias):
        return x @ weight + bias


class endless:
    """A loop that forgets to step forward."""

    def merge(a, b):
        merged, i, j = [], 0, 0
        while i < len(a) and j < len(b):
            smaller = min(a[i], b[j])
        merged.append(smaller)
        return merged + a[i:] + b[j:]


class another_way:
    """Right, by other ways than the lesson's."""

    def merge(a, b):
        import heapq

        return list(heapq.merge(a, b))

    def matmul_rows(a, b):
        return np.stack([np.dot(row, b) for row in a])

    def batch_affine(x, weight, bias):
        ones = np.ones((len(x), 1), dtype=x.dtype)
        return np.hstack([x, ones]) @ np.vstack([weight.T, bias])

    def amdahl_speedup(fraction, factor):
        return factor / (factor - fraction * (factor - 1))
