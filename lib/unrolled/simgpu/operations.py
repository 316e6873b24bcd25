"""What each op computes: NumPy on arrays that the machine has checked.

An operation takes (inputs, outputs, options): arrays or Python scalars, arrays to write, plain data. Results are those
of NumPy, overlapping arrays included.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from unrolled.simgpu import draws, gathers
from unrolled.simgpu.command import InvalidCommandError, Options
from unrolled.simgpu.gathers import Array, Operation

_KINDS = [np.dtype(code) for code in "?bBhHiIlLqQefdFD"]
DTYPES: dict[str, np.dtype[Any]] = {text: kind for kind in _KINDS for text in (kind.name, kind.str)}
UFUNCS: dict[str, np.ufunc] = {
    name: function
    for name, function in vars(np).items()
    if isinstance(function, np.ufunc) and function.signature is None  # with a signature: matmul and its like
}
_REDUCTIONS = """
    sum prod max min argmax argmin any all mean var std count_nonzero ptp nansum nanprod nanmean nanmax nanmin nanvar
    nanstd median
"""
REDUCTIONS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in _REDUCTIONS.split()}
SCANS: dict[str, Callable[..., Any]] = {"cumsum": np.cumsum, "cumprod": np.cumprod}


def dtype_of(text: Any) -> np.dtype[Any]:
    """Return the dtype of this name. Raises InvalidCommandError for what a GPU does not hold."""
    found = DTYPES.get(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidCommandError(f"dtype is {text!r:.40}; expected a number type such as float32")
    return found


def find(op: str) -> Operation:
    """Return the operation of this name. Raises InvalidCommandError for an unknown one."""
    if op in UFUNCS:
        return _ufunc(UFUNCS[op])
    if op in REDUCTIONS or op in SCANS:
        return _reduction(op)
    if op.endswith(".at") and op[:-3] in UFUNCS:
        return gathers.at(UFUNCS[op[:-3]])
    found = OTHERS.get(op)
    if found is None:
        raise InvalidCommandError(f"op is {op!r:.40}; the simulated GPU has none of that name")
    return found


def _ufunc(function: np.ufunc) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        if (len(inputs), len(outputs)) != (function.nin, function.nout):
            takes = f"{function.__name__} takes {function.nin} inputs and {function.nout} outputs"
            raise InvalidCommandError(f"{takes}, got {len(inputs)} and {len(outputs)}")
        loop: dict[str, Any] = {}
        if options.get("dtype") is not None:
            loop["dtype"] = dtype_of(options["dtype"])
        if options.get("signature") is not None:
            loop["signature"] = tuple(dtype_of(name) for name in options["signature"])
            if len(loop["signature"]) != function.nargs:  # older NumPys take one dtype for that of the output
                raise InvalidCommandError(f"a signature of {len(loop['signature'])} dtypes; expected {function.nargs}")
        if function is np.power and not loop and np.result_type(*inputs).kind in "iu":
            inputs = _bounded_power(inputs, outputs[0])
        function(*inputs, out=tuple(outputs), casting=_casting(options, "same_kind"), **loop)

    return compute


def _bounded_power(inputs: Sequence[Any], out: Array) -> tuple[Any, Any]:
    """Base and exponent, none negative: NumPy refuses integers to a negative power, and a kernel cannot look first.

    It gives 1 / base^-exponent, cut to a whole number: 0, unless base is 1 or -1.
    """
    base, exponent = inputs
    _check_fit(inputs, out)
    kind, negative = np.result_type(base, exponent), np.less(exponent, 0)
    vanishes = np.logical_and(negative, np.logical_and(np.not_equal(base, 1), np.not_equal(base, -1)))
    bounded = np.where(negative, np.bitwise_and(exponent, 1) + 2 * vanishes, exponent)
    return np.where(vanishes, 0, base).astype(kind), bounded.astype(kind)


def _casting(options: Options, default: str) -> Any:
    casting = options.get("casting", default)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise InvalidCommandError(f"casting is {casting!r:.40}; expected no, equiv, safe, same_kind or unsafe")
    return casting


def _reduction(op: str) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (x,), (out,) = inputs, outputs
        axis = options.get("axis")
        words: dict[str, Any] = {"axis": tuple(axis) if isinstance(axis, list) else axis}
        if options.get("dtype") is not None:
            words["dtype"] = dtype_of(options["dtype"])
        if options.get("ddof"):
            words["ddof"] = options["ddof"]
        with warnings.catch_warnings():  # a GPU does not warn of an empty slice
            warnings.simplefilter("ignore")
            result = np.asarray((REDUCTIONS.get(op) or SCANS[op])(x, **words))
        np.copyto(out, result.reshape(out.shape), casting="unsafe")

    return compute


def _copy(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (x,), (out,) = inputs, outputs
    np.copyto(out, x, casting=_casting(options, "unsafe"))


def _check_fit(inputs: Sequence[Any], out: Array) -> None:
    """Raise unless all inputs broadcast to the output, so that nothing in between is larger than it."""
    for x in inputs:
        if np.broadcast_shapes(np.shape(x), out.shape) != out.shape:
            raise InvalidCommandError(f"an input of shape {np.shape(x)} does not go into an output of {out.shape}")


def _where(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (condition, x, y), (out,) = inputs, outputs
    _check_fit(inputs, out)
    np.copyto(out, np.where(condition, x, y), casting="same_kind")


def _clip(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    x, low, high = inputs
    _check_fit([v for v in inputs if v is not None], outputs[0])
    np.clip(x, low, high, out=outputs[0])


def _matmul(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    a, b = inputs
    np.matmul(a, b, out=outputs[0], casting="same_kind")


def _einsum(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    result = np.einsum(options["subscripts"], *inputs, optimize=len(inputs) == 2)
    np.copyto(outputs[0], result, casting="same_kind")


def _fft(function: Callable[..., Any]) -> Operation:
    """A transform of real images along two axes, or back: of these lengths, which the output bears out."""

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (x,), (out,), (first, last), lengths = inputs, outputs, options["axes"], options["lengths"]
        half = lengths[1] // 2 + 1
        there = [lengths[0], half if function is np.fft.rfft2 else lengths[1]]
        if [out.shape[first], out.shape[last]] != there:
            raise InvalidCommandError(f"transforms of lengths {lengths} do not go into an output of {out.shape}")
        if function is np.fft.irfft2:  # cut before, so that nothing in between is larger than the result
            x = x[tuple(slice(half) if axis == last else slice(None) for axis in range(x.ndim))]
        gathers.check_size(prod(x.shape) // (x.shape[first] * x.shape[last] or 1) * prod(there), out)
        np.copyto(out, function(x, lengths, (first, last)), casting="same_kind")

    return compute


def _nonzero(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """As many places as the outputs hold; where there are fewer, zeros. What is raised never depends on values."""
    for out, places in zip(outputs, np.nonzero(inputs[0]), strict=True):
        found = places[: out.size]
        np.copyto(out, np.pad(found, (0, out.size - found.size)))


def _arange(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """As NumPy fills it: start + i * delta in the array's dtype, where delta is what the second value differs by."""
    (out,) = outputs
    start, second = (np.asarray(v).astype(out.dtype) for v in (options["start"], options["start"] + options["step"]))
    out[...] = start + np.arange(out.size).astype(out.dtype) * (second - start)


