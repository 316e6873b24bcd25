"""The made-up class of whole_course.py: who is in it, what each hands in, what Canvas and Moodle make of it, marking.

The answers are those of the sample class, hardly two the same: what is right is written in one of two ways, and each
cell has a word of its own. There are notebooks and hand-in files, drafts, late ones, pairs, two people of one name.
Lessons of even number are handed in on Canvas, the others on Moodle. It is the same in each run.
"""

from __future__ import annotations

import io
import json
import random
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

import common
from unrolled import checks
from unrolled.notebook import handin
from unrolled.notebook.cells import grade_id
from unrolled_grader.authoring import sample

sys.path.append(str(common.ROOT / "tests" / "grader"))
from lms_exports import Student, Upload, canvas_name, moodle_zip, roster_csv, zipped

LESSONS = {name[:2]: name for name in checks.lessons()}
IN_PAIRS, PAIRS = ("12", "13"), 10  # the lessons, and how many pairs
KINDS = {"perfect": 62, "off_by_one": 21, "raises": 7, "slow": 6, "untouched": 3, "endless": 1}
"""Of 100 answers, so many are those of this student of the sample class."""
FIRST = "Ada Alan Grace Seán Zoë Juan 太郎 花子 Nguyễn Łukasz Kim Emmy Kurt Sofia Olga Mary John Ingrid Terence Maryam"
LAST = "Lovelace|Turing|O'Brien|Müller-Weiß|García Márquez|山田|Văn An|Żółć|von Neumann|Hopper"
DOWNLOADS = timedelta(hours=-4), timedelta(days=2, hours=10)  # from the due time


class Attempt(NamedTuple):
    """What a student hands in: answers of this kind, in the first download or only in the second; days late."""

    kind: str
    file: str = "plain"
    download: int = 0
    late: int = 0


def people(size: int) -> list[Student]:
    """Return a class; the last two have one name."""
    names = [f"{first} {last}" for last in LAST.split("|") for first in FIRST.split()][: size - 1]
    numbered = enumerate([*names, names[-1]], 1)
    return [Student(f"s{n:03}", name, f"s{n:03}@example.org", str(70000 + 37 * n)) for n, name in numbered]


def roster(everyone: Sequence[Student]) -> Mapping[str, str]:
    """Return the text of roster.csv and groups.csv."""
    pairs = enumerate(who for who in teams(everyone, IN_PAIRS[0]) if who[1:])
    members = [f"Team{number},{one.id}" for number, who in pairs for one in who]
    return {"roster.csv": roster_csv(everyone), "groups.csv": "\n".join(["group,id", *members])}


