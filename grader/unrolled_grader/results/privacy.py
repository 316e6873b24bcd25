"""`unrolled pseudonymous` writes a class without names; `unrolled forget` deletes what is kept of a student."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, folder, present_file
from unrolled_grader.classroom import roster
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from unrolled_grader.results.traces import NameTrace

ROSTER = "roster.csv"
SHOWN = 3  # places of a text that may mean somebody else


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled pseudonymous` and `unrolled forget` commands: the entry point through which they are found."""
    told = "write scores, records and notebooks of the class without names"
    hidden = subparsers.add_parser("pseudonymous", help=told)
    hidden.add_argument("folder", type=folder, metavar="DIR", help="a new folder for them")
    forget = subparsers.add_parser("forget", help="delete everything that is kept of a student")
    forget.add_argument("student", metavar="STUDENT", help="the student's id")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    names = "names and addresses of the class (default: roster.csv)"
    for parser in (hidden, forget):
        parser.add_argument("--roster", type=present_file, metavar="CSV", help=names)
    hidden.set_defaults(run=_pseudonymous)
    forget.set_defaults(run=_forget)


def _pseudonymous(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    if arguments.folder.exists() and any(arguments.folder.iterdir()):
        raise CommandError(f"{arguments.folder} is there already: name a new folder")
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.results import people, pseudonyms

    course = Course.at(root)
    known = people.known(course, arguments.roster)
    nameless = sum(not person.name for person in known.values())
    made = pseudonyms.export(course, known, arguments.folder)
    key = course.grades / pseudonyms.KEY
    print(f"{made.students} students are in {arguments.folder}. The key is {key}: keep it to yourself.")
    if nameless:
        print(f"Of {nameless} students no name is known, so none was looked for: name a roster with --roster CSV.")
    if made.words:
        print(f"Left in the texts, because the course uses them as words: {', '.join(made.words)}.")
    for place in made.addresses:
        print(f"E-mail address of nobody whose address is known; look whose it is: {place}")
    print("What no program can remove stands in README.txt there. Read before you publish.")
    return 0


def _forget(arguments: argparse.Namespace) -> int:
    checked = checkout.find()
    stranger = CommandError(f"{arguments.student!r:.60} is no id in gradebook, folders or roster; ids are exact")
    if not _is_known(Folders.at(checked), arguments.student, arguments.roster or checked / ROSTER):
        raise stranger
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs import record
    from unrolled_grader.results import forget, people, pseudonyms, traces

    course = Course.at(checked)
    root = Path(course.directory.root)
    known = people.known(course, arguments.roster)
    if (person := known.get(arguments.student)) is None:
        raise stranger
    name = " ".join(itertools.chain(*roster.parted(person.name)))
    about = ", ".join(filter(None, (person.id, name, person.email)))
    print(f"This deletes everything that {root} keeps of {about}. It cannot be undone.")
    if not arguments.yes and not _confirmed(person.id):
        raise CommandError("nothing was deleted")
    if (course.grades / pseudonyms.KEY).exists():
        (pseudonym,) = pseudonyms.of(pseudonyms.key(course.grades), [person.id]).values()
        print(f"In pseudonymous exports this student is {pseudonym}.")
    names = people.Names(known, people.vocabulary(course))
    try:
        for what in forget.deleted(course, names, person.id, arguments.roster):
            print(f"deleted  {what}")
    except (record.RecordError, OSError, sqlite3.Error) as error:
        raise CommandError(f"it stopped on the way, start it again: {error}") from error
    if short := names.forms[person.id].short:
        print(f"Not searched for, as it stands in too many texts: {', '.join(sorted(short))}.")
    said = ", ".join(text for text in (person.id, name, person.email, person.lms_id) if text and text not in short)
    print(f"Searched every file of the course's folders, zips and databases too, in every spelling, for: {said}.")
    found = traces.find(root, names.finder(person.id))
    left = [one for one in found if one.found == traces.UNKNOWN or names.is_sure(one.found, person.id)]
    return _say(left, [one for one in found if one not in left])


def _is_known(folders: Folders, student: str, roster_file: Path) -> bool:
    """Whether a student may be one of the course's, as far as can be told before nbgrader loads."""
    if student in folders.students() or folders.in_gradebook(student):
        return True
    return roster_file.is_file() and any(one.id == student for one in roster.read(roster_file.read_bytes()).people)


def _confirmed(student: str) -> bool:
    with contextlib.suppress(EOFError):
        return input("Type the id to go on: ").strip() == student
    return False


def _say(left: Sequence[NameTrace], doubtful: Sequence[NameTrace]) -> int:
    """Print what a search found after all; 1 if it found something that is the student's, or could not look."""
    from unrolled_grader.jobs.record import one_line
    from unrolled_grader.results import traces

    for file, place, found in left:
        unsearched = found == traces.UNKNOWN
        print(one_line(f"not searched: {file}, {place}" if unsearched else f"still there: {file}, {place}: {found}"))
    texts: dict[str, list[NameTrace]] = {}
    for one in doubtful:
        texts.setdefault(" ".join(one.found.casefold().split()), []).append(one)
    for places in texts.values():
        first = "; ".join(f"{one.file}, {one.place}" for one in places[:SHOWN])
        more = f"; and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        print(one_line(f"may be the student, or another, or a word: {places[0].found}: {first}{more}"))
    judge = "These are other people's files, or files of your own: it is for you to judge."
    print(judge if left or doubtful else "Nothing is left.")
    print("Not searched: git's history, backups, e-mail, the learning platform, and copies that were given away.")
    return 1 if left else 0
