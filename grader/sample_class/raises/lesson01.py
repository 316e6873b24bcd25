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
