"""Loops that end one step early."""

import numpy as np


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
