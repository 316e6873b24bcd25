"""What an exercise must not be solved with: the library's own answers to it, withheld while a learner's function runs.

A learner may have taken a function by any name: `from unrolled.ops import conv2d as mine`, a partial, a re-export. So
it is not the name that is withheld, but the code: within the block the function object itself has another.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import repeat
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeGuard

from .spec import Function, Spec


class AnswerUsedError(Exception):
    """A learner's function called the library's answer to its exercise. The text says which one, for the learner."""


def answers_of(spec: Spec) -> tuple[Function, ...]:
    """Every function that is an answer to the exercise: the reference, the speed's baseline, and `spec.answers`."""
    timed = (spec.speed.baseline,) if spec.speed else ()
    return tuple(dict.fromkeys((spec.reference, *timed, *spec.answers)))


class withheld:  # noqa: N801  used as a function is
    """A block in which calling any of these functions, by whatever name, raises AnswerUsedError.

    Entering and leaving takes microseconds. The same object may be entered again, also within itself; in the end every
    function has its code back. Of a bound method or a partial, the function below is withheld. A generator refuses once
    it is asked for its first value, a coroutine once it is awaited. Passed over is what has no code to exchange: an
    object with `__call__`, what is not Python.
    """

    def __init__(self, functions: Iterable[Function]) -> None:
        plain = (_plain(function) for function in functions)
        self._functions = tuple(function for function in dict.fromkeys(plain) if exchangeable(function))
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


def exchangeable(function: Any) -> TypeGuard[FunctionType]:
    """Whether `withheld` can exchange the code of this function."""
    return isinstance(function, FunctionType)


def _plain(function: Any) -> Any:
    """The function below partials and bound methods."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__func__", function)


def _refusal(function: FunctionType) -> CodeType:
    """Code of the function's own kind, and with its closure's variables, that refuses to run in place of its own.

    Its name is the one that the learner is told.
    """
    code = function.__code__
    refusal = _REFUSALS[code.co_flags & _KINDS]
    return refusal.replace(co_name=known_as(function), co_freevars=code.co_freevars)


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
_REFUSALS = {
    refuses.__code__.co_flags & _KINDS: refuses.__code__
    for refuses in (_refuses, _refuses_to_generate, _refuses_to_be_awaited, _refuses_to_generate_later)
}
"""By kind of function: Python lets a function have no code of another kind."""


def refuse() -> NoReturn:
    """Raise AnswerUsedError in the name of the code that calls this."""
    name = sys._getframe(1).f_code.co_name
    raise AnswerUsedError(f"this calls {name}, the library's own answer to this exercise: write it yourself")


def known_as(function: FunctionType) -> str:
    """The name by which a learner reaches a function: `ops.conv2d`, `nn.Sequential.forward`, `ops.blocks.forward`."""
    module = function.__module__.removeprefix("unrolled.")
    package = module.partition(".")[0]
    try:
        short = operator.attrgetter(function.__qualname__)(sys.modules[f"unrolled.{package}"])
    except (KeyError, AttributeError):
        short = None
    return f"{package if short is function else module}.{function.__qualname__}"
