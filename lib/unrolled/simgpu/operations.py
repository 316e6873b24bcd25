"""What each op computes: NumPy on arrays that the machine has checked.

An operation takes (inputs, outputs, options): arrays or Python scalars, arrays to write, plain data. Results are those
of NumPy, overlapping arrays included.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu import addressing, generator
from unrolled.simgpu.addressing import check_size
from unrolled.simgpu.arithmetic import AS_A_GPU, fused, unrooted
from unrolled.simgpu.command import InvalidCommandError, Options
from unrolled.simgpu.conversion import converted, to_integers

Array: TypeAlias = Any
Operation: TypeAlias = Callable[[Any, Any, Options], None]
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


ADDING = ("sum", "prod", "mean", "var", "std", *SCANS)
FLOATS_TO_INTEGERS = (("f", "i"), ("f", "u"), ("c", "i"), ("c", "u"))


def dtype_of(text: Any) -> np.dtype[Any]:
    """Return the dtype of this name. Raises InvalidCommandError for what a GPU does not hold."""
    if not isinstance(text, str) or text not in DTYPES:
        raise InvalidCommandError(f"dtype is {text!r:.40}; expected a number type such as float32")
    return DTYPES[text]


def scalar(x: Any) -> Any:
    """Return x if it is a Python number of at most 64 bits, to compute with which takes a bounded time.

    It may come from a socket. Raises InvalidCommandError for anything else.
    """
    if type(x) not in (bool, int, float, complex):
        raise InvalidCommandError(f"an operand of type {type(x).__name__}; expected a View or a Python number")
    if type(x) is int and not -(2**63) <= x < 2**64:
        raise InvalidCommandError("a whole number of more than 64 bits")
    return x


def _ufunc(function: np.ufunc) -> Operation:
    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        if (len(inputs), len(outputs)) != (function.nin, function.nout):
            takes = f"{function.__name__} takes {function.nin} inputs and {function.nout} outputs"
            raise InvalidCommandError(f"{takes}, got {len(inputs)} and {len(outputs)}")
        if (signature := options.get("signature")) is not None:
            if len(signature) != function.nargs:
                raise InvalidCommandError(f"a signature of {len(signature)} dtypes; expected {function.nargs}")
            inputs = [converted(x, dtype_of(name)) for x, name in zip(inputs, signature, strict=False)]
        kind = np.result_type(*inputs).kind if function is np.power else ""
        if kind in ("i", "u"):
            inputs = _bounded_power(inputs, outputs[0])
        elif kind == "f" and getattr(inputs[1], "size", 1) == 1:
            inputs = [unrooted(*inputs), inputs[1]]
        function(*inputs, out=tuple(outputs), casting=_casting(options, "same_kind"))

    return compute


def _bounded_power(inputs: Sequence[Any], out: Array) -> tuple[Any, Any]:
    """Base and exponent, none negative: NumPy refuses integers to a negative power, and a kernel cannot look first.

    It gives 1 / base^-exponent, cut to a whole number: 0, unless base is 1 or -1.
    """
    base, exponent = inputs
    _check_fit(inputs, out)
    kind, negative = np.result_type(base, exponent), np.less(exponent, 0)
    vanishes = np.logical_and(negative, np.logical_and(np.not_equal(base, 1), np.not_equal(base, -1)))
    exponent = np.asarray(exponent).astype(kind)  # no whole number of 64 bits becomes a float on the way
    bounded = np.where(negative, (exponent & 1) + 2 * vanishes.astype(kind), exponent)
    return np.where(vanishes, 0, base).astype(kind), bounded.astype(kind)


def _in_dtype(options: Options) -> dict[str, Any]:
    return {} if options.get("dtype") is None else {"dtype": dtype_of(options["dtype"])}


def _as_a_gpu(function: np.ufunc, kinds: str, own: Callable[..., Any]) -> Operation:
    """The function by a formula of its own, where it computes in a dtype of these kinds."""
    plain = _ufunc(function)

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        dtypes = _loop(function, inputs, options)
        if dtypes[0].kind not in kinds or options.get("dtype") is not None:
            plain(inputs, outputs, options)
            return
        _check_fit(inputs, outputs[0])
        found = own(*(converted(x, dtype) for x, dtype in zip(inputs, dtypes, strict=False)))
        for out, value in zip(outputs, found if isinstance(found, tuple) else (found,), strict=True):
            np.copyto(out, value, casting=_casting(options, "same_kind"))

    return compute


def _loop(function: np.ufunc, inputs: Sequence[Any], options: Options) -> Sequence[np.dtype[Any]]:
    """The dtypes of what goes in and what comes out."""
    if options.get("signature") is not None:
        return [dtype_of(name) for name in options["signature"]]
    kinds: list[Any] = [x.dtype if isinstance(x, np.ndarray) else type(scalar(x)) for x in inputs]
    kinds = [np.dtype(bool) if kind is bool else kind for kind in kinds]
    return function.resolve_dtypes((*kinds, *[None] * function.nout))


def _casting(options: Options, default: str) -> Any:
    casting = options.get("casting", default)
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise InvalidCommandError(f"casting is {casting!r:.40}; expected no, equiv, safe, same_kind or unsafe")
    return casting


def _reduction(function: Callable[..., Any]) -> Operation:
    """float16 adds up in float32, and running sums of float32 in float64: CuPy's, in parts, lose as little."""
    wider = {"e": np.float32} | ({"f": np.float64} if function in SCANS.values() else {})
    adds = function.__name__.removeprefix("nan") in ADDING

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (x,), (out,) = inputs, outputs
        axis = options.get("axis")
        words = {"axis": tuple(axis) if isinstance(axis, list) else axis, **_in_dtype(options)}
        kind = words.get("dtype", x.dtype)
        if function in (np.mean, np.nanmean) and "dtype" in words and kind.kind in "iub":
            words["dtype"] = np.dtype(float)
        elif adds:
            if kind.kind in "iu" and not function.__name__.endswith(("var", "std")):
                x = converted(x, kind)  # before it adds up
            words |= {"dtype": wider[kind.char]} if kind.char in wider else {}
        if options.get("ddof"):
            words["ddof"] = options["ddof"]
        with warnings.catch_warnings():  # a GPU does not warn of an empty slice
            warnings.simplefilter("ignore")
            result = np.asarray(function(x, **words))
        if not x.size and x.dtype.kind in "fc" and function in (np.nanvar, np.nanstd):
            result = np.zeros_like(result)
        _copy([result.reshape(out.shape)], [out], {})

    return compute


