"""`unrolled class rename OLD NEW`: a student got another id, such as another login.

Each step may be repeated. A note in grades/ says which renaming is on its way, so that whoever is killed starts the
same one again, and two students never become one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout
from unrolled.notebook import handin
from unrolled_grader.classroom import settings

if TYPE_CHECKING:
    from unrolled_grader.classroom.course import Course

NOTE = "renaming.json"


def add(actions: Subparsers) -> None:
    """Add the action `unrolled class rename`."""
    parser = actions.add_parser("rename", help="give a student another id, with attempts, points and files")
    parser.add_argument("old", metavar="OLD", help="the id so far")
    parser.add_argument("new", metavar="NEW", help="an id that nobody has")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    settings.read(root)
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs.record import RecordError, one_line

    try:
        for said in renamed(Course.at(root), arguments.old, arguments.new):
            print(one_line(said))
    except RecordError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"it stopped on the way, start it again: {error}") from error
    print(f"{arguments.old} is {arguments.new} now. Feedback pages say so after the next `unrolled grade --force`.")
    return 0


def renamed(course: Course, old: str, new: str) -> Iterator[str]:
    """Give a student another id wherever it stands; yield what was changed, in words.

    Raises CommandError for an id that nobody has, one that somebody has already, and one that can name no folder; and
    RecordError while a class is being graded.
    """
    from unrolled_grader.jobs import record

    with record.alone(course.grades):
        note = course.grades / NOTE
        _check(course, old, new, json.loads(note.read_text()) if note.exists() else None)
        record.replace_file(note, json.dumps([old, new]))
        yield from _received(course, old, new)
        yield from _record(course.grades, old, new)
        yield from _gradebook(course, old, new)
        yield from _files(course, old, new)
        note.unlink()


def _check(course: Course, old: str, new: str, begun: list[str] | None) -> None:
    from unrolled_grader.classroom import gradebook

    if begun is not None and begun != [old, new]:
        raise CommandError(f"renaming {begun[0]} to {begun[1]} was interrupted: do that first")
    try:
        new = handin.student_id(new)
    except ValueError as error:
        raise CommandError(f"NEW is {new!r:.60}: {error}") from error
    known = {*course.students()}
    if gradebook.file(course.directory).exists():
        with gradebook.opened(course.directory) as book:
            known |= {one.id for one in book.students}
    if begun is None and old not in known:
        raise CommandError(f"nobody is {old!r:.60} here")
    if begun is None and new in known:
        raise CommandError(f"{new} is somebody already: two students are never made one")


def _received(course: Course, old: str, new: str) -> Iterator[str]:
    from unrolled_grader.receiving import collect, received

    home = collect.home(course.submitted)
    if count := received.rename(home, old, new):
        yield f"received: {count} uploads"
    if (course.grades / collect.TABLE).exists():
        collect.write_table(course.grades, received.Received(home))


def _record(grades: Path, old: str, new: str) -> Iterator[str]:
    """The tables of grades.db, in whose records the id stands, too."""
    from unrolled_grader.jobs import record
    from unrolled_grader.results.forget import TABLES

    if not (grades / record.TABLE).exists():
        return
    with record.opened(grades) as table, table:
        names = {name for (name,) in table.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in ("jobs", "earlier"):
            table.execute(f"UPDATE {name} SET result = json_set(result, '$.student', ?) WHERE student = ?", (new, old))
        changes = (f"UPDATE {name} SET student = ? WHERE student = ?" for name in TABLES if name in names)
        if count := sum(table.execute(change, (new, old)).rowcount for change in changes):
            yield f"{record.TABLE}: {count} rows"


def _gradebook(course: Course, old: str, new: str) -> Iterator[str]:
    from nbgrader.api import SubmittedAssignment

    from unrolled_grader.classroom import gradebook

    if not gradebook.file(course.directory).exists():
        return
    with gradebook.opened(course.directory) as book:
        before = {one.id: one for one in book.students}.get(old)
        if before is None:
            return
        told = {name: getattr(before, name) for name in ("first_name", "last_name", "email", "lms_user_id")}
        book.update_or_create_student(new, **told)
        moved = book.db.query(SubmittedAssignment).filter(SubmittedAssignment.student_id == old)
        count = moved.update({SubmittedAssignment.student_id: new}, synchronize_session=False)
        book.db.commit()
        book.db.expire_all()
        book.remove_student(old)
        yield f"{gradebook.file(course.directory).name}: the student and {count} submissions"


def _files(course: Course, old: str, new: str) -> Iterator[str]:
    """Folders, course.toml, tables, and what is made from all of it."""
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import received
    from unrolled_grader.results import forget, report, standing

    root = Path(course.directory.root)
    for step in ("submitted", "autograded", "feedback"):
        folder = course.folder(step) / old
        if folder.is_dir() and not folder.is_symlink():
            folder.rename(folder.with_name(new))
            yield f"{step}/{new}/"
    toml = root / settings.FILE
    if toml.is_file() and forget.rewrite(toml, lambda text: _extension(text, old, new)):
        yield f"{settings.FILE}: [extensions.{new}]"

    def change(row: list[str], place: int) -> list[str]:
        return [*row[:place], record.one_line(new), *row[place + 1 :]]

    for file in forget.tables(course):
        if count := forget.rewrite(file, lambda text: forget.with_rows(text, old, change)):
            yield f"{file.relative_to(root) if file.is_relative_to(root) else file}: {count} rows"
    received.take_away(course.grades / "similar")
    if (course.grades / "scores.csv").exists():
        kept = standing.of_class(course)
        record.write_scores(course.grades, kept)
        report.write(course.grades, kept)


def _extension(text: str, old: str, new: str) -> tuple[str, int]:
    from unrolled_grader.results import forget

    lines, count = text.splitlines(keepends=True), 0
    for at, line in enumerate(lines):
        if forget.head_of(old).match(line):
            lines[at], count = f"[extensions.{settings.toml_key(new)}]\n", count + 1
    return "".join(lines), count
