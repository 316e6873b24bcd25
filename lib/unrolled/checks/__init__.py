"""What an exercise asks, and what runs and compares: the framework lies here, the specs in `exercises/`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from . import choices, exercises
from .report import MIME, Finding, Part, Report
from .run import VISIBLE_SEED, run
from .spec import Budget, Spec, Speed

__all__ = ["MIME", "VISIBLE_SEED", "Budget", "Finding", "Part", "Report", "Spec", "Speed"]
__all__ += ["all_specs", "declared", "lessons", "problems", "run", "specs_for", "variants"]

Specs = MappingProxyType[str, Spec]


@functools.cache
def lessons() -> MappingProxyType[str, Specs]:
    """Return the course's lessons and their specs, as this class asks them: {"02_convolution": {"conv2d_gemm": …}, …}.

    A class's `course.json` says how; ValueError if it names what is not there.
    """
    chosen = choices.read()
    if found := problems(chosen, declared()):
        raise ValueError(f"{choices.FILE}: {'; '.join(found)}")
    return specs_for(chosen)


def specs_for(chosen: choices.Choices) -> MappingProxyType[str, Specs]:
    """Return the lessons and their specs as a class with these choices asks them, whatever this class chose."""
    found = choices.specs_for(chosen, declared(), variants())
    return MappingProxyType({lesson: MappingProxyType(specs) for lesson, specs in found.items()})


def problems(chosen: choices.Choices, lessons: Iterable[str]) -> list[str]:
    """Return in words what these choices name that is not there; `lessons` are those that are."""
    return choices.problems(chosen, lessons, _specs(), variants())


@functools.cache
def variants() -> MappingProxyType[str, Specs]:
    """Return every exercise's variants by suffix: {"im2col": {"nhwc": …}}. ValueError if one is not EXERCISE_SUFFIX."""
    known = [name for specs in declared().values() for name in specs]
    found: dict[str, dict[str, Spec]] = {}
    for module in exercises.declared("variants").values():
        for name in (name for name, value in vars(module).items() if isinstance(value, Spec) and name not in known):
            exercise = max((one for one in known if name.startswith(f"{one}_")), key=len, default=None)
            if exercise is None:
                raise ValueError(f"{module.__name__}: {name} must be named after its exercise, as EXERCISE_SUFFIX")
            found.setdefault(exercise, {})[name.removeprefix(f"{exercise}_")] = getattr(module, name)
    return MappingProxyType({exercise: MappingProxyType(specs) for exercise, specs in found.items()})


@functools.cache
def all_specs() -> Specs:
    """Return every spec by its name, chosen or not, variants included. Raises ValueError if one name is used twice."""
    chosen = choices.read()
    untimed = {name for lesson in chosen.without_speed for name in _with_variants(lesson)}
    found = {name: choices.as_chosen(name, spec, chosen, timed=name not in untimed) for name, spec in _specs().items()}
    return MappingProxyType(found)


def _with_variants(lesson: str) -> list[str]:
    """The names of a lesson's exercises, and of their variants, chosen or not."""
    names = list(declared().get(lesson, ()))
    return [*names, *(f"{name}_{suffix}" for name in names for suffix in variants().get(name, ()))]


@functools.cache
def declared() -> dict[str, Specs]:
    """Return every lesson's specs as its module declares them, whatever a class chose."""
    return {
        lesson: MappingProxyType({name: value for name, value in vars(module).items() if isinstance(value, Spec)})
        for lesson, module in exercises.declared("exercises").items()
    }


@functools.cache
def _specs() -> dict[str, Spec]:
    specs: dict[str, Spec] = {}
    places: dict[str, Mapping[str, Spec]] = dict(declared())
    for exercise, others in variants().items():
        places[f"variants of {exercise}"] = {f"{exercise}_{suffix}": spec for suffix, spec in others.items()}
    for place, found in places.items():
        if twice := specs.keys() & found.keys():
            raise ValueError(f"{place} declares {sorted(twice)}, which an earlier lesson has")
        specs |= found
    return specs
