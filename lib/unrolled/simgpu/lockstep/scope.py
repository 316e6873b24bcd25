"""What the names of a function stand for while it is compiled, and what its expressions are."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from unrolled.simgpu.lockstep import constants, expressions, types
from unrolled.simgpu.lockstep.arithmetic import FUNCTIONS, OPERATORS
from unrolled.simgpu.lockstep.builtins import BUILTINS, INDICES, KNOWN, Call, Needs
from unrolled.simgpu.lockstep.constants import Constant, Function, Name, TypeName
from unrolled.simgpu.lockstep.expressions import Element, Expr, Operand
from unrolled.simgpu.lockstep.faults import CompileException, OperatorError, RefusedError
from unrolled.simgpu.lockstep.lanes import Mask
from unrolled.simgpu.lockstep.source import LIMITS, Source, allowed
from unrolled.simgpu.lockstep.state import Frame
from unrolled.simgpu.lockstep.types import Pointer, Scalar, Type

_NO_MEANING: dict[type[ast.expr], str] = {
    **{ast.List: "a list", ast.Dict: "a dictionary", ast.Set: "a set", ast.JoinedStr: "an f-string"},
    **{ast.Slice: "a slice", ast.Starred: "a star", ast.NamedExpr: "an assignment in an expression"},
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), "a comprehension"),
}
Device = Callable[["Scope", Function, Sequence[Expr]], Expr]


class Scope:
    """The names of one function. `callers` are the functions that called it; `result` is the type that it returns.

    `device` compiles a call of another kernel: it belongs to a higher module.
    """

    device: Device

    def __init__(self, source: Source, needs: Needs, callers: tuple[str, ...] = (), result: Type | None = None) -> None:
        self.source, self.needs, self.callers, self.result = source, needs, callers, result
        self.constants: dict[str, Any] = {}
        self.variables: dict[str, Type] = {}
        self.loops = 0
        """Loops around the statement that is compiled."""
        self.refused: RefusedError | None = None
        """What CUDA's compiler refuses: it sees the kernel after CuPy has, which may refuse what comes later."""

    def line(self, node: ast.AST) -> int:
        return self.source.line(node)

    def declare(self, name: str, kind: Type) -> None:
        """Let a name stand for a variable of this type, from here on."""
        allowed(name)
        self.needs.variables += types.size(kind)
        if self.needs.variables > LIMITS.variables:
            raise RefusedError(ValueError, f"more than {LIMITS.variables} variables, counting each value of a tuple")
        self.variables[name] = kind

    # expressions

    def value(self, node: ast.expr, used: bool = True) -> Operand:
        """Return the expression of a node, read where it is a place in memory."""
        found = self.place(node, used)
        if isinstance(found, Element):
            self.needs.use(found.root, "read")
            return found.value()
        return found

    def place(self, node: ast.expr, used: bool = True) -> Operand | Element:
        """Return the expression of a node; an `Element` for a place in memory."""
        try:
            return _call(self, node, used) if isinstance(node, ast.Call) else self._forms(node)
        except RefusedError as error:
            raise error.at(node) from None

    def _forms(self, node: ast.expr) -> Operand | Element:
        match node:
            case ast.Constant(value=value):
                return Constant(constants.bounded(value))
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Attribute(value=whole, attr=name):
                if isinstance(found := self.value(whole), Expr):
                    return expressions.attribute(found, name)
                return self._known(Constant(constants.attribute(found.value, name, KNOWN)))
            case ast.Subscript(value=whole, slice=key):
                return expressions.index(self.value(whole), self.value(key), self.line(node))
            case ast.Tuple(elts=parts):
                return self._tuple([self.value(part) for part in parts])
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(op, [self.value(left), self.value(right)], node)
            case ast.UnaryOp(op=op, operand=operand):
                return self.operation(op, [self.value(operand)], node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.operation(op, [self.value(left), self.value(right)], node)
            case ast.Compare():
                raise RefusedError(
                    NotImplementedError, "a chain of comparisons has no meaning in a kernel: join two by `and`"
                )
            case ast.BoolOp(op=op, values=values):
                return self._both(op, [self.value(value) for value in values])
            case ast.IfExp(test=test, body=yes, orelse=no):
                return expressions.choice(self.value(test), self.value(yes), self.value(no))
            case ast.Lambda():
                raise RefusedError(NotImplementedError, "lambda is not supported in a kernel")
        what = _NO_MEANING.get(type(node), type(node).__name__)
        raise RefusedError(ValueError, f"{what} has no meaning in a kernel")

    def operation(self, op: ast.AST, operands: Sequence[Operand], node: ast.AST) -> Operand:
        """Return an operator's result: known now where all operands are, else an expression."""
        known = [x.value for x in operands if isinstance(x, Constant)]
        if len(known) == len(operands):
            return Constant(constants.operate(op, known))
        name = type(op).__name__
        if name in ("Add", "Sub") and (moved := _moved(name, operands)) is not None:
            return moved
        if name not in OPERATORS:
            raise RefusedError(OperatorError, f"the operator {name} has no meaning in a kernel")
        if name in ("Sub", "USub") and all(expressions.scalar_of(x).code == "?" for x in operands):
            raise RefusedError(TypeError, "`-` on bool is not supported; use ^ or not")
        if name == "Invert" and expressions.scalar_of(operands[0]).code == "?":
            raise RefusedError(NotImplementedError, "`~` on bool is not simulated: C makes -2 of ~True. Write `not`")
        return expressions.apply(OPERATORS[name], operands, self.line(node))

    def _name(self, name: str, node: ast.expr) -> Operand:
        variable = self.variables.get(name)
        if variable is None and name in self.constants:
            return self._known(Constant(self.constants[name]))
        if variable is None:
            raise RefusedError(NameError, f"{name!r} is not known here: no variable, no parameter and no name outside")
        line = self.line(node)

        def run(frame: Frame, mask: Mask) -> Any:
            if name in frame.values and name not in frame.partial:
                return frame.values[name]
            return frame.read(name, mask, line)

        return Expr(variable, run)

    def _known(self, found: Constant) -> Operand:
        """What a constant stands for in a kernel: an index such as threadIdx is no constant."""
        if isinstance(found.value, Name) and (name := found.value.path.removeprefix("jit.")) in INDICES:
            if name in self.variables:
                raise RefusedError(CompileException, f"`{name}` is a variable of the kernel, which hides jit.{name}")
            return INDICES[name]
        return found

    @staticmethod
    def _tuple(parts: Sequence[Operand]) -> Operand:
        if sum(map(expressions.size, parts)) > LIMITS.parts:  # in a tuple of itself, twice, and again, and again
            raise RefusedError(ValueError, f"a tuple of more than {LIMITS.parts} values")
        known = tuple(part.value for part in parts if isinstance(part, Constant))
        return Constant(known) if len(known) == len(parts) else expressions.pack(parts)

    @staticmethod
    def _both(op: ast.boolop, values: Sequence[Operand]) -> Operand:
        found = values[0]
        for value in values[1:]:
            if isinstance(found, Constant) and isinstance(value, Constant):
                found = Constant(constants.operate(op, [found.value, value.value]))
            else:
                found = expressions.both(op, found, value)
        return found


def _call(scope: Scope, node: ast.Call, used: bool) -> Operand:
    callee, line = scope.value(node.func), scope.line(node)
    arguments = [scope.value(argument) for argument in node.args]
    if any(word.arg is None for word in node.keywords):
        raise RefusedError(TypeError, "** is not supported in a call of a kernel")
    words = {str(word.arg): scope.value(word.value) for word in node.keywords}
    if isinstance(callee, Expr):
        raise RefusedError(TypeError, f"{callee.type} cannot be called")
    called = callee.value
    path = called.path if isinstance(called, Name) else ""
    if path in BUILTINS:
        function, call = BUILTINS[path], Call(line, scope.needs, used)
        try:
            inspect.signature(function).bind(call, *arguments, **words)
        except TypeError as error:
            raise RefusedError(TypeError, f"{path.partition('.')[2]}: {error}") from None
        return function(call, *arguments, **words)
    if words:
        raise RefusedError(TypeError, f"{constants.described(called)} takes no {next(iter(words))}= in a kernel")
    if isinstance(called, Function):
        return scope.device(scope, called, [expressions.lift(x) for x in arguments])
    module, _, name = path.partition(".")
    if module == "cupy" and name in FUNCTIONS:
        return expressions.apply(FUNCTIONS[name], arguments, line)
    known = [x.value for x in arguments if isinstance(x, Constant)]
    if len(known) == len(arguments):
        return Constant(constants.call(called, known))
    if isinstance(called, TypeName):
        if len(arguments) != 1:
            raise RefusedError(TypeError, f"{called.name}() takes one number, got {len(arguments)}")
        return expressions.cast(arguments[0], Scalar(called.dtype.char), "unsafe")
    raise RefusedError(TypeError, f"{constants.described(called)} cannot be called in a kernel")


def _moved(name: str, operands: Sequence[Operand]) -> Expr | None:
    """A pointer plus or minus a number; None where there is no pointer."""
    x, y = operands
    if isinstance(x, Expr) and isinstance(x.type, Pointer):
        return expressions.move(x, y, 1 if name == "Add" else -1)
    if name == "Add" and isinstance(y, Expr) and isinstance(y.type, Pointer):
        return expressions.move(y, x, 1)
    return None
