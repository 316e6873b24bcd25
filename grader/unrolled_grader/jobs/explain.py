"""How the points of a check came about, from the record alone, the rule run again. For instructors: it shows seeds."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unrolled.timing import Pair, Verdict, rule
from unrolled.timing.verdict import conclude
from unrolled_grader.jobs.record import Record, one_line
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.verdicts import settle, settling_outcome

WIDTH = 100
REPLAYED = ("outcome", "witness", "noisy", "ratio", "low", "high")  # what of a verdict follows from its pairs
WITNESSES: tuple[tuple[rule.Outcome, ...], ...] = (("pass", "fail"), ("fail",), ("pass",), ())
"""What CPU time could decide. It is not recorded: of a GPU nothing, without control groups no pass, and in records of
older releases no fail."""
TRANSPORT = "the transport took"
"""How the reason begins where a verdict is held back because too much of a block was transport."""
BORNE_OUT = "Replayed from the record: everything that was measured bears the points out."
NOT_BORNE_OUT = "THE RECORD DOES NOT BEAR THE POINTS OUT. It is damaged, or was changed after grading:"
HEAD = (
    "                             baseline                     candidate",
    "  pair  first         calls   seconds   ms a call    calls   seconds   ms a call       ratio",
)
ROW = (
    "  {number:4}  {first:9}  {base.calls:8} {base.wall:9.4f} {base_ms:11.4f} {cand.calls:8} {cand.wall:9.4f} "
    "{cand_ms:11.4f} {ratio:11.4g}"
)


class UnknownCheckError(ValueError):
    """The record holds nothing of a check: its name, and the names that there are."""


def explained(record: Record, check: str) -> tuple[str, bool]:
    """Return the points of `check` in words and numbers, and whether the record agrees. Raises UnknownCheckError."""
    parts = [score for score in record.scores if score.check == check]
    if not parts:
        known = ", ".join(dict.fromkeys(score.check for score in record.scores)) or "nothing"
        raise UnknownCheckError(f"the record of {record.student}, {record.lesson} has {known}, not {check}")
    lines, doubts = list(_head(record, check)), []
    for score in parts:
        text, doubt = _part(score)
        lines += ["", *text]
        doubts += doubt
    lines += ["", BORNE_OUT if not doubts else NOT_BORNE_OUT]
    lines += [line for doubt in doubts for line in _wrapped(f"- {doubt}")]
    return "\n".join(lines), not doubts


def _head(record: Record, check: str) -> Iterator[str]:
    facts = record.machine
    yield one_line(f"{record.student}, {record.lesson}, {check}")
    yield from _wrapped(f"graded {record.date} by Unrolled {record.version}, in {record.seconds:.1f} s")
    yield from _wrapped(f"machine: {facts.get('cpu')}, {facts.get('cores')} cores, GPU {facts.get('gpu') or 'none'}")
    yield from _wrapped(f"environment: {record.key.environment or 'not recorded'}")
    yield from _wrapped(f"sandbox: {record.sandbox or 'not recorded'}")
    yield from _wrapped(f"seeds: {', '.join(map(str, record.seeds)) or 'none'} (not for students)")
    for flag in record.flags:
        yield from _wrapped(f"to look at: {flag}")
    if record.problem:
        yield from _wrapped(f"not graded: {record.problem}")


def _part(score: Score) -> tuple[list[str], list[str]]:
    """A part of the check as lines, and what speaks against its record."""
    points = f"{score.points:g} of {score.max_points:g} points"
    lines = _wrapped(f"{score.part}: {points}, {score.verdict}")
    lines += _indented(score.detail, *([f"to look at: {score.flag}"] if score.flag else []))
    doubts = []
    if score.points > (score.max_points if score.verdict in ("pass", "inconclusive") else 0):
        doubts.append(f"{score.part}: {points} cannot come from the verdict {score.verdict}")
    for number, timing in enumerate(score.timings, 1):
        name = f"measurement {number} of {len(score.timings)}"
        text, doubt = _measurement(timing)
        lines += ["", f"  {name}", *text]
        doubts += [f"{score.part}, {name}: {doubt}"] if doubt else []
    if score.part.endswith("/speed"):
        doubts += [f"{score.part}: {doubt}" for doubt in _settling(score)]
    return lines, doubts


def _measurement(timing: Mapping[str, Any]) -> tuple[list[str], str]:
    """One measurement as lines, and what speaks against it; empty if the pairs give what was recorded."""
    try:
        recorded = Verdict.from_dict(timing)
        lines = [*_pairs(recorded.pairs, recorded.at_least), *(_control(recorded.control) if recorded.control else ())]
        replayed, doubt = _replayed(timing, recorded)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, statistics.StatisticsError) as error:
        doubt = one_line(f"the record is damaged: {type(error).__name__}: {error}")
        return _indented(doubt), doubt
    run = f"{recorded.threads or 'threads not recorded'}, seed {recorded.seed}, {recorded.seconds:.1f} s"
    found = doubt or "The pairs give the verdict that was recorded."
    return [*lines, *_indented(run, f"recorded: {recorded}", f"replayed: {replayed}", found)], doubt


def _replayed(timing: Mapping[str, Any], recorded: Verdict) -> tuple[Verdict, str]:
    """The rule run again on the recorded pairs, and where what was recorded differs."""
    facts: dict[str, Any] = {"threads": recorded.threads, "seconds": recorded.seconds, "seed": recorded.seed}
    doubts = []
    for witness in WITNESSES:
        again = conclude(recorded.pairs, recorded.control, recorded.at_least, **facts, cpu_witness=witness)
        data = again.to_dict()
        different = [name for name in REPLAYED if data[name] != timing[name]]
        held_back = recorded.outcome == "inconclusive" and recorded.reason.startswith(TRANSPORT)
        if not different or (held_back and different == ["outcome"]):
            return again, ""
        doubts.append(", ".join(f"{name} {data[name]}, recorded is {timing[name]}" for name in different))
    return again, one_line(f"The pairs do not give the verdict that was recorded. They give {doubts[-1]}")


def _pairs(pairs: Sequence[Pair], at_least: float) -> Iterator[str]:
    """A line a pair, and the interval of the median wherever the rule looked."""
    ratios = [pair.ratio for pair in pairs]
    yield from HEAD
    for number, pair in enumerate(pairs, 1):
        yield _row(number, pair)
        if number in rule.LOOKS or number == len(pairs):
            low, high = rule.median_interval(ratios[:number])
            outcome = rule.decide(ratios[:number], at_least)
            middle = statistics.median(ratios[:number])
            yield (
                f"  after {number} pairs: median {middle:.4g}, interval {low:.4g} to {high:.4g}, "
                f"asked {at_least:g}: {outcome}"
            )


def _control(control: Sequence[Pair]) -> Iterator[str]:
    """The baseline against itself: a line a pair, and whether they say that the machine was quiet."""
    yield "  control, the baseline against itself"
    for number, pair in enumerate(control, 1):
        yield _row(number, pair)
    if len(control) < rule.CONTROL_PAIRS:
        yield f"  cut short: {len(control)} of {rule.CONTROL_PAIRS} pairs say nothing"
        return
    ratios = [pair.ratio for pair in control]
    lower, middle, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    noise = "noisy" if rule.is_noisy(ratios) else "quiet"
    yield f"  median {middle:.3g}, half of the pairs within {lower:.3g} to {upper:.3g}: the machine was {noise}"


def _row(number: int, pair: Pair) -> str:
    base, cand = pair.baseline, pair.candidate
    ms = {"base_ms": 1e3 * base.wall / base.calls, "cand_ms": 1e3 * cand.wall / cand.calls}
    return ROW.format(number=number, first=str(pair.first), base=base, cand=cand, ratio=pair.ratio, **ms)


def _settling(score: Score) -> Iterator[str]:
    """What speaks against the verdict of a speed part, given the outcomes of its measurements.

    A measurement that ended in a crash leaves no pairs. It can cost points, and never earns any.
    """
    outcomes = list(map(_outcome_of, score.timings))
    if score.verdict not in ("pass", "inconclusive") or (outcomes and settle(outcomes) == score.verdict):
        return
    if not outcomes:
        yield f"the verdict is {score.verdict}, but nothing was measured"
    elif score.max_points or outcomes[-1] != score.verdict:
        yield f"measured {', '.join(outcomes)}, which does not settle on {score.verdict}"


def _outcome_of(timing: Mapping[str, Any]) -> str:
    """What a measurement says to `settle`; where its record is damaged, its outcome."""
    outcome = str(timing.get("outcome"))
    try:
        return settling_outcome(outcome, timing)
    except (ValueError, KeyError, TypeError, AttributeError):
        return outcome


def _indented(*texts: str) -> list[str]:
    return [f"  {line}" for text in texts for line in _wrapped(text, WIDTH - 2)]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(one_line(text).removeprefix("'"), width, subsequent_indent="    ") or [""]
