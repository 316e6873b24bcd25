"""Making arrays, from the host's data or on the device alone, and writing whole ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from unrolled.simgpu.array import check, check_fits, check_types, empty_like, launch, ndarray
from unrolled.simgpu.conversion import converted
from unrolled.simgpu.views import broadcast_to, stack


def array(obj: Any, dtype: Any = None, copy: bool = True, order: str = "K", ndmin: int = 0) -> ndarray:
    """Return an array on the device with these values: numbers, lists, a NumPy array (which moves) or a device array.

    Lists of device arrays are joined on the device, as in CuPy. Raises ValueError for values that are no numbers.
    """
    if _holds_arrays(obj):
        obj, copy = _together(obj), False
    if isinstance(obj, ndarray):
        found = obj.astype(obj.dtype if dtype is None else dtype, order, copy=copy)
    else:
        host = np.asarray(obj, dtype)
        if host.dtype.kind not in "biufc" or host.dtype.itemsize > 16:
            raise ValueError(f"Unsupported dtype {host.dtype}")
        if not host.ndim:  # CuPy moves nothing: the number is a parameter of a kernel
            return _filled(ndarray((1,) * ndmin, host.dtype.newbyteorder("=")), host.item())
        columns = order == "F" or (order in "KA" and host.flags.f_contiguous and not host.flags.c_contiguous)
        found = ndarray.made_for("H2D", host.shape, host.dtype.newbyteorder("="), "F" if columns else "C")
        found.set(host.astype(found.dtype, copy=False))
    return found if found.ndim >= ndmin else found.reshape((1,) * (ndmin - found.ndim) + found.shape)


def asarray(a: Any, dtype: Any = None, order: str = "K") -> ndarray:
    """Return an array as `array` does; a device array that needs no change comes back as it is."""
    return array(a, dtype, copy=False, order=order)


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    """Return the array itself if its values lie in C order, else a copy that does; at least one axis."""
    return array(a, dtype, copy=False, order="C", ndmin=1)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array with undefined values."""
    return ndarray(shape, dtype, order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array of zeros."""
    return _filled(ndarray(shape, dtype, order), 0)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    """Return an array of ones."""
    return _filled(ndarray(shape, dtype, order), 1)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    """Return an array of one number; its dtype is that of the number unless given."""
    if dtype is None:
        dtype = (fill_value if isinstance(fill_value, ndarray) else np.asarray(fill_value)).dtype
    copyto(found := ndarray(shape, dtype, order), fill_value, "unsafe")
    return found


def zeros_like(a: ndarray, dtype: Any = None, order: str = "K", shape: Any = None) -> ndarray:
    """Return an array of zeros, of a's shape, dtype and memory order unless others are given."""
    return _filled(empty_like(a, dtype, order, shape), 0)


def ones_like(a: ndarray, dtype: Any = None, order: str = "K", shape: Any = None) -> ndarray:
    """Return an array of ones, of a's shape, dtype and memory order unless others are given."""
    return _filled(empty_like(a, dtype, order, shape), 1)


def full_like(a: ndarray, fill_value: Any, dtype: Any = None, order: str = "K", shape: Any = None) -> ndarray:
    """Return an array of one number, of a's shape, dtype and memory order unless others are given."""
    copyto(found := empty_like(a, dtype, order, shape), fill_value, "unsafe")
    return found


def copy(a: ndarray, order: str = "K") -> ndarray:
    """Return a copy with memory of its own."""
    return check(a).copy(order)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """Return start, start + step, ... up to but without stop; arange(n) counts from 0."""
    first, last = (0, start) if stop is None else (start, stop)
    real = any(np.asarray(x).dtype.kind == "f" for x in (first, last, step) if not isinstance(x, ndarray))
    kind = np.dtype((float if real else int) if dtype is None else dtype)
    size = max(0, int(np.ceil((last - first) / step)))
    for x in (first, step) if size else ():
        check_fits(x, kind)
    if kind.kind == "b" and size > 2:
        raise TypeError("arange() is only supported for booleans when the result has at most length 2.")
    return _born("arange", ndarray(size, kind), {"start": _plain(first), "step": _plain(step)})


def linspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None) -> ndarray:
    """Return `num` numbers at equal distances from start to stop, which is included unless `endpoint` is False."""
    options = {"start": float(_plain(start)), "stop": float(_plain(stop)), "endpoint": endpoint}
    return _born("linspace", ndarray(num, np.result_type(start, stop, 1.0) if dtype is None else dtype), options)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> ndarray:  # noqa: N803 (NumPy's names)
    """Return an (N, M) array of zeros with ones on diagonal k; M is N unless given."""
    return _born("eye", ndarray((N, N if M is None else M), dtype), {"k": k})


def identity(n: int, dtype: Any = float) -> ndarray:
    """Return `eye(n)`."""
    return eye(n, dtype=dtype)


def tril(m: ndarray, k: int = 0) -> ndarray:
    """Return a copy of the array with zeros above diagonal k."""
    return _triangle("tril", m, k)


