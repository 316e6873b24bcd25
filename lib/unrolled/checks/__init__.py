"""Specs of the exercises: declarations in one file a lesson (`lessonNN.py`), and what runs and compares them.

A spec's name is the name of its variable: `checks.find("conv2d_gemm")` returns the spec that `lesson02` declares.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import MappingProxyType

from .report import MIME, Finding, Part, Report
from .run import VISIBLE_SEED, run
from .spec import Budget, Case, Draw, Mistake, Rung, Spec, Speed

__all__ = [
    "MIME",
    "VISIBLE_SEED",
    "Budget",
    "Case",
    "Draw",
    "Finding",
    "Mistake",
    "Part",
    "Report",
    "Rung",
    "Spec",
    "Speed",
    "all_specs",
    "lessons",
    "run",
]


@functools.cache
def lessons() -> MappingProxyType[str, MappingProxyType[str, Spec]]:
    """Every lesson's specs, in the order they are declared: {"02_convolution": {"conv2d_gemm": Spec(…), …}, …}."""
    found = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name.startswith("lesson")):
        loaded = importlib.import_module(f"{__name__}.{module}")
        specs = {name: value for name, value in vars(loaded).items() if isinstance(value, Spec)}
        found[loaded.LESSON] = MappingProxyType(specs)
    return MappingProxyType(found)


@functools.cache
def all_specs() -> MappingProxyType[str, Spec]:
    """Every spec by its name. Raises ValueError if two lessons use one name."""
    specs: dict[str, Spec] = {}
    for lesson, declared in lessons().items():
        if twice := specs.keys() & declared.keys():
            raise ValueError(f"{lesson} declares {sorted(twice)}, which an earlier lesson has")
        specs |= declared
    return MappingProxyType(specs)
