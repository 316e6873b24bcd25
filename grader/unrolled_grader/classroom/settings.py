"""What an instructor decides about a class: `course.toml` at the root of the course's folder; without one, defaults.

    [class]
    name = "Spring 2027"
    lessons = ["00_start_here", "02_convolution"]       # default: all
    without_speed = ["02_convolution"]                  # lessons whose speeds are not measured, and earn nothing
    [variants]
    im2col = "nhwc"                                     # exercise = suffix of the variant in its place
    [thresholds]
    conv2d_gemm = 2.0                                   # times as fast as the baseline
    [points]
    conv2d_gemm = 3                                     # of a part, as grades/scores.csv names it
    "conv2d_gemm/speed" = 2
    [due]
    timezone = "Europe/Berlin"                          # by its clocks and calendar, also where days late are counted
    02_convolution = 2027-01-15T23:59:00
    [extensions.ada]
    02_convolution = 2027-01-18T23:59:00
    [attempts]
    count = "latest"                                    # or "latest in time", or "best"
    [late]
    grace_minutes = 15
    per_day = 0.1                                       # part of the points that each day begun takes
    at_most = 0.5                                       # part of the points that lateness takes at most

`[class]` but for the name, variants, thresholds and points are also in course.json, which the learners' library reads
(`checks/choices.py`). `unrolled class change` brings what was changed here to there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from unrolled.cli import CommandError
from unrolled.notebook import handin
from unrolled_grader.authoring import notebooks

if TYPE_CHECKING:
    from unrolled.checks import choices

FILE, CHOICES = "course.toml", notebooks.CHOICES
MOST_POINTS = 1000
POLICIES = ("latest", "latest in time", "best")  # which of a student's attempts at a lesson counts
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
    points: Mapping[str, int] = field(default_factory=dict)  # by part: "conv2d_gemm", "conv2d_gemm/speed"
    without_speed: tuple[str, ...] = ()  # lessons
    timezone: str = ""  # of the due times, by the name that the IANA's database has for it
    due: Mapping[str, datetime] = field(default_factory=dict)  # by lesson, in that time zone
    extensions: Mapping[str, Mapping[str, datetime]] = field(default_factory=dict)  # by student, then by lesson
    count: str = POLICIES[0]
    late: Late = Late()

    @property
    def zone(self) -> tzinfo:
        """Whose calendar counts days; UTC's for due times that a person set in formgrader alone."""
        return ZoneInfo(self.timezone) if self.timezone else timezone.utc

    def due_for(self, student: str, lesson: str) -> datetime | None:
        """Return when this student's work on the lesson is due; None if never."""
        return self.extensions.get(student, {}).get(lesson, self.due.get(lesson))


def read(root: Path, *, agreeing: bool = True) -> Settings:
    """Return the settings of the course in `root`; the defaults without a course.toml.

    Raises SettingsError for unknown keys, lessons that are not there, and values that are not what they should be;
    and if `agreeing`, for what the library's course.json has otherwise, as where a change was interrupted.
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
    for name, ours in shared(found).items():
        theirs = getattr(given, name)
        theirs = list(theirs or ()) if isinstance(ours, list) else dict(theirs)
        if ours != theirs:
            raise SettingsError(
                f"{FILE} has {name} {ours or 'as the course has them'}, but {CHOICES}, which learners' checks follow, "
                f"has {theirs or 'none'}: `unrolled class change` applies what {FILE} says"
            )


def shared(found: Settings) -> dict[str, Any]:
    """Return what learners' checks must know of the settings, as course.json holds it."""
    lists = {name: list(getattr(found, name)) for name in ("lessons", "without_speed")}
    return lists | {name: dict(getattr(found, name)) for name in ("variants", "thresholds", "points")}


def parse(text: str, lessons: set[str]) -> Settings:
    """Return the settings in a course.toml, where `lessons` are those that there are. Raises SettingsError."""
    try:
        tables = notebooks.parsed_toml(text)
    except ValueError as error:
        raise SettingsError(f"{FILE} is not TOML: {error}") from error
    _only(tables, ("class", "variants", "thresholds", "points", "due", "extensions", "attempts", "late"), "")
    about, attempts, late = (_table(tables, name) for name in ("class", "attempts", "late"))
    _only(about, ("name", "lessons", "without_speed"), "class.")
    _only(attempts, ("count",), "attempts.")
    _only(late, ("grace_minutes", "per_day", "at_most"), "late.")
    extensions, due = _table(tables, "extensions"), dict(_table(tables, "due"))
    zone = _zone("due.timezone", due.pop("timezone", ""))
    return Settings(
        name=_text("class.name", about.get("name", "")),
        lessons=_lessons(about, "lessons", lessons),
        variants=_each(tables, "variants", _text),
        thresholds=_each(tables, "thresholds", _above_zero),
        points=_each(tables, "points", _whole),
        without_speed=_lessons(about, "without_speed", lessons),
        timezone=str(zone or ""),
        due=_dates("due", due, lessons, zone),
        extensions={
            student: _dates(f"extensions.{student}", _table(extensions, student, "extensions."), lessons, zone)
            for student in extensions
        },
        count=_policy("attempts.count", attempts.get("count", POLICIES[0])),
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
        "# Lessons, variants, thresholds and points hold through lib/unrolled/checks/course.json, which learners have\n"
        "# too. To change them while the class runs, edit them here and run `unrolled class change` in this folder.\n"
        "[class]": _table_lines(settings, "class"),
        **{f"[{name}]": _table_lines(settings, name) for name in ("variants", "thresholds", "points")},
        '# When work is due: timezone = "Europe/Berlin" and 02_convolution = 2027-01-15T23:59:00\n[due]': {
            **({"timezone": toml_text(settings.timezone)} if settings.timezone else {}),
            **{lesson: when.isoformat() for lesson, when in settings.due.items()},
        },
        "# More time for one student: a table [extensions.ID] with lines as above.\n[extensions]": {},
        **{
            f"[extensions.{toml_key(student)}]": {lesson: when.isoformat() for lesson, when in dates.items()}
            for student, dates in settings.extensions.items()
        },
        '# Which of several hand-ins counts: "latest", "latest in time" or "best".\n[attempts]': {
            "count": toml_text(settings.count)
        },
        "# The part of the points that each day begun takes, and that lateness takes at most.\n[late]": {
            "grace_minutes": f"{late.grace_minutes!r}",
            "per_day": f"{late.per_day!r}",
            "at_most": f"{late.at_most!r}",
        },
    }
    return "\n".join(_block(head, lines) for head, lines in parts.items())


