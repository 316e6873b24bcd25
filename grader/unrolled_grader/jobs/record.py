"""The record: a table of jobs in grades/grades.db, one row a submission, and scores.csv made from it.

A row holds everything that is known of a grading, down to the raw timings and the notebook as it ran, so that a verdict
can be replayed and scores.csv and the report can be made again at any time. One SQLite file in WAL mode: what was
committed is there after a kill or a power cut, and what was not never happened.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import io
import json
import os
import platform
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

import unrolled
from unrolled import device
from unrolled.cli import CommandError
from unrolled.journal.file import replace_file as replace_file
from unrolled_grader.judge.evidence import Score

COLUMNS = ("student", "lesson", "check", "points", "max_points", "verdict", "detail")
TABLE, LOCK = "grades.db", "grading.lock"
FORMAT = 1
PATIENCE = 60.0  # seconds to wait for another process that writes
DETAIL_LIMIT = 500
OPEN = ("waits", "deferred")  # verdicts of parts whose points are neither given nor lost
SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    student TEXT NOT NULL,
    lesson TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done')),
    attempts INTEGER NOT NULL DEFAULT 0,  -- how often it was started since it was queued
    queued TEXT, started TEXT, date TEXT,
    digest TEXT,                          -- of the file that `result` is about
    submission TEXT, specs TEXT, environment TEXT,  -- the key of `result`
    result TEXT,                          -- JSON; while a job waits, that of the grading before
    notebook BLOB,                        -- as it ran, zlib
    applied TEXT,                         -- the date of the result that stands in gradebook and feedback
    PRIMARY KEY (student, lesson));
CREATE TABLE IF NOT EXISTS earlier (student TEXT NOT NULL, lesson TEXT NOT NULL, date TEXT NOT NULL, result TEXT);
"""
CONTROLS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
"""White space, what terminals take for commands, and what turns the direction of text."""
FORMULAS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
"""What a spreadsheet takes for the beginning of a formula; the wide ones where Japanese is typed."""


class RecordError(CommandError):
    """The table cannot be used, which is no submission's fault: the file, and what SQLite says."""


@dataclass(frozen=True)
class Key:
    """What makes two gradings the same: equal keys, equal job."""

    submission: str = ""  # a hash of the sanitized notebook; empty for what was never judged, or must be judged again
    specs: str = ""  # a hash of the specs, of all that judges by them, and of the notebook that was handed out
    environment: str = ""  # Python, NumPy and how code is held, in words


@dataclass(frozen=True)
class Record:
    """What came of grading one submission."""

    student: str
    lesson: str
    digest: str  # of the file that was graded, as `intake.digest` gives it
    scores: tuple[Score, ...]
    problem: str = ""  # why nothing could be graded; empty if it could
    seconds: float = 0.0
    seeds: tuple[int, ...] = ()  # secret to students
    repairs: tuple[str, ...] = ()  # what was put right before the notebook was run, in words
    flags: tuple[str, ...] = ()  # why a person should look at the submission as a whole
    sandbox: str = ""  # how the code was held
    timing: bool = True  # whether speeds were to be measured; if not, their parts are deferred
    key: Key = Key()
    version: str = unrolled.__version__
    date: str = field(default_factory=lambda: now())
    machine: dict[str, Any] = field(default_factory=lambda: machine())

    @property
    def points(self) -> float:
        return sum(score.points for score in self.scores)

    @property
    def max_points(self) -> float:
        return sum(score.max_points for score in self.scores)

    @property
    def is_open(self) -> bool:
        """Whether points may still come: of an answer in words that nobody has read, or of a part that is deferred."""
        return any(score.verdict in OPEN and score.max_points > 0 for score in self.scores)

    def points_of(self, check: str) -> float:
        """Return the points of all parts of `check`."""
        return sum(score.points for score in self.scores if score.check == check)

    def brief(self) -> Record:
        """Return the record without the measured pairs, which are nearly all of its size."""
        scores = []
        for score in self.scores:
            kept = ({name: one[name] for name in one if name not in ("pairs", "control")} for one in score.timings)
            scores.append(replace(score, timings=tuple(kept)))
        return replace(self, scores=tuple(scores))


