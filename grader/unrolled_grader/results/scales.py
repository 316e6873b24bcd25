"""Whether all points of a lesson are on one scale: what its parts are worth, and how fast was asked."""

from __future__ import annotations

from pathlib import Path

import unrolled
from unrolled import checks
from unrolled.checks import choices
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import VERDICTS


def other(grades: Path) -> dict[str, list[str]]:
    """Return the students whose submissions stand on another scale than the class has now, by lesson.

    What another version of the course judged has a scale of its own, and is brought to this one's.
    """
    found: dict[str, list[str]] = {}
    for kept in record.load_all(grades):
        specs = checks.lessons().get(kept.lesson)
        if specs is not None and kept.version == unrolled.__version__ and not _fits(kept, choices.parts(specs)):
            found.setdefault(kept.lesson, []).append(kept.student)
    return found


def _fits(kept: Record, required: dict[str, tuple[float, float | None]]) -> bool:
    """Whether a submission was judged by these points and thresholds."""
    judged = [score for score in kept.scores if score.verdict in VERDICTS]
    if {score.part: score.max_points for score in judged} != {part: points for part, (points, _) in required.items()}:
        return False
    return all(score.timings[-1]["at_least"] == required[score.part][1] for score in judged if score.timings)
