"""float64, because np.zeros and np.ones say so."""

import numpy as np


def matmul_rows(a, b):
    y = np.zeros((len(a), b.shape[1]))
    for i in range(len(a)):
        y[i] = a[i] @ b
    return y


def batch_affine(x, weight, bias):
    return x @ weight.T + np.ones((len(x), 1)) * bias
