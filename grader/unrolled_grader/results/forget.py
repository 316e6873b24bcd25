"""`unrolled forget STUDENT`: delete what is kept under a student's id. The one command here that deletes.

Each step may be repeated: whoever is killed on the way starts it again. `remaining` then looks for what else names the
student. It is a plain search, and whoever calls it says what it does not find.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import MissingEntry

from unrolled.cli import CommandError
from unrolled_grader.classroom import columns, gradebook, roster, settings
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import record
from unrolled_grader.receiving import collect, received
from unrolled_grader.results import report, standing

TABLES = ("jobs", "earlier", "standing", "answers")
REMADE = ("similar", "jobs")  # in grades/: made anew by a command, and may show the student beside others
COURSES_OWN = (".git", ".venv", "lessons", "solutions", "notebooks", "lib", "docs", "tests", "benchmarks", "build")
"""At a course's root: what everybody gets, and what holds no student's work."""
ALSO_OWN = (Path("grader", "unrolled_grader"), Path("grader", "sample_class"))


def known(course: Course, student: str, roster_file: Path) -> roster.Person | None:
    """Return a student as the roster says, or else the gradebook; None if neither they nor a folder has the id.

    Raises CommandError for a roster that cannot be read.
    """
    try:
        listed = roster.read(roster_file.read_bytes()).people if roster_file.is_file() else ()
    except OSError as error:
        raise CommandError(f"{roster_file} cannot be read: {error.strerror}") from error
    found = next((one for one in listed if one.id == student), None)
    if gradebook.file(course.directory).exists():
        with gradebook.opened(course.directory) as book, contextlib.suppress(MissingEntry):
            one = book.find_student(student)
            name = ", ".join(filter(None, (one.last_name, one.first_name)))
            given = found or roster.Person(student)
            found = roster.Person(student, given.name or name, given.email or one.email or "")
    return found or (roster.Person(student) if student in course.students() else None)


def deleted(course: Course, student: str, roster_file: Path) -> Iterator[str]:
    """Delete what is kept under this id, and yield what was deleted, in words.

    A roster outside of the course's folder stays as it is. Raises RecordError while a class is being graded,
    CommandError for an id that can name no folder, and OSError.
    """
    if student in ("", ".", "..") or re.search(r"[\\/]", student):
        raise CommandError(f"{student!r} can name no student's folder: nothing was deleted")
    with record.alone(course.grades):
        yield from _received(course, student)
        yield from _record(course.grades, student)
        yield from _made_again(course)
        yield from _in_files(course, student, roster_file)
        yield from _gradebook(course, student)
        yield from _folders(course, student)  # last: where one is left, a second run knows the id


def _received(course: Course, student: str) -> Iterator[str]:
    """What was handed in, and what the index and its table say of it."""
    root = Path(course.directory.root)
    folder = root / "grader" / "received"
    for gone in received.forget(folder, student):
        yield f"{_short(gone, root)}/"
    if (course.grades / collect.TABLE).exists():
        collect.write_table(course.grades, received.Received(folder))
        yield f"{collect.TABLE}: made again from the others"


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


def _made_again(course: Course) -> Iterator[str]:
    """Delete what shows students among others and a command makes, make the rest anew, and yield it in words."""
    for name in REMADE:
        if received.take_away(course.grades / name):
            yield f"{name}/: its command makes it again"
    if (course.grades / "scores.csv").exists():
        kept = standing.of_class(course)
        record.write_scores(course.grades, kept)
        report.write(course.grades, kept)
        yield "scores.csv and report.html: made again from the others"


def _in_files(course: Course, student: str, roster_file: Path) -> Iterator[str]:
    """Their rows in the CSV files beside the course and in grades/, and their extension."""
    root = Path(course.directory.root)
    toml = root / settings.FILE
    if toml.is_file() and _rewrite(toml, lambda text: without_table(text, student)):
        yield f"{settings.FILE}: [extensions.{student}]"
    own = {roster_file.resolve()} if roster_file.resolve().is_relative_to(root.resolve()) else set()
    lists = {*own, *root.glob("*.csv"), *(root / "grader").glob("*.csv"), *course.grades.rglob("*.csv")}
    for file in sorted(file for file in lists if file.is_file() and not file.is_symlink()):
        if count := _rewrite(file, lambda text: without_rows(text, student)):
            yield f"{_short(file, root)}: {count} rows"


def _gradebook(course: Course, student: str) -> Iterator[str]:
    file = gradebook.file(course.directory)
    if not file.exists():
        return
    with gradebook.opened(course.directory) as book, contextlib.suppress(MissingEntry):
        book.remove_student(student)
        yield f"{file.name}: the student, submissions, points and comments"
    compact(file)


def _folders(course: Course, student: str) -> Iterator[str]:
    """The student's folders of the three steps."""
    directory = course.directory
    for step in (directory.feedback_directory, directory.autograded_directory, directory.submitted_directory):
        if received.take_away(Path(directory.root, step, student)):
            yield f"{step}/{student}/"


