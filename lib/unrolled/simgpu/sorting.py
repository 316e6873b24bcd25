"""Order: sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from unrolled.simgpu.array import launch, ndarray


def sort(a: ndarray, axis: int | None = -1) -> ndarray:
    """Return a copy that is sorted along an axis; None: of all values in one row."""
    return _ordered("sort", a, axis, a.dtype)


def argsort(a: ndarray, axis: int | None = -1) -> ndarray:
    """Return the indices that sort an array along an axis; None: all values in one row.

    Equal values keep their order.
    """
    return _ordered("argsort", a, axis, np.dtype(np.int64))


def searchsorted(a: ndarray, v: ndarray, side: str = "left") -> ndarray:
    """Return the index in the sorted a at which each value of v belongs, int64."""
    result = ndarray(v.shape, np.int64)
    launch("searchsorted", [a, v], [result], {"side": side})
    return result


def _ordered(op: str, a: ndarray, axis: int | None, dtype: Any) -> ndarray:
    if not isinstance(a, ndarray):
        raise TypeError(f"Unsupported type {type(a)}")
    flat = a.reshape(-1) if axis is None else a
    result = ndarray(flat.shape, dtype)
    launch(op, [flat], [result], {"axis": normalize_axis_index(-1 if axis is None else axis, flat.ndim)})
    return result


FUNCTIONS = {f.__name__: f for f in (sort, argsort, searchsorted)}
