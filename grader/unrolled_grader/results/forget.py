"""`unrolled forget STUDENT`: delete everything that is kept of a student. The one command here that deletes.

`forget` takes away what it knows a place for; `traces.find` then reads every file of the course's folders and says what
is left, whoever wrote it there.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from nbgrader.api import MissingEntry

from unrolled.cli import CommandError
from unrolled_grader.classroom import gradebook, settings, staged
from unrolled_grader.classroom.course import Course
from unrolled_grader.classroom.roster import Person, decoded
from unrolled_grader.jobs import record
from unrolled_grader.receiving import collect_command, received
from unrolled_grader.results import report, standing
from unrolled_grader.results.people import Names

TABLES = ("jobs", "earlier", "standing", "answers")
REMADE = ("similar", "jobs")  # in grades/: made anew by a command, and may show the student beside others
GONE = "(removed)"
WHO: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("student", "id", "student id", "username", "login id", "sis login id", "sis user id"), ("id",)),
    **dict.fromkeys(("lms_id", "lms id", "id number"), ("lms_id",)),
    **dict.fromkeys(("email", "e-mail", "mail", "email address"), ("email",)),
}
"""The columns of a list that say whose a row is, as rosters, platforms and our own tables call them, and by what."""
REMARKS = ("reason", "note", "remark", "remarks", "comment", "comments", "problem")
"""The columns in which a row of somebody else may name the student."""


def deleted(course: Course, names: Names, student: str, roster: Path | None = None) -> list[str]:
    """Delete all that is known to be this student's. Return what was deleted, in words.

    `roster` is one that has another name than roster.csv; outside of the course's folder it stays as it is. Other
    people's rows and files stay; where their texts name this student, only `traces.find` says so. Raises RecordError
    while a class is being graded, CommandError while a change of the class waits to be finished and for an id that can
    name no folder, and OSError.
    """
    root, done = Path(course.directory.root), list[str]()
    if student in ("", ".", "..") or re.search(r"[\\/]", student):
        raise CommandError(f"{student!r} can name no student's folder: nothing was deleted")
    if staged.is_ready(root):  # it would put a course.toml in place that still has the student's extension
        words = "a change of the class was interrupted: `unrolled class change` finishes it"
        raise CommandError(f"{words}; nothing was deleted")
    with record.alone(course.grades):
        done += ["copies of files from a change of the class that was killed"] if staged.tidy(root) else []
        done += _folders(course, student)
        done += _received(course, names, student)
        done += _gradebook(course, student)
        done += _record(course.grades, student)
        done += _made_again(course)
        for file in _lists(root, course.grades, roster):
            if count := _rewrite(file, lambda text: without_rows(text, names, student)):
                done.append(f"{_short(file, root)}: {count} rows")
        for file in (root / ".nbgrader.log", root / "grader" / ".nbgrader.log"):
            if file.is_file() and (count := _rewrite(file, lambda text: without_lines(text, names, student))):
                done.append(f"{_short(file, root)}: {count} lines")
        toml = root / settings.FILE
        if toml.is_file() and _rewrite(toml, lambda text: without_table(text, student)):
            done.append(f"{settings.FILE}: [extensions.{student}]")
    return done


def without_rows(text: str, names: Names, student: str) -> tuple[str, int]:
    """Return a CSV file's text without this student, and how many rows were removed or changed.

    Every row that does not name the student stays as it was. A row is the student's if a column that says whose it is
    says so. Where none says anything, it is if a cell is the id, the e-mail, the number or the name, and nothing else,
    or two cells side by side are the name. In other rows a reason or remark that names the student loses the name. A
    header stays, and so does a point, a part or a word that happens to be somebody's id.
    """
    lines = text.splitlines(keepends=True)
    delimiter = max(",;\t|", key=(lines[0] if lines else "").count)
    kept, count, start = list[str](), 0, 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    head = [_small(cell) for cell in next(csv.reader(lines[:1], delimiter=delimiter), [])]
    columns = _columns(head, names.known[student])
    for row in reader:
        raw, start = "".join(lines[start : reader.line_num]), reader.line_num
        if columns and reader.line_num == 1:
            kept.append(raw)
        elif _is_theirs(row, columns, names, student):
            count += 1
        else:
            pairs = zip(row, [*head, *[""] * len(row)], strict=False)
            changed = [names.without(cell, student, GONE) if name in REMARKS else cell for cell, name in pairs]
            kept.append(raw if changed == row else _row(changed, delimiter))
            count += changed != row
    return "".join(kept), count


def _columns(head: list[str], person: Person) -> dict[int, set[str]]:
    """What says in which column of a list that a row is theirs. "ID" is a number where there is a login, too."""
    found = {}
    for place, name in enumerate(head):
        kinds = WHO.get(name, ())
        if name == "id" and {"sis login id", "student"} & {*head}:
            kinds = ("lms_id",) if "sis login id" in head else ("id", "lms_id")
        if kinds and not (name == "student" and "id" in head):  # Canvas's: a name, and others may have the same
            found[place] = {_small(getattr(person, kind)) for kind in kinds} - {""}
    return found


def _is_theirs(row: list[str], columns: dict[int, set[str]], names: Names, student: str) -> bool:
    told = {place: cell for place in columns if place < len(row) and (cell := _small(row[place]))}
    if told:
        return any(cell in columns[place] for place, cell in told.items())
    cells = [_small(cell) for cell in row]
    return any(names.is_sure(text, student) for text in (*cells, *map(" ".join, itertools.pairwise(cells))))


def _row(cells: list[str], delimiter: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def _small(cell: str) -> str:
    return cell.lstrip("\ufeff").strip().lstrip("'").casefold()


def without_lines(text: str, names: Names, student: str) -> tuple[str, int]:
    """Return a log without the lines that name this student, and how many were removed."""
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if names.without(line, student, GONE) == line]
    return "".join(kept), len(lines) - len(kept)


def without_table(text: str, student: str) -> tuple[str, int]:
    """Return course.toml without [extensions.STUDENT], other tables as they were; and how many tables were removed."""
    head = re.compile(rf"\s*\[\s*extensions\s*\.\s*(\"|'|){re.escape(student)}\1\s*\]")
    kept, count, inside = list[str](), 0, False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = bool(head.match(line))
            count += inside
        if not inside:
            kept.append(line)
    return "".join(kept), count


def _folders(course: Course, student: str) -> Iterator[str]:
    """The student's folders of the three steps."""
    directory = course.directory
    for step in (directory.submitted_directory, directory.autograded_directory, directory.feedback_directory):
        if received.take_away(Path(directory.root, step, student)):
            yield f"{step}/{student}/"


