"""Libraries that hold ready answers, such as PyTorch and SciPy: named where a learner's function names them.

Looked at are the names in the code of the function and of those of its notebook that it names, and what they import.
That finds `torch.nn.functional.conv2d` by whatever alias. It does not find what a name alone cannot tell: a module
that is kept in a list or found by `getattr`, a ufunc of SciPy under a name of its own.
"""

from __future__ import annotations

import dis
import functools
import inspect
import itertools
from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

LIBRARIES = (
    *("torch", "torchvision", "scipy", "skimage", "cv2", "sklearn", "jax", "tensorflow", "keras", "onnxruntime"),
    *("mxnet", "paddle", "mlx", "tinygrad"),
)
HARMLESS = ("scipy.fft.next_fast_len",)  # picks a length, and transforms nothing
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
DATA = (np.ndarray, int, float, bool, str)  # have no library's code


def used_by(function: Any) -> str | None:
    """Return the first name of such a library in a function, as in "torch.nn.functional.conv2d", or None."""
    try:
        return next(_names(function, set()), None)
    except Exception:  # an object with ideas of its own tells nothing
        return None


def _names(thing: Any, seen: set[CodeType]) -> Iterator[str]:
    """The foreign name that a thing has itself, then those in its code."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    for home in filter(_is_foreign, _homes(thing)):
        public = [part for part in home.split(".") if not part.startswith("_")]
        name = ".".join([*public, getattr(thing, "__name__", type(thing).__name__)])
        if name in HARMLESS:
            return
        yield name
    thing = inspect.unwrap(thing) if callable(thing) else thing
    thing = getattr(thing, "__func__", thing)
    if not isinstance(thing, FunctionType):
        thing = inspect.getattr_static(type(thing), "__call__", None)
    if isinstance(thing, FunctionType):
        cells = (cell.cell_contents for cell in thing.__closure__ or ())
        inside = dict(zip(thing.__code__.co_freevars, cells, strict=True))
        yield from _in_code(thing.__code__, {**thing.__globals__, **inside}, seen)


def _in_code(code: CodeType, space: Mapping[str, Any], seen: set[CodeType]) -> Iterator[str]:
    if code in seen:
        return
    seen.add(code)
    used = (*code.co_names, *code.co_freevars, *code.co_cellvars)
    named = [space[name] for name in used if name in space]
    ours = all(
        type(thing) in DATA or (isinstance(thing, ModuleType) and not _is_foreign(thing.__name__)) for thing in named
    )
    steps = [] if ours and not any(map(_is_foreign, used)) else list(dis.get_instructions(code))
    for place, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            listed = steps[place - 1].argval or ()  # as in `from scipy.fft import rfft2`
            yield from filter(_is_foreign, [f"{step.argval}.{name}" for name in listed] or [str(step.argval)])
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF") and step.argval in space:
            thing = space[step.argval]
            if isinstance(thing, ModuleType):
                attributes = itertools.takewhile(lambda after: after.opname in ATTRIBUTES, steps[place + 1 :])
                name = ".".join([thing.__name__, *(after.argval for after in attributes)])
                yield from [name] if _is_foreign(name) else ()
            elif getattr(thing, "__globals__", space).get("__name__") == space.get("__name__") or any(
                map(_is_foreign, _homes(thing))
            ):
                yield from _names(thing, seen)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _in_code(constant, space, seen)


def _homes(thing: Any) -> Iterator[str]:
    """The modules that an object, its class, or what a builtin method belongs to, comes from."""
    for one in (thing, type(thing), type(getattr(thing, "__self__", None))):
        yield str(getattr(one, "__module__", ""))


def _is_foreign(name: str) -> bool:
    in_one = name.partition(".")[0] in LIBRARIES and not name.startswith("scipy.sparse")  # which has no answers
    return in_one and name not in HARMLESS
