"""Along an axis: reductions, running sums, sorting, searching. A reduction's dtype is NumPy's for one element."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from unrolled.simgpu.array import check, launch, ndarray, shaped_like, what_numpy_does

NAMES = """
    sum prod mean var std max min amax amin any all count_nonzero nansum nanprod nanmean nanmax nanmin nanvar nanstd
    median ptp argmax argmin cumsum cumprod
"""
SAME = {"amax": "max", "amin": "min"}
TYPED = {"sum", "prod", "mean", "var", "std", "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "cumsum", "cumprod"}
SCANS = {"cumsum", "cumprod"}
REAL_PARTS = {"sum", "prod", "mean", *SCANS}  # take those of complex numbers for a dtype of floats
SPREADS = {"var", "std", "nanvar", "nanstd"}
ONE_AXIS = {"argmax", "argmin", *SCANS}
NO_EMPTY = {"max", "min", "ptp", "nanmax", "nanmin", "argmax", "argmin", "median"}


def reduction(name: str) -> Callable[..., Any]:
    """Return NumPy's reduction of this name: function(a, axis=None, dtype=None, out=None, keepdims=False, ddof=0)."""
    op = SAME.get(name, name)

    def reduce(
        a: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, ddof: int = 0
    ) -> ndarray:
        check(a)
        if dtype is not None and op not in TYPED:
            raise TypeError(f"{op}() got an unexpected keyword argument 'dtype'")
        if keepdims and op in (*SCANS, "count_nonzero"):
            raise TypeError(f"{op}() got an unexpected keyword argument 'keepdims'")
        wanted = None if dtype is None else np.dtype(dtype)
        if wanted is not None and not (a.dtype.kind == "c" and wanted.kind == "f" and op in REAL_PARTS):
            _check_simulated(op, a.dtype, wanted)
        if dtype is None and out is not None and op in SCANS:
            dtype = wanted = out.dtype
        kind = result_dtype(op, a.dtype, wanted)
        options: dict[str, Any] = {"axis": _axes(op, a, axis)}
        shape = _shape(op, a, options["axis"], keepdims)
        if out is None:
            result = _result(op, a, options["axis"], kind, shape)
        elif (result := check(out)).shape != shape:
            text = f"output parameter for reduction operation {op} has shape {out.shape}; expected {shape}"
            raise ValueError(text)
        else:
            _check_simulated(op, kind, out.dtype)
        if dtype is not None:
            options["dtype"] = np.dtype(dtype).name
        if ddof:
            options["ddof"] = ddof
        launch(op, [a], [result], options)
        if op in ("nanmax", "nanmin"):
            missing = ndarray(result.shape, bool)
            launch("isnan", [result], [missing])
            if REDUCTIONS["any"](missing):  # the host waits, as in CuPy
                warnings.warn("All-NaN slice encountered", RuntimeWarning, stacklevel=2)
        return result

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{what_numpy_does(getattr(np, name))}. Return an array of the GPU, of no axes for one value."
    return reduce


@lru_cache(maxsize=1024)
def result_dtype(op: str, kind: np.dtype[Any], dtype: np.dtype[Any] | None) -> np.dtype[Any]:
    """Return the dtype that NumPy gives this reduction of a `kind` array; `dtype` is the one asked for, if any.

    Raises NotImplementedError for a variance's dtype to which CuPy rounds the mean, or which it overlooks.
    """
    simulated = ("var", "std", "nanvar", "nanstd") if kind == dtype else ("var", "std")
    if dtype and op.endswith(("var", "std")) and (op not in simulated or not kind.kind == dtype.kind == "f"):
        raise NotImplementedError(f"{op} of {kind} in {dtype} is not simulated: write x.astype({dtype.name!r}) first")
    words: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reduced: np.dtype[Any] = np.asarray(getattr(np, op)(np.ones(1, kind), axis=0, **words)).dtype
    return reduced


