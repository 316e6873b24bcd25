"""What the class report needs of all records, gathered in one pass: numbers and reasons, never the measured pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import VERDICTS, Score


class TalliedPart(NamedTuple):
    """A scored part of a lesson; `name` is "conv2d_gemm" or "conv2d_gemm/speed"."""

    lesson: str
    name: str


class Notice(NamedTuple):
    """Something that a person should know; the same for several students stands once."""

    lesson: str
    what: str
    why: str


class Speeds(NamedTuple):
    """The factor that a check asks for, and the measured ones."""

    at_least: float
    ratios: list[float]


@dataclass
class Tally:
    """A class. Dictionaries are in the order of lessons and, within a lesson, of its checks."""

    students: set[str] = field(default_factory=set)
    shares: dict[str, list[float]] = field(default_factory=dict)
    """Points / possible points of each submission in which nothing is open, by lesson."""
    open: dict[str, list[float]] = field(default_factory=dict)
    """The same, as far as points are given, of each submission of which something waits or is deferred."""
    verdicts: dict[TalliedPart, Counter[str]] = field(default_factory=dict)
    speeds: dict[TalliedPart, Speeds] = field(default_factory=dict)
    """The last measured factor of each student; unmeasured ones are left out."""
    look: dict[Notice, list[str]] = field(default_factory=dict)  # students by what a person should look at
    deferred: dict[Notice, list[str]] = field(default_factory=dict)
    repaired: dict[Notice, list[str]] = field(default_factory=dict)
    words: dict[TalliedPart, Counter[str]] = field(default_factory=dict)
    """How the answers in words stand: marked, waits, unanswered."""
    late: dict[Notice, list[str]] = field(default_factory=dict)
    submissions: Counter[str] = field(default_factory=Counter)  # by lesson
    machines: Counter[str] = field(default_factory=Counter)
    sandboxes: Counter[str] = field(default_factory=Counter)


def tallied(records: Iterable[Record]) -> Tally:
    """Gather what the report needs of a class. Each record is read once and not kept."""
    found = Tally()
    for kept in records:
        found.students.add(kept.student)
        found.submissions[kept.lesson] += 1
        found.machines[_machine(kept)] += 1
        if kept.sandbox:
            found.sandboxes[kept.sandbox] += 1
        if most := kept.max_points:
            (found.open if kept.is_open else found.shares).setdefault(kept.lesson, []).append(kept.points / most)
        for score in kept.scores:
            _count(found, kept.lesson, score)
        for notices, what, why in _notices(found, kept):
            notices.setdefault(Notice(kept.lesson, what, why), []).append(kept.student)
    return _in_order(found)


def _count(found: Tally, lesson: str, score: Score) -> None:
    """Count the verdict and the measured factor of one part; nothing is withheld where there are no points."""
    judged = score.verdict in VERDICTS
    if not score.max_points and (score.verdict == "deferred" or not judged):
        return
    counts = found.verdicts if judged else found.words
    counts.setdefault(TalliedPart(lesson, score.part), Counter())[score.verdict] += 1
    ratio = score.timings[-1]["ratio"] if score.timings else None
    if ratio is not None and ratio > 0:
        speeds = Speeds(score.timings[-1]["at_least"], [])
        found.speeds.setdefault(TalliedPart(lesson, score.check), speeds).ratios.append(float(ratio))


def _notices(found: Tally, kept: Record) -> Iterator[tuple[dict[Notice, list[str]], str, str]]:
    """What a person should know of a submission: where it is kept, what it concerns, and why."""
    if kept.problem:
        yield found.look, "not graded", kept.problem
    for flag in kept.flags:
        yield found.look, "the whole notebook", flag
    if kept.repairs:
        yield found.repaired, "repaired", "; ".join(kept.repairs)
    for score in kept.scores:
        if score.verdict == "late":
            yield found.late, "late", score.detail
        elif score.verdict not in VERDICTS:
            if not score.max_points:  # points that a person changed; else an answer in words
                yield found.look, score.part, score.detail
        elif score.verdict == "deferred":
            if score.max_points and not kept.problem:
                yield found.deferred, score.part, score.flag or score.detail
        elif not kept.problem and (score.flag or score.verdict == "inconclusive"):
            yield found.look, score.part, score.flag or score.detail


def _in_order(found: Tally) -> Tally:
    """By lesson; what was first seen stays first within a lesson. What no machine settled comes before single parts."""
    for name in ("shares", "open", "words", "late", "deferred", "repaired"):
        setattr(found, name, dict(sorted(getattr(found, name).items())))
    for name in ("verdicts", "speeds"):
        setattr(found, name, dict(sorted(getattr(found, name).items(), key=lambda item: item[0].lesson)))
    for speeds in found.speeds.values():
        speeds.ratios.sort()
    whole = ("not graded", "the whole notebook")
    found.look = dict(sorted(found.look.items(), key=lambda item: (item[0].what not in whole, item[0])))
    return found


def _machine(kept: Record) -> str:
    facts = kept.machine
    return (
        f"{facts['system']}, {facts['cpu']}, {facts['cores']} cores, GPU {facts['gpu'] or 'none'}, "
        f"Python {facts['python']}, NumPy {facts['numpy']}"
    )