def triu(m: ndarray, k: int = 0) -> ndarray:
    """Return a copy of the array with zeros below diagonal k."""
    return _triangle("triu", m, k)


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None) -> Any:
    """Return the values as a NumPy array on the host. Waits for the device."""
    return a.get(stream=stream, order=order, out=out) if isinstance(a, ndarray) else np.asarray(a, order=order)  # type: ignore[call-overload]


def get_array_module(*args: Any) -> Any:
    """Return `unrolled.simgpu` if one of the arguments lies on the simulated GPU, else NumPy."""
    return sys.modules["unrolled.simgpu"] if any(isinstance(x, ndarray) for x in args) else np


def size(a: Any) -> int:
    """Return how many values there are."""
    return np.size(a)


def assign(target: ndarray, value: Any, on_host: bool = True) -> None:
    """Set target[...] = value, an array of the device or a number; `on_host`: see `fill`.

    Raises RuntimeError for two rows of values in one memory that overlap: CuPy copies them all at once, in no order.
    """
    if not isinstance(value, ndarray):
        fill(target, value, on_host)
    elif value.as_view() != target.as_view():  # equal is what x[key] += y ends with
        if value.dtype == target.dtype and value.flags.c_contiguous and target.flags.c_contiguous:
            check_apart(value, target)
        launch("copy", [fitting(value, target.shape)], [target])


def check_apart(source: ndarray, target: ndarray) -> None:
    """Raise RuntimeError where one launch would read what it writes elsewhere: arrays that overlap and are not one."""
    first, second = source.as_view(), target.as_view()
    if first.buffer != second.buffer or first == second:
        return
    try:
        overlap = np.shares_memory(source._layout, target._layout, max_work=100_000)  # type: ignore[arg-type, unused-ignore]
    except np.exceptions.TooHardError:  # strides of many axes
        overlap = False
    if overlap:
        text = f"what is read {source.shape} and what is written {target.shape} overlap: a GPU copies in no order, so"
        raise RuntimeError(f"{text} values are lost where there are many. Copy first, as in x[1:] = x[:-1].copy()")


def copyto(dst: ndarray, src: Any, casting: Any = "same_kind") -> None:
    """Write an array of the device, or a number, into another. Raises TypeError where `casting` does not allow it."""
    if isinstance(src, np.ndarray) and src.size == 1:
        src = src.reshape(())[()]
    if type(src) in (bool, int, float):
        with np.errstate(all="ignore"):
            np.copyto(np.empty((), check(dst).dtype), src, casting)  # raises as in CuPy, which asks NumPy, too
    elif not np.can_cast(kind := getattr(src, "dtype", np.dtype(complex)), check(dst).dtype, casting):
        raise TypeError(f"Cannot cast {kind} to {dst.dtype} in {casting} casting mode")
    assign(dst, src, on_host=False)


def fill(x: ndarray, value: Any, on_host: bool = True) -> None:
    """Write one number everywhere; `on_host`, as CuPy but in `full` and `copyto`: NumPy converts it, 0 clears bytes."""
    if isinstance(value, (list, tuple)):
        value = np.asarray(value)
    if isinstance(value, (np.ndarray, ndarray)):
        if value.shape != ():
            kind = "numpy" if isinstance(value, np.ndarray) else "cupy"
            raise ValueError(f"non-scalar {kind}.ndarray cannot be used for fill")
        if isinstance(value, ndarray):
            launch("copy", [value], [x])
            return
        value = value[()]
    check_types([value])
    with np.errstate(all="ignore"):
        value = (np.asarray(value, x.dtype) if on_host else converted(value, x.dtype))[()]
    if on_host and value == 0 and x.flags.c_contiguous:
        value = 0  # -0.0 becomes 0.0
    launch("fill", [value], [x])


def fitting(value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value that can be written to this shape, without surplus axes of length 1 in front.

    Raises ValueError if it does not fit, TypeError for what is neither an array of the device nor a number.
    """
    check_types([value])
    if not isinstance(value, ndarray):
        return value
    sizes = value.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    fits = len(sizes) <= len(shape) and all(n in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False))
    if not fits:
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {shape}")
    return value if len(sizes) == value.ndim else value.seen_as(value._layout.reshape(sizes))


def _filled(x: ndarray, value: Any) -> ndarray:
    assign(x, value)
    return x


def _born(op: str, x: ndarray, options: dict[str, Any], *inputs: ndarray) -> ndarray:
    launch(op, inputs, [x], options)
    return x


def _triangle(op: str, m: ndarray, k: int) -> ndarray:
    """A single row stands for a square of such rows, as in NumPy. Raises TypeError for an array without axes."""
    if not check(m).ndim:
        raise TypeError(f"{op} takes an array with at least one axis")
    x = broadcast_to(m, (m.size, m.size)) if m.ndim == 1 else m
    return _born(op, ndarray(x.shape, x.dtype), {"k": int(k)}, x)


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, (np.generic, ndarray)) else x


def _holds_arrays(obj: Any) -> bool:
    """Whether it is a list whose first value, however deep, is a device array."""
    while isinstance(obj, (list, tuple)) and len(obj):
        obj = obj[0]
        if isinstance(obj, ndarray):
            return True
    return False


def _together(obj: Any) -> ndarray:
    return stack([_together(item) if isinstance(item, (list, tuple)) else item for item in obj])
