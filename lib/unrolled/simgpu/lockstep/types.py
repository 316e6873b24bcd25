"""C's types as cupyx.jit has them, and which operation it takes for operands of given types.

A scalar's type is NumPy's character for it. CuPy goes through the loops of an operation in the order below and takes
the first whose inputs stand no earlier in `ORDER` than what is given. Then each input is cast to the loop's type, which
fails where that loses more than precision: signed to unsigned, float to integer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.lockstep.faults import RefusedError

ORDER = "?bBhHiIlLqQefd"
NAMES = {code: str(np.dtype(code).name) for code in ORDER}
INTEGERS = "bBhHiIlLqQ"
SMALL = "bBhH"
FLOATS = "efd"


@dataclass(frozen=True)
class Scalar:
    """A number in a register, which is wider than a small type.

    float16 is computed in float32, as CuPy does, and integers below 32 bits in int32, as C++ promotes them: both are
    rounded or cut where they are stored.
    """

    code: str

    def __str__(self) -> str:
        return NAMES[self.code]

    @property
    def kind(self) -> str:
        """NumPy's kind: b, i, u or f."""
        kind: str = np.dtype(self.code).kind
        return kind

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values that lanes hold."""
        return np.dtype(np.float32 if self.code == "e" else np.int32 if self.code in SMALL else self.code)


@dataclass(frozen=True)
class Array:
    """An array argument, or a part of one: dtype, how many axes are left, and the name of the argument.

    Arrays of two arguments may have the same type, as in C++; which is which is known all the same (see `roots`).
    """

    code: str
    ndim: int
    root: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"array of {NAMES[self.code]} with {self.ndim} {'axis' if self.ndim == 1 else 'axes'}"


@dataclass(frozen=True, eq=False)
class Pointer:
    """Shared memory: a type of its own for each declaration, so that one never stands for another (as with CuPy)."""

    code: str
    number: int

    def __str__(self) -> str:
        return f"shared memory of {NAMES[self.code]}"


@dataclass(frozen=True)
class Tuple:
    types: tuple[Any, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.types))})"


@dataclass(frozen=True)
class Named:
    """What no variable computes with: nothing at all, or three indices."""

    name: str

    def __str__(self) -> str:
        return self.name


VOID, DIM3 = Named("void"), Named("dim3")


@dataclass(frozen=True)
class Range:
    """What a `for` goes through: the type of its counter, which is that of the end."""

    counter: Scalar

    def __str__(self) -> str:
        return "range"


Type: TypeAlias = Scalar | Array | Pointer | Tuple | Named | Range


def roots(kind: Type) -> tuple[str, ...]:
    """Return the names of the arguments that a value of this type is, or holds, a part of."""
    if isinstance(kind, Tuple):
        return tuple(root for part in kind.types for root in roots(part))
    return (kind.root,) if isinstance(kind, Array) else ()


def size(kind: Type) -> int:
    """Return how many values a variable of this type holds."""
    return sum(map(size, kind.types)) if isinstance(kind, Tuple) else 1


BOOL, INT32, UINT32, INT64, UINT64 = map(Scalar, "?iIqQ")
FLOAT32, FLOAT64 = map(Scalar, "fd")


def scalar_type(dtype: Any) -> Scalar:
    """Return the type of a NumPy dtype. Raises RefusedError for one that a register does not hold here."""
    code = np.dtype(np.dtype(dtype).name).char  # of two codes for int64, the one that CuPy's arrays have
    if code not in ORDER:
        raise RefusedError(
            TypeError,
            f"dtype is {np.dtype(dtype)}; the simulated compiler knows {', '.join(sorted({*NAMES.values()}))}",
        )
    return Scalar(code)


def type_of_number(x: Any) -> Scalar:
    """Return what a number is in a kernel: int32, int64 where it must; float32; a NumPy number's own type."""
    if isinstance(x, np.generic):
        return scalar_type(x.dtype)
    if isinstance(x, bool):
        return BOOL
    if isinstance(x, int):
        return INT32 if -(2**31) <= x < 2**31 else INT64
    if isinstance(x, float):
        return FLOAT32
    raise RefusedError(NotImplementedError, f"{x!r:.40} is no number that a kernel can hold")


def _each(codes: str, out: str = "", count: int = 2) -> tuple[tuple[str, str], ...]:
    return tuple((code * count, out or code) for code in codes)


ARITHMETIC = _each(ORDER)
DIVISION = _each(INTEGERS + FLOATS)
TRUE_DIVISION = (*((codes, "d") for codes in ("qq", "qQ", "Qq", "QQ")), *_each(FLOATS))
BITS = _each("?" + INTEGERS)
SHIFTS = _each(INTEGERS)
COMPARISON = tuple((codes, "?") for codes in ("??", "qq", "QQ", "qQ", "Qq", "ee", "ff", "dd"))
NEGATIVE = _each(INTEGERS + FLOATS, count=1)
INVERT = _each("?" + INTEGERS, count=1)
NOT = _each(ORDER, "?", 1)
ANY = _each(ORDER, count=1)
WHOLE = _each(INTEGERS, count=1)
REAL = _each(FLOATS, count=1)
REAL_PAIRS = _each(FLOATS)
REAL_TESTS = _each(FLOATS, "?", 1)
POWER = (("??", "b"), *_each(INTEGERS + FLOATS))


@lru_cache(maxsize=4096)
def loop(loops: tuple[tuple[str, str], ...], given: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (types of the inputs, type of the output) that CuPy takes for these types, or None."""
    for inputs, output in loops:
        if all(ORDER.index(code) <= ORDER.index(wanted) for code, wanted in zip(given, inputs, strict=True)):
            return inputs, output
    return None


def check_cast(given: Scalar, to: Scalar, casting: Any = "same_kind") -> None:
    """Raise RefusedError (TypeError), in CuPy's words, where the casting does not let one type become the other."""
    if not np.can_cast(np.dtype(given.code), np.dtype(to.code), casting):
        text = f"Cannot cast from '{given}' to {to} with casting rule {casting}."
        if given.kind == "i" and to == UINT32:
            text += f" threadIdx, grid() and their kin are unsigned: cast them once, as in cp.{given}(i)."
        elif given.kind == "f" and to.kind in "iu":
            text += " A variable keeps the type of its first value: begin it with cp.float32(0), not with 0."
        raise RefusedError(TypeError, text)
