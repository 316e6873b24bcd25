"""What an instructor chose for a class: lessons, variants of exercises, thresholds, as `course.json` beside this file.

There is no such file in the course itself, and then everything is as the lessons declare it. It travels with the
library, so that a learner's check and the judge ask the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .spec import Spec

FILE = Path(__file__).with_name("course.json")

Specs = Mapping[str, Spec]


@dataclass(frozen=True)
class Choices:
    """`lessons` are the chosen ones, None for all; `variants` maps an exercise to the suffix of its variant."""

    lessons: tuple[str, ...] | None = None
    variants: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)  # of speed parts, by check: a variant has its own


def read(file: Path | None = None) -> Choices:
    """Return the choices in a file, the library's by default; none without it. ValueError, naming it, for any other."""
    if not (file := file or FILE).exists():
        return Choices()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{file} must hold an object, got {type(found).__name__}")
    lessons, variants, thresholds = (found.get(key) for key in ("lessons", "variants", "thresholds"))
    if strangers := found.keys() - {"lessons", "variants", "thresholds"}:
        raise ValueError(f"{file} has {sorted(strangers)}; known are lessons, variants and thresholds")
    if lessons is not None and not (isinstance(lessons, list) and all(isinstance(name, str) for name in lessons)):
        raise ValueError(f"{file}: lessons must be a list of names, got {lessons!r}")
    for key, value, kinds in (("variants", variants, {str}), ("thresholds", thresholds, {int, float})):
        if value is not None and not (isinstance(value, dict) and set(map(type, value.values())) <= kinds):
            raise ValueError(f"{file}: {key} must map names to {'suffixes' if str in kinds else 'numbers'}: {value!r}")
    return Choices(None if lessons is None else tuple(lessons), variants or {}, thresholds or {})


def with_variants(declared: Specs, variants: Mapping[str, Specs], chosen: Mapping[str, str]) -> dict[str, Spec]:
    """Return a lesson's specs with the chosen variants in place of their exercises, under names of their own."""
    names = {name: f"{name}_{chosen[name]}" if name in chosen else name for name in declared}
    return {new: variants[name][chosen[name]] if name in chosen else declared[name] for name, new in names.items()}


def with_thresholds(specs: Specs, thresholds: Mapping[str, float]) -> dict[str, Spec]:
    """Return the specs with these thresholds, by the check's name, for their speed parts."""
    chosen = dict(specs)
    for name, spec in specs.items():
        if name in thresholds and spec.speed is not None:
            chosen[name] = replace(spec, speed=replace(spec.speed, at_least=float(thresholds[name])))
    return chosen


def problems(choices: Choices, lessons: Iterable[str], specs: Specs, variants: Mapping[str, Specs]) -> list[str]:
    """Return in words what the choices name that the course does not have, and thresholds that are not positive."""
    found = [f"there is no lesson {name!r}" for name in choices.lessons or () if name not in set(lessons)]
    for exercise, suffix in choices.variants.items():
        known = variants.get(exercise, {})
        if exercise not in specs:
            found.append(f"there is no exercise {exercise!r} to choose a variant of")
        elif suffix not in known:
            have = f"it has {', '.join(known)}" if known else "it has none"
            found.append(f"{exercise!r} has no variant {suffix!r}: {have}")
    for name, threshold in choices.thresholds.items():
        if name not in specs or specs[name].speed is None:
            found.append(f"there is no speed part of {name!r} to set a threshold for")
        elif not threshold > 0:
            found.append(f"the threshold of {name!r} must be positive, got {threshold}")
    return found
