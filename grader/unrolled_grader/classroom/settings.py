"""What an instructor decides about a class: `course.toml` at the root of the course's folder; without one, defaults.

    [class]
    name = "Spring 2027"
    lessons = ["00_start_here", "02_convolution"]       # default: all
    [variants]
    im2col = "nhwc"                                     # exercise = suffix of the variant in its place
    [thresholds]
    conv2d_gemm = 2.0                                   # times as fast as the baseline
    [due]
    02_convolution = 2027-01-15T23:59:00+09:00          # always with an offset from UTC
    [extensions.ada]
    02_convolution = 2027-01-18T23:59:00+09:00
    [late]
    grace_minutes = 15
    per_day = 0.1                                       # part of the points that each day begun takes
    at_most = 0.5                                       # part of the points that lateness takes at most

Lessons, variants and thresholds are also in course.json, which the learners' library reads (`checks/choices.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unrolled.cli import CommandError
from unrolled_grader.build import authoring

if TYPE_CHECKING:
    from unrolled.checks import choices

FILE, CHOICES = "course.toml", authoring.CHOICES
BARE = re.compile(r"[A-Za-z0-9_-]+")
Value = TypeVar("Value")


class SettingsError(CommandError):
    """course.toml cannot be used: which entry, what it says, what was expected."""


@dataclass(frozen=True)
class Late:
    """What lateness costs, as parts of the points."""

    grace_minutes: float = 0.0
    per_day: float = 0.0
    at_most: float = 1.0


@dataclass(frozen=True)
class Settings:
    """A class, as plain data."""

    name: str = ""
    lessons: tuple[str, ...] = ()  # the chosen lessons; none: all
    variants: Mapping[str, str] = field(default_factory=dict)  # suffix of the variant, by exercise
    thresholds: Mapping[str, float] = field(default_factory=dict)  # times as fast as the baseline, by exercise
    due: Mapping[str, datetime] = field(default_factory=dict)  # by lesson; each with its offset from UTC
    extensions: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)  # by student, then by lesson
    late: Late = Late()

    def due_for(self, student: str, lesson: str) -> datetime | None:
        """Return when this student's work on the lesson is due; None if never."""
        return self.extensions.get(student, {}).get(lesson, self.due.get(lesson))


def read(root: Path, *, agreeing: bool = True) -> Settings:
    """Return the settings of the course in `root`; the defaults without a course.toml.

    Raises SettingsError for unknown keys, lessons that are not there, and values that are not what they should be;
    and if `agreeing`, for lessons, variants or thresholds that the library's course.json has otherwise.
    """
    file = root / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{FILE} cannot be read: {error}") from error
    found = parse(text, {lesson.stem for lesson in (root / "lessons").glob("*.py")})
    if agreeing:
        from unrolled.checks import choices

        try:
            _agree(found, choices.read(root / CHOICES))
        except ValueError as error:
            raise SettingsError(str(error)) from error
    return found


def _agree(found: Settings, given: choices.Choices) -> None:
    """Raise SettingsError unless learners' checks ask what course.toml says."""
    for name, kind in {"lessons": list, "variants": dict, "thresholds": dict}.items():
        ours, theirs = kind(getattr(found, name)), kind(getattr(given, name) or ())
        if ours != theirs:
            raise SettingsError(
                f"{FILE} has the {name} {ours or 'of the course'}, but {CHOICES}, which learners' checks follow, has "
                f"{theirs or 'none'}: undo the change, or run `unrolled class new` for new trees"
            )


def parse(text: str, lessons: set[str]) -> Settings:
    """Return the settings in a course.toml, where `lessons` are those that there are. Raises SettingsError."""
    try:
        tables = authoring.parsed_toml(text)
    except ValueError as error:
        raise SettingsError(f"{FILE} is not TOML: {error}") from error
    _only(tables, ("class", "variants", "thresholds", "due", "extensions", "late"), "")
    about, late = _table(tables, "class"), _table(tables, "late")
    _only(about, ("name", "lessons"), "class.")
    _only(late, ("grace_minutes", "per_day", "at_most"), "late.")
    chosen = about.get("lessons", [])
    _need(isinstance(chosen, list), "class.lessons", chosen, "a list of lessons")
    extensions = _table(tables, "extensions")
    return Settings(
        name=_text("class.name", about.get("name", "")),
        lessons=tuple(_lesson("class.lessons", name, lessons) for name in chosen),
        variants=_each(tables, "variants", _text),
        thresholds=_each(tables, "thresholds", _above_zero),
        due=_dates(tables, "due", lessons),
        extensions={student: _dates(extensions, student, lessons, "extensions.") for student in extensions},
        late=Late(
            grace_minutes=_number("late.grace_minutes", late.get("grace_minutes", 0)),
            per_day=_part("late.per_day", late.get("per_day", 0)),
            at_most=_part("late.at_most", late.get("at_most", 1)),
        ),
    )


