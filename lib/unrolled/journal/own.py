"""Your code goes on: a function whose check passed is kept with its source, for later cells and lessons.

The source holds what the function needs of its notebook: imports, other functions and kernels, plain constants. Before
a function of another notebook is used it is defined again from that source, and has to pass the cases of its check once
more. A notebook's GPU is not part of it: the source takes the one of the machine that it is defined on.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import difflib
import inspect
import linecache
import symtable
import textwrap
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from unrolled.checks import Spec

Function: TypeAlias = Callable[..., Any]

SPACE = "your_code"  # the name of the module in which a function from another notebook is defined
OF_THE_MACHINE = {"cupy": "gpu", "unrolled.simgpu": "gpu", "unrolled.jit": "jit", "unrolled.simgpu.jit": "jit"}
"""Modules that one machine has and another has not, and the function of `device` that returns what each has."""

_passed: dict[str, Function] = {}  # in this kernel, by the name of the check


def keep(name: str, function: Function, passed: bool) -> dict[str, str]:
    """Remember, or forget, the function of a check in this kernel; return what the journal is to keep of it.

    {"function": its name, "source": what defines it again}, {"apart": why none can}, or nothing if the check failed.
    """
    _passed.pop(name, None)
    if not passed:
        return {}
    _passed[name] = function
    try:
        return {"function": function.__name__, "source": source_of(function)}
    except (ValueError, AttributeError, OSError, TypeError) as error:
        return {"apart": str(error)}


def source_of(function: Function) -> str:
    """Return Python source that defines a function of a notebook again, after what it names there.

    ValueError, with the name, for what cannot be written down; OSError or TypeError if its own source is not known.
    """
    parts: dict[str, str] = {}
    _define(function.__name__, function, parts, set())
    return "\n\n".join(parts.values()) + "\n"


def _define(name: str, thing: Any, parts: dict[str, str], seen: set[str]) -> None:
    """Add to `parts` what defines `name`, after all that it needs."""
    if name in seen:
        return
    seen.add(name)
    function = inspect.unwrap(thing) if callable(thing) else thing  # a kernel, and what else a decorator makes
    if isinstance(thing, ModuleType):
        parts[name] = _import(name, thing)
    elif getattr(thing, "__module__", None) in ("__main__", SPACE) and isinstance(function, FunctionType):
        source = textwrap.dedent(inspect.getsource(function))
        if function.__closure__ or function.__name__ == "<lambda>":
            raise ValueError(f"{name} is made inside of another function")
        if function is not thing and not source.startswith("@"):
            raise ValueError(f"{name} was decorated apart from its definition")
        for used in sorted(_names_in(source) & function.__globals__.keys()):
            _define(used, function.__globals__[used], parts, seen)
        parts[name] = source.rstrip() + (f"\n{name} = {function.__name__}" if name != function.__name__ else "")
    elif callable(thing) and getattr(thing, "__qualname__", ".").isidentifier() and thing.__module__ != "__main__":
        parts[name] = f"from {thing.__module__} import {thing.__qualname__} as {name}"
    elif _is_constant(thing):
        parts[name] = f"{name} = {thing!r}"
    else:
        raise ValueError(f"it uses {name} of its notebook")


def _import(name: str, module: ModuleType) -> str:
    returns = OF_THE_MACHINE.get(module.__name__)
    from unrolled import device  # brings NumPy, which a command that reads journals does without

    if returns is None or module is not getattr(device, returns)():
        return f"import {module.__name__} as {name}"
    return f"import unrolled.device\n{name} = unrolled.device.{returns}()"


def _names_in(source: str) -> set[str]:
    """What a function takes from its notebook: the global names that it or a function inside of it looks up."""
    tables, names = [symtable.symtable(source, "<a function>", "exec")], set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        in_module = table.get_type() == "module"  # there, decorators and defaults are looked up
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or (in_module and not symbol.is_assigned()))
        }
    return names - vars(builtins).keys()


def _is_constant(thing: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(thing)) == thing)
    except (ValueError, SyntaxError):
        return False


def functions(names: Iterable[str], entries: Mapping[str, Mapping[str, Any]]) -> list[tuple[Function, str]]:
    """Return a function for each check, and whose it is: "yours", or "library" with the reason if there is one.

    `entries` are the journal's, by check. Raises ValueError for a name that no check has.
    """
    from unrolled import checks

    specs, names = checks.all_specs(), list(names)
    for name in names:
        if name not in specs:
            near = difflib.get_close_matches(name, specs, n=1)
            raise ValueError(f"there is no check named {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return [_mine(name, specs[name], entries.get(name, {})) for name in names]


def _mine(name: str, spec: Spec, entry: Mapping[str, Any]) -> tuple[Function, str]:
    from unrolled import checks

    if name in _passed:
        return _passed[name], "yours"
    if not entry.get("passed"):
        return spec.reference, "library, since your last version failed" if entry.get("ever_passed") else "library"
    if "source" not in entry:
        return spec.reference, f"library, since {entry['apart']}" if "apart" in entry else "library"
    try:
        function = defined(name, entry["function"], entry["source"])
    except Exception as error:  # the source is the learner's
        return spec.reference, f"library, since yours is not defined here: {type(error).__name__}: {error}"
    report = checks.run(name, dataclasses.replace(spec, speed=None, rung=None), function)
    if not report.passed:
        return spec.reference, f"library, since yours does not pass its check here; see check.{name}"
    _passed[name] = function
    return function, "yours"


def defined(check: str, name: str, source: str) -> Function:
    """Return the function of this name that `source` defines. Raises whatever the source raises."""
    file = f"<your {check}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # for errors and getsource
    space: dict[str, Any] = {"__name__": SPACE}
    exec(compile(source, file, "exec"), space)
    function: Function = space[name]
    return function


def is_yours(function: Function) -> bool:
    """Return whether a function is a learner's: one that no module of the course defines."""
    return str(function.__module__).partition(".")[0] != "unrolled"
