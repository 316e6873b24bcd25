"""What a check found, as plain data: it prints as text, and travels as JSON from a kernel to a judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from unrolled.timing import Verdict

from .compare import Mismatch

MIME = "application/vnd.unrolled.check+json"  # the MIME type under which a check's report lies among a cell's outputs

MARKS = {
    **{"pass": "✓", "inconclusive": "?"},
    **dict.fromkeys(("fail", "crashed", "timeout"), "✗"),
    **dict.fromkeys(("deferred", "missing", "not run"), "–"),
}


@dataclass(frozen=True)
class Finding:
    """One line of the report: a case (or the speed) and what became of it."""

    case: str
    verdict: str  # pass, fail, crashed, timeout, missing, inconclusive, deferred or "not run"
    lines: tuple[str, ...] = ()
    mismatch: Mismatch | None = None  # what to draw; stays in the process
    ratio: float | None = None  # a right result's speed beside the reference's, where it was timed; then in the part


@dataclass(frozen=True)
class Part:
    """What is scored: the check itself (`conv2d_gemm`) or its speed (`conv2d_gemm/speed`)."""

    name: str
    verdict: str
    points: float
    max_points: float
    detail: str
    ratio: float | None = None  # how many times as fast as the reference, where the check of correctness timed both


@dataclass(frozen=True)
class Report:
    """The findings of one check, its scored parts, and the raw timing behind its speed verdict."""

    check: str
    version: str
    findings: tuple[Finding, ...]
    parts: tuple[Part, ...]
    timing: Verdict | None = None
    rung: dict[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Whether every part passed; a speed that is inconclusive or deferred does not count against the learner."""
        return all(part.verdict in ("pass", "inconclusive", "deferred") for part in self.parts)

    @property
    def deferred(self) -> float:
        """Points that wait for another machine."""
        return sum(part.max_points for part in self.parts if part.verdict == "deferred")

    @property
    def settled(self) -> bool:
        """Whether no speed is left open: measured again, it earns its points or loses them."""
        return all(part.verdict != "inconclusive" for part in self.parts)

    @property
    def points(self) -> float:
        return sum(part.points for part in self.parts)

    @property
    def max_points(self) -> float:
        return sum(part.max_points for part in self.parts)

    def __str__(self) -> str:
        width = max(len(finding.case) for finding in self.findings)
        lines = [self.check]
        for finding in self.findings:
            word = "" if finding.verdict == "pass" else finding.verdict
            lines.append(f"  {MARKS[finding.verdict]} {finding.case:<{width}}   {word}".rstrip())
            lines += [f"      {line}" for line in finding.lines]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data for JSON, without what only pictures need."""
        return {
            "check": self.check,
            "version": self.version,
            "findings": [{"case": f.case, "verdict": f.verdict, "lines": list(f.lines)} for f in self.findings],
            "parts": [dataclasses.asdict(part) for part in self.parts],
            "timing": self.timing.to_dict() if self.timing else None,
            "rung": self.rung,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Report:
        """Return the report that `to_dict` wrote. Raises KeyError or TypeError for data of another form."""
        return cls(
            check=data["check"],
            version=data["version"],
            findings=tuple(Finding(f["case"], f["verdict"], tuple(f["lines"])) for f in data["findings"]),
            parts=tuple(Part(**part) for part in data["parts"]),
            timing=Verdict.from_dict(data["timing"]) if data["timing"] else None,
            rung=data["rung"],
        )


def correctness_part(name: str, points: float, findings: Sequence[Finding]) -> Part:
    """Return the part of an exercise's cases: its points if all are right, else what the first wrong one says."""
    for finding in findings:
        if finding.verdict != "pass":
            return Part(name, finding.verdict, 0, points, f"{finding.case}: {'; '.join(finding.lines)}")
    ratio = next((finding.ratio for finding in findings if finding.ratio is not None), None)
    return Part(name, "pass", points, points, f"{len(findings)} cases right", ratio)


def speed_part(name: str, points: float, finding: Finding) -> Part:
    """Return the part of an exercise's speed, which earns its points where it was seen: not measured is no evidence."""
    verdict = "missing" if finding.verdict == "not run" else finding.verdict
    earned = points if verdict == "pass" else 0
    return Part(f"{name}/speed", verdict, earned, points, " ".join(finding.lines))
