"""Statements: each becomes a function that takes the active lanes and returns those that go on to the next one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from unrolled.simgpu.lockstep import access, arithmetic, constants, expressions, types
from unrolled.simgpu.lockstep.constants import Constant
from unrolled.simgpu.lockstep.expressions import Element, Expr
from unrolled.simgpu.lockstep.faults import CompileException, RefusedError
from unrolled.simgpu.lockstep.lanes import Mask
from unrolled.simgpu.lockstep.scope import Scope
from unrolled.simgpu.lockstep.state import Frame
from unrolled.simgpu.lockstep.types import Pointer, Range, Scalar, Tuple

Step: TypeAlias = Callable[[Frame, Mask], Mask]
Store: TypeAlias = Callable[[Frame, Mask, Any], None]

UNWRITTEN = "not written yet: the line `raise NotImplementedError` is still there"
"""What an exercise's kernel is told that nobody has written; a check knows these words."""

_OUTSIDE = "a kernel holds no function of its own: write it outside, with device=True"
_REFUSED: dict[type[ast.stmt], tuple[type[Exception], str]] = {
    ast.ClassDef: (NotImplementedError, "a kernel holds no class"),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), (NotImplementedError, _OUTSIDE)),
    ast.Delete: (NotImplementedError, "a kernel cannot delete"),
    ast.AnnAssign: (AssertionError, "a variable with a type annotation is not supported"),
    ast.AsyncFor: (ValueError, "a kernel has no `async`"),
    **dict.fromkeys((ast.With, ast.AsyncWith), (ValueError, "a kernel has no `with`")),
    **dict.fromkeys((ast.Raise, ast.Try), (ValueError, "a kernel neither raises nor catches")),
    **dict.fromkeys((ast.Import, ast.ImportFrom), (ValueError, "a kernel cannot import: do so outside")),
    **dict.fromkeys((ast.Global, ast.Nonlocal), (ValueError, "a kernel cannot change what lies outside")),
    ast.Match: (AssertionError, "match is not supported"),
}


def block(statements: Sequence[ast.stmt], scope: Scope, top: bool) -> Step:
    """Return a function that runs statements one after the other. top: they are in no loop and no branch."""
    steps: list[Step] = []
    for statement in statements:
        try:
            step = _step(statement, scope, top)
        except RefusedError as error:
            if error.kind is not CompileException and not (scope.refused and error.kind is NameError):
                raise error.at(statement) from None
            scope.refused, step = scope.refused or error.at(statement), None
        steps += [step] if step else []

    def run(frame: Frame, mask: Mask) -> Mask:
        for step in steps:
            if not mask.count:
                break
            mask = step(frame, mask)
        return mask

    return run


def _step(node: ast.stmt, scope: Scope, top: bool) -> Step | None:
    match node:
        case ast.Assign():
            return _assign(node, scope, top)
        case ast.AugAssign():
            return _change(node, scope)
        case ast.If():
            return _if(node, scope, top)
        case ast.For() | ast.While() if node.orelse:
            raise RefusedError(NotImplementedError, "a loop of a kernel has no `else`")
        case ast.For():
            return _for(node, scope)
        case ast.While():
            return _loop(node, scope, expressions.truth(scope.value(node.test)))
        case ast.Return():
            return _return(node, scope)
        case ast.Expr():
            value = scope.value(node.value, used=False)
            return None if isinstance(value, Constant) else _evaluated(value)  # a constant is a docstring
        case ast.Assert():
            test = scope.value(node.test)
            if not isinstance(test, Constant):
                raise RefusedError(TypeError, "assert on what only the threads know is not supported")
            if not test.value:
                raise RefusedError(AssertionError, "assert fails")
            return None
        case ast.Pass():
            return None
        case ast.Break() | ast.Continue() if not scope.loops:
            raise RefusedError(SyntaxError, "break and continue belong into a loop")
        case ast.Break() | ast.Continue():
            return partial(_leave, type(node))
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id == "NotImplementedError":
        raise RefusedError(ValueError, UNWRITTEN)
    kind, text = _REFUSED.get(type(node), (AssertionError, f"{type(node).__name__} is not supported"))
    raise RefusedError(kind, text)


def _evaluated(value: Expr) -> Step:
    def run(frame: Frame, mask: Mask) -> Mask:
        value.run(frame, mask)
        return mask

    return run


# assignment


