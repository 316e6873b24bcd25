"""What a submission earned, part by part, and why. No evidence is 0 points, with the reason why there is none.

Evidence is what the judge found with inputs and a clock of its own. What a notebook prints, displays, raises or claims
is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unrolled.checks import Spec

VERDICTS = ("pass", "fail", "inconclusive", "deferred", "crashed", "timeout", "missing")
CELL = "check_"  # a check's cell has this before the check's name as its grade_id


@dataclass(frozen=True)
class Score:
    """One scored part of a check, a row of scores.csv. `part` is "conv2d_gemm" or "conv2d_gemm/speed"."""

    part: str
    verdict: str
    points: float
    max_points: float
    detail: str
    flag: str = ""  # why a person should look at it; empty if there is no need
    timings: tuple[dict[str, Any], ...] = ()
    """Every measurement behind a speed verdict, in order, as `timing.Verdict.to_dict` writes it."""
    ratio: float | None = None
    """How many times as fast as the reference, where the check of correctness timed both."""

    @property
    def check(self) -> str:
        return self.part.partition("/")[0]


def without(check: str, spec: Spec, verdict: str, reason: str, flag: str = "") -> tuple[Score, ...]:
    """Return 0 points for each part, as nothing is proved. What one could be worth the spec alone says, no notebook."""
    points = {check: spec.points, **({f"{check}/speed": spec.speed.points} if spec.speed is not None else {})}
    return tuple(Score(part, verdict, 0.0, float(most), reason, flag) for part, most in points.items())
