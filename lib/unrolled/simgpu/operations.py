"""What each op computes: NumPy on arrays that the machine has checked.

An operation takes (inputs, outputs, options): arrays or Python scalars, arrays to write, plain data. Results are those
of NumPy, overlapping arrays included. Indices that are out of range wrap around, as they do on CuPy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.command import CommandError, Plain

Array: TypeAlias = Any
Options: TypeAlias = Mapping[str, Plain]
Operation: TypeAlias = Callable[[Sequence[Any], Sequence[Array], Options], None]

DTYPES: dict[str, np.dtype[Any]] = {}
for _code in "?bBhHiIlLqQefdFD":
    for _text in (np.dtype(_code).name, np.dtype(_code).str):
        DTYPES[_text] = np.dtype(_code)

_GENERALIZED = {"matmul", "vecdot", "matvec", "vecmat"}
UFUNCS: dict[str, np.ufunc] = {
    name: function
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and name not in _GENERALIZED and function.signature is None
}

REDUCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in (
        *("sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "var", "std", "count_nonzero", "ptp"),
        *("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd", "median"),
    )
}
SCANS: dict[str, Callable[..., Any]] = {"cumsum": np.cumsum, "cumprod": np.cumprod}


def dtype_of(text: Any) -> np.dtype[Any]:
    """The dtype of this name. Raises CommandError for what a GPU does not hold."""
    found = DTYPES.get(text) if isinstance(text, str) else None
    if found is None:
        raise CommandError(f"dtype is {text!r:.40}; expected a number type such as float32")
    return found


def find(op: str) -> Operation:
    """The operation of this name. Raises CommandError for an unknown one."""
    if op in UFUNCS:
        return _ufunc(UFUNCS[op])
    if op in REDUCTIONS or op in SCANS:
        return _reduction(op)
    if op.endswith(".at") and op[:-3] in UFUNCS:
        return _at(UFUNCS[op[:-3]])
    found = _OTHERS.get(op)
    if found is None:
        raise CommandError(f"op is {op!r:.40}; the simulated GPU has none of that name")
    return found


def _ufunc(function: np.ufunc) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        if (len(inputs), len(outputs)) != (function.nin, function.nout):
            raise CommandError(
                f"{function.__name__} takes {function.nin} inputs and {function.nout} outputs, "
                f"got {len(inputs)} and {len(outputs)}"
            )
        dtype = options.get("dtype")
        loop = {} if dtype is None else {"dtype": dtype_of(dtype)}
        function(*inputs, out=tuple(outputs), casting=_casting(options, "same_kind"), **loop)

    return compute


def _casting(options: Options, default: str) -> Any:
    casting = options.get("casting", default)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise CommandError(f"casting is {casting!r:.40}; expected no, equiv, safe, same_kind or unsafe")
    return casting


def _axis(options: Options) -> Any:
    axis = options.get("axis")
    return tuple(axis) if isinstance(axis, (list, tuple)) else axis


def _reduction(op: str) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (x,), (out,) = inputs, outputs
        words: dict[str, Any] = {"axis": _axis(options)}
        if options.get("dtype") is not None:
            words["dtype"] = dtype_of(options["dtype"])
        if options.get("ddof"):
            words["ddof"] = options["ddof"]
        result = np.asarray((REDUCTIONS.get(op) or SCANS[op])(x, **words))
        np.copyto(out, result.reshape(out.shape), casting="unsafe")

    return compute


def _copy(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (x,), (out,) = inputs, outputs
    np.copyto(out, x, casting=_casting(options, "unsafe"))


def _where(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    condition, x, y = inputs
    (out,) = outputs
    np.copyto(out, np.where(condition, x, y), casting="same_kind")


def _clip(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    x, low, high = inputs
    np.clip(x, low, high, out=outputs[0])


def _matmul(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    a, b = inputs
    np.matmul(a, b, out=outputs[0], casting="same_kind")


def _einsum(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    result = np.einsum(options["subscripts"], *inputs, optimize=len(inputs) == 2)
    np.copyto(outputs[0], result, casting="same_kind")


def _index(x: Array, indices: Sequence[Any], options: Options) -> tuple[Any, ...]:
    """The index that addresses x: the given one on the axes named, all of the other axes. Wraps around."""
    axes = options["axes"]
    if not isinstance(axes, (list, tuple)) or len(axes) != len(indices) or len(set(axes)) != len(axes):
        raise CommandError(f"axes are {axes!r:.80}; expected one for each of {len(indices)} indices")
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(axes, indices, strict=True):
        if type(axis) is not int or not 0 <= axis < x.ndim:
            raise CommandError(f"axes are {axes!r:.80}; expected axes of an array with {x.ndim}")
        key[axis] = _wrapped(index, x.shape[axis])
    return tuple(key)


def _wrapped(index: Any, size: int) -> Any:
    if np.asarray(index).dtype.kind not in "iu":
        raise CommandError("an index is no integer")
    if not size:
        if np.size(index):
            raise CommandError("an index into an axis of length 0")
        return index
    return index % size


def _getitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    x, *indices = inputs
    np.copyto(outputs[0], x[_index(x, indices, options)])


def _setitem(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    value, *indices = inputs
    (x,) = outputs
    x[_index(x, indices, options)] = value


def _at(function: np.ufunc) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        value, *indices = inputs
        (x,) = outputs
        function.at(x, _index(x, indices, options), value)

    return compute


def _take(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    x, indices = inputs
    axis = options.get("axis")
    if axis is None:
        x, axis = x.reshape(-1), 0
    np.copyto(outputs[0], np.take(x, _wrapped(indices, x.shape[axis]), axis=axis))


def _nonzero(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    for out, places in zip(outputs, np.nonzero(inputs[0]), strict=True):
        np.copyto(out, places)


def _arange(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """As NumPy fills it: start + i * delta in the array's dtype, where delta is what the second value differs by."""
    (out,) = outputs
    start, second = (np.asarray(v).astype(out.dtype) for v in (options["start"], options["start"] + options["step"]))
    out[...] = start + np.arange(out.size).astype(out.dtype) * (second - start)


