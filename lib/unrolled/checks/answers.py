"""What an exercise must not be solved with: the library, withheld while a learner's function runs.

All of it that computes refuses to run, but what the exercise allows (`Spec.allows`) and what its inputs are made of.
These may call all that they need themselves.

A learner may have a function by any name: `from unrolled.ops import conv2d as mine`, a partial, a layer made before. So
it is not the name that is withheld, but the code: within the block each function object has that of a gate, which asks
who calls.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import operator
import pkgutil
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from types import CellType, CodeType, FrameType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from . import exercises
from .spec import Function, Inputs, Spec

COMPUTES = tuple(
    f"unrolled.{name}"
    for name in ("data", "kernels", "nn", "ops", "parallel", "profile", "timing", "checks.exercises", "checks.mistakes")
)
"""How the names of the modules begin that are withheld. The array libraries are not, nor what shows and writes down."""
EXEMPT = (
    "unrolled.ops.arguments",
    *(f"unrolled.parallel.{name}" for name in ("calls", "communicator", "emulation", "errors", "launch", "links")),
    *(f"unrolled.parallel.{name}" for name in ("member", "mpi", "nccl", "network", "packing", "store", "team")),
)
"""These of them only look at arguments, and carry messages."""
BETWEEN = ("unrolled.", "contextlib", "functools")  # a function of the library and one that it calls may stand these
RUN_ANY = ("unrolled.simgpu.", "unrolled.ops.threads")  # the machine runs kernels, threads what others share out
CALLER = f"{__package__}.run"  # which calls the learner's function


class AnswerUsedError(Exception):
    """A learner's function called what its exercise does not allow. The text names it, for the learner."""


@dataclass(frozen=True, eq=False)
class _Block:
    shut: Sequence[FunctionType]
    callers: Mapping[int, CodeType]  # codes that may call them, by id: a code's hash is made of all that it holds
    advice: str


_OPEN: list[_Block] = []  # those that run, the innermost last
_LIFTED = _Block((), {}, "")  # that those around it let everything be called


def withheld_from(spec: Spec, inputs: Inputs) -> AbstractContextManager[None]:
    """Return a block in which the library is withheld, but what the spec allows and what inputs are made of."""
    return withheld(spec.allows, functions_in([inputs, spec.call]))


def withheld_from_timed(spec: Spec) -> AbstractContextManager[None]:
    """Return the same where calls are timed: the baseline runs there, and what times."""
    return withheld(spec.allows, {*_timing(), *functions_in([spec.speed and spec.speed.baseline])})


def _timing() -> set[FunctionType]:
    return {function for function in library() if function.__module__.startswith("unrolled.timing")}


