"""grades/regrades.csv: whose points changed after they were given: when, from what to what, and why.

What stood last lies in a table of grades/grades.db, so the log does not depend on a scores.csv that somebody edited.
A line is written whenever scores.csv is, by whatever command; lines are only ever added.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from unrolled_grader.jobs import record

FILE, REASONS = "regrades.csv", "class_changes.json"
COLUMNS = ("when", "student", "lesson", "part", "before", "after", "reason")
COMPLETED = "completed: deferred"
SCHEMA = """
CREATE TABLE IF NOT EXISTS standing (student TEXT, lesson TEXT, part TEXT, points REAL, verdict TEXT, digest TEXT,
    specs TEXT, PRIMARY KEY (student, lesson, part));
"""
WAITING = ("waits", "unanswered")  # verdicts after which a person's points are the first, not a change


class Standing(NamedTuple):
    """What stands for a part of a submission."""

    points: float
    verdict: str
    digest: str
    specs: str


Parts = dict[str, Standing]


def note(
    grades: Path,
    records: Iterable[record.Record],
    reason: str = "",
    forced: Collection[tuple[str, str]] = (),
) -> set[tuple[str, str]]:
    """Log which points changed; keep what stands. Return the submissions (student, lesson) that changed or are new."""
    lines, changed, class_changes = [], set(), reasons(grades)
    now = record.now()
    with record.opened(grades) as table, table:
        table.executescript(SCHEMA)
        before: dict[tuple[str, str], Parts] = {}
        for student, lesson, part, *stood in table.execute("SELECT * FROM standing"):
            before.setdefault((student, lesson), {})[part] = Standing(*stood)
        for kept in records:
            who, about = (kept.student, kept.lesson), (kept.digest, kept.key.specs)
            after = {score.part: Standing(score.points, score.verdict, *about) for score in kept.scores}
            stood = before.get(who, {})
            if {name: part[:2] for name, part in stood.items()} != {name: part[:2] for name, part in after.items()}:
                changed.add(who)
            logged = differences(stood, after, reason, forced=who in forced, class_changes=class_changes)
            lines += [(now, *who, *line) for line in logged]
            if stood != after:
                table.execute("DELETE FROM standing WHERE student = ? AND lesson = ?", who)
                rows = [(*who, name, *part) for name, part in after.items()]
                table.executemany("INSERT INTO standing VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        _append(grades / FILE, lines)  # before the table is committed: a change that is not logged is not kept either
    return changed


def reasons(grades: Path) -> dict[str, str]:
    """Return what the last change of the class was, in words, by the hash of what judges a lesson since."""
    file = grades / REASONS
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def differences(
    before: Parts, after: Parts, reason: str, *, forced: bool, class_changes: Mapping[str, str]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield (part, before, after, reason) of a submission: none at first, one for all if `forced` changed no points."""
    if not before:
        return
    silent = True
    for name in before | after:
        was, now = before.get(name, _nothing(before)), after.get(name, _nothing(after))
        first_marks = was.verdict in WAITING and now.verdict == "marked"
        vanished = name not in after and was.verdict == "deferred"  # no points yet, and now none to come
        if vanished or (abs(was.points - now.points) > 1e-9 and not first_marks):
            silent = False
            yield name, f"{was.points:g}", f"{now.points:g}", _reason(was, now, reason, class_changes)
    if forced and silent:
        old, new = (f"{sum(part.points for part in found.values()):g}" for found in (before, after))
        yield "all", old, new, reason or "graded again"


def _nothing(parts: Parts) -> Standing:
    """What stands for a part that a submission does not have."""
    digest, specs = next(((part.digest, part.specs) for part in parts.values()), ("", ""))
    return Standing(0.0, "", digest, specs)


def _reason(was: Standing, now: Standing, given: str, class_changes: Mapping[str, str]) -> str:
    """Why the points of a part changed. That deferred points were completed is said whatever else is."""
    if was.verdict == "deferred" and now.verdict not in ("deferred", ""):
        return COMPLETED
    if given:
        return given
    if "late" in (was.verdict, now.verdict):
        return "lateness: due date, extension, time, policy or points changed"
    if "marked" in (was.verdict, now.verdict):
        return "marked by a person"
    if was.digest and now.digest and was.digest != now.digest:
        return "handed in again"
    if was.specs and now.specs and was.specs != now.specs:
        return class_changes.get(now.specs, "the checks changed")
    return "graded again"


def _append(file: Path, lines: Collection[tuple[str, ...]]) -> None:
    if not lines:
        return
    rows = [(when, record.one_line(who), *others, record.one_line(reason)) for when, who, *others, reason in lines]
    text = record.csv_text(rows if file.exists() else [COLUMNS, *rows])
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
        stream.write(text)
