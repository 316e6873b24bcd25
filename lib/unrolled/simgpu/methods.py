"""What an array can do: its operators and methods are the functions of the other modules, put on the class by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unrolled.simgpu import functions, indexing, linalg, reductions, sorting, views, writing
from unrolled.simgpu.array import ndarray

BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "divmod": "divmod",
    "pow": "power",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "matmul": "matmul",
}
COMPARE = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
REDUCTIONS = """
    sum prod mean var std max min any all ptp argmax argmin cumsum cumprod
"""


def _binary(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(self, other)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(self, other, out=self)


def _power(x: Any, y: Any, **options: Any) -> Any:
    """x ** y as NumPy's operator: small exponents of plain numbers are cheaper functions."""
    if isinstance(x, ndarray) and type(y) in (int, float) and x.dtype.kind in "fc" and y in _POWERS:
        return functions.UFUNCS[_POWERS[y]](x, **options)
    if isinstance(x, ndarray) and type(y) is int and y == 2:
        return functions.UFUNCS["square"](x, **options)
    return functions.UFUNCS["power"](x, y, **options)


_POWERS: dict[float, str] = {2: "square", 0.5: "sqrt", -1: "reciprocal", 1: "positive"}


def _install_operators() -> None:
    table: dict[str, Any] = {
        **functions.UFUNCS,
        "matmul": linalg.matmul,
        "power": _power,
        "divmod": functions.UFUNCS["divmod"],
    }
    for name, op in BINARY.items():
        setattr(ndarray, f"__{name}__", _binary(table[op]))
        setattr(ndarray, f"__r{name}__", _reflected(table[op]))
        if name != "divmod":
            setattr(ndarray, f"__i{name}__", _in_place(table[op]))
    for name, op in COMPARE.items():
        setattr(ndarray, f"__{name}__", _binary(table[op]))
    for name, op in UNARY.items():
        function = table[op]
        setattr(ndarray, f"__{name}__", lambda self, function=function: function(self))


def _reshape(self: ndarray, *shape: Any, order: str = "C") -> ndarray:
    """As numpy.ndarray.reshape: a view where the memory allows it, else a copy."""
    return views.reshape(self, shape[0] if len(shape) == 1 else shape, order)


def _transpose(self: ndarray, *axes: Any) -> ndarray:
    """As numpy.ndarray.transpose: a view."""
    return views.transpose(self, (axes[0] if len(axes) == 1 else axes) if axes else None)


def _flatten(self: ndarray, order: str = "C") -> ndarray:
    """All values along one axis, a copy."""
    return views.ravel(self.copy(order), order)


def _sort(self: ndarray, axis: int = -1) -> None:
    """Sort in place."""
    writing.assign(self, sorting.sort(self, axis))


def _install_methods() -> None:
    for name in REDUCTIONS.split():
        setattr(ndarray, name, reductions.REDUCTIONS[name])
    methods: dict[str, Any] = {"reshape": _reshape, "transpose": _transpose, "flatten": _flatten, "sort": _sort}
    methods |= {name: views.FUNCTIONS[name] for name in ("ravel", "swapaxes", "squeeze", "repeat", "diagonal")}
    methods |= {"nonzero": indexing.nonzero, "take": indexing.take, "fill": writing.fill}
    methods |= {"clip": functions.clip, "dot": linalg.dot, "trace": linalg.trace, "argsort": sorting.argsort}
    methods |= {"__getitem__": indexing.getitem, "__setitem__": indexing.setitem}
    methods |= {"round": functions.round_, "conj": lambda self: self}
    for name, function in methods.items():
        setattr(ndarray, name, function)


_install_operators()
_install_methods()
