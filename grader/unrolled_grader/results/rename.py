"""`unrolled class rename OLD NEW`: a student got another id, such as another login.

Each step may be repeated. A note in grades/ says which renaming is on its way, so that whoever is killed starts the
same one again, and two students never become one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import SubmittedAssignment

from unrolled.cli import CommandError
from unrolled.notebook import handin
from unrolled_grader.classroom import gradebook, settings
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import record
from unrolled_grader.receiving import collect, received
from unrolled_grader.receiving.roster_command import ROSTER
from unrolled_grader.results import forget

NOTE = "renaming.json"


def renamed(course: Course, old: str, new: str) -> Iterator[str]:
    """Give a student another id wherever it stands; yield what was changed, in words.

    Raises CommandError for an id that nobody has, one that somebody has already, and one that can name no folder; and
    RecordError while a class is being graded.
    """
    with record.alone(course.grades):
        note = course.grades / NOTE
        new = _checked(course, old, new, json.loads(note.read_text()) if note.exists() else None)
        record.replace_file(note, json.dumps([old, new]))
        yield from _received(course, old, new)
        yield from _record(course.grades, old, new)
        yield from _gradebook(course, old, new)
        yield from _files(course, old, new)
        note.unlink()


def _checked(course: Course, old: str, new: str, begun: list[str] | None) -> str:
    """The new id in the form that a roster's reader gives it."""
    try:
        new = handin.student_id(new)
    except ValueError as error:
        raise CommandError(f"NEW is {new!r:.60}: {error}") from error
    if begun is not None:
        if begun != [old, new]:
            raise CommandError(f"renaming {begun[0]} to {begun[1]} was interrupted: do that first")
        return new
    with gradebook.opened(course.directory) as book:
        known = {*course.students(), *(one.id for one in book.students)}
    if old not in known:
        raise CommandError(f"nobody is {old!r:.60} here")
    if new in known:
        raise CommandError(f"{new} is somebody already: two students are never made one")
    return new


def _received(course: Course, old: str, new: str) -> Iterator[str]:
    home = collect.home(course.submitted)
    if count := received.rename(home, old, new):
        yield f"received: {count} uploads"
    if (course.grades / collect.TABLE).exists():
        collect.write_table(course.grades, received.Received(home))


def _record(grades: Path, old: str, new: str) -> Iterator[str]:
    """The tables of grades.db, in whose records the id stands, too."""
    if not (grades / record.TABLE).exists():
        return
    with record.opened(grades) as table, table:
        names = {name for (name,) in table.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for name in ("jobs", "earlier"):
            table.execute(f"UPDATE {name} SET result = json_set(result, '$.student', ?) WHERE student = ?", (new, old))
        changes = (f"UPDATE {name} SET student = ? WHERE student = ?" for name in forget.TABLES if name in names)
        if count := sum(table.execute(change, (new, old)).rowcount for change in changes):
            yield f"{record.TABLE}: {count} rows"


def _gradebook(course: Course, old: str, new: str) -> Iterator[str]:
    with gradebook.opened(course.directory) as book:
        before = {one.id: one for one in book.students}.get(old)
        if before is None:
            return
        details = {name: getattr(before, name) for name in ("first_name", "last_name", "email", "lms_user_id")}
        book.update_or_create_student(new, **details)
        moved = book.db.query(SubmittedAssignment).filter(SubmittedAssignment.student_id == old)
        count = moved.update({SubmittedAssignment.student_id: new}, synchronize_session=False)
        book.db.commit()
        book.db.expire_all()
        book.remove_student(old)
        yield f"{gradebook.file(course.directory).name}: the student and {count} submissions"


def _files(course: Course, old: str, new: str) -> Iterator[str]:
    """Folders, course.toml, tables, and what is made from all of it."""

    def change(row: list[str], place: int) -> list[str]:
        return [*row[:place], record.one_line(new), *row[place + 1 :]]

    root = Path(course.directory.root)
    for step in ("submitted", "autograded", "feedback"):
        folder = course.folder(step) / old
        if folder.is_dir() and not folder.is_symlink():
            folder.rename(folder.with_name(new))
            yield f"{step}/{new}/"
    toml, head = root / settings.FILE, f"[extensions.{settings.toml_key(new)}]"
    if toml.is_file() and forget.rewrite(toml, lambda text: forget.head_of(old).subn(lambda _: head, text)):
        yield f"{settings.FILE}: {head}"
    tables = forget.tables(course)
    if root / ROSTER not in tables:
        yield f"{ROSTER}: not here; give them the new id in the roster that you collect with"
    for file in tables:
        if count := forget.rewrite(file, lambda text: forget.with_rows(text, old, change)):
            yield f"{file.relative_to(root) if file.is_relative_to(root) else file}: {count} rows"
    yield from forget.made_again(course)
