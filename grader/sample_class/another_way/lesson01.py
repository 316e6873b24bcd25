"""Right, by other ways than the lesson's."""

import numpy as np


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
