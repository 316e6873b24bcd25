"""`unrolled pseudonymous` writes a class without names; `unrolled forget` deletes what is kept of a student."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, folder, present_file
from unrolled_grader.classroom import roster
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from unrolled_grader.classroom.roster import Person
    from unrolled_grader.results.forget import Search

ROSTER = "roster.csv"


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled pseudonymous` and `unrolled forget` commands: the entry point through which they are found."""
    hidden = subparsers.add_parser("pseudonymous", help="write scores and records of the class without names")
    hidden.add_argument("folder", type=folder, metavar="DIR", help="a new folder for them")
    texts = "also notebooks, journals and findings as they were written, with the names that stand in them"
    hidden.add_argument("--texts", action="store_true", help=texts)
    hidden.set_defaults(run=_pseudonymous)
    forget = subparsers.add_parser("forget", help="delete everything that is kept of a student")
    forget.add_argument("student", metavar="STUDENT", help="the student's id")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    names = "names and addresses of the class (default: roster.csv)"
    forget.add_argument("--roster", type=present_file, metavar="CSV", help=names)
    forget.set_defaults(run=_forget)


def _pseudonymous(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    if arguments.folder.exists() and any(arguments.folder.iterdir()):
        raise CommandError(f"{arguments.folder} is there already: name a new folder")
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.results import pseudonyms

    course = Course.at(root)
    count = pseudonyms.export(course, arguments.folder, texts=arguments.texts)
    key = course.grades / pseudonyms.KEY
    print(f"{count} students are in {arguments.folder}. The key is {key}: keep it to yourself.")
    if arguments.texts:
        print(
            "WARNING: notebooks, journals and findings are there as they were written. No name was taken out of them:"
        )
        print("read all of it before you show it to anybody.")
    else:
        print("Notebooks, journals and the words of findings are left out, as they may hold names; --texts adds them.")
    return 0


def _forget(arguments: argparse.Namespace) -> int:
    root, student = checkout.find(), arguments.student
    roster_file = arguments.roster or root / ROSTER
    stranger = CommandError(f"{student!r:.60} is no id in gradebook, folders or roster; ids are exact")
    if not _may_be_known(Folders.at(root), student, roster_file):
        raise stranger
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs import record
    from unrolled_grader.results import forget, pseudonyms

    course = Course.at(root)
    if (person := forget.known(course, student, roster_file)) is None:
        raise stranger
    name = " ".join(itertools.chain(*roster.parted(person.name)))
    about = ", ".join(filter(None, (student, name, person.email)))
    print(f"This deletes everything that {root} keeps of {about}. It cannot be undone.")
    if not arguments.yes and not _confirmed(student):
        raise CommandError("nothing was deleted")
    if (course.grades / pseudonyms.KEY).exists():
        print(f"In pseudonymous exports this student is {pseudonyms.of(pseudonyms.key(course.grades), student)}.")
    try:
        for what in forget.deleted(course, student, roster_file):
            print(f"deleted  {what}")
    except (record.RecordError, OSError, sqlite3.Error) as error:
        raise CommandError(f"it stopped on the way, start it again: {error}") from error
    return _report(person, forget.remaining(root, person))


def _may_be_known(folders: Folders, student: str, roster_file: Path) -> bool:
    """Whether a student may be one of the course's, as far as can be found out before nbgrader loads."""
    if student in folders.students() or folders.in_gradebook(student):
        return True
    return roster_file.is_file() and any(one.id == student for one in roster.read(roster_file.read_bytes()).people)


def _confirmed(student: str) -> bool:
    with contextlib.suppress(EOFError):
        return input("Type the id to go on: ").strip() == student
    return False


def _report(person: Person, searched: Search) -> int:
    """Print what a search found after all, and what it cannot find; 1 if it found something."""
    from unrolled_grader.jobs.record import one_line

    for place in searched.found:
        print(one_line(f"still found: {place}"))
    texts = "; ".join(filter(None, (person.id, person.name, person.email)))
    print(f"Searched the course's text files for exactly: {texts}.")
    if searched.found:
        print("These are other people's files, or files of your own: it is for you to judge.")
    if searched.passed_over:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(searched.passed_over.items()))
        print(f"Not searched, as they are no text: {kinds}.")
    print("Not searched for: other spellings, other names, and parts of a name.")
    print("Not searched: git's history, backups, e-mail, the learning platform, and copies that were given away.")
    return 1 if searched.found else 0
