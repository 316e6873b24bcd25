"""Kernels of one's own: the names of `cupyx.jit`, for the simulated GPU.

    @jit.rawkernel()
    def add_kernel(x, y, out, n):
        i = jit.grid(1)
        if i < n:
            out[i] = x[i] + y[i]

    add_kernel[blocks, threads](x, y, out, n)
    print(add_kernel.report)

A kernel's source is read, with what its free names stand for, and compiled: it never runs as Python. The rules are
CuPy's, and so are the kinds of error. What a kernel does wrong while it runs is raised as `KernelFault`, with the line,
block, thread and index. `report` says what the last launch moved and computed.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import math
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from unrolled.simgpu import current
from unrolled.simgpu.array import ndarray, place
from unrolled.simgpu.command import KernelOrder
from unrolled.simgpu.kernel_report import KernelReport, LineReport
from unrolled.simgpu.lockstep.builtins import KNOWN
from unrolled.simgpu.lockstep.constants import MODULES, NUMBERS
from unrolled.simgpu.lockstep.faults import CUDADriverError, Fault, KernelFault
from unrolled.simgpu.lockstep.source import LIMITS
from unrolled.simgpu.lockstep.types import NAMES, type_of_number

__all__ = ["CUDADriverError", "Fault", "KernelFault", "KernelReport", "LineReport", "RawKernel", "rawkernel", *KNOWN]

_REAL = (("jit", "unrolled.jit"), ("jit", "cupyx.jit"), ("cupy", "cupy"))
"""Modules of a machine with a GPU, and what they are to a kernel that is compiled for the simulated one."""
_DEPTH = 3
"""How deep constants of a kernel may lie in tuples and objects."""


BRACKETS = "rawkernel takes no function: the decorator has brackets of its own, @jit.rawkernel()"


TIMED = "<timed exec>"  # the file that IPython gives to a cell below %%time


class _Symbol:
    """A name that has a meaning in a kernel only."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"jit.{self.name} means something in a kernel only")

    def __repr__(self) -> str:
        return f"<jit.{self.name} of the simulated GPU>"


globals().update({name: _Symbol(name) for name in KNOWN})


def rawkernel(*given: Any, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], RawKernel]:
    """Return a decorator that makes a kernel of a function; with device=True one that other kernels call.

    Raises NotImplementedError for a mode other than "cuda", TypeError for a function: that is what the decorator takes.
    """
    if given:
        raise TypeError(BRACKETS)
    if mode != "cuda":
        raise NotImplementedError(f"mode is {mode!r}; the simulated compiler knows 'cuda'")

    def decorate(function: Callable[..., Any]) -> RawKernel:
        keep_timed(function)
        kernel = RawKernel(function, device)
        functools.update_wrapper(kernel, function)
        return kernel

    return decorate


class RawKernel:
    """A kernel: `kernel[grid, block](*args)`, or `kernel(grid, block, args)`, with sizes as in CUDA: (x, y, z).

    Arguments are arrays of the simulated GPU and numbers; the kernel is compiled anew for other types. Raises TypeError
    for other arguments, what CuPy raises for source that it refuses, CUDADriverError for sizes that no GPU takes, and
    KernelFault. `report` is that of the last launch, a `KernelReport`.
    """

    def __init__(self, function: Callable[..., Any], device: bool = False) -> None:
        if not callable(function):
            raise ValueError(f"a kernel is made of a function, not of {function!r:.40}")
        self.function, self.device = function, device
        self.report: KernelReport | None = None

    def __getitem__(self, grid_and_block: Any) -> Callable[..., None]:
        grid, block = grid_and_block
        return lambda *args, **options: self(grid, block, args, **options)

    def __call__(self, grid: Any, block: Any, args: Any, shared_mem: int = 0, stream: Any = None) -> None:
        if not isinstance(args, (tuple, list)):
            raise TypeError(f"{self.function.__name__} is launched by kernel[blocks, threads](...)")
        if self.device:
            raise TypeError(f"{self.function.__name__} was made with device=True: a kernel calls it, not a program")
        machine, number = current.machine(), current.number(stream)
        arguments = [_argument(x) for x in args]
        self.report = None  # if the kernel fails, that of an earlier launch would mislead
        order = KernelOrder(program(self.function), arguments, _size(grid), _size(block), int(shared_mem))
        self.report = machine.run_kernel(order, number)


def keep_timed(function: Callable[..., Any]) -> None:
    """Let the source of a function be found that is being defined below `%%time`: IPython keeps that of other cells."""
    frame, code = sys._getframe(), getattr(function, "__code__", None)
    if code is None or code.co_filename != TIMED:
        return
    while frame.f_back is not None and (frame.f_code.co_filename, frame.f_code.co_name) != (TIMED, "<module>"):
        frame = frame.f_back
    cell = frame.f_back and frame.f_back.f_locals.get("expr")  # what the magic compiles
    if isinstance(cell, str):
        name = f"<timed exec {hash(cell):x}>"
        linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
        function.__code__ = code.replace(co_filename=name)


