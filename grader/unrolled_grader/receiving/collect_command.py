"""`unrolled collect` takes in what students handed in, from a learning platform's download or a folder."""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, present, present_file
from unrolled_grader.classroom import groups
from unrolled_grader.classroom.folders import Folders
from unrolled_grader.receiving import roster_command

if TYPE_CHECKING:
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.classroom.roster import Roster
    from unrolled_grader.receiving import collect, lms
    from unrolled_grader.receiving.collect import Collected, CollectedRow

SHARED = 4
"""A remark that so many have is one line for all of them."""
AGAIN = "but it is the notebook that was there already, whose time counts"


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled collect` and `unrolled roster` commands: the entry point through which they are found."""
    roster_command.add(subparsers)
    parser = subparsers.add_parser("collect", help="take in what students handed in: Canvas, Moodle, folders, files")
    parser.add_argument("files", nargs="+", type=present, metavar="FILE", help="a zip, a folder, a notebook, a hand-in")
    who = "who takes the course: id,name,email,lms_id, or an export of Canvas or Moodle (default: roster.csv)"
    parser.add_argument("--roster", type=present_file, metavar="CSV", help=who)
    parser.add_argument("--lesson", metavar="LESSON", help="take only this lesson, such as 02_convolution or 02")
    together = "who hands in together: the columns group,id (default: groups.csv, if there is one)"
    parser.add_argument("--groups", type=present_file, metavar="CSV", help=together)
    names = "how names are made, where no platform's layout is meant: '{name}_{id}_{file}', or a regular expression"
    parser.add_argument("--pattern", type=_pattern, metavar="PATTERN", help=names)
    parser.add_argument("--dry-run", action="store_true", help="say what would be taken, and write nothing")
    parser.set_defaults(run=_collect)


def _pattern(text: str) -> re.Pattern[str]:
    from unrolled_grader.receiving import layouts

    try:
        return layouts.pattern(text)
    except layouts.PatternError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _collect(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    Folders.at(root).choose([] if arguments.lesson is None else [arguments.lesson])
    roster = arguments.roster or root / roster_command.ROSTER
    people = roster_command.read(roster)
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import collect, enrolment
    from unrolled_grader.receiving.received import Received

    try:
        course = Course.at(root)
        room = replace(
            classroom(course, people, arguments.lesson),
            groups=_groups(arguments.groups or root / groups.FILE, people, needed=arguments.groups is not None),
            pattern=arguments.pattern,
        )
        roster_command.refuse_doubles(course, people)
        if arguments.dry_run:
            return _dry_run(course, arguments.files, room)
        with record.alone(course.grades):
            report = collect.take(course.submitted, arguments.files, room)
            changed = enrolment.enter(course, filter(people.is_sure, people.people), roster.name)
            table = collect.write_table(course.grades, Received(collect.home(course.submitted)))
    except OSError as error:
        raise CommandError(f"it stopped on the way, nothing is lost; mend this and run it again: {error}") from error
    roster_lines = [f"{roster.name}: {people.describe()}"] if people.form and changed else []
    printed = [*roster_lines, *lines(report), *missing(report, course.submitted, room)]
    print("\n".join(map(record.one_line, printed)))
    print(f"received: {collect.home(course.submitted)}\nsubmitted: {course.submitted}\ntable: {table}")
    return 1 if report.problems or unsettled(report) else 0


def _groups(file: Path, people: Roster, *, needed: bool) -> lms.Groups:
    if not needed and not file.is_file():
        return {}
    try:
        return groups.read(file.read_bytes(), people)
    except (OSError, groups.GroupsError) as error:
        raise CommandError(str(error)) from error


def _dry_run(course: Course, files: Sequence[Path], room: collect.Classroom) -> int:
    """Print whose each upload would be; 1 if something would be set aside."""
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import collect, layouts
    from unrolled_grader.receiving.received import Received

    printed = [f"roster: {problem}" for problem in room.roster.problems]
    looked = collect.look(Received(collect.home(course.submitted)), files, room, printed)
    entries = [one.entry for one in looked if not layouts.NOISE.search(one.entry.path)]
    for entry in entries:
        outcome = f"{entry.student}, {entry.lesson}" if not entry.problem else f"set aside: {entry.problem}"
        printed.append(f"{entry.path}: {'; '.join(filter(None, (outcome, entry.note)))}")
    print("\n".join([*map(record.one_line, printed), "Nothing was written: this was a dry run."]))
    return 1 if any(entry.problem for entry in entries) else 0


def classroom(course: Course, people: Roster, lesson: str | None = None) -> collect.Classroom:
    """Return what uploads are compared with. Raises CourseError for a strange lesson."""
    from unrolled import checks
    from unrolled_grader.classroom import settings
    from unrolled_grader.receiving import collect

    lessons = {name: tuple(checks.lessons()[name]) for name in course.choose([])}
    versions = Path(course.directory.root, "grader", "versions")
    known = [folder.name for folder in versions.iterdir()] if versions.is_dir() else []
    chosen = settings.read(Path(course.directory.root))
    lesson = course.choose([lesson])[0] if lesson else ""
    return collect.Classroom(people, lessons, lesson, versions=known, settings=chosen)


def lines(report: Collected) -> list[str]:
    """Return a report in words: what needs a person first, then what to know, then the sum."""
    from unrolled_grader.receiving import collect

    kept = [(row.entry, f" ({row.entry.student})" if row.entry.student else "") for row in unsettled(report)]
    printed = [*report.problems, *(f"set aside: {entry.path}: {entry.problem}{whose}" for entry, whose in kept)]
    printed += remarks([row for row in report.rows if row.new and not row.entry.problem])
    fresh = {(row.entry.student, row.entry.lesson) for row in report.rows if row.new}
    for settled in report.settled:
        if settled.noticed or (settled.number < settled.of and (settled.entry.student, settled.entry.lesson) in fresh):
            printed.append(f"{settled}; `unrolled attempts` lists all")
    old = sum(bool(row.entry.note) for row in report.rows if row.outcome == "newest" and not row.new)
    if old:
        printed.append(f"remarks of an earlier run stand in {collect.TABLE}: {old} notebooks")
    if done := len(aside(report)) - len(kept):
        printed.append(f"set aside in an earlier run, of students who have a notebook by now: {done}")
    if noise := sum(row.outcome == "set aside" for row in report.rows) - len(aside(report)):
        printed.append(f"set aside: {noise} files that the system or Jupyter left")
    counts = Counter(row.outcome for row in report.rows)
    total = ", ".join(f"{counts[name]} {name}" for name in ("newest", "earlier", "the same again", "set aside"))
    printed.append(f"{len(report.rows)} received: {total}" if report.rows else "There is nothing in it.")
    if report.rows and not report.new and not any(settled.changed for settled in report.settled):
        printed.append("Nothing new: all of this was received before, and nothing was changed.")
    return [*printed, *newcomers(report)]


def remarks(rows: list[CollectedRow]) -> list[str]:
    """Return what to know of these notebooks: a line a student, and one for a remark that several have."""
    whose: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        again = row.outcome == "the same again" and row.entry.note
        for remark in filter(None, [*row.entry.note.split("; "), AGAIN if again else ""]):
            whose.setdefault((row.entry.lesson, remark), []).append(row.entry.student)
    shared = {key: people for key, people in whose.items() if len(people) >= SHARED}
    own: dict[tuple[str, str], list[str]] = {}
    for (lesson, remark), people in whose.items():
        for student in people if (lesson, remark) not in shared else ():
            own.setdefault((student, lesson), []).append(remark)
    printed = [
        f"{lesson}: {remark}: {len(people)} ({', '.join(people)})" for (lesson, remark), people in shared.items()
    ]
    return [*(f"{student}, {lesson}: {'; '.join(found)}" for (student, lesson), found in own.items()), *printed]


def newcomers(report: Collected) -> list[str]:
    """Return a line for each lesson of which some had a notebook before: who is new, and who handed in again."""
    fresh = {(row.entry.lesson, row.entry.student) for row in report.rows if row.new and row.outcome == "newest"}
    printed = []
    for lesson in sorted({lesson for lesson, _ in fresh} & {lesson for _, lesson in report.before}):
        people = sorted(student for one, student in fresh if one == lesson)
        again = [student for student in people if (student, lesson) in report.before]
        new = [student for student in people if student not in again]
        parts = [
            f"{what}: {', '.join(found)}" for what, found in (("new", new), ("in place of an earlier", again)) if found
        ]
        printed.append(f"{lesson}: {'; '.join(parts)}")
    return printed


def missing(report: Collected, submitted: Path, room: collect.Classroom) -> list[str]:
    """Return a line for each lesson of this run: how many in the roster have a notebook of it, and who has none."""
    printed = []
    for lesson in sorted({row.entry.lesson for row in report.rows if not row.entry.problem}):
        everyone = dict.fromkeys(person.id for person in room.roster.people)
        without = [one for one in everyone if not (submitted / one / lesson / f"{lesson}.ipynb").exists()]
        line = f"{lesson}: {len(everyone) - len(without)} of {len(everyone)} have a notebook to be graded"
        printed.append(f"{line}; not yet: {', '.join(without)}" if without else line)
    return printed


def aside(report: Collected) -> list[CollectedRow]:
    """Return what was set aside and may be somebody's work."""
    from unrolled_grader.receiving import layouts

    return [row for row in report.rows if row.entry.problem and not layouts.NOISE.search(row.entry.path)]


def unsettled(report: Collected) -> list[CollectedRow]:
    """Return what was set aside and needs a person: all but what was known, of students who lack no notebook now."""
    placed = {(row.entry.student, row.entry.lesson) for row in report.rows if row.outcome == "newest"}
    lessons = {lesson for _, lesson in placed}
    done = {student for student, _ in placed if all((student, lesson) in placed for lesson in lessons)}
    return [row for row in aside(report) if row.new or row.entry.student not in done]


def waiting(course: Course) -> str:
    """Return a line about what was received and is set aside, for `unrolled grade`; empty if there is nothing."""
    from unrolled_grader.receiving import collect, layouts
    from unrolled_grader.receiving.received import Received

    entries = Received(collect.home(course.submitted)).entries.values()
    count = sum(bool(entry.problem and not layouts.NOISE.search(entry.path)) for entry in entries)
    why = course.grades / collect.TABLE
    return f"received but set aside, and not graded: {count}; why stands in {why}" if count else ""
