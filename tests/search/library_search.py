"""Tries every callable of the library as the answer to every exercise; prints what it found as JSON.

    python tests/search/library_search.py

In a process of its own: what is called here with anything at all may leave anything behind.
"""

import contextlib
import copy
import dataclasses
import functools
import gc
import importlib
import inspect
import itertools
import json
import os
import pickle
import pkgutil
import resource
import socket
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from inspect import Parameter
from pathlib import Path
from types import FunctionType
from typing import Any

import unrolled
from unrolled import checks
from unrolled.checks import gpu
from unrolled.checks.ambient import set_aside
from unrolled.checks.answers import known_as
from unrolled.checks.compare import mismatch
from unrolled.checks.limits import time_limit
from unrolled.checks.run import HERE, _called, _program
from unrolled.checks.spec import Inputs, Spec
from unrolled.simgpu import current

FOLDER = str(Path(unrolled.__file__).parent)
SECONDS = 1.0
"""For one call. An answer takes less."""
OUTPUT = 500
"""Where the result is written to: a descriptor that no call will close by chance."""
MEMORY, STACK = 3 * 2**30, 2**19
"""Bytes of addresses for all of it, and for each of the hundreds of threads that are left behind. Arguments that fit by
chance may make arrays of gigabytes, in one call of NumPy that no limit of time ends: they are refused at once."""
ORDERS = 2
"""So many inputs at most are given in every order; more, as the exercise has them."""
OPEN = dataclasses.replace(HERE, withhold=False)
SHOWN = "col2im"
"""The exercise of which all answers in the library are told, as if it were not withheld: the search finds them."""


FORBIDDEN = {
    os: ("_exit", "abort", "closerange", "dup2", "execv", "execve", "execvp", "execvpe", "fork", "kill", "killpg"),
    resource: ("setrlimit",),
    subprocess: ("Popen",),
    socket: ("create_connection", "getaddrinfo"),
}
"""What nothing that is called may do to this process, or beyond it."""


def forbid() -> None:
    """Have these raise from now on."""

    def forbidden(*_: Any, **__: Any) -> None:
        raise PermissionError("not in a search")

    for module, names in FORBIDDEN.items():
        for name in names:
            setattr(module, name, forbidden)


def callables() -> list[Any]:
    """Functions, classes, partials and objects with `__call__` of the library, whoever holds them."""
    for found in pkgutil.walk_packages(unrolled.__path__, "unrolled."):
        if not found.name.endswith("__main__") and (found.name != "unrolled.jit" or find_spec("cupyx")):
            importlib.import_module(found.name)
    checks.all_specs()
    return [thing for thing in gc.get_objects() if _is_of_library(thing)]


def _is_of_library(thing: Any) -> bool:
    if isinstance(thing, FunctionType):
        return thing.__code__.co_filename.startswith(FOLDER)
    if isinstance(thing, functools.partial):
        return isinstance(thing.func, FunctionType) and _is_of_library(thing.func)
    kind = thing if isinstance(thing, type) else type(thing)
    return str(kind.__module__).partition(".")[0] == "unrolled" and callable(thing)


class Taker:
    """A callable, and which arguments it takes."""

    def __init__(self, function: Any) -> None:
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        named = [p for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)]
        placed = [p for p in parameters if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)]
        kinds = {p.kind for p in parameters}
        self._names = {p.name for p in named}
        self._needed = {p.name for p in named if p.default is p.empty}
        self._any_name = Parameter.VAR_KEYWORD in kinds
        self._by_name = not any(p.kind is Parameter.POSITIONAL_ONLY and p.default is p.empty for p in parameters)
        self._by_place = not any(p.kind is Parameter.KEYWORD_ONLY and p.default is p.empty for p in parameters)
        self._least = sum(p.default is p.empty for p in placed)
        self._most = 99 if Parameter.VAR_POSITIONAL in kinds else len(placed)

    def ways(self, names: Sequence[str], in_any_order: bool = True) -> Iterator[Callable[..., Any]]:
        """Ways to call it with arguments of these names, by place in any order or in theirs."""
        if self._by_name and self._needed <= set(names) and (self._any_name or set(names) <= self._names):
            yield self.function
        if self._by_place and self._least <= len(names) <= self._most:
            for order in itertools.permutations(names) if in_any_order and len(names) <= ORDERS else [tuple(names)]:
                yield functools.partial(_in_order, self.function, order)


