"""Element-wise functions, all made in one way: NumPy's ufunc of that name gives the dtypes, the machine computes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from unrolled.simgpu import array
from unrolled.simgpu.array import (
    Layout,
    broadcast_shape,
    check,
    check_cast,
    check_fits,
    check_types,
    launch,
    ndarray,
    shaped_like,
)
from unrolled.simgpu.elementwise import Symbol

NAMES = """
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power float_power negative positive
    absolute abs conjugate conj fabs sign square sqrt cbrt reciprocal exp exp2 expm1 log log2 log10 log1p logaddexp
    logaddexp2 sin cos tan arcsin arccos arctan arctan2 hypot sinh cosh tanh arcsinh arccosh arctanh deg2rad rad2deg
    radians degrees maximum minimum fmax fmin floor ceil trunc rint modf frexp ldexp copysign signbit nextafter
    heaviside greater greater_equal less less_equal equal not_equal logical_and logical_or logical_xor logical_not
    bitwise_and bitwise_or bitwise_xor bitwise_not invert left_shift right_shift isfinite isinf isnan gcd lcm
"""

_COMPARISONS = {"greater", "greater_equal", "less", "less_equal", "equal", "not_equal"}  # take integers of any size
_LOGICAL = {"logical_and", "logical_or", "logical_xor", "logical_not"}
_REAL = {"arctan2", "hypot", "copysign", "nextafter"}  # CuPy has them for complex numbers, and CUDA's compiler has not
_TESTS = {"isfinite", "isinf", "isnan"}
_ODD = {("power", "int8"): "bool", ("float_power", "complex128"): "complex64"}
"""For the dtypes of results the first loop of CuPy, which loses what the operands hold."""


class ufunc:  # noqa: N801 (NumPy's name)
    """An element-wise function: `add(a, b, out=None, dtype=None)`. Numbers keep an array's dtype, as in NumPy 2."""

    def __init__(self, function: np.ufunc) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = f"{array.what_numpy_does(function)}. Return a new array of the GPU, or out; dtype= as there."
        self.nin, self.nout, self.nargs = function.nin, function.nout, function.nargs

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r} of the simulated GPU>"

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: Any = "same_kind") -> Any:
        if any(isinstance(x, Symbol) for x in args):
            return self._function(*args)
        inputs, outs = list(args[: self.nin]), list(args[self.nin :])
        if self.nout > 1 and not isinstance(out, (tuple, type(None))):
            raise ValueError("'out' must be a tuple of arrays")
        outs = outs or (list(out) if isinstance(out, tuple) else [out])
        outs += [None] * (self.nout - len(outs))
        if len(inputs) != self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} arguments, got {len(inputs)}")
        check_types([*inputs, *(x for x in outs if x is not None)])
        layouts = [x._layout for x in inputs if isinstance(x, ndarray)]
        shape = broadcast_shape([x.shape for x in layouts])
        dtypes, strong = self._dtypes(inputs, dtype)
        results = _results(self.__name__, layouts, shape, outs, dtypes[self.nin :], casting)
        found = results[0] if self.nout == 1 else tuple(results)
        if not results[0].size:
            return found
        if self.__name__ not in _COMPARISONS:
            held = [_common(inputs)] * 2 if self.__name__ == "logical_xor" else dtypes
            for x, kind in zip(inputs, held, strict=False):
                check_fits(x, kind)
        options: dict[str, Any] = {"signature": [kind.name for kind in dtypes]} if strong else {}
        if casting != "same_kind":
            options["casting"] = casting
        launch(self.__name__, inputs, results, options)
        return found

    def at(self, x: ndarray, indices: Any, values: Any = None) -> None:
        """Set x[indices] = function(x[indices], values), where an index that occurs twice counts twice."""
        from unrolled.simgpu import indexing

        indexing.at(self, x, indices, values)

    def _dtypes(self, inputs: Sequence[Any], dtype: Any) -> tuple[tuple[np.dtype[Any], ...], bool]:
        """The dtypes of all inputs and outputs, and whether NumPy would not choose them for what the machine gets."""
        wanted = None if dtype is None else np.dtype(dtype)
        kinds = tuple(map(_kind, inputs))
        try:
            dtypes = _loop(self._function, kinds, wanted)
        except TypeError:
            if self._function is np.sign and kinds == (np.dtype(bool),) and wanted is None:
                return (np.dtype(np.int8), np.dtype(np.int8)), True
            if self.__name__ in _REAL and any(np.dtype(kind).kind == "c" for kind in (*kinds, wanted)):
                raise NotImplementedError(
                    f"{self.__name__} of complex numbers is not simulated: write x.real"
                ) from None
            raise
        if wanted is not None:
            if (lossy := _ODD.get((self.__name__, wanted.name))) is not None:
                text = f"{self.__name__}(dtype={wanted.name!r}) is not simulated: CuPy casts to {lossy} before"
                raise NotImplementedError(f"{text}. Write astype({wanted.name!r}) after it")
            return dtypes, True
        if self.__name__ in _LOGICAL and any(np.dtype(kind).kind == "c" for kind in kinds):
            raise TypeError(f"Wrong type ({kinds}) of arguments for cupy_{self.__name__}")
        if not any(isinstance(x, np.generic) for x in inputs):
            return dtypes, False
        weak = tuple(_kind(x.item() if isinstance(x, np.generic) else x) for x in inputs)
        return dtypes, dtypes != _loop(self._function, weak, wanted)


