"""A loop that forgets to step forward."""


def merge(a, b):
    merged, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        smaller = min(a[i], b[j])
    merged.append(smaller)
    return merged + a[i:] + b[j:]
