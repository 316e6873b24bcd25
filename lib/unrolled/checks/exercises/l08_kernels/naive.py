"""Kernels as one writes them first: what the speed parts are measured against, on a real GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from unrolled import device
from unrolled.device import Array, array_module

THREADS = 256


@cache
def _kernels() -> tuple[Any, Any, Any]:
    jit = device.jit()

    @jit.rawkernel()
    def transpose(x, y, rows, columns):  # type: ignore[no-untyped-def]
        column, row = jit.grid(2)
        if row < rows and column < columns:
            y[column, row] = x[row, column]

    @jit.rawkernel()
    def sums(x, y, rows, columns):  # type: ignore[no-untyped-def]
        row = jit.grid(1)
        if row < rows:
            total = np.float32(0)
            for column in range(columns):
                total += x[row, column]
            y[row] = total

    @jit.rawkernel()
    def maxima(x, y, rows, columns):  # type: ignore[no-untyped-def]
        row = jit.grid(1)
        if row < rows:
            largest = x[row, 0]
            for column in range(1, columns):
                largest = max(largest, x[row, column])
            y[row] = largest

    return transpose, sums, maxima


def transpose(x: Array) -> Array:
    """Return x (rows, columns) transposed, with a thread for each value and nothing shared."""
    xp, (rows, columns) = array_module(x), x.shape
    if xp is np:
        return x.T.copy()
    y = xp.empty((columns, rows), x.dtype)
    _kernels()[0][(-(-columns // 32), -(-rows // 8)), (32, 8)](x, y, rows, columns)
    return y


def row_sum(x: Array) -> Array:
    """Return the sum of each row of x (rows, columns), with a thread for each row."""
    return x.sum(axis=1) if array_module(x) is np else _by_rows(_kernels()[1], x)


def row_max(x: Array) -> Array:
    """Return the largest value of each row of x (rows, columns), with a thread for each row."""
    return x.max(axis=1) if array_module(x) is np else _by_rows(_kernels()[2], x)


def _by_rows(kernel: Any, x: Array) -> Array:
    rows, columns = x.shape
    y = array_module(x).empty(rows, x.dtype)
    kernel[-(-rows // THREADS), THREADS](x, y, rows, columns)
    return y
