"""The class's leaderboard: of a part whose spec has one, those learners who asked for a place on it, fastest first.

A learner asks by a line of the notebook that is handed in, `journal.leaderboard("NAME")`, and stands there under that
name alone. Whoever has no such line is not on it, and who hands in again without it, or is forgotten, is on it no more:
the line is read from the notebook that the record keeps. Order is by the median of the ratios that were measured, each
against the reference on the same machine in the same run, so that machines need not be alike. A part is a speed's, or
a check's that times what it compares: then whoever failed it has no place.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from nbformat import NotebookNode

from unrolled import checks
from unrolled.journal import galleries
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import Score
from unrolled_grader.results.tally import TalliedPart

LINE = re.compile(
    r"^(?P<call>journal\.leaderboard\(\s*)(?P<quote>[\"'])(?P<name>(?:(?!(?P=quote)).)*)(?P=quote)", re.MULTILINE
)
SETTLED, OPEN = ("pass", "fail"), ("deferred", "inconclusive")
"""Verdicts that rank, if nobody has to look at the score; and those that leave it open, as a flag does."""


class Place(NamedTuple):
    """A place on a leaderboard. `rank` and `ratio` are None for one that is not settled."""

    rank: int | None
    name: str
    ratio: float | None


def parts(lessons: Mapping[str, Mapping[str, checks.Spec]] | None = None) -> set[TalliedPart]:
    """Return the parts that have a leaderboard, by their specs: speeds, and checks that time what they compare."""
    known = checks.lessons() if lessons is None else lessons
    every = [(lesson, name, spec) for lesson, specs in known.items() for name, spec in specs.items()]
    checked = {TalliedPart(lesson, name) for lesson, name, spec in every if spec.leaderboard}
    timed = ((lesson, name) for lesson, name, spec in every if spec.speed and spec.speed.leaderboard)
    return checked | {TalliedPart(lesson, f"{name}/speed") for lesson, name in timed}


def requested_name(notebook: NotebookNode | None) -> str:
    """Return the name under which a notebook asks for a place, "" if it does not, or the name is not valid."""
    cells = [] if notebook is None else [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    lines = [found["name"] for source in cells for found in LINE.finditer(source)]
    try:
        return galleries.pseudonym(lines[-1]) if lines else ""
    except ValueError:
        return ""


def without_name(source: str) -> str:
    """Return a cell's text in which the line no longer says under which name somebody stands on the leaderboard."""
    return LINE.sub(r"\g<call>\g<quote>someone\g<quote>", source)


def boards(
    records: Iterable[Record], ranked: set[TalliedPart], name_of: Callable[[str, str], str]
) -> dict[TalliedPart, list[Place]]:
    """Return the leaderboard of each of these parts that somebody asked for.

    `name_of(student, lesson)` is the name under which a student asks, "" for who does not.
    """
    entries: dict[TalliedPart, list[tuple[str, float | None]]] = {}
    for kept in records:
        for score in () if kept.problem else kept.scores:
            part = TalliedPart(kept.lesson, score.part)
            settled = ratio(score)  # what may yet be settled has a place, too
            placed = settled is not None or score.verdict in OPEN or (score.flag and score.verdict in SETTLED)
            if part in ranked and placed and (name := name_of(kept.student, kept.lesson)):
                entries.setdefault(part, []).append((name, settled))
    return {part: places(found) for part, found in sorted(entries.items())}


def ratio(score: Score) -> float | None:
    """Return the median of a score's measured ratios, None where it is not settled."""
    every = [score.ratio, *(timing["ratio"] for timing in score.timings)]
    measured = [one for one in every if one is not None and one > 0]
    return statistics.median(measured) if measured and score.verdict in SETTLED and not score.flag else None


def places(entries: Sequence[tuple[str, float | None]]) -> list[Place]:
    """Return places in order: the highest ratio first, what is not settled last; a name that several chose is numbered.

    Ratios that read the same, in three digits, share a rank.
    """
    names = galleries.distinct(name for name, _ in entries)
    ratios = (value for _, value in entries)
    ordered = sorted(zip(names, ratios, strict=True), key=lambda entry: (-(entry[1] or 0.0), entry[0]))
    shown = [None if value is None else float(f"{value:.3g}") for _, value in ordered]
    return [
        Place(None if value is None else 1 + shown.index(value), name, value)
        for (name, _), value in zip(ordered, shown, strict=True)
    ]
