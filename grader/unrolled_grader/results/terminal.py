"""What a grading shows on a terminal: each outcome as it comes, the time that is left, and the class in one table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tqdm import tqdm
from wcwidth import wcswidth

from unrolled_grader.jobs.record import Record, one_line

if TYPE_CHECKING:
    from unrolled_grader.judge.intake import Handed

WIDTH = 100  # columns that the table fits into
ROOM = 30  # columns that must be left for the reasons; with fewer they stay out
SHORTEST, LONGEST = 10, 24  # columns of the students' names. A longer name is shown without its middle.
OPEN, REFUSED, NOTHING = "+", "!", "–"
LEGEND = {
    OPEN: "points may still come: an answer in words waits to be read, or a part is deferred",
    REFUSED: "the notebook could not be graded; the report says why",
    NOTHING: "nothing was handed in",
}


def print_outcomes(outcomes: Iterable[tuple[Handed, Record | Exception]], count: int) -> Iterator[Handed]:
    """Print what came of each of `count` submissions, on a terminal the time left too; yield what could be graded."""
    shown = "{n} of {total} graded in {elapsed}, about {remaining} left"
    with tqdm(total=count, disable=None, leave=False, smoothing=0, bar_format=shown) as bar:
        for number, (item, outcome) in enumerate(outcomes, 1):
            with bar.external_write_mode():
                line = one_line(f"{item.student}, {item.lesson}: {_in_words(outcome)}")
                print(f"[{number}/{count}] {line}", flush=True)
            bar.update()
            if not isinstance(outcome, Exception):
                yield item


def _in_words(outcome: Record | Exception) -> str:
    """What came of one submission."""
    if isinstance(outcome, Exception):
        return f"not graded: {outcome or type(outcome).__name__}"
    points = f"{outcome.points:g} of {outcome.max_points:g} points"
    return f"{points}: {outcome.problem}" if outcome.problem else f"{points} in {outcome.seconds:.0f} s"


def table(records: Iterable[Record]) -> str:
    """Return the class in `WIDTH` columns: a line a student with the points of each lesson, and a legend.

    Lessons stand there by their number. Where there is room, a line ends with the parts that cost points.
    """
    students: dict[str, dict[str, Record]] = {}
    most: dict[str, float] = {}
    for kept in records:
        students.setdefault(kept.student, {})[kept.lesson] = kept
        most[kept.lesson] = max(most.get(kept.lesson, 0.0), kept.max_points)
    if not students:
        return "Nothing was graded."
    lessons = sorted(most)
    rows = [
        ["student", *(f"{lesson.partition('_')[0]} " for lesson in lessons), "not all points in"],
        ["at most", *(f"{_number(most[lesson])} " for lesson in lessons), ""],
    ]
    for student, found in students.items():
        rows.append([one_line(student), *(_cell(found.get(lesson)) for lesson in lessons), _reasons(found)])
    shown = "".join(cell for row in rows for cell in row[1:-1])
    legend = [f"{sign}  {text}" for sign, text in LEGEND.items() if sign in shown]
    return "\n".join([*_fitted(rows), *([""] if legend else []), *legend])


def _cell(kept: Record | None) -> str:
    """The points with a sign after them, or a blank in its place."""
    if kept is None:
        return f"{NOTHING} "
    return f"{_number(kept.points)}{REFUSED if kept.problem else OPEN if kept.is_open else ' '}"


def _number(points: float) -> str:
    """Points, cut off after one decimal: 12.96 of 13 are not all."""
    return f"{math.floor(round(10 * points, 6)) / 10:g}"


def _reasons(found: Mapping[str, Record]) -> str:
    """The parts of a student's lessons that cost points, by verdict. What may still come is no reason."""
    parts: dict[str, list[str]] = {}
    for kept in found.values():
        for verdict, part in _lost(kept):
            parts.setdefault(verdict, []).append(part)
    grouped = (f"{verdict}: {', '.join(names)}" if verdict else "; ".join(names) for verdict, names in parts.items())
    return "; ".join(grouped)


def _lost(kept: Record) -> Iterator[tuple[str, str]]:
    """Verdict and part, for each part that cost points; the speed of a wrong function is lost with the function."""
    judged = [score for score in kept.scores if score.max_points > 0 and score.verdict not in ("waits", "deferred")]
    lost = {score.part: score for score in kept.scores if score.points < score.max_points}
    if len(judged) > 1 and all(score.points <= 0 for score in judged):
        yield "not graded" if kept.problem else judged[0].verdict, f"all of {kept.lesson.partition('_')[0]}"
        lost = {part: score for part, score in lost.items() if score not in judged}
    for part, score in lost.items():
        if score.verdict == "late":
            yield "", score.detail
        elif score.verdict not in ("waits", "deferred") and not (part != score.check and score.check in lost):
            yield score.verdict, part


def _fitted(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: names left, points right, and reasons as far as they fit."""
    points = [max(len(row[column]) for row in rows) for column in range(1, len(rows[0]) - 1)]
    fixed = sum(1 + width for width in points)
    name = max(SHORTEST, min(LONGEST, WIDTH - fixed, max(wcswidth(row[0]) for row in rows)))
    room = WIDTH - fixed - name - 2
    for row in rows:
        student = _cut(row[0], name, len(row[0]) // 2)
        cells = " ".join(cell.rjust(width) for cell, width in zip(row[1:-1], points, strict=True))
        reasons = f"  {_cut(row[-1], room, len(row[-1]))}" if room >= ROOM else ""
        yield f"{student}{' ' * (name - wcswidth(student))} {cells}{reasons}".rstrip()


def _cut(text: str, room: int, at: int) -> str:
    """The text if it fits into so many columns, else without what stands before `at`, and then after it."""
    if wcswidth(text) <= room:
        return text
    head, tail = text[:at], text[at:]
    while wcswidth(head + tail) > room - 1:
        head, tail = (head[:-1], tail) if len(head) > len(tail) else (head, tail[1:])
    return f"{head}…{tail}"