def _check_simulated(op: str, kind: np.dtype[Any], to: np.dtype[Any]) -> None:
    """Raise NotImplementedError for results in a dtype for which CuPy has no kernel, or one that loses what counts."""
    if (kind.kind == "c" and to.kind != "c") or (op in SPREADS and to.kind != "f"):
        values = " of complex numbers" if kind.kind == "c" else ""
        raise NotImplementedError(f"{op}{values} in {to} is not simulated: write astype after it, or x.real before it")


def _axes(op: str, a: ndarray, axis: Any) -> Any:
    """The axis or axes as plain data: None (all), or counted from the front. Raises AxisError outside of the array."""
    if axis is None:
        return None
    if op in ("argmax", "argmin") and isinstance(axis, tuple):
        if len(axis) != 1:
            raise NotImplementedError(
                f"{op} along several axes is not simulated: write x.reshape(...) to make them one"
            )
        (axis,) = axis
    if op in ONE_AXIS:
        return normalize_axis_index(int(axis), a.ndim)
    axes = normalize_axis_tuple(axis, a.ndim)
    return axes[0] if len(axes) == 1 else list(axes)


def _result(op: str, a: ndarray, axis: Any, kind: np.dtype[Any], shape: tuple[int, ...]) -> ndarray:
    """The array to write, laid out as NumPy lays it out: the axes that stay keep their order in memory."""
    if a.flags.c_contiguous or not a.size or op in ONE_AXIS:
        return ndarray(shape, kind)
    gone = _gone(a, axis)
    rest = a._layout[tuple(slice(0, 1) if i in gone else slice(None) for i in range(a.ndim))]
    return shaped_like(np.empty_like(rest if len(shape) == a.ndim else rest.squeeze(gone), kind))


def _shape(op: str, a: ndarray, axis: Any, keepdims: bool) -> tuple[int, ...]:
    """The shape of the result. Raises ValueError where there is nothing to choose from."""
    if op in SCANS:
        return (a.size,) if axis is None else a.shape
    gone = _gone(a, axis)
    if 0 in [a.shape[i] for i in gone] and (op in NO_EMPTY or (op == "nanmean" and a.dtype.kind in "fc")):
        raise ValueError(f"zero-size array to reduction operation cupy_{op} which has no identity")
    if keepdims:
        return tuple(1 if i in gone else n for i, n in enumerate(a.shape))
    return tuple(n for i, n in enumerate(a.shape) if i not in gone)


def _gone(a: ndarray, axis: Any) -> tuple[int, ...]:
    return tuple(range(a.ndim) if axis is None else axis if isinstance(axis, list) else [axis])


REDUCTIONS = {name: reduction(name) for name in NAMES.split()}


def sort(a: ndarray, axis: int | None = -1, kind: str | None = None) -> ndarray:
    """Return a copy that is sorted along an axis; None: of all values in one row. Raises ValueError for other kinds."""
    return _ordered("sort", a, axis, a.dtype, kind)


def argsort(a: ndarray, axis: int | None = -1, kind: str | None = None) -> ndarray:
    """Return the indices that sort an array along an axis (None: all in one row). Equal values keep their order."""
    return _ordered("argsort", a, axis, np.dtype(np.int64), kind)


def searchsorted(a: ndarray, v: ndarray, side: str = "left") -> ndarray:
    """Return the index in the sorted a at which each value of v belongs, int64."""
    result = ndarray(v.shape, np.int64)
    launch("searchsorted", [a, v], [result], {"side": side})
    return result


def _ordered(op: str, a: ndarray, axis: int | None, dtype: Any, kind: str | None) -> ndarray:
    if kind not in (None, "stable"):
        raise ValueError(f"kind is {kind!r}; expected None or 'stable'")
    flat = check(a).reshape(-1) if axis is None or (op == "argsort" and not a.ndim) else check(a)
    result = ndarray(flat.shape, dtype)
    launch(op, [flat], [result], {"axis": normalize_axis_index(-1 if axis is None else axis, flat.ndim)})
    return result