def _in_order(function: Any, order: Sequence[str], *placed: Any, **named: Any) -> Any:
    return function(*placed, *(named.pop(name) for name in order if name in named), **named)


def takers() -> list[Taker]:
    found = []
    for function in callables():
        with contextlib.suppress(ValueError, TypeError):  # no signature
            found.append(Taker(function))
    return found


def right_at_first(spec: Spec, takers: Sequence[Taker]) -> Iterator[Callable[..., Any] | None]:
    """For every way to call one of them: that, if its result is right in the first case."""
    case = spec.cases[0]
    order = list(inspect.signature(spec.reference).parameters)
    inputs = case.inputs(0)
    needed = [name for name, p in inspect.signature(spec.reference).parameters.items() if p.default is p.empty]
    names = sorted(inputs, key=order.index) if spec.call is None else needed
    expected = _called(spec, _program(spec, spec.reference), case.inputs(0))
    with contextlib.ExitStack() as block:
        block.enter_context(set_aside())
        block.enter_context(contextlib.redirect_stdout(None))
        block.enter_context(contextlib.redirect_stderr(None))
        module = block.enter_context(gpu.connected()) if case.on_gpu else None
        anew, connected, kept, streams = copier(inputs), current.machine(), list(current._kept), list(current.streams)
        for way in (way for taker in takers for way in taker.ways(names, not spec.ranks)):
            given = anew() if spec.call is None or spec.ranks else inputs  # a network serves one run
            if module is not None:
                given = gpu.placed(given, module)
            right = False
            with contextlib.suppress(BaseException), time_limit(SECONDS):
                got = _called(spec, _program(spec, way), given)
                right = _is_right(spec, gpu.fetched(got) if module else got, expected, given if spec.ranks else inputs)
            if current.machine() is not connected:  # it called connect or its like
                current._replace(connected)
            current._kept[:], current.streams[:] = kept, streams  # it may have left a stream that it never entered
            if module is not None:
                current.machine().synchronize()  # nor may what it began race with the next
            yield way if right else None


def copier(inputs: Inputs) -> Callable[[], Inputs]:
    """A function that copies the inputs: by pickle, the fastest, where that is possible."""
    try:
        kept = pickle.dumps(inputs)
    except (pickle.PicklingError, TypeError, AttributeError):
        return lambda: copy.deepcopy(inputs)
    return lambda: pickle.loads(kept)


def _is_right(spec: Spec, got: Any, expected: Any, inputs: Inputs) -> bool:
    found = spec.compare(got, expected, inputs) if spec.compare else mismatch(got, expected, spec.tolerance)
    return found is None


def name_of(way: Any) -> str:
    function = way.args[0] if isinstance(way, functools.partial) and way.func is _in_order else way
    return known_as(function) if isinstance(function, FunctionType) else repr(function)[:100]


def main() -> None:
    """Search, with the library withheld; for one exercise, without that as well."""
    leave, output = os._exit, os.dup(1)
    os.dup2(output, OUTPUT)  # lower ones may be closed: a small number is an open file to some
    found = takers()
    forbid()
    tried = 0
    answers: list[str] = []
    earns: dict[str, set[str]] = {}
    for name, spec in checks.all_specs().items():
        untimed = dataclasses.replace(spec, rung=None, speed=None)
        for way in right_at_first(untimed, found):
            tried += 1
            if way is not None and checks.run(name, untimed, way).passed:
                earns.setdefault(name, set()).add(name_of(way))
            if way is not None and name == SHOWN and checks.run(name, untimed, way, place=OPEN).passed:
                answers.append(name_of(way))
    result: dict[str, Any] = {"callables": len(found), "exercises": len(checks.all_specs()), "tried": tried}
    result |= {"answers": answers, "earns": {name: sorted(ways) for name, ways in earns.items()}}
    os.write(OUTPUT, json.dumps(result, indent=1).encode())
    leave(0)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    threading.stack_size(STACK)
    try:
        main()
    except BaseException:
        os.write(OUTPUT, traceback.format_exc().encode())  # standard error may be closed
        raise
