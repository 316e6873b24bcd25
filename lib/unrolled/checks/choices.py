"""What an instructor chose for a class: lessons, variants, thresholds, points, as `course.json` beside this file.

There is no such file in the course itself, and then everything is as the lessons declare it. It travels with the
library, so that a learner's check and the judge ask the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .spec import Spec

FILE = Path(__file__).with_name("course.json")
SPEED = "/speed"  # a part's name is the check's, and with this behind it that of its speed

Specs = Mapping[str, Spec]


@dataclass(frozen=True)
class Choices:
    """`lessons` are the chosen ones, None for all; `variants` maps an exercise to the suffix of its variant."""

    lessons: tuple[str, ...] | None = None
    variants: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)  # of speed parts, by check: a variant has its own
    points: Mapping[str, int] = field(default_factory=dict)  # by part: "conv2d_gemm", "conv2d_gemm/speed"
    without_speed: tuple[str, ...] = ()  # lessons whose speeds are not measured, and earn nothing


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
    known = ("lessons", "variants", "thresholds", "points", "without_speed")
    if strangers := found.keys() - set(known):
        raise ValueError(f"{file} has {sorted(strangers)}; known are {', '.join(known)}")
    given: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
    for key, value in given.items():
        _require(file, key, value)
        given[key] = tuple(value) if isinstance(value, list) else value
    return Choices(**given)


def _require(file: Path, key: str, value: Any) -> None:
    """Raise ValueError unless a value is of the kind that its key asks."""
    if key in ("lessons", "without_speed"):
        if not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
            raise ValueError(f"{file}: {key} must be a list of names, got {value!r}")
        return
    kinds: dict[str, tuple[set[type], str]] = {
        "variants": ({str}, "suffixes"),
        "thresholds": ({int, float}, "numbers"),
        "points": ({int}, "whole numbers"),
    }
    if not (isinstance(value, dict) and set(map(type, value.values())) <= kinds[key][0]):
        raise ValueError(f"{file}: {key} must map names to {kinds[key][1]}: {value!r}")


def specs_for(
    choices: Choices, declared: Mapping[str, Specs], variants: Mapping[str, Specs]
) -> dict[str, dict[str, Spec]]:
    """Return the chosen lessons with their specs as the class asks them, of those that the lessons declare."""
    return {
        lesson: {
            name: as_chosen(name, spec, choices, timed=lesson not in choices.without_speed)
            for name, spec in with_variants(specs, variants, choices.variants).items()
        }
        for lesson, specs in declared.items()
        if choices.lessons is None or lesson in choices.lessons
    }


def with_variants(declared: Specs, variants: Mapping[str, Specs], chosen: Mapping[str, str]) -> dict[str, Spec]:
    """Return a lesson's specs with the chosen variants in place of their exercises, under names of their own."""
    names = {name: f"{name}_{chosen[name]}" if name in chosen else name for name in declared}
    return {new: variants[name][chosen[name]] if name in chosen else declared[name] for name, new in names.items()}


def as_chosen(name: str, spec: Spec, choices: Choices, *, timed: bool) -> Spec:
    """Return a spec with the chosen points and threshold; without its speed part unless it is to be `timed`."""
    changes: dict[str, Any] = {"points": choices.points[name]} if name in choices.points else {}
    if (speed := spec.speed) is not None and not timed:
        changes["speed"] = None
        changes["answers"] = (*spec.answers, speed.baseline)  # no function may call it, timed or not
    elif speed is not None:
        chosen: dict[str, Any] = {}
        if name in choices.thresholds:
            chosen["at_least"] = float(choices.thresholds[name])
        if name + SPEED in choices.points:
            chosen["points"] = choices.points[name + SPEED]
        if chosen:
            changes["speed"] = replace(speed, **chosen)
    return replace(spec, **changes) if changes else spec


def parts(specs: Specs) -> dict[str, tuple[float, float | None]]:
    """Return points and threshold (None where nothing is timed) of each part: what a lesson asks, as plain numbers."""
    found: dict[str, tuple[float, float | None]] = {}
    for name, spec in specs.items():
        found[name] = (spec.points, None)
        if spec.speed is not None:
            found[name + SPEED] = (spec.speed.points, spec.speed.at_least)
    return found


def problems(choices: Choices, lessons: Iterable[str], specs: Specs, variants: Mapping[str, Specs]) -> list[str]:
    """Return in words what the choices name that the course does not have, and numbers that cannot be."""
    named = dict.fromkeys((*(choices.lessons or ()), *choices.without_speed))
    found = [f"there is no lesson {name!r}" for name in named if name not in set(lessons)]
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
        elif not 0 < threshold < float("inf"):
            found.append(f"the threshold of {name!r} must be positive, got {threshold}")
    there = parts(specs)
    for name, worth in choices.points.items():
        if name not in there:
            found.append(f"there is no part {name!r} to set the points of")
        elif worth < 0:
            found.append(f"the points of {name!r} must not be negative, got {worth}")
    return found