def written(settings: Settings) -> str:
    """Return the settings as a course.toml with a word on each part; `parse` reads the same settings from it."""
    late = settings.late
    parts = {
        "# Lessons, variants and thresholds hold through lib/unrolled/checks/course.json, which learners have too. To\n"
        "# change them, edit them here and run `unrolled class new` in this folder for new trees.\n[class]": {
            "name": toml_text(settings.name),
            **({"lessons": toml_text(list(settings.lessons))} if settings.lessons else {}),
        },
        "[variants]": {name: toml_text(suffix) for name, suffix in settings.variants.items()},
        "[thresholds]": {name: f"{float(value)!r}" for name, value in settings.thresholds.items()},
        "# When work is due, with the offset from UTC: 02_convolution = 2027-01-15T23:59:00+09:00\n[due]": {
            lesson: when.isoformat() for lesson, when in settings.due.items()
        },
        "# More time for one student: a table [extensions.ID] with lines as above.\n[extensions]": {},
        **{
            f"[extensions.{_key(student)}]": {lesson: when.isoformat() for lesson, when in dates.items()}
            for student, dates in settings.extensions.items()
        },
        "# The part of the points that each day begun takes, and that lateness takes at most.\n[late]": {
            "grace_minutes": f"{late.grace_minutes!r}",
            "per_day": f"{late.per_day!r}",
            "at_most": f"{late.at_most!r}",
        },
    }
    return "\n".join(
        "\n".join([head, *(f"{_key(key)} = {value}" for key, value in lines.items())]) + "\n"
        for head, lines in parts.items()
    )


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else toml_text(name)


def toml_text(value: str | list[str]) -> str:
    """Return a text, or a list of texts, as TOML: JSON's form of both is TOML's."""
    return json.dumps(value, ensure_ascii=False)


def _table(tables: Mapping[str, Any], name: str, above: str = "") -> Mapping[str, Any]:
    table = tables.get(name, {})
    _need(isinstance(table, dict), above + name, table, "a table")
    return dict(table)


def _only(table: Mapping[str, Any], known: tuple[str, ...], above: str) -> None:
    for name in table:
        if name not in known:
            raise SettingsError(f"{FILE}: {above}{name} is unknown; there are {', '.join(known)}")


def _each(tables: Mapping[str, Any], name: str, one: Callable[[str, Any], Value]) -> dict[str, Value]:
    return {key: one(f"{name}.{key}", value) for key, value in _table(tables, name).items()}


def _dates(tables: Mapping[str, Any], name: str, lessons: set[str], above: str = "") -> dict[str, datetime]:
    where, found = above + name, _table(tables, name, above)
    return {_lesson(where, key, lessons): _date(f"{where}.{key}", value) for key, value in found.items()}


def _lesson(where: str, name: Any, lessons: set[str]) -> str:
    _need(isinstance(name, str) and name in lessons, where, name, f"one of {', '.join(sorted(lessons))}")
    return str(name)


def _date(where: str, value: datetime) -> datetime:
    fits = isinstance(value, datetime) and value.tzinfo is not None
    _need(fits, where, value, "a date and time with an offset, such as 2027-01-15T23:59:00+09:00")
    return value


def _text(where: str, value: Any) -> str:
    _need(isinstance(value, str), where, value, "a text in quotes")
    return str(value)


def _number(where: str, value: Any) -> float:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")
    _need(fits, where, value, "a number from 0 on")
    return float(value)


def _part(where: str, value: Any) -> float:
    _need(_number(where, value) <= 1, where, value, "a part from 0 to 1")
    return float(value)


def _above_zero(where: str, value: Any) -> float:
    _need(_number(where, value) > 0, where, value, "a number above 0")
    return float(value)


def _need(fits: bool, where: str, value: Any, expected: str) -> None:
    """Raise SettingsError unless the value fits."""
    if not fits:
        given = value.isoformat() if hasattr(value, "isoformat") else repr(value)
        raise SettingsError(f"{FILE}: {where} is {given}; expected {expected}")
