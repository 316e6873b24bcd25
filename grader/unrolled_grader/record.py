"""The record: one JSON file a graded submission, and scores.csv made from all of them.

grades/verdicts/LESSON/STUDENT.json holds everything that is known of a grading, down to the raw timings, so that
scores.csv and the report can be made again at any time. A file is replaced as a whole: what is there is complete.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import io
import json
import os
import platform
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import unrolled
from unrolled import device
from unrolled_grader.evidence import Score

COLUMNS = ("student", "lesson", "check", "points", "max_points", "verdict", "detail")
FORMAT = 1
DETAIL_LIMIT = 500


@dataclass(frozen=True)
class Record:
    """What came of grading one submission."""

    student: str
    lesson: str
    digest: str
    """Of what was graded, as `intake.digest` gives it."""
    scores: tuple[Score, ...]
    problem: str = ""
    """Why nothing could be graded; empty if it could."""
    seconds: float = 0.0
    seeds: tuple[int, ...] = ()
    repairs: tuple[str, ...] = ()
    """What was put right before the notebook was run, in words."""
    version: str = unrolled.__version__
    date: str = field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc).isoformat())
    machine: dict[str, Any] = field(default_factory=lambda: machine())

    @property
    def points(self) -> float:
        return sum(score.points for score in self.scores)

    @property
    def max_points(self) -> float:
        return sum(score.max_points for score in self.scores)

    def points_of(self, check: str) -> float:
        """The points of all parts of `check`."""
        return sum(score.points for score in self.scores if score.check == check)


def machine() -> dict[str, Any]:
    """Facts about the machine that graded, as plain data."""
    facts = device.describe()
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cpu": facts["cpu"],
        "cores": os.cpu_count(),
        "gpu": facts["gpu"],
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def path(grades: Path, student: str, lesson: str) -> Path:
    """Where the record of a submission is kept."""
    return grades / "verdicts" / lesson / f"{student}.json"


def save(grades: Path, record: Record) -> None:
    """Keep the record, in place of an earlier one of the same student and lesson."""
    data = {"format": FORMAT, **dataclasses.asdict(record)}
    replace_file(path(grades, record.student, record.lesson), json.dumps(data, indent=1))


def load(grades: Path, student: str, lesson: str) -> Record | None:
    """The record of a submission; None if there is none, or none that this version can read."""
    return _read(path(grades, student, lesson))


def load_all(grades: Path) -> list[Record]:
    """Every record, by student and lesson."""
    found = (_read(file) for file in grades.glob("verdicts/*/*.json"))
    return sorted((record for record in found if record), key=lambda record: (record.student, record.lesson))


def write_scores(grades: Path) -> Path:
    """Make grades/scores.csv from all records: a row a part, by student and lesson, in the order of the checks."""
    file = grades / "scores.csv"
    replace_file(file, scores_csv(load_all(grades)))
    return file


def scores_csv(records: list[Record]) -> str:
    """The content of scores.csv."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for record in records:
        for score in record.scores:
            points = (f"{score.points:g}", f"{score.max_points:g}")
            writer.writerow((record.student, record.lesson, score.part, *points, score.verdict, one_line(score.detail)))
    return buffer.getvalue()


def one_line(text: str) -> str:
    """Text for a cell of a table: one line, of modest length, that no spreadsheet takes for a formula."""
    line = re.sub(r"[\s\x00-\x1f\x7f]+", " ", text).strip()
    line = line if len(line) <= DETAIL_LIMIT else line[: DETAIL_LIMIT - 1] + "…"
    return f"'{line}" if line[:1] in ("=", "+", "-", "@") else line


def replace_file(file: Path, text: str) -> None:
    """Write the whole text beside the file, then let it take the file's name."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            stream.write(text)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def _read(file: Path) -> Record | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data.pop("format") != FORMAT:
            return None
        scores = tuple(Score(**{**score, "timings": tuple(score["timings"])}) for score in data.pop("scores"))
        plain = {key: tuple(data.get(key, ())) for key in ("seeds", "repairs")}
        return Record(**{**data, "scores": scores, **plain})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None  # as good as none: the submission is graded again
