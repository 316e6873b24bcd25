"""`unrolled roster` shows what would be taken of a roster, or takes the last one back."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, present_file

if TYPE_CHECKING:
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.classroom.roster import Roster
    from unrolled_grader.receiving.enrolment import Known

ROSTER = "roster.csv"
NEEDED = "it is a CSV file with the header id,name,email,lms_id, or what Canvas's gradebook or Moodle exports"
SHOWN = 3  # people, or faults of one kind


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled roster` command."""
    parser = subparsers.add_parser("roster", help="show what would be taken of a roster, or take the last one back")
    parser.add_argument("roster", nargs="?", type=present_file, metavar="CSV", help="default: roster.csv")
    undone = "undo what the last roster changed in the gradebook, and set aside what was received for whom it brought"
    parser.add_argument("--undo", action="store_true", help=undone)
    parser.set_defaults(run=_roster)


def _roster(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import enrolment

    if arguments.undo and arguments.roster:
        raise CommandError("--undo takes back what the last roster changed, whatever its name: give no file with it")
    course = Course.at(root)
    if not arguments.undo:
        people = read(arguments.roster or root / ROSTER)
        print("\n".join(map(record.one_line, preview(people, enrolment.known(course)))))
        return 1 if people.problems or enrolment.doubles(people, enrolment.known(course)) else 0
    try:
        with record.alone(course.grades):
            printed = list(enrolment.take_back(course))
    except OSError as error:
        raise CommandError(f"it stopped on the way, start it again: {error}") from error
    print("\n".join(map(record.one_line, printed)) or "There is nothing to take back: no roster changed the gradebook.")
    return 0


def read(file: Path) -> Roster:
    """Return the roster in a file. Raises CommandError if there is none, or if it names nobody."""
    from unrolled_grader.classroom import roster

    if not file.is_file():
        raise CommandError(f"there is no roster {file}: {NEEDED}")
    try:
        people = roster.read(file.read_bytes())
    except OSError as error:
        raise CommandError(f"the roster {file} cannot be read ({error.strerror}): {NEEDED}") from error
    if not people.people:
        raise CommandError(f"the roster {file} cannot be used, and nothing was written: {_some(people.problems)}")
    return people


def refuse_doubles(course: Course, people: Roster) -> None:
    """Raise CommandError for a roster that gives students of the gradebook another id."""
    from unrolled_grader.receiving import enrolment

    if found := enrolment.doubles(people, enrolment.known(course)):
        raise CommandError(
            f"the roster gives {len(found)} students of the gradebook another id, and nothing was written: "
            f"{_some(found)}. Correct the ids, or take back an earlier mistaken roster with `unrolled roster --undo`; "
            "whose login changed keeps the id so far"
        )


def preview(people: Roster, students: Known) -> list[str]:
    """Return what would be taken of a roster, in words."""
    from unrolled_grader.receiving import enrolment

    new = [person.id for person in people.people if person.id not in students]
    gone = sorted(students.keys() - {person.id for person in people.people})
    doubles = enrolment.doubles(people, students)
    rows = ["; ".join(filter(None, vars(person).values())) for person in people.people[:SHOWN]]
    return [
        people.describe(),
        *people.problems,
        *(f"such as: {row}" for row in rows),
        f"new to the gradebook: {len(new)}; there already: {len(people.people) - len(new)}",
        *([f"only in the gradebook: {', '.join(gone)}"] if gone else []),
        *([f"under another id in the gradebook: {_some(doubles)}"] if doubles else []),
        f"Nothing was written. `unrolled collect` {'refuses' if doubles else 'takes'} it.",
    ]


def _some(faults: Iterable[str]) -> str:
    """The first faults, and how many more there are."""
    from unrolled_grader.jobs.record import one_line

    found = list(map(one_line, faults))
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "; ".join([*found[:SHOWN], *more])
