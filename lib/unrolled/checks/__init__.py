"""What an exercise asks, and what runs and compares: the framework lies here, the specs in `exercises/`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from . import choices, exercises
from .report import MIME, Finding, Part, Report
from .run import VISIBLE_SEED, run
from .spec import Budget, Spec, Speed

__all__ = ["MIME", "VISIBLE_SEED", "Budget", "Finding", "Part", "Report", "Spec", "Speed"]
__all__ += ["all_specs", "lessons", "run", "variants"]

Specs = MappingProxyType[str, Spec]


@functools.cache
def lessons() -> MappingProxyType[str, Specs]:
    """Return the course's lessons and their specs, as declared: {"02_convolution": {"conv2d_gemm": …}, …}.

    A class's `course.json` says which, with its variants and thresholds; ValueError if it names what is not there.
    """
    chosen = choices.read()
    declared, exist = _declared(), variants()
    if problems := choices.problems(chosen, declared, _specs(), exist):
        raise ValueError(f"{choices.FILE}: {'; '.join(problems)}")
    found = {}
    for lesson, specs in declared.items():
        if chosen.lessons is None or lesson in chosen.lessons:
            asked = choices.with_variants(specs, exist, chosen.variants)
            found[lesson] = MappingProxyType(choices.with_thresholds(asked, chosen.thresholds))
    return MappingProxyType(found)


@functools.cache
def variants() -> MappingProxyType[str, Specs]:
    """Return every exercise's variants by suffix: {"im2col": {"nhwc": …}}. ValueError if one is not EXERCISE_SUFFIX."""
    known = [name for specs in _declared().values() for name in specs]
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
    return MappingProxyType(choices.with_thresholds(_specs(), choices.read().thresholds))


@functools.cache
def _declared() -> dict[str, Specs]:
    """Every lesson's specs as its module declares them."""
    return {
        lesson: MappingProxyType({name: value for name, value in vars(module).items() if isinstance(value, Spec)})
        for lesson, module in exercises.declared("exercises").items()
    }


@functools.cache
def _specs() -> dict[str, Spec]:
    specs: dict[str, Spec] = {}
    places: dict[str, Mapping[str, Spec]] = dict(_declared())
    for exercise, others in variants().items():
        places[f"variants of {exercise}"] = {f"{exercise}_{suffix}": spec for suffix, spec in others.items()}
    for place, declared in places.items():
        if twice := specs.keys() & declared.keys():
            raise ValueError(f"{place} declares {sorted(twice)}, which an earlier lesson has")
        specs |= declared
    return specs
