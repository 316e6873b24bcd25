"""Shapes and views. A view costs no launch: NumPy makes it from the layout. The rest copies on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np
from numpy.lib import stride_tricks as _tricks
from numpy.lib.array_utils import normalize_axis_index

from unrolled.simgpu.array import check, check_fits, in_shape, launch, ndarray, what_numpy_does

MOST_PARTS = 60
"""Arrays that one launch joins at most: the operands of a command are limited."""

NAMES = """
    swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to flip fliplr flipud rot90 diagonal split
    array_split hsplit vsplit
"""


def _view(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function of this name on the layout; its views are views of the array."""

    def view(a: ndarray, *args: Any, **kwargs: Any) -> Any:
        check(a)
        found = function(a._layout, *args, **kwargs)
        if isinstance(found, np.generic):  # of an array without axes
            return a.seen_as(a._layout)
        return [a.seen_as(layout) for layout in found] if isinstance(found, (list, tuple)) else a.seen_as(found)

    view.__name__ = view.__qualname__ = function.__name__
    view.__doc__ = f"{what_numpy_does(function)}. Return a view, or a list of them, without a launch."
    return view


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's function of this name: a view of an array, or a list of views, each of its own array."""
    one = _view(function)

    def views(*arrays: ndarray) -> Any:
        return one(*arrays) if len(arrays) == 1 else [one(a) for a in arrays]

    views.__name__, views.__qualname__, views.__doc__ = one.__name__, one.__qualname__, one.__doc__
    return views


def broadcast_arrays(*arrays: ndarray) -> list[ndarray]:
    """Return views of all arrays in their common shape."""
    found = np.broadcast_arrays(*(check(a)._layout for a in arrays))
    return [a.seen_as(layout) for a, layout in zip(arrays, found, strict=True)]


def transpose(a: ndarray, axes: Any = None) -> ndarray:
    """Return a view with the axes in another order; reversed by default."""
    return check(a).seen_as(np.transpose(a._layout, axes))


def reshape(a: ndarray, shape: Any, order: str = "C") -> ndarray:
    """Return the values in another shape, a view where the memory allows it, else a copy. One length may be -1.

    Raises ValueError for a shape of another size.
    """
    sizes = _sizes(check(a), shape)
    if order == "F":
        return reshape(transpose(a), sizes[::-1]).T
    try:
        return a.seen_as(in_shape(a._layout, sizes))
    except AttributeError:
        return reshape(a.copy(), sizes)


def ravel(a: ndarray, order: str = "C") -> ndarray:
    """Return all values along one axis, a view where the memory allows it, else a copy."""
    return reshape(a, -1, order)


