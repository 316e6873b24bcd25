"""Reductions and running sums: the dtype of the result is what NumPy gives for one element, the machine computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from unrolled.simgpu.array import launch, ndarray, shaped_like

NAMES = """
    sum prod mean var std max min amax amin any all count_nonzero nansum nanprod nanmean nanmax nanmin nanvar nanstd
    median ptp argmax argmin cumsum cumprod
"""
SAME = {"amax": "max", "amin": "min"}
TYPED = {"sum", "prod", "mean", "var", "std", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "cumsum", "cumprod"}
SCANS = {"cumsum", "cumprod"}
ONE_AXIS = {"argmax", "argmin", *SCANS}
NO_EMPTY = {"max": "maximum", "min": "minimum", "ptp": "maximum", "nanmax": "fmax", "nanmin": "fmin"}
NO_EMPTY |= {"argmax": "", "argmin": ""}


def reduction(name: str) -> Callable[..., Any]:
    """Return NumPy's reduction of this name: function(a, axis=None, dtype=None, out=None, keepdims=False, ddof=0)."""
    op = SAME.get(name, name)

    def reduce(
        a: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, ddof: int = 0
    ) -> ndarray:
        if not isinstance(a, ndarray):
            raise TypeError(f"Unsupported type {type(a)}")
        if dtype is not None and op not in TYPED:
            raise TypeError(f"{op}() got an unexpected keyword argument 'dtype'")
        options: dict[str, Any] = {"axis": _axes(op, a, axis)}
        if dtype is None and out is not None and op in ("sum", "prod", *SCANS):
            dtype = out.dtype
        kind = result_dtype(op, a.dtype, None if dtype is None else np.dtype(dtype))
        result = _result(op, a, options["axis"], kind, bool(keepdims)) if out is None else out
        if out is not None:
            _check_out(op, a, options["axis"], kind, bool(keepdims), out)
        if dtype is not None:
            options["dtype"] = np.dtype(dtype).name
        if ddof:
            options["ddof"] = ddof
        launch(op, [a], [result], options)
        return result

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"As numpy.{name}, on the simulated GPU: an array there, of no axes for a single value."
    return reduce


@lru_cache(maxsize=1024)
def result_dtype(op: str, kind: np.dtype[Any], dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    """Return the dtype that NumPy gives this reduction of a `kind` array; `dtype` is the one asked for, if any."""
    words: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(getattr(np, op)(np.ones(1, kind), axis=0, **words)).dtype


def _axes(op: str, a: ndarray, axis: Any) -> Any:
    """The axis or axes as plain data: None (all), or counted from the front. Raises AxisError outside of the array."""
    if axis is None:
        return None
    if op in ONE_AXIS:
        return normalize_axis_index(int(axis), a.ndim)
    axes = normalize_axis_tuple(axis, a.ndim)
    return axes[0] if len(axes) == 1 else list(axes)


def _result(op: str, a: ndarray, axis: Any, kind: np.dtype[Any], keepdims: bool) -> ndarray:
    """The array to write, laid out as NumPy lays it out: the axes that stay keep their order in memory."""
    shape = _shape(op, a, axis, keepdims)
    if a.flags.c_contiguous or not a.size or op in ONE_AXIS:
        return ndarray(shape, kind)
    gone = _gone(a, axis)
    rest = a._layout[tuple(slice(0, 1) if i in gone else slice(None) for i in range(a.ndim))]
    return shaped_like(np.empty_like(rest if keepdims else rest.squeeze(gone), kind))


def _shape(op: str, a: ndarray, axis: Any, keepdims: bool) -> tuple[int, ...]:
    """The shape of the result. Raises ValueError where there is nothing to choose from."""
    if op in SCANS:
        return (a.size,) if axis is None else a.shape
    gone = _gone(a, axis)
    if op in NO_EMPTY and 0 in [a.shape[i] for i in gone]:
        if op.startswith("arg"):
            raise ValueError(f"attempt to get {op} of an empty sequence")
        raise ValueError(f"zero-size array to reduction operation {NO_EMPTY[op]} which has no identity")
    if keepdims:
        return tuple(1 if i in gone else n for i, n in enumerate(a.shape))
    return tuple(n for i, n in enumerate(a.shape) if i not in gone)


def _gone(a: ndarray, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(a.ndim))
    return tuple(axis) if isinstance(axis, list) else (axis,)


def _check_out(op: str, a: ndarray, axis: Any, kind: np.dtype[Any], keepdims: bool, out: Any) -> None:
    if not isinstance(out, ndarray):
        raise TypeError(f"Unsupported type {type(out)}")
    shape = _shape(op, a, axis, keepdims)
    if out.shape != shape:
        raise ValueError(f"output parameter for reduction operation {op} has shape {out.shape}; expected {shape}")
    if not np.can_cast(kind, out.dtype, "same_kind"):
        raise TypeError(f"Cannot cast {op} output from {kind!r} to {out.dtype!r} with casting rule 'same_kind'")


REDUCTIONS = {name: reduction(name) for name in NAMES.split()}
