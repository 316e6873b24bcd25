"""A kernel's source becomes a program: names and types are found once, then functions of lanes run it.

Types follow from the arguments, as in cupyx.jit: the same source is compiled anew for other types. A variable keeps the
type of its first value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from unrolled.simgpu.lockstep.builtins import Needs
from unrolled.simgpu.lockstep.constants import Function
from unrolled.simgpu.lockstep.expressions import Expr
from unrolled.simgpu.lockstep.faults import RefusedError
from unrolled.simgpu.lockstep.frame import Frame
from unrolled.simgpu.lockstep.lanes import Mask
from unrolled.simgpu.lockstep.scope import Scope
from unrolled.simgpu.lockstep.source import LIMITS, Source, parameters, parse
from unrolled.simgpu.lockstep.statements import Step, block
from unrolled.simgpu.lockstep.types import Array, Type, Void


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled kernel: `body` runs in a frame that holds its parameters."""

    name: str
    line: int
    parameters: list[str]
    body: Step
    needs: Needs


def compile_kernel(program: Any, arguments: Sequence[Type]) -> Program:
    """Return the program that plain data describes, for arguments of these types.

    Raises what CuPy raises for what it refuses (TypeError, NameError, NotImplementedError, ...), with the line.
    """
    try:
        source = Source.of(program)
    except RefusedError as error:
        raise error.kind(error.text) from None
    try:
        return _compiled(source, arguments)
    except RefusedError as error:
        raise source.error(error) from None
    except RecursionError:
        raise ValueError("a kernel with too many parts within each other") from None


def _compiled(source: Source, arguments: Sequence[Type]) -> Program:
    needs = Needs()
    function, needs.nodes = parse(source)
    names = parameters(function)
    if len(names) != len(arguments):
        text = f"{function.name}() takes {len(names)} positional arguments but {len(arguments)} were given."
        raise RefusedError(TypeError, text, function)
    scope = Scope(source, needs, result=Void())
    for name, kind in zip(names, arguments, strict=True):
        scope.declare(name, replace(kind, root=name) if isinstance(kind, Array) else kind)
    needs.sources.append(source)
    return Program(
        function.name[: LIMITS.shown], source.line(function), names, block(function.body, scope, True), needs
    )


def _call(scope: Scope, called: Function, arguments: Sequence[Expr], line: int) -> Expr:
    """Compile a call of another kernel: a frame of its own, for the lanes that call."""
    source = Source.of(called.program)
    inner = Scope(source, scope.needs, (*scope.callers, called.name))
    try:
        function, scope.needs.nodes = parse(source, scope.needs.nodes)
        names = parameters(function)
        if len(names) != len(arguments):
            raise RefusedError(TypeError, f"it takes {len(names)} arguments, got {len(arguments)}", function)
        for name, argument in zip(names, arguments, strict=True):
            inner.declare(name, argument.type)
        body = block(function.body, inner, True)
    except RefusedError as error:
        raise RefusedError(error.kind, f"in {called.name}, line {source.line(error.node)}: {error.text}") from None
    scope.needs.sources.append(source)
    runs = [argument.run for argument in arguments]

    def run(frame: Frame, mask: Mask) -> Any:
        called = Frame(frame.run, dict(zip(names, (run(frame, mask) for run in runs), strict=True)), mask)
        body(called, mask)
        return called.result

    return Expr(inner.result or Void(), run)


Scope.device = staticmethod(_call)
