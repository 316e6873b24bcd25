"""What an exercise must not be solved with: the library's own answers, withheld while a learner's function runs.

Those are the answers to the exercise, and all that the checks are made of: references of other exercises, usual
mistakes, parts of either. What is left, such as `ops`, holds no answer that its spec does not name: a test tries all.

A learner may have taken a function by any name: `from unrolled.ops import conv2d as mine`, a partial, a re-export. So
it is not the name that is withheld, but the code: within the block the function object itself has another.
"""

from __future__ import annotations

import functools
import gc
import inspect
import operator
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from itertools import repeat
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NoReturn

from . import exercises
from .spec import Function, Inputs, Spec

SPECS = (f"{exercises.__name__}.", f"{__package__}.mistakes")  # how the names of the modules of specs begin


class AnswerUsedError(Exception):
    """A learner's function called the library's answer to its exercise. The text says which one, for the learner."""


def answers_of(spec: Spec) -> tuple[Function, ...]:
    """Return every function that is an answer to the exercise: reference, the speed's baseline, and `spec.answers`."""
    timed = (spec.speed.baseline,) if spec.speed else ()
    return tuple(dict.fromkeys((spec.reference, *timed, *spec.answers)))


def withheld_from(spec: Spec, inputs: Inputs) -> withheld:
    """Return a `withheld` block for all that a function must not call: not what inputs or `spec.call` are made of."""
    return _withheld(answers_of(spec), frozenset(functions_in([inputs, spec.call], by_name=True)))


@functools.lru_cache(maxsize=100)
def _withheld(answers: tuple[Function, ...], needed: frozenset[FunctionType]) -> withheld:
    return withheld((*answers, *(checks_functions() - needed)))


@functools.cache
def checks_functions() -> frozenset[FunctionType]:
    """Return every function of the specs, not of the framework: that holds no answer, and runs during judgement."""
    for name in ("exercises", "variants"):
        exercises.declared(name)
    found = functions_in([vars(module) for name, module in sys.modules.items() if name.startswith(SPECS)])
    return frozenset(function for function in found if str(function.__module__).startswith(SPECS))


def functions_in(roots: Iterable[Any], *, by_name: bool = False) -> set[FunctionType]:
    """Return the functions that can be reached from the roots: in data, partials, closures and the library's classes.

    With `by_name`, also those of `unrolled.checks` whose names stand in the code of one that was reached.
    """
    found: set[FunctionType] = set()
    seen: dict[int, Any] = {}  # the objects as well: no other may come to lie at their place
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        if isinstance(thing, FunctionType):
            found.add(thing)
            waiting += (thing.__closure__, thing.__defaults__, thing.__kwdefaults__, vars(thing))
            waiting += _named_in(thing.__code__, thing.__globals__) if by_name else ()
        elif isinstance(thing, type):
            waiting += (*vars(thing).values(), *thing.__bases__) if _is_ours(thing) else ()
        elif isinstance(thing, _HOLDERS) or _is_ours(type(thing)):
            waiting += gc.get_referents(thing)
    return found


_HOLDERS = (  # types that hold other objects, among them functions
    *(dict, list, tuple, set, frozenset, MappingProxyType, CellType, MethodType, staticmethod, classmethod, property),
    *(functools.partial, functools.cached_property, functools._lru_cache_wrapper),
)


def _is_ours(kind: type) -> bool:
    return str(kind.__module__).partition(".")[0] == "unrolled"


def _named_in(code: CodeType, space: Mapping[str, Any]) -> Iterator[Any]:
    """Functions and classes of `unrolled.checks` whose names stand in this code, also as `module.name`."""
    known = [space, *(vars(space[name]) for name in code.co_names if isinstance(space.get(name), ModuleType))]
    for names in known:
        for thing in (names[name] for name in code.co_names if name in names):
            if isinstance(thing, (FunctionType, type)) and str(thing.__module__).startswith(f"{__package__}."):
                yield thing
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _named_in(constant, space)


class withheld:  # noqa: N801  used as a function is
    """A block in which calling any of these functions, by whatever name, raises AnswerUsedError.

    Entering and leaving takes microseconds. The same object may be entered again, also within itself; in the end every
    function has its code back. Of a bound method or a partial, the function below is withheld. A generator refuses when
    asked for its first value, a coroutine when awaited. Passed over: objects with `__call__`, and what is not Python.
    """

    def __init__(self, functions: Iterable[Function]) -> None:
        plain = dict.fromkeys(map(_plain, functions))
        self._functions = tuple(function for function in plain if isinstance(function, FunctionType))
        self._refusals = tuple(_refusal(function) for function in self._functions)
        self._kept: list[tuple[CodeType, ...]] = []

    def __enter__(self) -> None:
        self._kept.append(tuple(function.__code__ for function in self._functions))
        try:
            self._give(self._refusals)
        except BaseException:  # an interrupt, just now: the block is not entered, so nobody would leave it
            self._give(self._kept.pop())
            raise

    def __exit__(self, *_: object) -> None:
        self._give(self._kept.pop())

    def _give(self, codes: tuple[CodeType, ...]) -> None:
        """Exchange all codes in one call into C: an interrupt comes before it or after it, never in between."""
        list(map(setattr, self._functions, repeat("__code__"), codes))


def _plain(function: Any) -> Any:
    """The function below partials and bound methods."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__func__", function)


@functools.lru_cache(maxsize=10_000)
def _refusal(function: FunctionType) -> CodeType:
    """Code of the function's kind, with its closure's variables, that refuses to run; a learner reads its name."""
    code = function.__code__
    return _REFUSALS[code.co_flags & _KINDS].replace(co_name=known_as(function), co_freevars=code.co_freevars)


# This code runs among the globals of other modules.
def _refuses(*_arguments: Any, **_options: Any) -> NoReturn:
    from unrolled.checks import answers

    answers.refuse()


def _refuses_to_generate(*_arguments: Any, **_options: Any) -> Iterator[None]:
    from unrolled.checks import answers

    answers.refuse()
    yield


async def _refuses_to_be_awaited(*_arguments: Any, **_options: Any) -> NoReturn:
    from unrolled.checks import answers

    answers.refuse()


async def _refuses_to_generate_later(*_arguments: Any, **_options: Any) -> AsyncIterator[None]:
    from unrolled.checks import answers

    answers.refuse()
    yield


_KINDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_REFUSALS = {  # by kind of function: Python lets a function have no code of another kind
    refuses.__code__.co_flags & _KINDS: refuses.__code__
    for refuses in (_refuses, _refuses_to_generate, _refuses_to_be_awaited, _refuses_to_generate_later)
}


def refuse() -> NoReturn:
    """Raise AnswerUsedError in the name of the code that calls this."""
    name = sys._getframe(1).f_code.co_name
    raise AnswerUsedError(f"this calls {name}, the library's own answer to this exercise: write it yourself")


def known_as(function: FunctionType) -> str:
    """Return the name by which a learner reaches a function: `ops.conv2d`, or if not exported `ops.blocks.forward`."""
    module = function.__module__.removeprefix("unrolled.")
    package = module.partition(".")[0]
    try:
        short = operator.attrgetter(function.__qualname__)(sys.modules[f"unrolled.{package}"])
    except (KeyError, AttributeError):
        short = None
    return f"{package if short is function else module}.{function.__qualname__}"
