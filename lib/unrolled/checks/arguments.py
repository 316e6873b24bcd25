"""What a function takes, and does with it: a call that fits, inputs that it changed, or gives back as its result."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np

from . import gpu
from .compare import changed
from .spec import Inputs, Spec


def not_callable(function: Any, spec: Spec, inputs: Inputs) -> str | None:
    """Return why the function cannot be called with a case's inputs, or with what the reference needs for `call`."""
    if not callable(function):
        return f"expected a function, got {type(function).__name__}: pass the function itself, without brackets"
    if spec.call is None:
        names = list(inputs)
    else:
        parameters = inspect.signature(spec.reference).parameters.values()
        names = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except TypeError as error:
        call = ", ".join(f"{name}=…" for name in names)
        return f"the function cannot be called as f({call}): {error}. Leave its parameters as the exercise has them"
    except ValueError:  # a builtin that has no signature: the call itself will tell
        return None
    return None


def copied(inputs: Inputs) -> Inputs:
    """Return a deep copy, in less time where there are arrays."""
    seen = dict[int, Any]()
    return dict(gpu.each_leaf(inputs, lambda x: x.copy("K") if type(x) is np.ndarray else copy.deepcopy(x, seen)))


def changed_on_a_rank(spec: Spec, given: Inputs, pristine: Inputs) -> str:
    """Return the first argument of a program of ranks, after `comm`, that a rank changed."""
    by_name = zip(*given["arguments"], strict=True), zip(*pristine["arguments"], strict=True)
    names = list(inspect.signature(spec.reference).parameters)[1:]
    return next(name for name, now, before in zip(names, *by_name, strict=False) if changed(now, before))


def given_back(got: Any, given: Inputs) -> str | None:
    """Return the argument, if any, whose memory is that of a result."""
    places = {place for leaf in gpu.leaves(got) if (place := _place(leaf))}
    return next((name for name, value in given.items() if places.intersection(map(_place, gpu.leaves(value)))), None)


def _place(leaf: Any) -> tuple[int, int] | None:
    """Where an array lies in one piece, and how many bytes it has."""
    whole = isinstance(leaf, np.ndarray) and leaf.size and leaf.flags.c_contiguous
    return (leaf.ctypes.data, leaf.nbytes) if whole else None