def _kind(x: Any) -> Any:
    """What NumPy resolves an operand by: a dtype, or a Python type for a number that adapts."""
    if isinstance(x, (ndarray, np.generic)):
        return x.dtype
    return np.dtype(bool) if isinstance(x, bool) else type(x) if type(x) in (int, float, complex) else float


@lru_cache(maxsize=4096)
def _loop(function: np.ufunc, kinds: tuple[Any, ...], dtype: Any) -> tuple[np.dtype[Any], ...]:
    """The dtypes that a function computes in; with `dtype`, the first for such results, whatever the operands are."""
    empty = (None,) * function.nout
    if dtype is None:
        return function.resolve_dtypes((*kinds, *empty))
    first = np.dtype(np.float16) if function.__name__ in _TESTS else dtype
    return function.resolve_dtypes(
        (*[first] * function.nin, *empty), signature=(None,) * function.nin + (dtype,) * function.nout
    )


def _results(
    name: str, layouts: Sequence[Layout], shape: Any, outs: Sequence[Any], dtypes: Sequence[Any], casting: Any
) -> list[Any]:
    """The arrays to write: those given, checked, and new ones laid out as NumPy lays them out."""
    results = []
    for number, (given, dtype) in enumerate(zip(outs, dtypes, strict=True)):
        if given is None:
            results.append(laid_out(layouts, shape, dtype))
            continue
        whole = broadcast_shape([shape, given.shape])
        check_cast(f"ufunc {name!r} output" + (f" {number}" if number else ""), dtype, given.dtype, casting)
        if given.shape != whole:
            found = f"non-broadcastable output operand with shape {given.shape}"
            raise ValueError(f"{found} doesn't match the shape {whole}")
        results.append(given)
    return results


def laid_out(layouts: Sequence[Layout], shape: tuple[int, ...], dtype: Any) -> ndarray:
    """Return a new array of `shape`, laid out as NumPy lays out results of operands with these layouts (order K)."""
    if all(layout.flags.c_contiguous for layout in layouts):
        return ndarray(shape, dtype)
    flags: Any = [["readonly"]] * len(layouts) + [["writeonly", "allocate"]]
    operands: Any = [*layouts, None]
    kinds = [None] * len(layouts) + [np.dtype(dtype)]
    walk = np.nditer(operands, ["zerosize_ok", "refs_ok"], flags, kinds, order="K")
    return shaped_like(walk.operands[-1])


def _common(values: Sequence[Any]) -> np.dtype[Any]:
    return np.result_type(*(value.dtype if isinstance(value, ndarray) else value for value in values))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return x where condition holds, else y.

    With the condition alone, return where it holds, as `nonzero` does (which waits for the device).
    """
    if x is None or y is None:
        return condition.nonzero()
    if any(isinstance(value, Symbol) for value in (condition, x, y)):
        return np.where(condition, x, y)
    values = [condition, x, y]
    check_types(values)
    dtype = _common((x, y))
    layouts = [value._layout for value in values if isinstance(value, ndarray)]
    result = laid_out(layouts, broadcast_shape([layout.shape for layout in layouts] or [()]), dtype)
    if result.size:
        for value in (x, y):
            check_fits(value, dtype)
        launch("where", values, [result])
    return result


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: ndarray | None = None) -> Any:
    """Return a, limited to at least a_min and at most a_max; either may be None."""
    bounds = [bound for bound in (a_min, a_max) if bound is not None]
    check_types([a, *((a_min, a_max) if check(a).dtype.kind == "b" else bounds)])  # for bool, CuPy has no ends
    if any(np.dtype(_kind(x)).kind == "c" for x in (a, *bounds)):
        raise TypeError("Wrong type of arguments for cupy_clip: it takes no complex numbers")
    dtype = a.dtype
    for bound in bounds:
        dtype = _loop(np.maximum, (dtype, _kind(bound)), None)[0]
    if out is None:
        layouts = [x._layout for x in (a, *bounds) if isinstance(x, ndarray)]
        out = laid_out(layouts, broadcast_shape([layout.shape for layout in layouts]), dtype)
    if out.size:
        for bound in bounds:
            check_fits(bound, dtype)
        launch("clip", [a, a_min, a_max], [out])
    return out


UFUNCS = {name: ufunc(getattr(np, name)) for name in NAMES.split()}


def round_(a: ndarray, decimals: int = 0) -> ndarray:
    """Return the values rounded to so many decimals, halves to even; of integers what stands before the point."""
    if a.dtype.kind == "b":
        return a.astype(np.float16)
    if a.dtype.kind in "iu":
        return _rounded_integers(a, 10**-decimals) if decimals < 0 else a.copy()
    result = laid_out([a._layout], a.shape, a.dtype)
    launch("round", [a], [result], {"decimals": int(decimals)})
    return result


def _rounded_integers(a: ndarray, unit: int) -> ndarray:
    """The nearest multiples of a unit, the even one of two, in int64: a float would lose the last digits."""
    whole, rest = UFUNCS["divmod"](a.astype(np.int64), unit)
    double = UFUNCS["multiply"](rest, 2)
    up = (double > unit) | ((double == unit) & (whole % 2 == 1))
    return UFUNCS["multiply"](whole + up, unit).astype(a.dtype)  # type: ignore[no-any-return]
