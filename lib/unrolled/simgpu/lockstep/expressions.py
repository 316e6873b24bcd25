"""Expressions: each becomes its type and a function that computes it for the active lanes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.lockstep import access, arithmetic, constants, types
from unrolled.simgpu.lockstep.arithmetic import OPERATORS, Operation
from unrolled.simgpu.lockstep.arrays import Region
from unrolled.simgpu.lockstep.constants import Constant
from unrolled.simgpu.lockstep.faults import CompileException, RefusedError
from unrolled.simgpu.lockstep.lanes import Mask
from unrolled.simgpu.lockstep.state import Frame
from unrolled.simgpu.lockstep.types import Array, Pointer, Scalar, Tuple, Type

Compute: TypeAlias = Callable[[Frame, Mask], Any]


@dataclass(frozen=True, eq=False)
class Expr:
    """A value that only the lanes know."""

    type: Type
    run: Compute


class Half(Expr):
    """A float16 as it lies in an array. C++ has a class for it, and float for all other values of that type."""


Operand: TypeAlias = "Constant | Expr"


@dataclass(frozen=True, eq=False)
class Element:
    """One value in an array: a place to read, to write or to change. `root` is the argument, "" for shared memory."""

    type: Scalar
    part: Callable[[Frame, Mask, str], Region]
    root: str
    line: int

    def value(self) -> Expr:
        """Return the expression that reads it."""
        made = Half if self.type.code == "e" and self.root else Expr
        return made(self.type, lambda frame, mask: self.load(frame, self.part(frame, mask, "read"), mask))

    def load(self, frame: Frame, part: Region, mask: Mask) -> Any:
        """Return what the lanes' places hold, which `part` gave."""
        found = access.load(frame.run, part, mask, self.line)
        return found.astype(self.type.dtype, copy=False)


