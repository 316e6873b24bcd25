"""Indexing: integers, slices, None and ... make a view; arrays of integers or booleans read and write by a launch.

A boolean mask makes the host wait: how many values it picks decides a shape. Integers out of range wrap around: CuPy
does not look at them either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from unrolled.simgpu.array import SCALARS, check, launch, ndarray
from unrolled.simgpu.creation import arange, asarray, assign, fitting

_BASIC = (int, np.integer, slice, type(None), type(Ellipsis))


def getitem(x: ndarray, key: Any) -> ndarray:
    """Return x[key]: a view, or a copy where the key holds arrays."""
    seen, start, indices = _addressed(x, key)
    if not indices:
        return seen
    result = ndarray(_picked(seen, start, indices), x.dtype)
    launch("getitem", [seen, *indices], [result], _axes(start, indices))
    return result


def setitem(x: ndarray, key: Any, value: Any) -> None:
    """Set x[key] = value: a number, or an array of the device that can be broadcast to the place.

    With arrays in the key, a list or a NumPy array moves to the device first, as in CuPy.
    """
    seen, start, indices = _addressed(x, key)
    if not indices:
        assign(seen, value)
        return
    if not isinstance(value, (ndarray, *SCALARS)):
        value = asarray(value, x.dtype)  # as CuPy: it moves, and the trace tells
    shape = _picked(seen, start, indices)
    value = fitting(value, shape)
    if not isinstance(value, ndarray):
        value = 0 if 0 in shape else _typed(value, x.dtype)
    launch("setitem", [value, *indices], [seen], _axes(start, indices))


_WORDS = ("int32", "int64", "uint32", "uint64")
ATOMIC: dict[str, tuple[str, ...]] = {
    "add": ("int32", "int64", "float16", "float32", "float64", "uint32", "uint64"),
    "subtract": ("int32", "uint32"),
    **dict.fromkeys(("maximum", "minimum"), ("int32", "int64", "float32", "float64", "uint32", "uint64")),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _WORDS),
}
"""Functions that have `at`, as in CuPy, and the dtypes on which threads of a GPU do not lose one another's changes."""


def at(function: Any, x: ndarray, key: Any, values: Any) -> None:
    """Set x[key] = function(x[key], values), one index after the other.

    Raises NotImplementedError for a function, and TypeError for a dtype, that is not in ATOMIC. Under a single mask no
    place occurs twice, so there any dtype will do.
    """
    name, arrays = function.__name__, [item for item in _items(key) if not _is_basic(item)]
    if name not in ATOMIC:
        raise NotImplementedError(f"`{name}.at` is not supported yet")
    masked = len(arrays) == 1 and getattr(arrays[0], "dtype", np.dtype(int)).kind == "b"
    seen, start, indices = _addressed(x, key)
    if not indices:
        function(seen, values, out=seen)
        return
    values = _typed(fitting(values, _picked(seen, start, indices)), x.dtype)
    if not masked and x.dtype.name not in ATOMIC[name]:
        raise TypeError(f"cupy.{name}.at only supports {', '.join(ATOMIC[name])} as data type")
    if not masked and x.dtype == float and name in ("maximum", "minimum"):
        raise NotImplementedError(f"{name}.at of float64 is not simulated: CuPy rounds to float32. Write astype('f')")
    launch(f"{name}.at", [values, *indices], [seen], _axes(start, indices))


def nonzero(a: ndarray) -> tuple[ndarray, ...]:
    """Return where the values are not 0, one array for each axis.

    Waits for the device, to learn how many there are. Raises ValueError for an array without axes.
    """
    from unrolled.simgpu.reductions import REDUCTIONS

    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead.")
    count = int(REDUCTIONS["count_nonzero"](a)) if a.size else 0
    places = tuple(ndarray(count, np.int64) for _ in range(a.ndim))
    launch("nonzero", [a], places)
    return places


def take(a: ndarray, indices: Any, axis: int | None = None, out: ndarray | None = None) -> ndarray:
    """Return the values at these indices along an axis; None: of all values in one row.

    `out` has the shape and the dtype of the result: else TypeError or ValueError, in CuPy's words.
    """
    flat = a if axis is not None and a.ndim else a.reshape(-1)
    along = normalize_axis_index(0 if axis is None else axis, flat.ndim)
    key = (slice(None),) * along + (indices,)
    if out is None:
        return getitem(flat, key)
    seen, start, arrays = _addressed(flat, key)
    if check(out).dtype != a.dtype:
        raise TypeError("Output dtype mismatch")
    if out.shape != (*flat.shape[:along], *(arrays[0].shape if arrays else ()), *flat.shape[along + 1 :]):
        raise ValueError("Output shape mismatch")
    if not arrays:
        assign(out, seen)
        return out
    _picked(seen, start, arrays)  # after CuPy's own order: there may be nothing to take from
    launch("getitem", [seen, *arrays], [out], _axes(start, arrays))  # straight into out: a graph's arrays stay
    return out