def rewritten(text: str, settings: Settings, lessons: set[str]) -> str:
    """Return a course.toml that says these settings, with as much as can be of a text that said others.

    A table that says something else is written anew in its place; what people wrote besides stays.
    """
    was = parse(text, lessons)
    for name in ("class", "variants", "thresholds", "points"):
        lines = _table_lines(settings, name)
        if lines != _table_lines(was, name):
            there = re.compile(rf"^\[{name}\][^\n]*\n(?:(?!\s*(?:\[|#|$)).*\n)*", re.MULTILINE)
            block = _block(f"[{name}]", lines)
            text = f"{text.rstrip()}\n"
            text, found = there.subn(lambda _, block=block: block, text, count=1)  # type: ignore[misc]
            text = text if found else f"{text}\n{block}"
    try:
        return text if parse(text, lessons) == settings else written(settings)
    except SettingsError:  # a table in a form that the pattern does not know, such as a list over several lines
        return written(settings)


def _table_lines(settings: Settings, name: str) -> dict[str, str]:
    """The lines of a table that learners' checks follow, and the class's name: values as TOML by key."""
    if name == "class":
        lists = {"lessons": settings.lessons, "without_speed": settings.without_speed}
        return {"name": toml_text(settings.name)} | {key: toml_text(list(one)) for key, one in lists.items() if one}
    if name == "variants":
        return {key: toml_text(suffix) for key, suffix in settings.variants.items()}
    return {key: f"{value!r}" for key, value in getattr(settings, name).items()}


def _block(head: str, lines: Mapping[str, str]) -> str:
    return "\n".join([head, *(f"{toml_key(key)} = {value}" for key, value in lines.items())]) + "\n"


def toml_key(name: str) -> str:
    """Return a name as a key of TOML."""
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


def _dates(where: str, table: Mapping[str, Any], lessons: set[str], zone: ZoneInfo | None) -> dict[str, datetime]:
    return {_lesson(where, key, lessons): _date(f"{where}.{key}", value, zone) for key, value in table.items()}


def _lessons(table: Mapping[str, Any], name: str, lessons: set[str]) -> tuple[str, ...]:
    chosen, where = table.get(name, []), f"class.{name}"
    _need(isinstance(chosen, list), where, chosen, "a list of lessons")
    return tuple(_lesson(where, lesson, lessons) for lesson in chosen)


def _lesson(where: str, name: Any, lessons: set[str]) -> str:
    _need(isinstance(name, str) and name in lessons, where, name, f"one of {', '.join(sorted(lessons))}")
    return str(name)


def _date(where: str, value: datetime, zone: ZoneInfo | None) -> datetime:
    """A due time in the class's time zone. An hour that a change of clocks brings twice is the later one."""
    fits = isinstance(value, datetime) and value.year in handin.YEARS
    _need(fits, where, value, "a date and time, such as 2027-01-15T23:59:00")
    advice = 'a time zone for it: write timezone = "Europe/Berlin", or the name of yours, under [due]'
    _need(zone is not None, where, value, advice)
    if value.tzinfo is not None:
        return value.astimezone(zone)
    moments = (value.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    return max(moments).astimezone(zone)  # an hour that a change of clocks leaves out has no place on the calendar


def _zone(where: str, name: Any) -> ZoneInfo | None:
    if name == "":
        return None
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, TypeError, KeyError):  # no name of a zone, or not even a text
        _need(False, where, name, 'a name such as "Europe/Berlin" or "America/New_York"')
        raise


def _text(where: str, value: Any) -> str:
    _need(isinstance(value, str), where, value, "a text in quotes")
    return str(value)


def _policy(where: str, value: Any) -> str:
    _need(value in POLICIES, where, value, f"one of {', '.join(map(toml_text, POLICIES))}")
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


def _whole(where: str, value: Any) -> int:
    _need(type(value) is int and 0 <= value <= MOST_POINTS, where, value, f"a whole number from 0 to {MOST_POINTS}")
    return int(value)


def _need(fits: bool, where: str, value: Any, expected: str) -> None:
    """Raise SettingsError unless the value fits."""
    if not fits:
        given = value.isoformat() if hasattr(value, "isoformat") else repr(value)
        raise SettingsError(f"{FILE}: {where} is {given}; expected {expected}")
