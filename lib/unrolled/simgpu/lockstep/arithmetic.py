"""C's arithmetic with NumPy: functions of values that have the loop's dtype already, lanes or single numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.arithmetic import floor_divide, nextafter, remainder, shift, unrooted
from unrolled.simgpu.conversion import to_integers
from unrolled.simgpu.lockstep import types
from unrolled.simgpu.lockstep.types import Scalar

Value: TypeAlias = Any  # lanes, (blocks or 1, threads or 1), or a NumPy scalar: the same in all lanes
Loops: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Operation:
    """What an operator or a function of the library computes: its loops, and the price of one value in operations."""

    name: str
    loops: Loops
    function: Callable[..., Value]
    price: int = 1


def cast(value: Value, given: Scalar, to: Scalar) -> Value:
    """Return the value in the other type, as C converts it on a GPU: a small integer keeps its last bits."""
    if to.kind == "b":
        return value != 0
    if given.kind == "f" and to.kind in "iu":
        value = to_integers(value, to.code)
    elif to.code in types.SMALL:
        value = value.astype(to.code)
    return value.astype(to.dtype, copy=False)


def _power(x: Value, y: Value) -> Value:
    """Whole numbers to a negative power are 0, unless the base is 1 or -1."""
    if x.dtype.kind not in "i":
        return np.power(unrooted(x, y), y)
    found = np.power(x, np.where(y < 0, y.dtype.type(0), y))
    return np.where(y < 0, np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0)), found).astype(x.dtype)


def _by_type(name: str, bools: str) -> Callable[..., Value]:
    function, for_bools = getattr(np, name), getattr(np, bools)
    return lambda x, y: for_bools(x, y) if x.dtype.kind == "b" else function(x, y)


def _rounded(name: str) -> Callable[..., Value]:
    function = getattr(np, name)
    return lambda x: function(x) if x.dtype.kind == "f" else x  # NumPy 2.0 makes floats of whole numbers


NO_BOOLS = types.DIVISION
OPERATORS: dict[str, Operation] = {
    "Add": Operation("add", types.ARITHMETIC, _by_type("add", "bitwise_or")),
    "Sub": Operation("subtract", NO_BOOLS, np.subtract),
    "Mult": Operation("multiply", types.ARITHMETIC, _by_type("multiply", "bitwise_and")),
    "Pow": Operation("power", types.POWER, _power, 32),
    "Div": Operation("true_divide", types.TRUE_DIVISION, np.true_divide, 8),
    "FloorDiv": Operation("floor_divide", types.DIVISION, floor_divide, 8),
    "Mod": Operation("remainder", types.DIVISION, remainder, 8),
    "LShift": Operation("left_shift", types.SHIFTS, shift(np.left_shift)),
    "RShift": Operation("right_shift", types.SHIFTS, shift(np.right_shift)),
    "BitOr": Operation("bitwise_or", types.BITS, np.bitwise_or),
    "BitAnd": Operation("bitwise_and", types.BITS, np.bitwise_and),
    "BitXor": Operation("bitwise_xor", types.BITS, np.bitwise_xor),
    "Eq": Operation("equal", types.COMPARISON, np.equal),
    "NotEq": Operation("not_equal", types.COMPARISON, np.not_equal),
    "Lt": Operation("less", types.COMPARISON, np.less),
    "LtE": Operation("less_equal", types.COMPARISON, np.less_equal),
    "Gt": Operation("greater", types.COMPARISON, np.greater),
    "GtE": Operation("greater_equal", types.COMPARISON, np.greater_equal),
    "And": Operation("logical_and", types.COMPARISON, np.logical_and),
    "Or": Operation("logical_or", types.COMPARISON, np.logical_or),
    "USub": Operation("negative", types.NEGATIVE, np.negative),
    "Invert": Operation("invert", types.INVERT, np.invert),
    "Not": Operation("logical_not", types.NOT, np.logical_not),
}
"""By the name of Python's syntax for it (`ast.Add`)."""


def _functions() -> dict[str, Operation]:
    """CuPy's functions of single values, by name."""
    found: dict[str, Operation] = {}

    def add(names: str, loops: Loops, price: int = 1) -> None:
        found.update({name: Operation(name, loops, getattr(np, name), price) for name in names.split()})

    add("exp exp2 expm1 log log2 log10 log1p", types.REAL, 16)
    add("sin cos tan arcsin arccos arctan", types.REAL, 20)
    add("sinh cosh tanh arcsinh arccosh arctanh", types.REAL, 24)
    add("sqrt cbrt", types.REAL, 8)
    add("rint fabs deg2rad rad2deg", types.REAL)
    for name in ("floor", "ceil", "trunc"):
        found[name] = Operation(name, types.ANY, _rounded(name))
    add("arctan2", types.REAL_PAIRS, 20)
    add("hypot copysign", types.REAL_PAIRS, 8)
    add("isnan isinf isfinite signbit", types.REAL_TESTS)
    add("absolute", types.ANY)
    add("square", types.NEGATIVE)
    add("sign", types.WHOLE)
    found["nextafter"] = Operation("nextafter", types.REAL_PAIRS, nextafter, 8)
    add("maximum minimum fmax fmin", types.ARITHMETIC)
    for operation in OPERATORS.values():
        found[operation.name] = operation
    found |= {"abs": found["absolute"], "divide": found["true_divide"], "mod": found["remainder"]}
    return found


FUNCTIONS = _functions()
OVERLOADED = frozenset(["maximum", "minimum", "fmax", "fmin", "copysign", "nextafter"])
"""Functions that CuPy's header has for its class of float16, too."""
