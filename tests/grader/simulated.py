"""A class that never was: records with plausible verdicts, factors, reasons and times, from the lessons' checks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from unrolled import checks
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import Score

MACHINE = {"system": "Linux 6.1", "cpu": "Xeon E5-2680", "cores": 2, "gpu": None, "python": "3.11.9", "numpy": "2.1.0"}
REASONS = {
    "fail": "case 'stride 2': differs at (0, 1): expected 4, got 3",
    "crashed": "IndexError: index 28 is out of bounds",
    "timeout": "the call took longer than 10 s",
    "missing": "the function is not defined",
    "deferred": "needs a GPU, and this machine has none",
    "inconclusive": "the machine was too noisy to tell",
}


def a_class(students: int, lessons: int = 6, seed: int = 0, sandbox: str = "bubblewrap 0.8.0") -> Iterator[Record]:
    """A record a student and lesson, one at a time."""
    dice = random.Random(seed)
    for number in range(students):
        skill = dice.betavariate(5, 2)
        for lesson, specs in sorted(checks.lessons().items())[:lessons]:
            yield _record(dice, f"student{number:03}", lesson, specs, skill, sandbox)


def _record(dice: random.Random, student: str, lesson: str, specs: Any, skill: float, sandbox: str) -> Record:
    if dice.random() < 0.01:
        scores = tuple(Score(name, "missing", 0.0, float(spec.points), "") for name, spec in specs.items())
        return Record(student, lesson, "", scores, problem="not valid JSON: line 1", machine=MACHINE)
    scores = tuple(score for name, spec in specs.items() for score in _scores(dice, name, spec, skill))
    flags = ("cell 7 embeds 31 KB of data",) if dice.random() < 0.01 else ()
    repairs = ("im2col: its cell had lost its grade_id",) if dice.random() < 0.03 else ()
    timed = sum(bool(score.timings) for score in scores)
    seconds = dice.lognormvariate(0.5, 0.4) + 3 * timed
    return Record(student, lesson, "", scores, "", seconds, (1,), repairs, flags, sandbox, machine=MACHINE)


def _scores(dice: random.Random, name: str, spec: Any, skill: float) -> Iterator[Score]:
    right = dice.random() < 0.3 + 0.7 * skill
    verdict = "pass" if right else dice.choice(("fail", "fail", "fail", "crashed", "timeout", "missing"))
    yield Score(name, verdict, float(spec.points) * right, float(spec.points), REASONS.get(verdict, ""))
    if spec.speed is None:
        return
    most, part = float(spec.speed.points), f"{name}/speed"
    if not right:
        yield Score(part, "missing", 0.0, most, "not measured: the function is not right")
    elif dice.random() < 0.02:
        yield Score(part, "deferred", 0.0, most, REASONS["deferred"])
    else:
        ratio = spec.speed.at_least * dice.lognormvariate(0.9 * skill + 0.2, 0.6)
        timings = ({"ratio": ratio, "at_least": spec.speed.at_least},)
        if dice.random() < 0.01:
            flag = "speed still inconclusive, points given"
            yield Score(part, "inconclusive", most, most, REASONS["inconclusive"], flag, timings)
            return
        fast = ratio >= spec.speed.at_least
        flag = "faster than memory allows: look at the code" if dice.random() < 0.004 else ""
        yield Score(part, "pass" if fast else "fail", most * fast, most, f"{ratio:.1f}x", flag, timings)
