"""`unrolled collect` takes in what students handed in, from a learning platform's download or a folder."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, present, present_file
from unrolled_grader.classroom.folders import Folders
from unrolled_grader.receiving import enrolling

if TYPE_CHECKING:
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.classroom.roster import Roster
    from unrolled_grader.receiving import collect
    from unrolled_grader.receiving.collect import Collected, CollectedRow

TABLE = "collected.csv"


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled collect` and `unrolled roster` commands: the entry point through which they are found."""
    enrolling.add(subparsers)
    parser = subparsers.add_parser("collect", help="take in what students handed in: Canvas, Moodle, folders, files")
    parser.add_argument("files", nargs="+", type=present, metavar="FILE", help="a zip, a folder, a notebook, a hand-in")
    who = "who takes the course: id,name,email,lms_id, or an export of Canvas or Moodle (default: roster.csv)"
    parser.add_argument("--roster", type=present_file, metavar="CSV", help=who)
    parser.add_argument("--lesson", metavar="LESSON", help="take only this lesson, such as 02_convolution or 02")
    parser.set_defaults(run=_collect)


def _collect(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    Folders.at(root).choose([] if arguments.lesson is None else [arguments.lesson])
    roster = arguments.roster or root / enrolling.ROSTER
    people = enrolling.read(roster)
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import collect, enrolment
    from unrolled_grader.receiving.received import Received

    try:
        course = Course.at(root)
        room = classroom(course, people, arguments.lesson)
        enrolling.refuse_doubles(course, people)
        with record.alone(course.grades):
            report = collect.take(course.submitted, arguments.files, room)
            enrolment.enter(course, filter(people.is_sure, people.people), roster.name)
            table = course.grades / TABLE
            record.replace_file(table, Received(collect.home(course.submitted)).table())
    except record.RecordError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"it stopped on the way, nothing is lost; mend this and run it again: {error}") from error
    taken = [f"{roster.name}: {people.told()}"] if people.form else []
    said = [*taken, *lines(report), *missing(report, course.submitted, room)]
    print("\n".join(map(record.one_line, said)))
    print(f"received: {collect.home(course.submitted)}\nsubmitted: {course.submitted}\ntable: {table}")
    return 1 if report.problems or any(aside(report)) else 0


def classroom(course: Course, people: Roster, lesson: str | None = None) -> collect.Classroom:
    """Return what uploads are compared with. Raises CourseError for a strange lesson."""
    from unrolled import checks
    from unrolled_grader.classroom import settings
    from unrolled_grader.receiving import collect

    lessons = {name: tuple(checks.lessons()[name]) for name in course.choose([])}
    versions = Path(course.directory.root, "grader", "versions")
    known = [folder.name for folder in versions.iterdir()] if versions.is_dir() else []
    due = settings.read(Path(course.directory.root)).due_for
    return collect.Classroom(people, lessons, course.choose([lesson])[0] if lesson else "", known, due)


def lines(report: Collected) -> list[str]:
    """Return a report in words: what needs a person first, then what to know, then the sum."""
    kept = [(row.entry, f" ({row.entry.student})" if row.entry.student else "") for row in aside(report)]
    said = [*report.problems, *(f"set aside: {entry.path}: {entry.problem}{whose}" for entry, whose in kept)]
    placed = [row for row in report.rows if not row.entry.problem and (row.new or row.outcome == "newest")]
    said += [f"{row.entry.student}, {row.entry.lesson}: {row.entry.note}" for row in placed if row.entry.note]
    if noise := sum(row.outcome == "set aside" for row in report.rows) - len(aside(report)):
        said.append(f"set aside: {noise} files that the system or Jupyter left")
    counts = Counter(row.outcome for row in report.rows)
    total = ", ".join(f"{counts[name]} {name}" for name in ("newest", "earlier", "the same again", "set aside"))
    said.append(f"{len(report.rows)} received: {total}" if report.rows else "There is nothing in it.")
    if report.rows and not report.new:
        said.append("Nothing new: all of this was received before, and nothing was changed.")
    return said


def missing(report: Collected, submitted: Path, room: collect.Classroom) -> list[str]:
    """Return a line for each lesson of this run: how many in the roster have a notebook of it, and who has none."""
    said = []
    for lesson in sorted({row.entry.lesson for row in report.rows if not row.entry.problem}):
        everyone = dict.fromkeys(person.id for person in room.roster.people)
        without = [one for one in everyone if not (submitted / one / lesson / f"{lesson}.ipynb").exists()]
        line = f"{lesson}: {len(everyone) - len(without)} of {len(everyone)} have a notebook to be graded"
        said.append(f"{line}; not yet: {', '.join(without)}" if without else line)
    return said


def aside(report: Collected) -> list[CollectedRow]:
    """Return what was set aside and may be somebody's work."""
    from unrolled_grader.receiving import lms

    return [row for row in report.rows if row.entry.problem and not lms.NOISE.search(row.entry.path)]


def waiting(course: Course) -> str:
    """Return a line about what was received and is set aside, for `unrolled grade`; empty if there is nothing."""
    from unrolled_grader.receiving import collect, lms
    from unrolled_grader.receiving.received import Received

    entries = Received(collect.home(course.submitted)).entries.values()
    count = sum(bool(entry.problem and not lms.NOISE.search(entry.path)) for entry in entries)
    return f"received but set aside, and not graded: {count}; why stands in {course.grades / TABLE}" if count else ""
