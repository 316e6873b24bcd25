"""Sorting two ways: the same answer, with work that grows as n * log(n) or as n * n."""

from __future__ import annotations

from collections.abc import Sequence


def merge(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Merge two sorted lists into one sorted list, in one pass; of equal values those of a come first."""
    merged: list[float] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if b[j] < a[i]:
            merged.append(b[j])
            j += 1
        else:
            merged.append(a[i])
            i += 1
    return [*merged, *a[i:], *b[j:]]


def merge_sort(values: Sequence[float]) -> list[float]:
    """Return a sorted copy: sort each half, merge them."""
    if len(values) < 2:
        return list(values)
    middle = len(values) // 2
    return merge(merge_sort(values[:middle]), merge_sort(values[middle:]))


def bubble_sort(values: Sequence[float]) -> list[float]:
    """Return a sorted copy: swap neighbours until none is out of order."""
    ordered = list(values)
    for end in range(len(ordered) - 1, 0, -1):
        swapped = False
        for i in range(end):
            if ordered[i + 1] < ordered[i]:
                ordered[i], ordered[i + 1] = ordered[i + 1], ordered[i]
                swapped = True
        if not swapped:
            break
    return ordered
