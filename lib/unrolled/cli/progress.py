"""`unrolled progress`: what passed, what is next, how long it takes, and a record to print."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import unrolled
from unrolled.notebook import cells

from . import checkout, plan
from .common import Subparsers, new_file, present_file, reading, write_new
from .upgrade import numbers


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "progress",
        help="show what you have passed, and what comes next",
        description="Show what you have passed by your journal, what comes next, and how many minutes are left.",
    )
    parser.add_argument(
        "--journal", type=present_file, metavar="FILE", help="default: ./journal.json, else work/journal.json"
    )
    parser.add_argument("--all", action="store_true", help="the exercises of lessons not begun, too")
    parser.add_argument("--record", type=new_file, metavar="FILE.html", help="write a page to print, self-checked")
    parser.add_argument("--name", default="", help="the name on the record (default: your id, if you gave one)")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from unrolled import journal

    file = _journal(arguments.journal)
    if file is not None:
        os.environ["UNROLLED_JOURNAL"] = str(file)
    if arguments.journal:  # unlike the usual one it is not put aside if it is none
        with reading(arguments.journal):
            kept = journal.load(arguments.journal)
    else:
        kept = journal.read()
    from unrolled import checks

    lessons = plan.read(checks.lessons(), [checkout.course() / "notebooks", journal.path().parent])
    if arguments.record:
        from . import record

        page = record.page(lessons, kept, arguments.name or journal.student(), datetime.date.today())
        write_new(arguments.record, page.encode())
        print(f"Your record is {arguments.record}. Open it in a browser to print it.")
        return 0
    file = journal.path()
    print(f"journal: {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")
    print(progress(lessons, kept["checks"], arguments.all))
    print("".join(older([lesson.name for lesson in lessons], file.parent)), end="")
    return 0


def _journal(chosen: Path | None) -> Path | None:
    """The journal to read; None leaves it to `journal.path()`."""
    if chosen is not None or "UNROLLED_JOURNAL" in os.environ or Path("journal.json").is_file():
        return chosen
    return checkout.work() / "journal.json"


def progress(lessons: list[plan.Lesson], kept: plan.Entries, every: bool = False) -> str:
    """Return a line for each lesson and exercise, then what is next, how long all of it takes, and what else there is.

    The exercises of lessons that are not begun are left out, but for the next one's, unless `every` is true.
    """
    done = plan.passed(kept)
    width = max((len(exercise.name) for lesson in lessons for exercise in lesson.exercises), default=0)
    following = _following(lessons, done)
    lines = []
    for lesson in lessons:
        count = sum(exercise.name in done for exercise in lesson.exercises)
        left = f", about {clock(lesson.left(done))} left" if lesson.left(done) else ""
        lines.append(f"{lesson.name}   {count} of {len(lesson.exercises)} passed{left}")
        begun = any(exercise.name in kept for exercise in lesson.exercises)
        if every or begun or (following and following[0] is lesson):
            lines += [_line(exercise, width, kept.get(exercise.name, {}), done) for exercise in lesson.exercises]
    lines += ["", *_next(lessons, done)]
    if others := done - {exercise.name for lesson in lessons for exercise in lesson.exercises}:
        lines.append(f"also passed, from another version or choice of lessons: {', '.join(sorted(others))}")
    return "\n".join([*lines, *_last(kept)])


def _following(lessons: list[plan.Lesson], done: set[str]) -> tuple[plan.Lesson, plan.Exercise] | None:
    """The first core exercise that is not passed, else the first of all."""
    todo = [(lesson, one) for lesson in lessons for one in lesson.exercises if one.name not in done]
    return next((pair for pair in todo if pair[1].core is not False), todo[0] if todo else None)


def older(lessons: list[str], work: Path) -> list[str]:
    """Return a line for each of the learner's notebooks that is of another version of the course than the library."""
    from unrolled.notebook import submission

    lines = []
    for name in lessons:
        try:
            nb = cells.parse((work / f"{name}.ipynb").read_bytes())
        except (OSError, ValueError):
            continue
        version = submission.claims(nb)[1]
        if version and version != unrolled.__version__:
            upgrade = f"`unrolled upgrade {name.partition('_')[0]}` moves your answers into the newer one"
            way = upgrade if numbers(version) < numbers(unrolled.__version__) else "update the course"
            lines.append(
                f"{name}.ipynb is of version {version}, the course is {unrolled.__version__}: it goes on as it is, or "
                f"{way}\n"
            )
    return lines


def _line(exercise: plan.Exercise, width: int, entry: Mapping[str, Any], done: set[str]) -> str:
    mark = "✓" if exercise.name in done else "✗" if entry else "–"
    kind = {True: "core", False: "more", None: ""}[exercise.core]
    minutes = f"{exercise.minutes} min" if exercise.minutes else ""
    points = f"{entry['points']:g} of {entry['max_points']:g} points" if "points" in entry else ""
    since = " (passed before)" if entry and exercise.name in done and not entry.get("passed") else ""
    return f"  {mark} {exercise.name:<{width}}   {kind:<4}  {minutes:>6}   {points}{since}".rstrip()


def _next(lessons: list[plan.Lesson], done: set[str]) -> list[str]:
    """What to do next, and the minutes left."""
    following = _following(lessons, done)
    if following is None:
        return ["nothing is left: every exercise passed"]
    lesson, exercise = following
    minutes = f", about {exercise.minutes} minutes" if exercise.minutes else ""
    lines = [f"next: {exercise.name} in {lesson.name}{minutes}   (unrolled lab {lesson.name.partition('_')[0]})"]
    if whole := sum(lesson.left(done) for lesson in lessons):
        more = {one.name for lesson in lessons for one in lesson.exercises if one.core is False}
        core = sum(lesson.left(done | more) for lesson in lessons)
        lines.append(f"left: about {clock(whole)} for all of it, {clock(core)} for what is core")
    return lines


def _last(kept: plan.Entries) -> list[str]:
    dated = [(str(entry["date"]), name) for name, entry in kept.items() if "date" in entry]
    if not dated:
        return ["your journal is empty: checks in a notebook fill it, `unrolled check` does not; `unrolled lab 00`"]
    when, name = max(dated)
    try:
        day = datetime.datetime.fromisoformat(when).astimezone()
    except ValueError:
        return []
    return [f"last checked: {name}, on {day.day} {day:%B %Y}"]


def clock(minutes: float) -> str:
    """Return minutes in words, to the nearest five from half an hour on."""
    rounded = round(minutes) if minutes < 30 else 5 * round(minutes / 5)
    hours, rest = divmod(rounded, 60)
    parts = [f"{hours} h"] if hours else []
    return " ".join(parts + ([f"{rest} min"] if rest or not hours else []))
