"""What an exercise asks, and what runs and compares: the framework lies here, the specs in `exercises/`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from . import choices, exercises
from .report import MIME, Finding, Part, Report
from .run import run
from .spec import Budget, Spec, Speed

__all__ = ["MIME", "Budget", "Finding", "Part", "Report", "Spec", "Speed"]
__all__ += ["all_specs", "declared", "judged", "lessons", "problems", "run", "specs_for", "variants"]

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


def judged(lesson: str) -> Specs:
    """Return a lesson's specs as a grading takes them; none for what is no lesson."""
    return MappingProxyType({name: spec.judged() for name, spec in lessons().get(lesson, {}).items()})


def specs_for(chosen: choices.Choices) -> MappingProxyType[str, Specs]:
    """Return the lessons and their specs as a class with these choices asks them, whatever this class chose."""
    found: dict[str, Specs] = {}
    for lesson, specs in declared().items():
        if chosen.lessons is None or lesson in chosen.lessons:
            asked, timed = _with_variants(specs, chosen.variants), lesson not in chosen.without_speed
            found[lesson] = MappingProxyType(
                {name: choices.as_chosen(name, spec, chosen, timed=timed) for name, spec in asked}
            )
    return MappingProxyType(found)


def _with_variants(specs: Specs, chosen: Mapping[str, str]) -> Iterator[tuple[str, Spec]]:
    """A lesson's specs with the chosen variants in place of their exercises, under names of their own."""
    for name, spec in specs.items():
        suffix = chosen.get(name)
        yield (name, spec) if suffix is None else (f"{name}_{suffix}", variants()[name][suffix])


def problems(chosen: choices.Choices, lessons: Iterable[str]) -> list[str]:
    """Return in words what the choices name that the course does not have, and numbers that cannot be.

    `lessons` are those that there are.
    """
    specs, there = _specs(), choices.parts(_specs())
    named = dict.fromkeys((*(chosen.lessons or ()), *chosen.without_speed))
    found = [f"there is no lesson {name!r}" for name in named if name not in set(lessons)]
    for exercise, suffix in chosen.variants.items():
        known: Mapping[str, Spec] = variants().get(exercise, {})
        if exercise not in specs:
            found.append(f"there is no exercise {exercise!r} to choose a variant of")
        elif suffix not in known:
            have = f"it has {', '.join(known)}" if known else "it has none"
            found.append(f"{exercise!r} has no variant {suffix!r}: {have}")
    for name, threshold in chosen.thresholds.items():
        if name + choices.SPEED not in there:
            found.append(f"there is no speed part of {name!r} to set a threshold for")
        elif not 0 < threshold < float("inf"):
            found.append(f"the threshold of {name!r} must be positive, got {threshold}")
    for name, worth in chosen.points.items():
        if name not in there:
            found.append(f"there is no part {name!r} to set the points of")
        elif worth < 0:
            found.append(f"the points of {name!r} must not be negative, got {worth}")
    return found


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
    names = [name for lesson in chosen.without_speed for name in declared().get(lesson, ())]
    untimed = {*names, *(f"{name}_{suffix}" for name in names for suffix in variants().get(name, ()))}
    found = {name: choices.as_chosen(name, spec, chosen, timed=name not in untimed) for name, spec in _specs().items()}
    return MappingProxyType(found)


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