def _sizes(a: ndarray, shape: Any) -> tuple[int, ...]:
    sizes = [index(size) for size in (shape if isinstance(shape, Sequence) else [shape])]
    known = prod(size for size in sizes if size != -1)
    whole = sizes.count(-1) == 1 and known and not a.size % known
    found = tuple(a.size // known if size == -1 and whole else size for size in sizes)
    if sizes.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    if min(found, default=0) < 0 or prod(found) != a.size:
        raise ValueError(f"cannot reshape array of size {a.size} into shape {tuple(sizes)}")
    return found


def concatenate(arrays: Sequence[ndarray], axis: int | None = 0, out: ndarray | None = None) -> ndarray:
    """Return the arrays, one after the other along an axis; None: all values along one axis."""
    if not len(arrays):
        raise ValueError("need at least one array to concatenate")
    parts = [check(a) if axis is not None else ravel(check(a)) for a in arrays]
    if not all(a.ndim for a in parts):
        raise TypeError("zero-dimensional arrays cannot be concatenated")
    first, axis = parts[0], normalize_axis_index(0 if axis is None else axis, parts[0].ndim)
    for a in parts:
        others = (x.shape[:axis] + x.shape[axis + 1 :] for x in (a, first))
        if a.ndim != first.ndim or len(set(others)) > 1:
            shapes = ", ".join(str(a.shape) for a in parts)
            raise ValueError(f"all the input array dimensions except for axis {axis} must match exactly, got {shapes}")
    shape = (*first.shape[:axis], sum(a.shape[axis] for a in parts), *first.shape[axis + 1 :])
    if out is None:
        columns = all(a.flags.f_contiguous and not a.flags.c_contiguous for a in parts)
        out = ndarray(shape, np.result_type(*(a.dtype for a in parts)), "F" if columns else "C")
    elif out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; expected {shape}")
    at = 0
    for start in range(0, len(parts), MOST_PARTS):
        some = parts[start : start + MOST_PARTS]
        stop = at + sum(a.shape[axis] for a in some)
        launch("concatenate", some, [out[(slice(None),) * axis + (slice(at, stop),)]], {"axis": axis})
        at = stop
    return out


def stack(arrays: Sequence[ndarray], axis: int = 0, out: ndarray | None = None) -> ndarray:
    """Return the arrays along a new axis."""
    if len({check(a).shape for a in arrays}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return concatenate([expand_dims(a, axis) for a in arrays], axis, out)


def vstack(arrays: Sequence[ndarray]) -> ndarray:
    """Return the arrays one below the other, those of one axis as rows."""
    return concatenate([atleast_2d(a) for a in arrays], 0)


def hstack(arrays: Sequence[ndarray]) -> ndarray:
    """Return the arrays side by side: along the second axis, or the only one."""
    parts = [atleast_1d(a) for a in arrays]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1)


def pad(array: ndarray, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> ndarray:
    """Return the array with a border of one number; pad_width is (before, after) for each axis, or one for all.

    Raises ValueError for other modes.
    """
    if mode != "constant" or not np.isscalar(constant_values):
        raise ValueError(f"pad(mode={mode!r}) is simulated for a border of one number only")
    widths = np.broadcast_to(pad_width, (check(array).ndim, 2)).tolist()
    shape = tuple(before + n + after for (before, after), n in zip(widths, array.shape, strict=True))
    check_fits(constant_values, array.dtype)
    result = ndarray(shape, array.dtype)
    launch("fill", [constant_values], [result])
    inner: Any = (*(slice(before, before + n) for (before, _), n in zip(widths, array.shape, strict=True)), Ellipsis)
    launch("copy", [array], [result.seen_as(result._layout[inner])])
    return result


def repeat(a: ndarray, repeats: Any, axis: int | None = None) -> ndarray:
    """Return each value `repeats` times in a row, along an axis; None: of all values in one row.

    Raises ValueError for less than 0 and for what is no whole number.
    """
    if isinstance(repeats, ndarray) or (isinstance(repeats, Sequence) and len(repeats) != 1):
        raise NotImplementedError("a repeat for each value is not simulated: write x[cp.asarray(np.repeat(...))]")
    try:
        repeats = index(repeats[0] if isinstance(repeats, Sequence) else repeats)
    except TypeError:
        raise ValueError(f"'repeats' should be int or sequence: {repeats}") from None
    if axis is None:
        a, axis = ravel(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    wide = broadcast_to(expand_dims(a, axis + 1), (*a.shape[: axis + 1], repeats, *a.shape[axis + 1 :]))
    return reshape(wide.copy(), (*a.shape[:axis], a.shape[axis] * repeats, *a.shape[axis + 1 :]))


def tile(a: ndarray, reps: Any) -> ndarray:
    """Return the array several times along each axis; `reps` says how often."""
    counts = tuple(reps) if np.iterable(reps) else (reps,)
    ndim = max(len(counts), check(a).ndim)
    counts, shape = (1,) * (ndim - len(counts)) + counts, (1,) * (ndim - a.ndim) + a.shape
    whole = tuple(count * size for count, size in zip(counts, shape, strict=True))
    if not a.size:  # CuPy looks at the result alone: -1 times nothing is nothing
        return ndarray(whole, a.dtype)
    thin = reshape(a, [n for size in shape for n in (1, size)])
    wide = broadcast_to(thin, [n for pair in zip(counts, shape, strict=True) for n in pair])
    return reshape(wide.copy(), whole)


def roll(a: ndarray, shift: int, axis: int | None = None) -> ndarray:
    """Return the values moved along an axis (None: in one row); what leaves at one end enters at the other."""
    flat = ravel(a) if axis is None else check(a)
    along = 0 if axis is None else normalize_axis_index(axis, a.ndim)
    cut = -shift % max(1, flat.shape[along])
    turned = flat._layout.swapaxes(0, along) if flat.ndim else flat._layout
    parts = [flat.seen_as(turned[part].swapaxes(0, along)) for part in (slice(cut, None), slice(0, cut))]
    return reshape(concatenate(parts, along), a.shape)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    """Return a view of any shape and strides (in bytes).

    Nothing checks that it stays inside the array; a launch on a view that leaves the array's memory fails.
    """
    return check(x).seen_as(_tricks.as_strided(x._layout, shape, strides))


def sliding_window_view(x: ndarray, window_shape: Any, axis: Any = None) -> ndarray:
    """Return a view of every place of a window; the window's axes come last."""
    ndarray.made_for("H2D", np.shape(window_shape), int)  # CuPy looks at the window on the device: not in a capture
    return check(x).seen_as(_tricks.sliding_window_view(x._layout, window_shape, axis))


VIEWS = {name: _view(getattr(np, name)) for name in NAMES.split()}
VIEWS |= {name: _at_least(getattr(np, name)) for name in ("atleast_1d", "atleast_2d", "atleast_3d")}
expand_dims, broadcast_to = VIEWS["expand_dims"], VIEWS["broadcast_to"]
atleast_1d, atleast_2d = VIEWS["atleast_1d"], VIEWS["atleast_2d"]