def now() -> str:
    """Return the date and time in UTC, in ISO format."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat()


def machine() -> dict[str, Any]:
    """Return facts about the machine that grades, as plain data."""
    facts = device.describe()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": facts["cpu"],
        "cores": os.cpu_count(),
        "gpu": facts["gpu"],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def save(grades: Path, record: Record, notebook: NotebookNode | None = None) -> None:
    """Keep the record, and the notebook as it ran, and note the job as done. An earlier record is kept apart."""
    who = (record.student, record.lesson)
    columns = (record.date, record.digest, *dataclasses.astuple(record.key), json.dumps(to_dict(record)))
    # Its pictures hardly get smaller.
    blob = None if notebook is None else zlib.compress(nbformat.writes(notebook).encode(), 1)
    with opened(grades) as table, table:
        table.execute(
            "INSERT INTO earlier SELECT student, lesson, date, result FROM jobs "
            "WHERE student = ? AND lesson = ? AND result IS NOT NULL AND date != ?",
            (*who, record.date),
        )
        table.execute(
            "INSERT INTO jobs (student, lesson, state, attempts, date, digest, submission, specs, environment, result, "
            "notebook) VALUES (?, ?, 'done', 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET state = 'done', "
            "date = excluded.date, digest = excluded.digest, submission = excluded.submission, specs = excluded.specs, "
            "environment = excluded.environment, result = excluded.result, notebook = excluded.notebook",
            (*who, *columns, blob),
        )


def queue(grades: Path, jobs: Iterable[tuple[str, str]]) -> None:
    """Let these jobs (student, lesson) wait for their turn, and those that a run left unfinished when it was killed."""
    with opened(grades) as table, table:
        table.execute("UPDATE jobs SET state = 'queued' WHERE state = 'running'")
        table.executemany(
            "INSERT INTO jobs (student, lesson, state, queued) VALUES (?, ?, 'queued', ?) ON CONFLICT DO UPDATE SET "
            "state = 'queued', queued = excluded.queued, attempts = CASE state WHEN 'done' THEN 0 ELSE attempts END",
            [(*job, now()) for job in jobs],
        )


def start(grades: Path, student: str, lesson: str) -> None:
    """Note that a job is being performed, and count the attempt."""
    _set(grades, "state = 'running', started = ?, attempts = attempts + 1", now(), student, lesson)


def note_applied(grades: Path, record: Record, *, applied: bool = True) -> None:
    """Note that the record has come to gradebook and feedback; or has not, while that is made anew."""
    _set(grades, "applied = ?", record.date if applied else None, record.student, record.lesson)


def _set(grades: Path, what: str, value: str | None, student: str, lesson: str) -> None:
    with opened(grades) as table, table:
        table.execute(f"UPDATE jobs SET {what} WHERE student = ? AND lesson = ?", (value, student, lesson))


def is_applied(grades: Path, record: Record) -> bool:
    """Return whether the record has come to gradebook and feedback."""
    who = "WHERE student = ? AND lesson = ? AND applied = ?"
    return any(_rows(grades, "SELECT 1", who, (record.student, record.lesson, record.date)))


def states(grades: Path) -> dict[tuple[str, str], tuple[str, int]]:
    """Return state and number of attempts of every job, by (student, lesson)."""
    return {(row[0], row[1]): (row[2], row[3]) for row in _rows(grades, "SELECT student, lesson, state, attempts", "")}


def load(grades: Path, student: str, lesson: str) -> Record | None:
    """Return the record of a submission, also while it waits to be graded again; None if none can be read."""
    return next(_records(grades, "AND student = ? AND lesson = ?", (student, lesson)), None)


def finished(grades: Path, student: str, lesson: str) -> Record | None:
    """Return the record of a submission whose job is done; None if there is none."""
    return next(_records(grades, "AND state = 'done' AND student = ? AND lesson = ?", (student, lesson)), None)


def notebook(grades: Path, student: str, lesson: str) -> NotebookNode | None:
    """Return a submission's notebook as it ran, with findings and scores; None if none is kept."""
    for (blob,) in _rows(grades, "SELECT notebook", "WHERE student = ? AND lesson = ?", (student, lesson)):
        with contextlib.suppress(zlib.error, ValueError, TypeError):
            found: NotebookNode = nbformat.reads(zlib.decompress(blob).decode(), as_version=4)
            return found
    return None