def program(function: Callable[..., Any], around: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return a kernel's source, the line at which it begins, and what its free names stand for, as plain data.

    around: the kernels that call it, whose source is there already.

    Raises ValueError for a lambda. For a function whose source cannot be found it raises OSError, RuntimeError if that
    was typed into the interpreter, TypeError if it is not written in Python.
    """
    name = getattr(function, "__name__", type(function).__name__)
    if name == "<lambda>":
        raise ValueError("a kernel is a function made by def; the simulated compiler takes no lambda")
    try:
        code = getattr(inspect.unwrap(function), "__code__", function)
        source, first, attributes = _read(code, getattr(code, "co_filename", ""))
    except (OSError, TypeError) as error:
        typed_in = getattr(getattr(function, "__code__", None), "co_filename", "") == "<stdin>"
        text = f"the source of {name} cannot be found, and a kernel is compiled from it"
        kind = RuntimeError if typed_in else type(error)  # as CuPy
        raise kind(f"{text}: write the kernel in a notebook's cell or in a file") from None
    known = inspect.getclosurevars(function)
    values = {**known.builtins, **known.globals, **known.nonlocals}
    return {
        "source": source,
        "first_line": max(first, 1),
        "constants": {
            name: _device(value, (*around, function)) or _described(value, attributes, _DEPTH)
            for name, value in values.items()
        },
    }


@functools.lru_cache(maxsize=100)
def _read(code: Any, file: str) -> tuple[str, int, frozenset[str]]:
    """The source of a function's code in a file, its first line, and the names that stand behind a dot in it."""
    lines, first = inspect.getsourcelines(code)
    source = textwrap.dedent("".join(lines))
    return source, first, _attributes(source)


def _device(x: Any, around: tuple[Any, ...]) -> dict[str, Any] | None:
    """A kernel that may be called, as plain data; None for anything else."""
    if kind := sys.modules.get("unrolled.jit"):  # where a GPU works, a kernel is one of both
        x = x.simulated if isinstance(x, kind.Kernel) else x
    if not isinstance(x, RawKernel):
        return None
    plain = program(x.function, around) if x.device and x.function not in around else {}
    return {"kernel": plain, "device": x.device, "called": x.function.__name__}


def _argument(x: Any) -> Any:
    if isinstance(x, ndarray):
        return place(x, current.machine())
    if isinstance(x, np.generic) or (np.isscalar(x) and not isinstance(x, (str, bytes, complex))):
        kind = type_of_number(x)
        return str(kind), x.item() if isinstance(x, np.generic) else x
    raise TypeError(f"a kernel takes arrays of the simulated GPU and numbers, got {type(x)}")


def _size(size: Any) -> tuple[int, int, int]:
    """A grid or a block as (x, y, z). Raises TypeError for what is no whole number and no tuple of up to three."""
    parts = tuple(size) if isinstance(size, (tuple, list)) else (size,)
    if not 1 <= len(parts) <= 3 or not all(isinstance(n, (int, np.integer)) for n in parts):
        raise TypeError(f"a grid or a block is {size!r}; expected one to three whole numbers (x, y, z)")
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def _attributes(source: str) -> frozenset[str]:
    """The names that stand behind a dot in the source."""
    try:
        tree = ast.parse(source) if len(source) <= LIMITS.characters else ast.Module([], [])
    except SyntaxError:
        return frozenset()
    return frozenset(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def _described(x: Any, attributes: frozenset[str], depth: int) -> dict[str, Any]:
    """What a free name of a kernel stands for, as plain data that `lockstep.constants.read` understands."""
    if isinstance(x, np.generic) and x.dtype.name in NAMES.values():
        return {"scalar": [x.dtype.name, x.item()]}
    if type(x) in NUMBERS:
        return {"number": x} if type(x) is not int or x.bit_length() <= 64 else _opaque(x, frozenset(), 0)
    if isinstance(x, str) and len(x) < LIMITS.characters:
        return {"text": x}
    if x is None:
        return {"none": True}
    if isinstance(x, tuple) and depth:
        return {"tuple": [_described(part, attributes, depth - 1) for part in x]}
    if isinstance(x, (type, np.dtype)) and (name := _type_name(x)):
        return {"type": name}
    if path := _path(x):
        return {"name": path}
    return _opaque(x, attributes, depth)


def _type_name(x: Any) -> str | None:
    if x in (int, float):
        return str(x.__name__)
    try:
        name = np.dtype(x).name if isinstance(x, np.dtype) or x is bool or issubclass(x, np.generic) else ""
    except TypeError:
        return None
    return name if name in NAMES.values() else None


def _path(x: Any) -> str | None:
    """The name of a module, or of a function of one, that the compiler knows."""
    modules = [("jit", sys.modules[__name__]), ("cupy", sys.modules["unrolled.simgpu"]), ("numpy", np), ("math", math)]
    modules += [(path, real) for path, name in _REAL if (real := sys.modules.get(name))]
    for path, module in modules:
        if x is module:
            return path
    if isinstance(x, _Symbol):
        return f"jit.{x.name}"
    if real := sys.modules.get("cupyx.jit"):
        known = next((name for name in KNOWN if getattr(real, name, None) is x), None)
        if known is not None:
            return f"jit.{known}"
    name = getattr(x, "__name__", "")
    if (isinstance(x, types.BuiltinFunctionType) and x.__module__ == "builtins") or x is builtins.range:
        return f"builtins.{name}"
    for path, module in modules:
        if name in MODULES.get(path, ()) and getattr(module, name, None) is x:
            return f"{path}.{name}"
    return None


def _opaque(x: Any, attributes: frozenset[str], depth: int) -> dict[str, Any]:
    """Anything else, with those of its attributes that the source names."""
    found: dict[str, Any] = {}
    for name in attributes if depth and not isinstance(x, (ndarray, np.ndarray, types.ModuleType)) else ():
        value = getattr(x, name, found)
        if value is not found:
            found[name] = _described(value, attributes, depth - 1)
    return {"opaque": type(x).__name__, "attributes": found}