def _assign(node: ast.Assign, scope: Scope, top: bool) -> Step | None:
    if len(node.targets) != 1:
        raise RefusedError(NotImplementedError, "an assignment to several targets is not implemented")
    value, target = scope.value(node.value), node.targets[0]
    if isinstance(value, Constant) and isinstance(target, ast.Name) and not isinstance(value.value, constants.NUMBERS):
        if not top:
            raise RefusedError(TypeError, "a name can stand for a type or a text only outside of loops and branches")
        if target.id in scope.variables:
            raise RefusedError(TypeError, f"`{target.id}` is a variable: it cannot stand for a type or a text as well")
        scope.constants[target.id] = value.value
        return None
    found = expressions.lift(value)
    store, compute = _target(target, found.type, scope), found.run

    def run(frame: Frame, mask: Mask) -> Mask:
        store(frame, mask, compute(frame, mask))
        return mask

    return run


def _target(node: ast.expr, kind: types.Type, scope: Scope) -> Store:
    """What writes a value of this type to the target."""
    if isinstance(node, ast.Name):
        return _variable(node.id, kind, scope)
    if isinstance(node, ast.Subscript):
        place = scope.place(node)
        if not isinstance(place, Element):
            raise RefusedError(TypeError, "only one value can be assigned: give all indices")
        scope.needs.use(place.root, "write")
        convert = _converted(kind, place.type)
        return lambda frame, mask, value: access.store(
            frame.run, place.part(frame, mask, "write"), convert(value), mask, place.line
        )
    if isinstance(node, ast.Tuple):
        return _unpacked(node, kind, scope)
    raise RefusedError(AssertionError, f"{type(node).__name__} cannot be assigned to")


def _variable(name: str, kind: types.Type, scope: Scope) -> Store:
    if name not in scope.variables:
        if name in scope.constants:
            text = f"`{name}` stands for something outside the kernel, so it cannot be a variable in it"
            raise RefusedError(TypeError, text)
        if kind == types.VOID or isinstance(kind, Range):
            raise RefusedError(TypeError, f"a variable cannot hold {kind}")
        scope.declare(name, kind)
        if isinstance(kind, Pointer):
            scope.needs.shared[kind.number].name = name
        keep = _converted(kind, kind)  # a small integer of what was computed in int32
        return lambda frame, mask, value: frame.assign(name, keep(value), mask)
    known = scope.variables[name]
    convert = _converted(kind, known, f"`{name}`")
    if types.roots(kind) != types.roots(known):
        raise RefusedError(TypeError, f"`{name}` stands for another array: take another name")
    return lambda frame, mask, value: frame.assign(name, convert(value), mask)


def _converted(kind: types.Type, to: types.Type, what: str = "this place") -> Callable[[Any], Any]:
    """What makes a value of one type one of another. Raises RefusedError (TypeError) where C++ or CuPy does not."""
    if isinstance(kind, Scalar) and isinstance(to, Scalar):
        types.check_cast(kind, to)
        return partial(arithmetic.cast, given=kind, to=to)
    if kind != to:
        raise RefusedError(TypeError, f"{what} holds {to}: it cannot take {kind}")
    return lambda value: value


def _unpacked(node: ast.Tuple, kind: types.Type, scope: Scope) -> Store:
    if not isinstance(kind, Tuple):
        raise RefusedError(ValueError, f"{kind} cannot be unpacked")
    if len(kind.types) != len(node.elts):
        few = "too many" if len(kind.types) > len(node.elts) else "not enough"
        raise RefusedError(ValueError, f"{few} values to unpack (expected {len(node.elts)})")
    stores = [_target(target, part, scope) for target, part in zip(node.elts, kind.types, strict=True)]

    def store(frame: Frame, mask: Mask, value: Any) -> None:
        for write, part in zip(stores, value, strict=True):
            write(frame, mask, part)

    return store


def _change(node: ast.AugAssign, scope: Scope) -> Step:
    """`x += 1`. The value has its own type first, so a number of Python's is int32 or float32."""
    value, place = expressions.lift(scope.value(node.value)), scope.place(node.target)
    if isinstance(place, Constant):
        raise RefusedError(AttributeError, "a constant cannot be changed")
    if not isinstance(place.type, Scalar):
        raise RefusedError(AssertionError, f"{place.type} cannot be changed by such an operator")
    if isinstance(place, Element) and place.root and place.type.code == "e":  # CuPy takes it for a float in memory
        raise RefusedError(CompileException, "a float16 in an array is not changed in place: write y[i] = y[i] + …")
    old = Expr(place.type, lambda frame, mask: frame.held)
    new = expressions.cast(scope.operation(node.op, [old, value], node), place.type).run
    if isinstance(place, Element):
        for what in ("read", "write"):
            scope.needs.use(place.root, what)

        def run(frame: Frame, mask: Mask) -> Mask:
            part = place.part(frame, mask, "write")
            frame.held = place.load(frame, part, mask)
            access.store(frame.run, part, new(frame, mask), mask, place.line)
            return mask

        return run
    assert isinstance(node.target, ast.Name)
    name, read = node.target.id, place.run

    def run_name(frame: Frame, mask: Mask) -> Mask:
        frame.held = read(frame, mask)
        frame.assign(name, new(frame, mask), mask)
        return mask

    return run_name