def _linspace(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (out,) = outputs
    values = np.linspace(options["start"], options["stop"], out.size, endpoint=options.get("endpoint", True))
    np.copyto(out, values, casting="unsafe")


def _eye(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (out,) = outputs
    rows, columns = out.shape
    np.copyto(out, np.eye(rows, columns, k=options.get("k", 0)), casting="unsafe")


def _triangle(function: Callable[..., Any]) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (x,), (out,) = inputs, outputs
        if x.ndim < 2 or x.shape != out.shape:
            raise InvalidCommandError(f"a triangle of an array of shape {x.shape} for an output of {out.shape}")
        np.copyto(out, function(x, k=options.get("k", 0)))

    return compute


def _sort(function: Callable[..., Any]) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        np.copyto(outputs[0], function(inputs[0], axis=options.get("axis", -1), kind="stable"))

    return compute


def _searchsorted(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    a, v = inputs
    np.copyto(outputs[0], np.searchsorted(a, v, side=options.get("side", "left")))


def _concatenate(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    gathers.check_size(sum(x.size for x in inputs), outputs[0])
    np.copyto(outputs[0], np.concatenate(inputs, axis=options.get("axis", 0)), casting="same_kind")


STEPS = 64
"""Most steps of a fused kernel; each takes memory as large as the output while it runs."""


def _fused(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """Steps after one another, each a ufunc, "where" or "cast" of inputs, earlier steps and scalars; one launch."""
    done: list[Any] = []
    _check_fit(inputs, outputs[0])
    if len(options["steps"]) > STEPS:
        raise InvalidCommandError(f"a kernel of {len(options['steps'])} steps, at most {STEPS} are taken")

    def value(reference: Any) -> Any:
        if not isinstance(reference, (list, tuple)):
            return gathers.scalar(reference)
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
    """Return the library's kernel of this name. Raises InvalidCommandError for an unknown one.

    `unrolled.kernels` belongs to a higher layer, so it is imported at the first call.
    """
    kernels = importlib.import_module("unrolled.kernels")
    try:
        return kernels.by_name(name)
    except LookupError:
        raise InvalidCommandError(f"kernel is {name!r:.40}; the library has none of that name") from None


def without_name(options: Options) -> Options:
    """Return the options that are the kernel's own: all but its name."""
    return {key: value for key, value in options.items() if key != "name"}


def _kernel(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    kernel(options["name"]).numpy(inputs, outputs, without_name(options))


OTHERS: dict[str, Operation] = {
    "copy": _copy,
    "fill": _copy,
    "where": _where,
    "clip": _clip,
    "matmul": _matmul,
    "einsum": _einsum,
    "rfft2": _fft(np.fft.rfft2),
    "irfft2": _fft(np.fft.irfft2),
    "getitem": gathers.getitem,
    "setitem": gathers.setitem,
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
    "random.seed": draws.seed,
    "random": draws.draw,
    "fused": _fused,
    "kernel": _kernel,
}
