"""A kernel's source becomes a program: names and types are found once, then functions of lanes run it.

Types follow from the arguments, as in cupyx.jit: the same source is compiled anew for other types. A variable keeps the
type of its first value.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrolled.simgpu.lockstep import constants
from unrolled.simgpu.lockstep.builtins import Needs
from unrolled.simgpu.lockstep.constants import Function
from unrolled.simgpu.lockstep.expressions import Expr
from unrolled.simgpu.lockstep.faults import RefusedError
from unrolled.simgpu.lockstep.lanes import Mask
from unrolled.simgpu.lockstep.scope import Scope
from unrolled.simgpu.lockstep.source import LIMITS, Source, parameters, parse
from unrolled.simgpu.lockstep.state import Frame
from unrolled.simgpu.lockstep.statements import Step, block
from unrolled.simgpu.lockstep.types import VOID, Array, Type


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled kernel: `body` runs in a frame that holds its parameters."""

    name: str
    line: int
    parameters: list[str]
    body: Step
    needs: Needs


KEPT = 100  # programs
_KNOWN: dict[tuple[str, tuple[Type, ...]], Program] = {}


def compile_kernel(program: Any, arguments: Sequence[Type]) -> Program:
    """Return the program that plain data describes, for arguments of these types: compiled once, as CuPy's are.

    Raises what CuPy raises for what it refuses (TypeError, NameError, NotImplementedError, ...), with the line.
    """
    if found := _KNOWN.get(key := (repr(program), tuple(arguments))):
        return found
    try:
        source = Source.of(program)
    except RefusedError as error:
        raise error.kind(error.text) from None
    if len(_KNOWN) >= KEPT:
        _KNOWN.clear()
    try:
        return _KNOWN.setdefault(key, _compiled(source, arguments))
    except RefusedError as error:
        raise source.error(error) from None
    except RecursionError:
        raise ValueError("a kernel with too many parts within each other") from None


def _compiled(source: Source, arguments: Sequence[Type]) -> Program:
    needs = Needs(sources=[source])
    scope = Scope(source, needs, result=VOID)
    text = "{}() takes {} positional arguments but {} were given."
    function, names, body = _function(scope, arguments, text, rooted=True)
    return Program(function.name[: LIMITS.shown], source.line(function), names, body, needs)


def _function(
    scope: Scope, arguments: Sequence[Type], wrong: str, rooted: bool = False
) -> tuple[ast.FunctionDef, list[str], Step]:
    """The function of a scope, its parameters and its body. rooted: arrays get the names of the parameters."""
    function, scope.needs.nodes = parse(scope.source, scope.needs.nodes)
    names = parameters(function)
    if len(names) != len(arguments):
        raise RefusedError(TypeError, wrong.format(function.name, len(names), len(arguments)), function)
    scope.constants = {name: constants.read(data) for name, data in scope.source.constants.items()}
    for name, kind in zip(names, arguments, strict=True):
        scope.declare(name, replace(kind, root=name) if rooted and isinstance(kind, Array) else kind)
    body = block(function.body, scope, True)
    if scope.refused:
        raise scope.refused
    return function, names, body


def _call(scope: Scope, called: Function, arguments: Sequence[Expr]) -> Expr:
    """Compile a call of another kernel: a frame of its own, for the lanes that call."""
    if not called.device:
        text = f"{called.name} cannot be called from a kernel: it was not made with device=True"
        raise RefusedError(TypeError, text)
    if called.name in scope.callers:
        raise RefusedError(ValueError, f"{called.name} calls itself, which a kernel cannot")
    scope.needs.calls += 1
    if scope.needs.calls > LIMITS.functions:
        raise RefusedError(ValueError, f"more than {LIMITS.functions} calls of other kernels")
    source = Source.of(called.program)
    inner = Scope(source, scope.needs, (*scope.callers, called.name))
    try:
        _, names, body = _function(inner, [argument.type for argument in arguments], "it takes {1} arguments, got {2}")
    except RefusedError as error:
        raise RefusedError(error.kind, f"in {called.name}, line {source.line(error.node)}: {error.text}") from None
    scope.needs.sources.append(source)

    def run(frame: Frame, mask: Mask) -> Any:
        values = {name: argument.run(frame, mask) for name, argument in zip(names, arguments, strict=True)}
        called = Frame(frame.run, values, mask)
        body(called, mask)
        return called.result

    return Expr(inner.result or VOID, run)


Scope.device = staticmethod(_call)
