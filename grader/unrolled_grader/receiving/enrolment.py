"""Who a roster brings into the gradebook, and how a mistaken roster is taken back.

    grades/rosters.csv    a line for each student that a roster brought or changed, with what the gradebook said before

One student under two ids is found out before anything is written.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from nbgrader.api import Gradebook

from unrolled_grader.classroom import gradebook
from unrolled_grader.classroom.course import Course
from unrolled_grader.classroom.roster import Person, Roster, folded
from unrolled_grader.jobs import record
from unrolled_grader.receiving import collect, placing
from unrolled_grader.receiving.received import Received

TABLE = "rosters.csv"
STUDENT_FIELDS = ("first_name", "last_name", "email", "lms_user_id")
COLUMNS = ("when", "roster", "id", "change", *STUDENT_FIELDS)
NEW, CHANGED = "new", "changed"
SHORTEST = 5  # digits of a number that tells one person from all others, whatever column it stands in

Known = dict[str, dict[str, str]]
"""What the gradebook says of each student, by id."""


def known(course: Course) -> Known:
    """Return everyone in the gradebook; nobody before its first use."""
    if not gradebook.file(course.directory).exists():
        return {}
    with gradebook.opened(course.directory) as book:
        return {one.id: {name: getattr(one, name) or "" for name in STUDENT_FIELDS} for one in book.students}


def doubles(people: Roster, students: Known) -> list[str]:
    """Return in words who of the roster is in the gradebook under another id, which the roster does not have."""
    ids = {person.id for person in people.people}
    others = {one: _tokens(one, row["email"], row["lms_user_id"]) for one, row in students.items() if one not in ids}
    marks = ((person, _tokens(person.id, person.email, person.lms_id)) for person in people.people)
    return [f"{person.id} is {one} there" for person, mine in marks for one, theirs in others.items() if mine & theirs]


def _tokens(*texts: str) -> set[str]:
    """What tells a person, whatever column it stands in."""
    return {folded(text) for text in texts if len(text) >= SHORTEST or not text.isdigit()} - {""}


def enter(course: Course, people: Iterable[Person], name: str) -> int:
    """Enter these people, of a roster of this name, in the gradebook; note whom that changes, and return how many."""
    before = known(course)
    gradebook.enrol(course.directory, people)
    changed = {one: fields for one, fields in known(course).items() if before.get(one) != fields}
    when = record.now()
    rows = [
        {"when": when, "roster": name, "id": one, "change": CHANGED if one in before else NEW, **before.get(one, {})}
        for one in changed
    ]
    if rows:
        _write(course.grades / TABLE, [*_rows(course.grades / TABLE), *rows])
    return len(rows)


def take_back(course: Course) -> Iterator[str]:
    """Undo what the last roster changed; yield it in words, nothing if there is none.

    What was received as a student's whom it brought is set aside, until it is collected again. Students who were graded
    stay in the gradebook, as a person's points may be among theirs.
    """
    rows = _rows(course.grades / TABLE)
    last = [row for row in rows if row["when"] == rows[-1]["when"]]
    with gradebook.opened(course.directory) as book:
        for row in last:
            yield from _restored(book, row)
    uploads = Received(collect.home(course.submitted))
    for row in last:
        if row["change"] == NEW:
            yield from placing.take_back(uploads, course.submitted, row["id"])
    if last:
        _write(course.grades / TABLE, rows[: -len(last)])


def _restored(book: Gradebook, row: dict[str, str]) -> Iterator[str]:
    student = row["id"]
    there = {one.id: one for one in book.students}.get(student)
    if there is None:
        return
    if row["change"] == CHANGED:
        book.update_or_create_student(student, **{name: _plain(row[name]) for name in STUDENT_FIELDS})
        yield f"{student}: name, e-mail and number are as before"
    elif there.submissions:
        yield f"{student}: stays, as it was graded; `unrolled forget {student}` deletes that"
    else:
        book.remove_student(student)
        yield f"{student}: is no longer in the gradebook"


def _plain(cell: str) -> str | None:
    """What stands in a cell, without the mark that keeps it from being a formula."""
    return (cell[1:] if cell[:1] == "'" and cell[1:2] in record.FORMULAS else cell) or None


def _rows(file: Path) -> list[dict[str, str]]:
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row.keys() >= {*COLUMNS} and None not in row.values()]


def _write(file: Path, rows: list[dict[str, str]]) -> None:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: record.one_line(text) for name, text in row.items()} for row in rows)
    record.replace_file(file, buffer.getvalue())
