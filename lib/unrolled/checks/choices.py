"""What an instructor chose for a class: lessons, variants, thresholds, points, as `course.json` beside this file.

There is no such file in the course itself, and then everything is as the lessons declare it. It travels with the
library, so that a learner's check and the judge ask the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
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
    if strangers := found.keys() - MUST:
        raise ValueError(f"{file} has {sorted(strangers)}; known are {', '.join(MUST)}")
    given: dict[str, Any] = {key: value for key, value in found.items() if value is not None}
    for key, value in given.items():
        kind, kinds, must = MUST[key]
        inside = value.values() if isinstance(value, dict) else value
        if not (isinstance(value, kind) and set(map(type, inside)) <= kinds):
            raise ValueError(f"{file}: {key} must {must} {value!r}")
        given[key] = tuple(inside) if kind is list else value
    return Choices(**given)


MUST: dict[str, tuple[type, set[type], str]] = {  # the type of each choice and of what is in it, and in words
    "lessons": (list, {str}, "be a list of names, got"),
    "variants": (dict, {str}, "map names to suffixes:"),
    "thresholds": (dict, {int, float}, "map names to numbers:"),
    "points": (dict, {int}, "map names to whole numbers:"),
    "without_speed": (list, {str}, "be a list of names, got"),
}


def as_chosen(name: str, spec: Spec, choices: Choices, *, timed: bool) -> Spec:
    """Return a spec with the chosen points and threshold; without its speed part unless it is to be `timed`."""
    points, speed = choices.points.get(name, spec.points), spec.speed
    if speed is None:
        return replace(spec, points=points)
    if not timed:
        return replace(spec, points=points, speed=None)
    at_least = float(choices.thresholds[name]) if name in choices.thresholds else speed.at_least
    timed_points = choices.points.get(name + SPEED, speed.points)
    return replace(spec, points=points, speed=replace(speed, at_least=at_least, points=timed_points))


def parts(specs: Specs) -> dict[str, tuple[float, float | None]]:
    """Return points and threshold (None where nothing is timed) of each part: what a lesson asks, as plain numbers."""
    found: dict[str, tuple[float, float | None]] = {}
    for name, spec in specs.items():
        found[name] = (spec.points, None)
        if spec.speed is not None:
            found[name + SPEED] = (spec.speed.points, spec.speed.at_least)
    return found