# control flow


def _if(node: ast.If, scope: Scope, top: bool) -> Step:
    test, line = scope.value(node.test), scope.line(node)
    if isinstance(test, Constant):
        return block(node.body if test.value else node.orelse, scope, top)
    condition = expressions.truth(test)
    yes, no = block(node.body, scope, False), block(node.orelse, scope, False)

    def run(frame: Frame, mask: Mask) -> Mask:
        here, there = frame.branch(mask, condition(frame, mask), line)
        after = yes(frame, here).plus(no(frame, there))
        return mask if after.count == mask.count else after

    return run


def _for(node: ast.For, scope: Scope) -> Step:
    if not isinstance(node.target, ast.Name):
        raise RefusedError(AssertionError, "a loop has one counter: for name in range(...)")
    name, iterable = node.target.id, scope.value(node.iter)
    if isinstance(iterable, Constant) or not isinstance(iterable.type, Range):
        raise RefusedError(NotImplementedError, "a loop goes through a range of numbers only")
    counter, known = iterable.type.counter, scope.variables.get(name)
    if known is None and name in scope.constants:
        raise RefusedError(TypeError, f"`{name}` stands for something outside the kernel, so it cannot count a loop")
    if known is not None and not (isinstance(known, Scalar) and np.dtype(known.code) == np.dtype(counter.code)):
        raise RefusedError(TypeError, f"`{name}` holds {known}: it cannot count a range of {counter}")
    if known is None:
        scope.declare(name, counter)
    return _loop(node, scope, iterable.run, name)


def _loop(node: ast.For | ast.While, scope: Scope, compute: expressions.Compute, counter: str = "") -> Step:
    """A loop: `compute` gives its condition for each turn or, where it has a counter, the counter's range."""
    scope.loops += 1
    body = block(node.body, scope, False)
    scope.loops -= 1
    line, size = scope.line(node), sum(isinstance(part, ast.stmt) for part in ast.walk(node))

    def run(frame: Frame, mask: Mask) -> Mask:
        value, stop, step, rising = compute(frame, mask) if counter else (0, 0, 0, True)
        falling = not np.all(rising)  # in some lanes, or in all
        loop: dict[type[ast.stmt], Mask] = dict.fromkeys((ast.Break, ast.Continue), mask.batch.none)
        frame.loops.append(loop)
        active, done = mask, mask.batch.none
        while active.count:
            goes = value < stop if counter else compute(frame, active)
            if falling:
                goes = np.where(rising, goes, value > stop) if np.ndim(rising) else value > stop
            active, out = frame.branch(active, goes, line)
            done = done.plus(out)
            if active.count:
                if counter:
                    frame.assign(counter, value, active)
                frame.run.step(line, size, active)
                after = body(frame, active).plus(loop[ast.Continue])
                loop[ast.Continue] = active.batch.none
                active = active if after.count == active.count else after
            value = value + step
        frame.loops.pop()
        after = done.plus(loop[ast.Break])
        return mask if after.count == mask.count else after  # the same object where all lanes are back

    return run


def _leave(how: type[ast.stmt], frame: Frame, mask: Mask) -> Mask:
    frame.loops[-1][how] = frame.loops[-1][how].plus(mask)
    return mask.batch.none


def _return(node: ast.Return, scope: Scope) -> Step:
    value = Constant(None) if node.value is None else scope.value(node.value)
    found = None if value == Constant(None) else expressions.lift(value)
    if found is not None:
        scope.result = found.type if scope.result is None else scope.result
        if scope.result != found.type:
            raise RefusedError(ValueError, f"it returns {found.type} here, and {scope.result} otherwise")

    def run(frame: Frame, mask: Mask) -> Mask:
        frame.give(None if found is None else found.run(frame, mask), mask)
        return mask.batch.none

    return run
