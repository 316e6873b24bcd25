"""What is known when a kernel is compiled: numbers, types, tuples, and names of what the compiler knows.

They come as plain data, so that a kernel of another process can be compiled here. Arithmetic on constants is Python's,
as it is with CuPy; only what takes bounded time is computed.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu.lockstep.arithmetic import FUNCTIONS
from unrolled.simgpu.lockstep.faults import OperatorError, RefusedError
from unrolled.simgpu.lockstep.types import NAMES

BITS = 128
"""Most bits of a whole number that is known to the compiler; what a kernel holds has at most 64."""


@dataclass(frozen=True)
class Constant:
    """A value that is known to the compiler: a number, text, None, a tuple of them, or one of the classes below."""

    value: Any


@dataclass(frozen=True)
class Name:
    """Something by its name: "jit", "jit.grid", "cupy.exp", "math.sqrt", "builtins.len"."""

    path: str


@dataclass(frozen=True)
class TypeName:
    """A type, which casts when it is called: "float32", or Python's "int", "float" and "bool"."""

    name: str

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype({"int": "int64", "float": "float64"}.get(self.name, self.name))


@dataclass(frozen=True)
class Function:
    """Another kernel; one made with device=True can be called."""

    program: Any
    device: bool
    name: str


@dataclass(frozen=True)
class Opaque:
    """Anything else of the program: what it is called, and those of its attributes that are constants."""

    kind: str
    attributes: dict[str, Any] = field(default_factory=dict)


NUMBERS = (bool, int, float, np.generic)
MATH = frozenset(["sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "atan2", "fabs", "floor", "ceil"])
MODULES = {"cupy": frozenset(FUNCTIONS), "numpy": frozenset(FUNCTIONS), "math": MATH, "cupyx": frozenset({"jit"})}
_FIGURES = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
_TYPES = {name: TypeName(name) for name in NAMES.values()} | {"bool_": TypeName("bool")}
_TYPES |= {"intp": TypeName("int64"), "single": TypeName("float32"), "double": TypeName("float64")}


def read(data: Any, depth: int = 0) -> Any:
    """Return the constant that plain data describes. Raises RefusedError (ValueError) for other data."""
    match data:
        case {"number": bool() | int() | float() as number}:
            return bounded(number)
        case {"scalar": [str(name), bool() | int() | float() as number]} if name in NAMES.values():
            return np.dtype(name).type(number)
        case {"text": str(text)}:
            return text
        case {"none": True}:
            return None
        case {"tuple": list(parts)} if depth < 4:
            return tuple(read(part, depth + 1) for part in parts)
        case {"type": str(name)} if name in (*NAMES.values(), "int", "float"):
            return TypeName(name)
        case {"name": str(path)}:
            return Name(path)
        case {"kernel": dict(program), "device": bool(device), "called": str(name)}:
            return Function(program, device, name)
        case {"opaque": str(kind), "attributes": dict(attributes)} if depth < 4:
            return Opaque(kind, {str(name): read(value, depth + 1) for name, value in attributes.items()})
    raise RefusedError(ValueError, f"a constant {data!r:.80} that no front end of ours sends")


def bounded(value: Any) -> Any:
    """Return the value. Raises RefusedError (OverflowError) for a number that no kernel holds, nor computes with."""
    if isinstance(value, complex) or (isinstance(value, int) and value.bit_length() > BITS):
        raise RefusedError(OverflowError, f"a constant that is complex, or of more than {BITS} bits")
    return value


def attribute(value: Any, name: str, known: frozenset[str]) -> Any:
    """Return an attribute of a constant. known: the names of the jit module. Raises RefusedError (AttributeError)."""
    if isinstance(value, Opaque) and name in value.attributes:
        return value.attributes[name]
    if isinstance(value, Name):
        if value.path == "cupyx" and name == "jit":
            return Name("jit")
        if value.path == "jit" and name in known:
            return Name(f"jit.{name}")
        if value.path in ("cupy", "numpy") and name in _TYPES:
            return _TYPES[name]
        if value.path in ("cupy", "numpy", "math") and name in _FIGURES:
            return _FIGURES[name]
        if name in MODULES.get(value.path, ()):
            return Name(f"{value.path}.{name}")
    raise RefusedError(AttributeError, f"{described(value)} has no attribute {name!r} that a kernel can use")


def described(value: Any) -> str:
    """Return what a constant is called in a message."""
    match value:
        case Name(path=path):
            return path.removeprefix("builtins.")
        case TypeName(name=name) | Function(name=name):
            return name
        case Opaque(kind=kind):
            return f"a {kind}"
    return f"{value!r:.40}"


_OPERATORS: dict[str, Callable[..., Any]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv},
    **{"FloorDiv": operator.floordiv, "Mod": operator.mod, "Pow": operator.pow},
    **{"LShift": operator.lshift, "RShift": operator.rshift},
    **{"BitOr": operator.or_, "BitAnd": operator.and_, "BitXor": operator.xor},
    **{"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge},
    **{"USub": operator.neg, "Invert": operator.invert},
}
_ANY: dict[str, Callable[..., Any]] = {
    **{"Eq": operator.eq, "NotEq": operator.ne, "Not": operator.not_},
    **{"And": lambda x, y: x and y, "Or": lambda x, y: x or y},
}


def operate(op: ast.AST, values: list[Any]) -> Any:
    """Return what Python's operator gives for constants. Raises RefusedError, of Python's kind of error."""
    name = type(op).__name__
    if name in _ANY:
        return _ANY[name](*values)
    if name not in _OPERATORS:
        raise RefusedError(OperatorError, f"the operator {name} has no meaning in a kernel")
    if not all(isinstance(value, NUMBERS) for value in values):
        raise RefusedError(TypeError, f"operator {name} on {' and '.join(map(described, values))}")
    whole = all(isinstance(value, (int, np.integer)) for value in values)
    if name in ("Pow", "LShift") and whole and abs(int(values[1])) > BITS:
        raise RefusedError(OverflowError, f"a constant of more than {BITS} bits")
    return _plain(lambda: _OPERATORS[name](*values))


def call(function: Any, values: list[Any]) -> Any:
    """Return what a function of the library gives for constants: casts, `abs`, `round`, and those of `math`."""
    if isinstance(function, TypeName):
        kinds: dict[str, Any] = {"int": int, "float": float, "bool": bool}
        return _plain(lambda: kinds.get(function.name, function.dtype.type)(*values))
    path = function.path if isinstance(function, Name) else ""
    module, _, name = path.partition(".")
    numbers = all(isinstance(value, NUMBERS) for value in values)
    if module == "math" and name in MATH and numbers:
        return _plain(lambda: getattr(math, name)(*values))
    if path in ("builtins.abs", "builtins.round") and numbers and len(values) == 1:
        return _plain(lambda: abs(*values) if name == "abs" else round(*values))
    raise RefusedError(TypeError, f"{described(function)} cannot be called in a kernel")


def _plain(compute: Callable[[], Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            found = compute()
    except (ArithmeticError, TypeError, ValueError) as error:
        raise RefusedError(type(error), str(error)) from None
    return bounded(found)
