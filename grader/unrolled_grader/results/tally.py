"""What the class report needs of all records, gathered in one pass: numbers and reasons, never the measured pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
    seconds: list[tuple[float, str, str]] = field(default_factory=list)  # seconds of the judge, student, lesson
    machines: Counter[str] = field(default_factory=Counter)
    sandboxes: Counter[str] = field(default_factory=Counter)


def tallied(records: Iterable[Record]) -> Tally:
    """Gather what the report needs of a class. Each record is read once and not kept."""
    found = Tally()
    for kept in records:
        found.students.add(kept.student)
        found.seconds.append((kept.seconds, kept.student, kept.lesson))
        found.machines[_machine(kept)] += 1
        if kept.sandbox:
            found.sandboxes[kept.sandbox] += 1
        if most := kept.max_points:
            (found.open if kept.is_open else found.shares).setdefault(kept.lesson, []).append(kept.points / most)
        _add_reasons(found, kept)
        for score in kept.scores:
            _add_score(found, kept, score)
    return _in_order(found)


def _add_reasons(found: Tally, kept: Record) -> None:
    """What concerns the submission as a whole."""
    if kept.problem:
        _add(found.look, kept, "not graded", kept.problem)
    for flag in kept.flags:
        _add(found.look, kept, "the whole notebook", flag)
    if kept.repairs:
        _add(found.repaired, kept, "repaired", "; ".join(kept.repairs))


def _add_score(found: Tally, kept: Record, score: Score) -> None:
    if score.verdict not in VERDICTS:
        _add_persons(found, kept, score)
        return
    if score.verdict == "deferred" and not score.max_points:
        return  # nothing is withheld where there are no points
    found.verdicts.setdefault(TalliedPart(kept.lesson, score.part), Counter())[score.verdict] += 1
    ratio = score.timings[-1]["ratio"] if score.timings else None
    if ratio is not None and ratio > 0:
        speeds = Speeds(score.timings[-1]["at_least"], [])
        found.speeds.setdefault(TalliedPart(kept.lesson, score.check), speeds).ratios.append(float(ratio))
    if kept.problem:
        return
    if score.verdict == "deferred":
        _add(found.deferred, kept, score.part, score.flag or score.detail)
    elif score.flag or score.verdict == "inconclusive":
        _add(found.look, kept, score.part, score.flag or score.detail)


def _add_persons(found: Tally, kept: Record, score: Score) -> None:
    """What is not the judge's: a late penalty, an answer in words, or points that a person changed."""
    if score.verdict == "late":
        _add(found.late, kept, "late", score.detail)
    elif score.max_points:
        found.words.setdefault(TalliedPart(kept.lesson, score.part), Counter())[score.verdict] += 1
    else:
        _add(found.look, kept, score.part, score.detail)


def _add(items: dict[Notice, list[str]], kept: Record, what: str, why: str) -> None:
    items.setdefault(Notice(kept.lesson, what, why), []).append(kept.student)


def _in_order(found: Tally) -> Tally:
    """By lesson; what was first seen stays first within a lesson. What no machine settled comes before single parts."""
    found.shares, found.open = dict(sorted(found.shares.items())), dict(sorted(found.open.items()))
    found.verdicts = dict(sorted(found.verdicts.items(), key=lambda item: item[0].lesson))
    found.speeds = dict(sorted(found.speeds.items(), key=lambda item: item[0].lesson))
    for speeds in found.speeds.values():
        speeds.ratios.sort()
    whole = ("not graded", "the whole notebook")
    found.look = dict(sorted(found.look.items(), key=lambda item: (item[0].what not in whole, item[0])))
    found.words, found.late = dict(sorted(found.words.items())), dict(sorted(found.late.items()))
    found.deferred, found.repaired = dict(sorted(found.deferred.items())), dict(sorted(found.repaired.items()))
    return found


def _machine(kept: Record) -> str:
    facts = kept.machine
    return (
        f"{facts['system']}, {facts['cpu']}, {facts['cores']} cores, GPU {facts['gpu'] or 'none'}, "
        f"Python {facts['python']}, NumPy {facts['numpy']}"
    )