def _copy(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (x,), (out,) = inputs, outputs
    casting = _casting(options, "unsafe")
    kinds = getattr(getattr(x, "dtype", None), "kind", ""), out.dtype.kind
    np.copyto(out, to_integers(x, out.dtype) if kinds in FLOATS_TO_INTEGERS else x, casting=casting)


def _written(function: Callable[[Any, Array, Options], Any], casting: Any = "same_kind") -> Operation:
    """What writes the result of function(inputs, output, options) to the only output."""

    def compute(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
        (out,) = outputs
        np.copyto(out, function(inputs, out, options), casting=casting)

    return compute


def _check_fit(inputs: Sequence[Any], out: Array) -> None:
    """Raise unless all inputs broadcast to the output, so that nothing in between is larger than it."""
    for x in inputs:
        if np.broadcast_shapes(np.shape(x), out.shape) != out.shape:
            raise InvalidCommandError(f"an input of shape {np.shape(x)} does not go into an output of {out.shape}")


def _where(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    condition, x, y = inputs
    _check_fit(inputs, out)
    return np.where(condition, *(v if isinstance(v, np.ndarray) else np.asarray(v, out.dtype) for v in (x, y)))


def _clip(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    (x, *bounds), (out,) = inputs, outputs
    _check_fit([v for v in inputs if v is not None], out)
    ends = (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max) if x.dtype.kind in "iu" else (-np.inf, np.inf)
    low, high = (_bound(*values).astype(out.dtype) for values in zip(bounds, ends, (-np.inf, np.inf), strict=True))
    np.clip(x, low, high, out=out, dtype=out.dtype, casting="unsafe")


def _bound(bound: Any, end: Any, no_bound: float) -> Any:
    """A bound that is missing is the end of the dtype; one that is NaN is none."""
    found = np.asarray(end if bound is None else bound)
    return np.where(np.isnan(found), no_bound, found) if found.dtype.kind == "f" else found


def _round(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """Floats to so many decimals, in float64."""
    (x,), (out,), decimals = inputs, outputs, options["decimals"]
    unit = np.float64(10) ** abs(decimals)
    wide = x.astype(np.result_type(x, unit))
    np.copyto(out, np.rint(wide * unit) / unit if decimals > 0 else np.rint(wide / unit) * unit, casting="same_kind")


def _matmul(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    a, b = inputs
    if a.ndim <= 2 and b.ndim <= 2 and outputs[0].size == 1 and a.dtype == b.dtype == np.float16:
        a, b = (a.ravel() * b.ravel()).astype(np.float32), np.ones(b.size, np.float32)  # CuPy's products are rounded
    np.matmul(a, b, out=outputs[0], casting="same_kind")


def _searchsorted(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    a, v = inputs
    return np.searchsorted(a, v, side=options.get("side", "left"))


def _concatenate(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    check_size(sum(x.size for x in inputs), out)
    return np.concatenate(inputs, axis=options.get("axis", 0))


def _linspace(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    start, stop, ends = np.float64(options["start"]), np.float64(options["stop"]), options.get("endpoint", True)
    step = (stop - start) / max(1, out.size - bool(ends))
    values = fused(np.arange(out.size, dtype=float), step, start)
    if ends and out.size > 1:
        values[-1] = stop
    return converted(np.floor(values), out.dtype) if out.dtype.kind in "iu" else values


def _eye(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    rows, columns = out.shape  # two: np.eye of one length would be as large as its square
    return np.eye(rows, columns, k=options.get("k", 0))


def _sorted(function: Callable[..., Any]) -> Operation:
    return _written(lambda inputs, out, options: function(inputs[0], axis=options.get("axis", -1), kind="stable"))


def _fft(function: Callable[..., Any]) -> Operation:
    """A transform of images along two axes, or back: of these lengths, which the output bears out."""

    def transform(inputs: Sequence[Any], out: Array, options: Options) -> Any:
        (x,), (first, last), lengths = inputs, options["axes"], options["lengths"]
        half = lengths[1] // 2 + 1
        there = [lengths[0], half if function is np.fft.rfft2 else lengths[1]]
        if [out.shape[first], out.shape[last]] != there:
            raise InvalidCommandError(f"transforms of lengths {lengths} do not go into an output of {out.shape}")
        if function is np.fft.irfft2:  # cut before, so that nothing in between is larger than the result
            x = x[tuple(slice(half) if axis == last else slice(None) for axis in range(x.ndim))]
        images = [n for axis, n in enumerate(x.shape) if axis not in (first % x.ndim, last % x.ndim)]
        check_size(prod(images) * prod(there), out)
        return function(x, lengths, (first, last))

    return _written(transform)


def _nonzero(inputs: Sequence[Any], outputs: Sequence[Array], options: Options) -> None:
    """As many places as the outputs hold; where there are fewer, zeros. What is raised never depends on values."""
    for out, places in zip(outputs, np.nonzero(inputs[0]), strict=True):
        found = places[: out.size]
        np.copyto(out, np.pad(found, (0, out.size - found.size)))


def _arange(inputs: Sequence[Any], out: Array, options: Options) -> Any:
    """As CuPy fills it: start + i * step in the array's dtype, where of floats the result is rounded, once."""
    start, step = (np.asarray(scalar(options[name])).astype(out.dtype) for name in ("start", "step"))
    if out.dtype.kind == "f":
        return fused(np.arange(out.size, dtype=float), step, start)
    return start + np.arange(out.size).astype(out.dtype) * step


def _triangle(function: Callable[..., Any]) -> Operation:
    def triangle(inputs: Sequence[Any], out: Array, options: Options) -> Any:
        (x,) = inputs
        if x.ndim < 2 or x.shape != out.shape:
            raise InvalidCommandError(f"a triangle of an array of shape {x.shape} for an output of {out.shape}")
        return function(x, k=options.get("k", 0))

    return _written(triangle)


# several steps in one launch, and the kernels of the library

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
            return scalar(reference)
        kind, number = reference
        return {"in": inputs, "step": done}[kind][number]

    for name, references, dtype in options["steps"]:
        values = [value(reference) for reference in references]
        loop = _in_dtype({"dtype": dtype})
        if name == "cast":
            x, dtype = np.asarray(values[0]), loop["dtype"]
            done.append(to_integers(x, dtype) if (x.dtype.kind, dtype.kind) in FLOATS_TO_INTEGERS else x.astype(dtype))
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


OPERATIONS: dict[str, Operation] = {
    **{name: _reduction(function) for name, function in (REDUCTIONS | SCANS).items()},
    **{f"{name}.at": addressing.at(function) for name, function in UFUNCS.items()},
    **{name: _ufunc(function) for name, function in UFUNCS.items()},
    **{name: _as_a_gpu(UFUNCS[name], *how) for name, how in AS_A_GPU.items()},
    **dict.fromkeys(("copy", "fill"), _copy),
    "where": _written(_where),
    "clip": _clip,
    "round": _round,
    "matmul": _matmul,
    "einsum": _written(lambda inputs, out, o: np.einsum(o["subscripts"], *inputs, optimize=len(inputs) == 2)),
    **{name: _fft(getattr(np.fft, name)) for name in ("rfft2", "irfft2", "fft2", "ifft2")},
    "getitem": addressing.getitem,
    "setitem": addressing.setitem,
    "nonzero": _nonzero,
    "arange": _written(_arange),
    "linspace": _written(_linspace, "unsafe"),
    "eye": _written(_eye, "unsafe"),
    **{name: _triangle(getattr(np, name)) for name in ("tril", "triu")},
    **{name: _sorted(getattr(np, name)) for name in ("sort", "argsort")},
    "searchsorted": _written(_searchsorted),
    "concatenate": _written(_concatenate),
    "random.seed": generator.seed,
    "random": generator.draw,
    "fused": _fused,
    "kernel": lambda inputs, outputs, o: kernel(o["name"]).numpy(inputs, outputs, without_name(o)),
}


def find(op: str) -> Operation:
    """Return the operation of this name. Raises InvalidCommandError for an unknown one."""
    if op not in OPERATIONS:
        raise InvalidCommandError(f"op is {op!r:.40}; the simulated GPU has none of that name")
    return OPERATIONS[op]