def _linspace(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (out,) = outputs
    endpoint = options.get("endpoint", True)
    values = np.linspace(options["start"], options["stop"], out.size, endpoint=endpoint)
    np.copyto(out, values, casting="unsafe")


def _eye(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (out,) = outputs
    rows, columns = out.shape
    np.copyto(out, np.eye(rows, columns, k=options.get("k", 0)), casting="unsafe")


def _triangle(function: Callable[..., Any]) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        np.copyto(outputs[0], function(inputs[0], k=options.get("k", 0)))

    return compute


def _sort(function: Callable[..., Any]) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        np.copyto(outputs[0], function(inputs[0], axis=options.get("axis", -1), kind="stable"))

    return compute


def _searchsorted(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    a, v = inputs
    np.copyto(outputs[0], np.searchsorted(a, v, side=options.get("side", "left")))


def _concatenate(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    np.copyto(outputs[0], np.concatenate(inputs, axis=options.get("axis", 0)), casting="same_kind")


def _random(draw: Callable[[np.random.Generator, tuple[int, ...], Options], Any]) -> Operation:
    """Seed and counter name the numbers: the same two always give the same ones."""

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        words = [_word(options, "counter"), 0, 0, 0]
        generator = np.random.Generator(np.random.Philox(counter=words, key=[_word(options, "seed"), 0]))
        np.copyto(outputs[0], draw(generator, outputs[0].shape, options), casting="unsafe")

    return compute


def _word(options: Options, name: str) -> int:
    value = options.get(name, 0)
    if type(value) is not int or not 0 <= value < 2**64:
        raise CommandError(f"{name} is {value!r:.40}; expected a whole number of 64 bits")
    return value


def _uniform(generator: np.random.Generator, shape: tuple[int, ...], options: Options) -> Any:
    return generator.uniform(options.get("low", 0.0), options.get("high", 1.0), shape)


def _normal(generator: np.random.Generator, shape: tuple[int, ...], options: Options) -> Any:
    return generator.normal(options.get("loc", 0.0), options.get("scale", 1.0), shape)


def _integers(generator: np.random.Generator, shape: tuple[int, ...], options: Options) -> Any:
    return generator.integers(options["low"], options["high"], shape)


def _permutation(generator: np.random.Generator, shape: tuple[int, ...], options: Options) -> Any:
    (size,) = shape
    return generator.permutation(size)


def _fused(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """Steps after one another, each a ufunc, "where" or "cast" of inputs, earlier steps and scalars; one launch."""
    done: list[Any] = []

    def value(reference: Any) -> Any:
        if not isinstance(reference, (list, tuple)):
            return reference
        kind, number = reference
        return {"in": inputs, "step": done}[kind][number]

    for name, references, dtype in options["steps"]:
        values = [value(reference) for reference in references]
        loop = {} if dtype is None else {"dtype": dtype_of(dtype)}
        if name == "cast":
            done.append(np.asarray(values[0]).astype(loop["dtype"]))
        elif name == "where":
            done.append(np.where(*values))
        else:
            done.append(UFUNCS[name](*values, **loop))
    for out, reference in zip(outputs, options["results"], strict=True):
        np.copyto(out, value(reference), casting="unsafe")


def kernel(name: Any) -> Any:
    """A kernel of the library, which lives on a floor above: looked up when it is launched."""
    import importlib

    kernels = importlib.import_module("unrolled.kernels")
    try:
        return kernels.by_name(name)
    except LookupError:
        raise CommandError(f"kernel is {name!r:.40}; the library has none of that name") from None


def _kernel(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    kernel(options["name"]).numpy(inputs, outputs, options)


_OTHERS: dict[str, Operation] = {
    "copy": _copy,
    "fill": _copy,
    "where": _where,
    "clip": _clip,
    "matmul": _matmul,
    "einsum": _einsum,
    "getitem": _getitem,
    "setitem": _setitem,
    "take": _take,
    "nonzero": _nonzero,
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "sort": _sort(np.sort),
    "argsort": _sort(np.argsort),
    "searchsorted": _searchsorted,
    "concatenate": _concatenate,
    "random_uniform": _random(_uniform),
    "random_normal": _random(_normal),
    "random_integers": _random(_integers),
    "permutation": _random(_permutation),
    "fused": _fused,
    "kernel": _kernel,
}
