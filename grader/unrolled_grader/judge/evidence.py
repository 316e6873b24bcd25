"""What a submission earned, part by part, and why. No evidence is 0 points, with the reason why there is none.

Evidence is what the judge found with inputs and a clock of its own. What a notebook prints, displays, raises or claims
is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unrolled.checks import Spec

VERDICTS = ("pass", "fail", "inconclusive", "deferred", "crashed", "timeout", "missing")
CELL = "check_"
"""A check's cell has this before the check's name as its grade_id."""


@dataclass(frozen=True)
class Score:
    """One scored part of a check, a row of scores.csv. `part` is "conv2d_gemm" or "conv2d_gemm/speed"."""

    part: str
    verdict: str
    points: float
    max_points: float
    detail: str
    flag: str = ""
    """Why a person should look at it; empty if there is no need."""
    timings: tuple[dict[str, Any], ...] = ()
    """Every measurement behind a speed verdict, in order, as `timing.Verdict.to_dict` writes it."""

    @property
    def check(self) -> str:
        return self.part.partition("/")[0]


def part_points(check: str, spec: Spec) -> dict[str, float]:
    """Return the parts of a check and what each is worth. The spec alone says so, never the notebook."""
    points = {check: float(spec.points)}
    if spec.speed is not None:
        points[f"{check}/speed"] = float(spec.speed.points)
    return points


def without(check: str, spec: Spec, verdict: str, reason: str, flag: str = "") -> tuple[Score, ...]:
    """Return the check's parts where nothing is proved: 0 points each, for this reason."""
    return tuple(Score(part, verdict, 0.0, most, reason, flag) for part, most in part_points(check, spec).items())
