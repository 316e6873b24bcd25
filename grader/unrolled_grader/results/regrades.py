"""grades/regrades.csv: whose points changed after they were given: when, from what to what, and why.

What stood last lies in a table of grades/grades.db, so the log does not depend on a scores.csv that somebody edited.
A line is written whenever scores.csv is, by whatever command; lines are only ever added.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record, one_line

FILE = "regrades.csv"
COLUMNS = ("when", "student", "lesson", "part", "before", "after", "reason")
COMPLETED = "completed: deferred"
SCHEMA = """
CREATE TABLE IF NOT EXISTS standing (student TEXT, lesson TEXT, part TEXT, points REAL, verdict TEXT, digest TEXT,
    specs TEXT, PRIMARY KEY (student, lesson, part));
"""
WAITING = ("waits", "unanswered")
"""Verdicts after which a person's points are the first, not a change."""


class Standing(NamedTuple):
    """What stands for a part of a submission."""

    points: float
    verdict: str
    digest: str
    specs: str


Parts = dict[str, Standing]


def note(
    grades: Path, records: Iterable[Record], reason: str = "", forced: Collection[tuple[str, str]] = ()
) -> set[tuple[str, str]]:
    """Log which points changed since the last time, and keep what stands now.

    Returns the submissions (student, lesson) that stand otherwise, those that stood nowhere before included.
    """
    lines, changed = [], set()
    now = record.now()
    with record.opened(grades) as table, table:
        table.executescript(SCHEMA)
        before: dict[tuple[str, str], Parts] = {}
        for student, lesson, part, *stood in table.execute(
            "SELECT student, lesson, part, points, verdict, digest, specs FROM standing"
        ):
            before.setdefault((student, lesson), {})[part] = Standing(*stood)
        for kept in records:
            who, after = (kept.student, kept.lesson), parts(kept)
            stood = before.get(who, {})
            if {name: part[:2] for name, part in stood.items()} != {name: part[:2] for name, part in after.items()}:
                changed.add(who)
            lines += [(now, *who, *line) for line in differences(stood, after, reason, forced=who in forced)]
            if stood != after:
                table.execute("DELETE FROM standing WHERE student = ? AND lesson = ?", who)
                rows = [(*who, name, *part) for name, part in after.items()]
                table.executemany("INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        _append(grades / FILE, lines)  # before the table is committed: a change that is not logged is not kept either
    return changed


def parts(kept: Record) -> Parts:
    """Return what stands for each part of a submission, from its record."""
    return {score.part: Standing(score.points, score.verdict, kept.digest, kept.key.specs) for score in kept.scores}


def differences(before: Parts, after: Parts, reason: str, *, forced: bool) -> Iterator[tuple[str, str, str, str]]:
    """Yield the lines (part, before, after, reason) of one submission; none for its first grading.

    Where it was `forced` and no points changed, there is one line for all parts.
    """
    if not before:
        return
    nothing = Standing(0.0, "", "", "")
    silent = True
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name, nothing), after.get(name, nothing)
        first_marks = was.verdict in WAITING and now.verdict == "marked"
        if abs(was.points - now.points) > 1e-9 and not first_marks:
            silent = False
            yield name, f"{was.points:g}", f"{now.points:g}", _reason(name, was, now, reason)
    if forced and silent:
        total = [f"{sum(part.points for part in found.values()):g}" for found in (before, after)]
        yield "all", total[0], total[1], reason or "graded again"


def _reason(name: str, was: Standing, now: Standing, given: str) -> str:
    """Why the points of a part changed. That deferred points were completed is said whatever else is."""
    if was.verdict == "deferred" and now.verdict != "deferred":
        return COMPLETED
    if given:
        return given
    if "late" in (was.verdict, now.verdict):
        return "lateness: due date, extension, policy or points changed"
    if "marked" in (was.verdict, now.verdict):
        return "marked by a person"
    if was.digest and now.digest and was.digest != now.digest:
        return "handed in again"
    return "the checks changed" if was.specs and now.specs and was.specs != now.specs else "graded again"


def _append(file: Path, lines: Collection[tuple[str, ...]]) -> None:
    if not lines:
        return
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if not file.exists():
        writer.writerow(COLUMNS)
    writer.writerows(
        [one_line(cell) if column in (1, 6) else cell for column, cell in enumerate(line)] for line in lines
    )
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
        stream.write(buffer.getvalue())