def compact(file: Path) -> None:
    """Write a database anew, so that free pages and the write-ahead log keep nothing of what was deleted from it."""
    with contextlib.closing(sqlite3.connect(file, timeout=record.PATIENCE, isolation_level=None)) as table:
        table.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        table.execute("VACUUM")
        table.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def without_rows(text: str, student: str) -> tuple[str, int]:
    """Return a CSV file's text without the rows whose column of ids holds this id, and how many those were.

    That is the column that a roster's reader takes for it, in a platform's export, too; else the one called "student".
    The other rows stay as they were, letter by letter. A table without such a column stays whole.
    """
    lines = text.splitlines(keepends=True)
    delimiter = columns.delimiter(lines[0] if lines else "", roster.DELIMITERS, roster.squeezed)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows, start = list[tuple[list[str], str]](), 0
    try:
        for row in reader:
            rows.append((row, "".join(lines[start : reader.line_num])))
            start = reader.line_num
    except csv.Error:
        return text, 0
    head = [roster.squeezed(cell) for cell in rows[0][0]] if rows else []
    found = columns.find(head, [row for row, _ in rows[1:]])
    (place,) = found.places.get("id", (-1,)) if found else (head.index("student") if "student" in head else -1,)
    ids, kept = (student, record.one_line(student)), list[str]()
    for at, (row, raw) in enumerate(rows):
        if not at or _cell(row, place) not in ids:
            kept.append(raw)
    return "".join(kept), len(rows) - len(kept)


def _cell(row: list[str], place: int) -> str:
    return row[place].strip() if 0 <= place < len(row) else ""


def without_table(text: str, student: str) -> tuple[str, int]:
    """Return course.toml without [extensions.STUDENT], other tables as they were; and how many tables were removed."""
    head = re.compile(rf"[ \t]*\[\s*extensions\s*\.\s*(\"|'|){re.escape(student)}\1\s*\]")
    kept, count, inside = list[str](), 0, False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = bool(head.match(line))
            count += inside
        if not inside:
            kept.append(line)
    return "".join(kept), count


def _rewrite(file: Path, change: Callable[[str], tuple[str, int]]) -> int:
    """Change a text file, if there is something to change, and say how much. It keeps its encoding."""
    before, encoding = roster.decoded(data := file.read_bytes())
    if not encoding or before.encode(encoding) != data:
        return 0
    text, count = change(before)
    if count:
        record.replace_file(file, text, encoding)
    return count


@dataclass
class Search:
    """What a search found: lines such as "FILE, line 3: Ada Lovelace"; and how many files it passed over, by kind."""

    found: list[str] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)


def remaining(root: Path, person: roster.Person) -> Search:
    """Return where id, name or e-mail still stand in a course's text files and their names, as the roster writes them.

    Only where no letter or digit of ASCII stands beside them: "ada" is not found in "adam".
    """
    searched = Search()
    wanted = [re.escape(text) for text in (person.name, person.email, person.id) if text]
    pattern = re.compile(f"(?<![0-9A-Za-z])(?:{'|'.join(wanted)})(?![0-9A-Za-z])")
    for file in _files(root):
        name = str(file.relative_to(root))
        searched.found += [f"{name}, its name: {text}" for text in dict.fromkeys(pattern.findall(name))]
        if file.is_symlink():
            searched.passed_over["link"] += 1
        elif b"\0" in (data := file.read_bytes()):
            searched.passed_over[file.suffix or "without a suffix"] += 1
        else:
            text, places = data.decode("utf-8", "replace"), dict[str, int]()
            for hit in pattern.finditer(text):
                places.setdefault(hit[0], text.count("\n", 0, hit.start()) + 1)
            searched.found += [f"{name}, line {line}: {found}" for found, line in places.items()]
    return searched


def _files(root: Path) -> Iterator[Path]:
    """The files of a course that are not its own, links among them."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        own = {"__pycache__", *(COURSES_OWN if here == root else ())}
        own |= {other.name for other in ALSO_OWN if root / other.parent == here}
        folders[:] = sorted(set(folders) - own)
        links = [name for name in folders if (here / name).is_symlink()]
        yield from (path for name in sorted([*names, *links]) if (path := here / name).is_symlink() or path.is_file())


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