def constant(value: Any, kind: Scalar) -> Expr:
    """Return the expression of a number in a type. Raises RefusedError (OverflowError) if it does not fit."""
    try:
        with np.errstate(all="ignore"):
            found = np.dtype(kind.code).type(value).astype(kind.dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise RefusedError(type(error), str(error)) from None
    return Expr(kind, lambda frame, mask: found)


def lift(x: Operand) -> Expr:
    """Return a constant as an expression of the type that it has in a kernel; an expression comes back as it is."""
    if isinstance(x, Expr):
        return x
    if isinstance(x.value, tuple):
        return pack([Constant(part) for part in x.value])
    if not isinstance(x.value, constants.NUMBERS):
        what = constants.described(x.value)
        raise RefusedError(NotImplementedError, f"{what} is no number and no array that a kernel can hold")
    return constant(x.value, types.type_of_number(x.value))


def pack(parts: Sequence[Operand]) -> Expr:
    """Return a tuple of expressions."""
    found = [lift(part) for part in parts]
    runs = [part.run for part in found]
    return Expr(Tuple(tuple(part.type for part in found)), lambda frame, mask: tuple(run(frame, mask) for run in runs))


def size(x: Operand) -> int:
    """Return how many values a tuple holds, those of tuples in it included; 1 for anything else."""

    def counted(parts: Any) -> int:
        return sum(map(counted, parts)) if isinstance(parts, tuple) else 1

    if isinstance(x, Constant):
        return counted(x.value)
    return types.size(x.type)


def scalar_of(x: Operand) -> Scalar:
    """Return the type of a number. Raises RefusedError (TypeError) for an array, a tuple, a function."""
    kind = lift(x).type
    if not isinstance(kind, Scalar):
        one = ". A thread computes with one value: x[i], or x[i, j] where there are two axes"
        raise RefusedError(TypeError, f"{kind} is no number{one if isinstance(kind, Array) else ''}")
    return kind


def cast(x: Operand, to: Scalar, casting: str = "same_kind") -> Expr:
    """Return x in another type. Raises RefusedError (TypeError) where the casting does not allow it."""
    if isinstance(x, Constant):
        return constant(x.value, to)
    given, run = scalar_of(x), x.run
    if given.code == to.code:
        return x
    types.check_cast(given, to, casting)
    return Expr(to, lambda frame, mask: arithmetic.cast(run(frame, mask), given, to))


def apply(operation: Operation, operands: Sequence[Operand], line: int) -> Expr:
    """Return an operation on numbers, by the first of its loops that takes their types."""
    given = tuple(scalar_of(x).code for x in operands)
    if len(given) != len(operation.loops[0][0]):
        raise RefusedError(ValueError, f"{operation.name} takes {len(operation.loops[0][0])} numbers, got {len(given)}")
    loop = types.loop(operation.loops, given)
    if loop is None:
        names = ", ".join(types.NAMES[code] for code in given)
        kind = NotImplementedError if operation.name == "sign" else TypeError  # CuPy's is no single expression
        raise RefusedError(kind, f"{operation.name} does not take {names}")
    runs = [cast(x, Scalar(code)).run for x, code in zip(operands, loop[0], strict=True)]
    if loop[0] == "ee" and operation.name in arithmetic.OVERLOADED:
        check_halves(operands)

    def run(frame: Frame, mask: Mask) -> Any:
        values = [each(frame, mask) for each in runs]
        frame.run.counts.line(line).operations += operation.price * mask.count
        return operation.function(*values)

    return Expr(Scalar(loop[1]), run)


def check_halves(operands: Sequence[Operand]) -> None:
    """Raise RefusedError (CompileException) where C++ cannot tell which kind of float16 is to become the other."""
    if len({isinstance(x, Half) for x in operands}) > 1:
        text = "a float16 in an array does not go with a computed one here: write cp.float32(x[i])"
        raise RefusedError(CompileException, text)


def truth(x: Operand) -> Compute:
    """Return what computes whether a number is not 0."""
    return cast(x, types.BOOL, "unsafe").run


def both(op: ast.boolop, left: Operand, right: Operand) -> Expr:
    """Return `and` or `or`: the second is computed only in lanes that the first has not decided, as in C."""
    apply(OPERATORS[type(op).__name__], [left, right], 0)  # the types go together
    first, second, conjunction = truth(left), truth(right), isinstance(op, ast.And)

    def run(frame: Frame, mask: Mask) -> Any:
        x = first(frame, mask)
        rest = mask.where(x if conjunction else np.logical_not(x))
        if not rest.count:
            return x
        y = second(frame, rest)
        return np.logical_and(x, y) if conjunction else np.logical_or(x, y)

    return Expr(types.BOOL, run)


def choice(test: Operand, yes: Operand, no: Operand) -> Expr:
    """Return `yes if test else no`, each computed in its own lanes."""
    if isinstance(test, Constant):  # CuPy asks it for its type
        raise RefusedError(AttributeError, "the condition is known before the kernel runs: write only what it chooses")
    one = yes if not _is_plain(yes) else cast(yes, scalar_of(no))
    other = no if not _is_plain(no) else cast(no, scalar_of(yes))
    kind = scalar_of(one)
    if np.dtype(kind.code) != np.dtype(scalar_of(other).code):
        raise RefusedError(TypeError, f"`if … else` chooses between {kind} and {scalar_of(other)}: make them one type")
    if kind.code == "e":
        check_halves([one, other])
    condition, first, second = truth(test), lift(one).run, lift(other).run

    def run(frame: Frame, mask: Mask) -> Any:
        chosen = condition(frame, mask)
        here = mask.where(chosen)
        if here.count == mask.count:
            return first(frame, mask)
        if not here.count:
            return second(frame, mask)
        x, y = first(frame, here), second(frame, mask.less(here))
        return np.where(chosen, x, y)

    return type(lift(one))(kind, run)


def _is_plain(x: Operand) -> bool:
    """Whether it is a number of Python's, which takes the other one's type."""
    return isinstance(x, Constant) and not isinstance(x.value, np.generic)


def index(array: Operand, key: Operand, line: int) -> Operand | Element:
    """Return what an index names: a number in an array, a part of it, or a part of a tuple."""
    if isinstance(array, Constant):
        return _index_constant(array, key)
    if isinstance(array.type, Tuple):
        return _index_tuple(array, key)
    if not isinstance(array.type, (Array, Pointer)):
        raise RefusedError(TypeError, f"{array.type} has no parts to index")
    names = lift(key)
    keys = list(names.type.types) if isinstance(names.type, Tuple) else [names.type]
    ndim = array.type.ndim if isinstance(array.type, Array) else 1
    if ndim < len(keys) or (ndim == 0 and not isinstance(names.type, Tuple)):
        kind = IndexError if isinstance(names.type, Tuple) else TypeError
        flat = "; shared memory has one, so place (a, b) is a * width + b" if isinstance(array.type, Pointer) else ""
        raise RefusedError(kind, f"{len(keys)} indices for an array with {ndim} axes{flat}")
    if not all(isinstance(kind, Scalar) and kind.kind in "iu" for kind in keys):
        raise RefusedError(TypeError, f"an index is a whole number, got {names.type}; // divides whole numbers")
    whole, many, compute = array.run, isinstance(names.type, Tuple), names.run

    def part(frame: Frame, mask: Mask, does: str) -> Region:
        found = compute(frame, mask)
        return access.part(frame.run, whole(frame, mask), list(found) if many else [found], mask, line, does)

    if ndim > len(keys):
        assert isinstance(array.type, Array)
        rest = replace(array.type, ndim=ndim - len(keys))
        return Expr(rest, lambda frame, mask: part(frame, mask, "read"))
    root = array.type.root if isinstance(array.type, Array) else ""
    return Element(Scalar(array.type.code), part, root, line)


def _index_constant(array: Constant, key: Operand) -> Constant:
    if not isinstance(key, Constant) or not isinstance(array.value, tuple):
        raise RefusedError(
            TypeError, f"{constants.described(array.value)} cannot be indexed by what only the threads know"
        )
    try:
        return Constant(array.value[key.value])
    except (IndexError, TypeError) as error:
        raise RefusedError(type(error), str(error)) from None


def _index_tuple(array: Expr, key: Operand) -> Expr:
    assert isinstance(array.type, Tuple)
    if not isinstance(key, Constant) or not isinstance(key.value, int):
        raise RefusedError(
            TypeError, "a part of a tuple is named by a whole number that is known before the kernel runs"
        )
    place, size, run = key.value, len(array.type.types), array.run
    if not 0 <= place < size:
        raise RefusedError(IndexError, f"tuple index {place}; expected 0 to {size - 1}")
    return Expr(array.type.types[place], lambda frame, mask: run(frame, mask)[place])


def move(pointer: Expr, offset: Operand, sign: int) -> Expr:
    """Return a pointer into shared memory so many values further."""
    if scalar_of(offset).kind not in "iu":
        raise RefusedError(TypeError, "a pointer moves by whole numbers")
    start, by = pointer.run, lift(offset).run

    def run(frame: Frame, mask: Mask) -> Any:
        return start(frame, mask).moved(np.asarray(by(frame, mask)).astype(np.int64) * sign)

    return Expr(pointer.type, run)


def attribute(x: Expr, name: str) -> Operand:
    """Return an attribute of what lanes know: x, y, z of an index; shape, size, ndim and strides of an array."""
    run = x.run
    if x.type == types.DIM3 and name in "xyz":
        place = "xyz".index(name)
        return Expr(types.UINT32, lambda frame, mask: run(frame, mask)[place])
    if isinstance(x.type, (Array, Pointer)) and name == "ndim":
        return Constant(x.type.ndim if isinstance(x.type, Array) else 1)
    if isinstance(x.type, Array):
        many = Tuple((types.INT64,) * x.type.ndim)
        if name == "shape":
            return Expr(many, lambda frame, mask: tuple(map(np.int64, run(frame, mask).shape)))
        if name == "strides":
            return Expr(many, lambda frame, mask: _strides(run(frame, mask)))
        if name == "size":
            return Expr(types.INT64, lambda frame, mask: np.prod(run(frame, mask).shape, dtype=np.int64))
    raise RefusedError(AttributeError, f"{x.type} has no attribute {name!r} in a kernel")


def _strides(view: Region) -> tuple[Any, ...]:
    return tuple(np.int64(step * view.space.data.itemsize) for step in view.steps)