@dataclass(frozen=True)
class OnRanks:
    """A program of ranks which, sent to another process, arrives there as it is, and the library is withheld there."""

    allows: Sequence[Function | ModuleType]
    share: Function | None
    program: Function

    def __call__(self, *arguments: Any) -> Any:
        return self.program(*arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        return _withheld_for_good, (self.allows, self.share, self.program)


def _withheld_for_good(allows: Sequence[Function | ModuleType], share: Function | None, program: Function) -> Function:
    _FOR_GOOD.enter_context(withheld(allows, {*_timing(), *functions_in([share])}))
    return program


_FOR_GOOD = ExitStack()


def withheld(
    allowed: Iterable[Function | ModuleType], needed: Iterable[FunctionType] = ()
) -> AbstractContextManager[None]:
    """Return a block that withholds the library, but what is allowed, which refusals name, and what is needed besides.

    Entering and leaving takes a quarter of a millisecond; nothing where such a block is `lifted`. Blocks may nest: what
    may be called is in both. In the end every function has its code back. A generator refuses when asked for its first
    value, even after the block.
    """
    known = library()  # what else is needed, such as a function made for one case, has its code in common with others
    block = _block(tuple(allowed), frozenset(each if each in known else each.__code__ for each in needed))
    return _within([block] if _OPEN[-1:] == [_LIFTED] else [*_OPEN, block])


def lifted() -> AbstractContextManager[None]:
    """Return a block, within one that withholds the library, where all of it may be called: what judges runs there."""
    return _within([*_OPEN, _LIFTED])


def restored() -> AbstractContextManager[None]:
    """Return a block where every function has its own code: for what reads it."""
    return _within([])


@contextmanager
def _within(blocks: list[_Block]) -> Iterator[None]:
    before = list(_OPEN)
    try:
        _OPEN[:] = blocks
        _give(*_between(tuple(before), tuple(blocks)))
        yield
    finally:
        _give(*_between(tuple(blocks), tuple(before)))
        _OPEN[:] = before


@functools.lru_cache(maxsize=1000)
def _between(
    before: tuple[_Block, ...], after: tuple[_Block, ...]
) -> tuple[Sequence[FunctionType], Sequence[CodeType]]:
    """The functions that refuse in one of these states and not in the other, and their codes in the second."""
    shut, wanted = ({function for block in blocks for function in block.shut} for blocks in (before, after))
    changed = list(shut ^ wanted)
    return changed, [library()[function][function in wanted] for function in changed]


def _give(functions: Iterable[FunctionType], codes: Iterable[CodeType]) -> None:
    """Exchange all codes in one call into C: an interrupt comes before it or after it, never in between."""
    list(map(setattr, functions, repeat("__code__"), codes))


@functools.lru_cache(maxsize=100)
def _block(allowed: tuple[Function | ModuleType, ...], needed: frozenset[FunctionType | CodeType]) -> _Block:
    modules = tuple(each.__name__ for each in allowed if isinstance(each, ModuleType))
    free = functions_in(allowed) | needed | {each for each in library() if each.__module__.startswith(modules)}
    shut = [function for function in library() if function not in free]
    freed: Iterable[Any] = (getattr(each, "__code__", each) for each in free)
    let_in = [*(inner for _, _, inner in library().values()), *(code for each in freed for code in _codes(each))]
    advice = f"; you may use {', '.join(map(known_as, allowed))}" if allowed else ""
    return _Block(shut, {id(code): code for code in let_in}, advice)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.cache
def library() -> Mapping[FunctionType, tuple[CodeType, CodeType, CodeType]]:
    """Return every function of the library that computes, methods included: its code, its gate, what runs behind that.

    Imports all of it: nothing comes later.
    """
    for name in ("exercises", "variants"):
        exercises.declared(name)
    for path in {name.split(".")[1] for name in COMPUTES} - {"checks"}:
        package = importlib.import_module(f"unrolled.{path}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with suppress(ImportError):  # of a library that this machine lacks
                importlib.import_module(module.name)
    found = functions_in([vars(module) for name, module in sys.modules.items() if name.startswith(COMPUTES)])
    return {function: _gate(function) for function in found if computes(str(function.__module__))}


def computes(module: str) -> bool:
    """Return whether a module of this name is withheld."""
    return module.startswith(COMPUTES) and not module.startswith(EXEMPT)


def functions_in(roots: Iterable[Any]) -> set[FunctionType]:
    """Return the functions that the roots hold: in data, partials, closures and the library's classes."""
    found: set[FunctionType] = set()
    seen: dict[int, Any] = {}  # the objects as well: no other may come to lie at their place
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if type(thing) in _PLAIN or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, FunctionType):
            found.add(thing)
            waiting += (thing.__closure__, thing.__defaults__, thing.__kwdefaults__, vars(thing))
        elif isinstance(thing, type):
            waiting += (*vars(thing).values(), *thing.__bases__) if _is_ours(thing) else ()
        elif isinstance(thing, _HOLDERS) or _is_ours(type(thing)):
            waiting += gc.get_referents(thing)
    return found


_PLAIN = (np.ndarray, int, float, str, bool, type(None), CodeType)  # hold no functions, and come most often
_HOLDERS = (  # types that hold other objects, among them functions
    *(dict, list, tuple, set, frozenset, MappingProxyType, CellType, MethodType, staticmethod, classmethod, property),
    *(functools.partial, functools.cached_property, functools._lru_cache_wrapper),
)


def _is_ours(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == "unrolled"


def _gate(function: FunctionType) -> tuple[CodeType, CodeType, CodeType]:
    """A function's code, that of a gate of its kind, with its closure's variables, and what runs behind the gate.

    That is a copy: from a function's own code whoever kept it may make another function, which is not let in.
    """
    code, copy = function.__code__, function.__code__.replace()
    vars(function)["__signature__"] = inspect.signature(function)  # a gate's own would be read instead
    inner = FunctionType(copy, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    inner.__kwdefaults__ = function.__kwdefaults__
    gate = (_generates if code.co_flags & inspect.CO_GENERATOR else _runs).__code__
    enter = functools.partial(_enter, inner, known_as(function))
    constants = tuple(enter if constant == "ENTER" else constant for constant in gate.co_consts)
    return code, gate.replace(co_consts=constants, co_freevars=code.co_freevars), copy


# This code runs among the globals of other modules, so a function is put in place of its constant.
def _runs(*arguments: Any, **options: Any) -> Any:
    enter: Any = "ENTER"
    return enter(*arguments, **options)


def _generates(*arguments: Any, **options: Any) -> Generator[Any, Any, Any]:
    enter: Any = "ENTER"
    return (yield from enter(*arguments, **options))


def _enter(function: FunctionType, name: str, /, *arguments: Any, **options: Any) -> Any:
    block = _OPEN[-1] if _OPEN else _block((), frozenset())
    if block is not _LIFTED and not _let_in(sys._getframe(2), block.callers):
        reason = f"this calls {name}, which this exercise does not allow: write it yourself{block.advice}"
        raise AnswerUsedError(reason)
    return function(*arguments, **options)


def _let_in(frame: FrameType | None, callers: Mapping[int, CodeType]) -> bool:
    """Whether the library calls from this frame: what runs of it was allowed, or let in itself."""
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if id(frame.f_code) in callers or module.startswith(RUN_ANY):
            return True
        if module == CALLER or not module.startswith(BETWEEN):
            break
        frame = frame.f_back
    return False


def known_as(function: Function | ModuleType) -> str:
    """Return the name by which a learner reaches a function: `ops.conv2d`, or if not exported `ops.blocks.forward`."""
    if isinstance(function, ModuleType):
        return function.__name__.removeprefix("unrolled.")
    module = function.__module__.removeprefix("unrolled.")
    package, name = module.partition(".")[0], function.__qualname__.removesuffix(".__init__")
    try:
        short = operator.attrgetter(function.__qualname__)(sys.modules[f"unrolled.{package}"])
    except (KeyError, AttributeError):
        short = None
    return f"{package if short is function else module}.{name}"