def teams(everyone: Sequence[Student], lesson: str) -> list[Sequence[Student]]:
    """Return who hands in together; most are alone."""
    pairs = min(PAIRS, len(everyone) // 2) if lesson in IN_PAIRS else 0
    return [everyone[2 * n : 2 * n + 2] for n in range(pairs)] + [[one] for one in everyone[2 * pairs :]]


def plan(student: Student, lesson: str) -> list[Attempt]:
    """Return what a student hands in of a lesson; of a pair, the first does."""
    draw = random.Random(f"{student.id} {lesson}")
    kind, chance = draw.choices([*KINDS], [*KINDS.values()])[0], draw.random()
    if chance < 0.12:
        return [Attempt("off_by_one")] * (chance < 0.08) + [Attempt(kind, "hand-in", 1, 1)]
    if chance < 0.14:
        return [Attempt(kind, "plain", 1, 0 if int(lesson) % 2 else 3)]  # Moodle tells no time
    return [Attempt(kind, "hand-in" if chance < 0.34 else "plain")]


def late(everyone: Sequence[Student], lessons: Sequence[str]) -> list[tuple[Student, str]]:
    """Return who hands in which of these lessons late."""
    pairs = [(who[0], lesson) for lesson in lessons for who in teams(everyone, lesson)]
    return [pair for pair in pairs if plan(*pair)[-1].late]


Rows = Mapping[str, Mapping[str, str]]  # a submission's rows of scores.csv, by part


def fits(everyone: Sequence[Student], student: str, lesson: str, rows: Rows, excused: Mapping[str, str]) -> bool:
    """Return whether a right answer has its points, speed aside, and lateness is what it should be."""
    who = next(who for who in teams(everyone, lesson) if student in {one.id for one in who})
    attempt = plan(who[0], lesson)[-1]
    days = 0 if excused.get(student) == lesson else attempt.late
    names = checks.lessons()[LESSONS[lesson]] if attempt.kind == "perfect" else ()
    right = all(rows[name]["verdict"] == "pass" for name in names)
    some = any(float(row["points"]) > 0 for row in rows.values())
    return right and (not some or bool(days) == (f"({days} day" in rows.get("late", {}).get("detail", "")))


def mark(root: Path) -> None:
    """Give points in formgrader to every answer in words that waits."""
    with Gradebook(f"sqlite:///{root / 'grader' / 'gradebook.db'}", "unrolled") as book:
        found = (one for lesson in book.assignments for one in book.assignment_submissions(lesson.name))
        for student, grade in ((one.student_id, grade) for one in found for nb in one.notebooks for grade in nb.grades):
            if grade.needs_manual_grade and grade.name.startswith("explain_"):
                grade.manual_score = grade.max_score * (1, 0.5, 1)[int(student[1:]) % 3]
                grade.needs_manual_grade = False
        book.db.commit()


def handed_in(
    everyone: Sequence[Student], lesson: str, download: int, due: datetime
) -> Iterator[tuple[Sequence[Student], Upload]]:
    """Yield what is there at a download: whose it is, and the file as the platform has it."""
    for number, who in enumerate(teams(everyone, lesson)):
        for attempt in [one for one in plan(who[0], lesson) if one.download <= download][-1:]:
            data, name = written(who[0], lesson, attempt, due)
            called = who[0]._replace(name=f"Team{number}") if who[1:] else who[0]
            yield who, Upload(called, data, name, bool(attempt.late))


def downloaded(uploads: Sequence[Upload], lesson: str, download: int, due: datetime) -> bytes:
    """Return the zip of the lesson's platform."""
    when = (due + DOWNLOADS[download]).timetuple()[:6]
    if on_moodle(lesson):
        return moodle_zip(uploads, texts=False, when=when)
    return zipped([(canvas_name(one), one.data) for one in uploads], flag=False, when=when)


def on_moodle(lesson: str) -> bool:
    return int(lesson) % 2 == 1


@cache
def answers(kind: str, lesson: str) -> NotebookNode:
    return sample.notebook(common.ROOT, kind, LESSONS[lesson])


@cache
def written(student: Student, lesson: str, attempt: Attempt, due: datetime) -> tuple[bytes, str]:
    """Return a notebook, or a hand-in file, and its name."""
    draw, notebook = random.Random(f"{student.id} {lesson}"), nbformat.from_dict(answers(attempt.kind, lesson))
    right, other = (
        {grade_id(cell): cell.source for cell in answers(kind, lesson).cells} for kind in ("perfect", "another_way")
    )
    for cell in notebook.cells if attempt.kind != "untouched" else ():
        if (name := grade_id(cell)) and cell.metadata["nbgrader"]["solution"]:
            source = other[name] if cell.source == right[name] and draw.random() < 0.5 else cell.source
            cell.source = f"{source}\n# {student.id}, {attempt.download}"
    data = nbformat.writes(notebook).encode()
    if attempt.file == "plain":
        return data, f"{LESSONS[lesson]}.ipynb"
    with zipfile.ZipFile(io.BytesIO(handin.make(data, {}, student.id, LESSONS[lesson]))) as archive:
        files = {one: archive.read(one) for one in archive.namelist()}
    made = (due + timedelta(hours=10 if attempt.late else -9)).isoformat()
    files[handin.ABOUT] = json.dumps(json.loads(files[handin.ABOUT]) | {"made": f"{made}+01:00"}).encode()
    return zipped(files.items()), f"{LESSONS[lesson]}.{student.id}.zip"
