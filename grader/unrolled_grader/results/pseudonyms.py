"""A class without names, to show to others: scores and records under pseudonyms.

A pseudonym is a keyed hash of the student's id. The key lies in grades/pseudonyms.key and stays with the instructor:
with it two exports agree, without it nobody can go back from a pseudonym to an id, not even by trying all ids.

No name is searched for: what people wrote is left out, unless it is asked for.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hmac
import io
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from unrolled.cli import CommandError
from unrolled.notebook import cells
from unrolled_grader.classroom import seeds
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge import intake
from unrolled_grader.results import leaderboard, regrades, standing

KEY = "pseudonyms.key"
LETTERS = 10
README = """\
Scores and records of a class under pseudonyms, made by `unrolled pseudonymous`.

Left out: names, e-mail addresses and platform numbers; times of day (dates stay); secret seeds, and hashes by which a
notebook could be found again.
"""
WITHOUT_TEXTS = """
Left out, too, because they may hold names: notebooks, journals, the words of findings, and the reasons of regrades.
"""
WITH_TEXTS = """
NOT taken out of notebooks, journals, findings and reasons: names, addresses, and what people tell about themselves.
They are here as they were written, but for outputs, attachments, metadata and names on the leaderboard. Read all of
it before you publish. Whoever has the original notebooks can see whose these are.
"""


def export(course: Course, folder: Path, *, texts: bool = False) -> int:
    """Write the class to `folder`, which must not be there or be empty; return the number of students.

    `texts` adds what people wrote, names included. Raises CommandError if `folder` holds something.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is there already: name a new folder")
    secret, kept = key(course.grades), standing.of_class(course)
    pseudonyms = {one.student: of(secret, one.student) for one in kept}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".pseudonymous-") as made:
        into = Path(made, "class")
        into.mkdir()
        (into / "README.txt").write_text(README + (WITH_TEXTS if texts else WITHOUT_TEXTS), encoding="utf-8")
        _write_records(course, kept, pseudonyms, into, texts)
        if (log := course.grades / regrades.FILE).exists():
            record.replace_file(into / log.name, _regrades(log.read_text(encoding="utf-8"), secret, texts))
        if texts:
            _write_notebooks(course, pseudonyms, into)
        if folder.exists():
            folder.rmdir()
        shutil.move(into, folder)
    return len(pseudonyms)


def key(grades: Path) -> bytes:
    """Return the instructor's secret, made on first use. Raises CommandError for one that is damaged."""
    file = grades / KEY
    if not file.exists():
        seeds.draw(file)
    try:
        secret = bytes.fromhex(file.read_text(encoding="ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise CommandError(f"{file} is damaged: expected 64 hexadecimal digits")
    return secret


def of(secret: bytes, student: str) -> str:
    """Return the pseudonym for an id."""
    digest = hmac.digest(secret, student.encode("utf-8", "surrogateescape"), "sha256")
    return "s-" + base64.b32encode(digest).decode().lower()[:LETTERS]


def anonymous(kept: Record, pseudonym: str, *, texts: bool) -> Record:
    """Return a record without seeds and without what would let its notebook be found; words only with `texts`."""
    key = replace(kept.key, submission="")
    bare = replace(kept, student=pseudonym, digest="", seeds=(), key=key, date=kept.date[:10])
    if texts:
        return bare
    scores = tuple(replace(score, detail="", flag="") for score in kept.scores)
    return replace(bare, scores=scores, problem="", flags=(), repairs=())


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """Return a notebook with the texts and exercises' marks of this one, and nothing else of it."""
    kept = []
    for at, cell in enumerate(notebook.cells):
        marks = {"nbgrader": cell.metadata["nbgrader"]} if "nbgrader" in cell.metadata else {}
        source = leaderboard.without_name(cell.source)
        bare = {"id": f"cell-{at}", "cell_type": cell.cell_type, "metadata": marks, "source": source}
        kept.append(bare | ({"outputs": [], "execution_count": None} if cell.cell_type == "code" else {}))
    about = {name: notebook.metadata[name] for name in ("unrolled",) if name in notebook.metadata}
    made: NotebookNode = nbformat.from_dict({"cells": kept, "metadata": about, "nbformat": 4, "nbformat_minor": 5})
    return made


def _write_records(course: Course, kept: list[Record], pseudonyms: dict[str, str], into: Path, texts: bool) -> None:
    """scores.csv, and a record a submission, in the order of the pseudonyms."""
    ordered = sorted(kept, key=lambda one: (pseudonyms[one.student], one.lesson))
    record.write_scores(into, [anonymous(one, pseudonyms[one.student], texts=texts) for one in ordered])
    for one in ordered:
        if (full := record.load(course.grades, one.student, one.lesson)) is not None:
            bare = anonymous(full, pseudonyms[one.student], texts=texts)
            _write_json(into / "records" / bare.student / f"{one.lesson}.json", record.to_dict(bare))


def _regrades(log: str, secret: bytes, texts: bool) -> str:
    """The log of regrades: dates, pseudonyms, and the reasons only with `texts`."""
    head, *rows = csv.reader(io.StringIO(log, newline=""))
    bare = ([when[:10], of(secret, who), *rest, reason * texts] for when, who, *rest, reason in rows)
    return record.csv_text([head, *bare])


def _write_notebooks(course: Course, pseudonyms: dict[str, str], into: Path) -> None:
    """Each notebook that was handed in and can be read, and the journal beside it."""
    for handed in intake.find(course.submitted, {lesson: [] for lesson in course.lessons()}):
        if (pseudonym := pseudonyms.get(handed.student)) is None:
            continue  # not graded yet
        target = into / "notebooks" / pseudonym / handed.lesson
        with contextlib.suppress(OSError, ValueError, KeyError, AttributeError, RecursionError):  # refused when graded
            _write_json(target / f"{handed.lesson}.ipynb", cleaned(cells.read(handed.path)))
        with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):  # there is none, or it is no journal
            journal = json.loads(handed.path.with_name("journal.json").read_text(encoding="utf-8"))
            _write_json(target / "journal.json", journal | {"student": pseudonym})


def _write_json(file: Path, data: Any) -> None:
    text = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "replace")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text + b"\n")