def _received(course: Course, names: Names, student: str) -> Iterator[str]:
    """What was handed in, and what the index and its table say of it, or of others' beside it."""
    root = Path(course.directory.root)
    folder, table = root / "grader" / "received", course.grades / collect_command.TABLE
    gone = received.forget(folder, student, lambda text: names.without(text, student, GONE))
    yield from (f"{_short(one, root)}/" for one in gone)
    if table.exists():
        record.replace_file(table, received.Received(folder).table())
        yield f"{table.name}: made again from the others"


def _gradebook(course: Course, student: str) -> Iterator[str]:
    file = gradebook.file(course.directory)
    if not file.exists():
        return
    with gradebook.opened(course.directory) as book, contextlib.suppress(MissingEntry):
        book.remove_student(student)
        yield f"{file.name}: the student, submissions, points and comments"
    compact(file)


def _record(grades: Path, student: str) -> Iterator[str]:
    file = grades / record.TABLE
    if not file.exists():
        return
    with record.opened(grades) as table, table:
        names = table.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        there = [name for (name,) in names if name in TABLES]
        count = sum(table.execute(f"DELETE FROM {name} WHERE student = ?", (student,)).rowcount for name in there)
    compact(file)
    if count:
        yield f"{file.name}: {count} rows"


def compact(file: Path) -> None:
    """Write a database anew, so that free pages and the write-ahead log keep nothing of what was deleted from it."""
    with contextlib.closing(sqlite3.connect(file, timeout=record.PATIENCE, isolation_level=None)) as table:
        table.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        table.execute("VACUUM")
        table.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _made_again(course: Course) -> Iterator[str]:
    """What holds the student among others and is made from the rest again."""
    for name in REMADE:
        path = course.grades / name
        if path.is_symlink():
            path.unlink()
        elif received.take_away(path):
            yield f"{path.name}/: its command makes it again"
    if (course.grades / "scores.csv").exists():
        known = standing.of_class(course)
        record.write_scores(course.grades, known)
        report.write(course.grades, known)
        yield "scores.csv and report.html: made again from the others"


def _lists(root: Path, grades: Path, roster: Path | None) -> list[Path]:
    """The CSV files beside the course, and in grades/: roster, exports for a platform, regrades, what was collected."""
    own = {roster.resolve()} if roster and roster.resolve().is_relative_to(root.resolve()) else set()
    found = {*own, *root.glob("*.csv"), *(root / "grader").glob("*.csv"), *grades.rglob("*.csv")}
    return sorted(file for file in found if file.is_file() and not file.is_symlink())


def _rewrite(file: Path, change: Callable[[str], tuple[str, int]]) -> int:
    """Change a text file, if there is something to change, and say how much. It keeps its encoding."""
    before, encoding = decoded(data := file.read_bytes())
    if not encoding or before.encode(encoding) != data:
        return 0
    text, count = change(before)
    if count:
        record.replace_file(file, text, encoding)
    return count


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