def load_all(grades: Path) -> Iterator[Record]:
    """Return every record by student and lesson, read one by one, without the measured pairs: `load` has them."""
    return (record.brief() for record in _records(grades, "ORDER BY student, lesson"))


@contextlib.contextmanager
def alone(grades: Path) -> Iterator[None]:
    """Let no other process grade this class during the block. Raises RecordError if one does."""
    grades.mkdir(parents=True, exist_ok=True)
    # SQLite's own lock works on every system, and ends with its process.
    with contextlib.closing(sqlite3.connect(grades / LOCK, timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            raise RecordError(f"another run grades into {grades} ({error}): wait until it is done") from None
        yield


def write_scores(grades: Path, records: Iterable[Record] | None = None) -> Path:
    """Write a row for each part of these records, by default of all, to grades/scores.csv; return its path."""
    file = grades / "scores.csv"
    replace_file(file, scores_csv(load_all(grades) if records is None else records))
    return file


def scores_csv(records: Iterable[Record]) -> str:
    """Return the content of scores.csv."""
    rows: list[Sequence[str]] = [COLUMNS]
    for record in records:
        for score in record.scores:
            points, words = (f"{score.points:g}", f"{score.max_points:g}"), (score.verdict, one_line(score.detail))
            rows.append((one_line(record.student), record.lesson, score.part, *points, *words))
    return csv_text(rows)


def csv_text(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as the text of a CSV file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def one_line(text: str) -> str:
    """Return text for a cell or a terminal: one line, of 500 characters at most, no terminal command and no formula."""
    line = CONTROLS.sub(" ", text).strip().encode("utf-8", "backslashreplace").decode()
    line = line if len(line) <= DETAIL_LIMIT else line[: DETAIL_LIMIT - 1] + "…"
    return f"'{line}" if line[:1] in FORMULAS else line


def to_dict(record: Record) -> dict[str, Any]:
    """Return the record as JSON can hold it."""
    return {"format": FORMAT, **dataclasses.asdict(record)}


def from_dict(data: Mapping[str, Any]) -> Record:
    """Return the record that `to_dict` was given. Raises ValueError, KeyError or TypeError for anything else."""
    if not isinstance(data, dict) or data["format"] != FORMAT:
        raise ValueError(f"expected a record of format {FORMAT}")
    fields = {name: value for name, value in data.items() if name != "format"}
    scores = tuple(Score(**{**score, "timings": tuple(score["timings"])}) for score in data["scores"])
    lists = {name: tuple(data[name]) for name in ("seeds", "repairs", "flags")}
    return Record(**{**fields, **lists, "scores": scores, "key": Key(**data["key"])})


def _records(grades: Path, which: str, values: Sequence[str] = ()) -> Iterator[Record]:
    """The records among these rows. One that cannot be read is as good as none: the submission is graded again."""
    for (text,) in _rows(grades, "SELECT result", f"WHERE result IS NOT NULL {which}", values):
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            yield from_dict(json.loads(text))


def _rows(grades: Path, select: str, which: str, values: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of the jobs, read as they are asked for; none if there is no table yet."""
    if (grades / TABLE).exists():
        with opened(grades) as table:
            yield from table.execute(f"{select} FROM jobs {which}", values)


@contextlib.contextmanager
def opened(grades: Path) -> Iterator[sqlite3.Connection]:
    """Open the table for the block, and make it if it is not there. Raises RecordError."""
    file = grades / TABLE
    try:
        grades.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)  # it holds seeds
        with contextlib.closing(sqlite3.connect(file, timeout=PATIENCE)) as table:
            (version,) = table.execute("PRAGMA user_version").fetchone()
            if version not in (0, FORMAT):
                raise RecordError(f"{file} was made by another version (format {version}, expected {FORMAT})")
            if not version:
                table.execute("PRAGMA journal_mode = WAL")
                table.executescript(f"{SCHEMA}PRAGMA user_version = {FORMAT};")
            yield table
    except sqlite3.OperationalError as error:  # a full disk, a lock that does not end, no right to write
        raise RecordError(f"{file} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise RecordError(f"{file} cannot be read: {error}. Move it aside and grade again") from error