def take_along_axis(a: ndarray, indices: ndarray, axis: int) -> ndarray:
    """Return, for each place of `indices`, the value that its number picks along an axis."""
    return getitem(a, _along(a, indices, axis))


def put_along_axis(a: ndarray, indices: ndarray, values: Any, axis: int) -> None:
    """Write values to the places that `take_along_axis` reads."""
    setitem(a, _along(a, indices, axis), values)


def _along(a: ndarray, indices: ndarray, axis: int) -> tuple[Any, ...]:
    along = normalize_axis_index(axis, a.ndim)
    if indices.ndim != a.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    return tuple(
        indices if i == along else arange(size).reshape([size if j == i else 1 for j in range(a.ndim)])
        for i, size in enumerate(a.shape)
    )


def _typed(value: Any, dtype: Any) -> Any:
    """The value in a dtype, a number on the host, as in CuPy: that raises for one that the dtype does not have."""
    return value.astype(dtype, copy=False) if isinstance(value, ndarray) else np.asarray(value, dtype)[()]


def _items(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_basic(item: Any) -> bool:
    return isinstance(item, _BASIC) and not isinstance(item, bool)


def _addressed(x: ndarray, key: Any) -> tuple[ndarray, int, list[ndarray]]:
    """A view of x, and index arrays (or none) for its axes from `start` on: what NumPy's rules make of the key.

    Arrays that stand apart bring their axes to the front; an integer beside them counts as one of them.
    """
    keys = _items(key)
    if all(map(_is_basic, keys)):
        return x.seen_as(x._layout[keys if any(k is Ellipsis for k in keys) else (*keys, Ellipsis)]), 0, []
    items = _spread([k if _is_basic(k) else _array(k) for k in keys], x.ndim)
    basic: list[Any] = []
    indices: list[ndarray] = []
    places: list[int] = []
    axis = place = 0
    for item in items:
        if not isinstance(item, ndarray):
            basic.append(item)
            axis += item is not None
            place += isinstance(item, slice) or item is None
            continue
        for found in _of_mask(x, item, axis) if item.dtype.kind == "b" else (item,):
            basic.append(slice(None))
            indices.append(found)
            places.append(place)
            axis, place = axis + 1, place + 1
    layout = x._layout[tuple(basic)]
    picks = [isinstance(item, (ndarray, int, np.integer)) for item in items]
    first, last = picks.index(True), len(picks) - picks[::-1].index(True)
    if all(picks[first:last]):
        return x.seen_as(layout), places[0], indices
    rest = [i for i in range(layout.ndim) if i not in places]
    return x.seen_as(layout.transpose([*places, *rest])), 0, indices


def _spread(items: list[Any], ndim: int) -> list[Any]:
    """The key with one entry an axis (a mask: one for all of its): ... and missing axes become slices."""
    there = [item for item in items if item is not None and item is not Ellipsis]
    used = sum(item.ndim if isinstance(item, ndarray) and item.dtype.kind == "b" else 1 for item in there)
    if used > ndim:
        raise IndexError(f"too many indices for array: array is {ndim}-dimensional, but {used} were indexed")
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    at = dots[0] if dots else len(items)
    return items[:at] + [slice(None)] * (ndim - used) + items[at + 1 :]


def _array(item: Any) -> Any:
    """An index array on the device. Lists and NumPy arrays move there, as in CuPy."""
    if not isinstance(item, ndarray):
        if isinstance(item, float):
            raise IndexError("an index that is a float is not simulated: write int(x), which is what CuPy takes it for")
        if not isinstance(item, (list, np.ndarray)):
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) "
                "and integer or boolean arrays are valid indices"
            )
        host = np.asarray(item)
        item = asarray(host.astype(np.int64) if not host.size else host)
    if item.dtype.kind not in "iub":
        raise IndexError(f"arrays used as indices must be of integer or boolean type. (actual: {item.dtype.type})")
    if item.dtype.kind == "b" and not item.ndim:
        raise IndexError("a boolean index without axes is not simulated")
    return item


def _of_mask(x: ndarray, mask: ndarray, axis: int) -> tuple[ndarray, ...]:
    for i, (size, found) in enumerate(zip(x.shape[axis:], mask.shape, strict=False)):
        if size != found:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + i}; size of axis is {size} "
                f"but size of corresponding boolean axis is {found}"
            )
    return nonzero(mask)


def _picked(seen: ndarray, start: int, indices: Sequence[ndarray]) -> tuple[int, ...]:
    """The shape of what the indices pick. Raises IndexError where they pick from nothing, or do not go together."""
    try:
        middle = np.broadcast_shapes(*(i.shape for i in indices))
    except ValueError:
        text = " ".join(str(i.shape).replace(" ", "") for i in indices)
        message = f"shape mismatch: indexing arrays could not be broadcast together with shapes {text}"
        raise IndexError(message) from None
    if 0 in seen.shape[start : start + len(indices)] and 0 not in middle:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return (*seen.shape[:start], *middle, *seen.shape[start + len(indices) :])


def _axes(start: int, indices: Sequence[ndarray]) -> dict[str, list[int]]:
    return {"axes": list(range(start, start + len(indices)))}
