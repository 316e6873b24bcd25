"""What an array can do: its operators and methods are the functions of the other modules, put on the class by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.simgpu import creation, functions, indexing, linalg, reductions, views
from unrolled.simgpu.array import ndarray

BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide"}
BINARY |= {"mod": "remainder", "divmod": "divmod", "pow": "power", "lshift": "left_shift", "rshift": "right_shift"}
BINARY |= {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "matmul": "matmul"}
COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
UNARY = {"neg": "negative", "abs": "absolute", "invert": "invert"}
REDUCTIONS = "sum prod mean var std max min any all ptp argmax argmin cumsum cumprod"
POWERS: dict[float, str] = {2: "square", 0.5: "sqrt", -1.0: "reciprocal"}


def _power(x: Any, y: Any, **options: Any) -> Any:
    """x ** y as CuPy's operator, not in place: some exponents of plain numbers are cheaper functions."""
    if isinstance(x, ndarray) and not options and (type(y) is float or (type(y) is int and y == 2)) and y in POWERS:
        kept = x.dtype.kind in ("ifc" if type(y) is int else "fc")
        return functions.UFUNCS[POWERS[y]](x, dtype=None if kept else np.result_type(x.dtype, y))
    return functions.UFUNCS["power"](x, y, **options)


def _reshape(self: ndarray, *shape: Any, order: str = "C") -> ndarray:
    """As numpy.ndarray.reshape: a view where the memory allows it, else a copy."""
    return views.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: ndarray, *axes: Any) -> ndarray:
    """As numpy.ndarray.transpose: a view."""
    return views.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)


def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """All values along one axis, a copy."""
    return views.ravel(self.copy(order), order)


def _pos(self: ndarray) -> ndarray:
    """A copy, of a bool, too, which `positive` does not take."""
    return self.copy() if self.dtype.kind == "b" else functions.UFUNCS["positive"](self)


def _sort(self: ndarray, axis: int = -1) -> None:
    """Sort in place."""
    creation.assign(self, reductions.sort(self, axis))


def _conj(self: ndarray) -> ndarray:
    """The complex conjugates; the array itself where it is real, which costs no launch."""
    return functions.UFUNCS["conjugate"](self) if self.dtype.kind == "c" else self


_TABLE: dict[str, Any] = {**functions.UFUNCS, "matmul": linalg.matmul, "power": _power}
for _name, _op in (BINARY | COMPARE).items():
    setattr(ndarray, f"__{_name}__", lambda self, other, function=_TABLE[_op]: function(self, other))
for _name, _op in BINARY.items():
    setattr(ndarray, f"__r{_name}__", lambda self, other, function=_TABLE[_op]: function(other, self))
    if _name != "divmod":
        setattr(ndarray, f"__i{_name}__", lambda self, other, function=_TABLE[_op]: function(self, other, out=self))
for _name, _op in UNARY.items():
    setattr(ndarray, f"__{_name}__", lambda self, function=_TABLE[_op]: function(self))

_METHODS: dict[str, Any] = {name: reductions.REDUCTIONS[name] for name in REDUCTIONS.split()}
_METHODS |= {"reshape": _reshape, "transpose": _transpose, "flatten": _flatten, "sort": _sort}
_METHODS |= {name: views.VIEWS[name] for name in ("swapaxes", "squeeze", "diagonal")}
_METHODS |= {"ravel": views.ravel, "repeat": views.repeat, "argsort": reductions.argsort, "fill": creation.fill}
_METHODS |= {"nonzero": indexing.nonzero, "take": indexing.take, "clip": functions.clip, "round": functions.round_}
_METHODS |= {"dot": linalg.dot, "trace": linalg.trace, "conj": _conj, "conjugate": _conj}
_METHODS |= {"__pos__": _pos, "__getitem__": indexing.getitem, "__setitem__": indexing.setitem}
for _name, _function in _METHODS.items():
    setattr(ndarray, _name, _function)
