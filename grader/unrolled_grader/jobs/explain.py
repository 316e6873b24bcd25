"""How the points of a check came about, from the record alone. For instructors: it shows seeds."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unrolled.timing import Pair, Verdict, rule
from unrolled_grader.jobs.record import Record, one_line
from unrolled_grader.judge.evidence import Score

WIDTH = 100
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


def explained(record: Record, check: str) -> str:
    """Return the points of `check` in words and numbers. Raises UnknownCheckError."""
    parts = [score for score in record.scores if score.check == check]
    if not parts:
        known = ", ".join(dict.fromkeys(score.check for score in record.scores)) or "nothing"
        raise UnknownCheckError(f"the record of {record.student}, {record.lesson} has {known}, not {check}")
    lines = list(_head(record, check))
    for score in parts:
        lines += ["", *_part(score)]
    return "\n".join(lines)


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


def _part(score: Score) -> Iterator[str]:
    """A part of the check, with all that was measured."""
    yield from _wrapped(f"{score.part}: {score.points:g} of {score.max_points:g} points, {score.verdict}")
    yield from _indented(score.detail, *([f"to look at: {score.flag}"] if score.flag else []))
    for number, timing in enumerate(score.timings, 1):
        yield from ("", f"  measurement {number} of {len(score.timings)}", *_measurement(timing))


def _measurement(timing: Mapping[str, Any]) -> list[str]:
    """One measurement as lines: its pairs, the control, and the verdict that was recorded."""
    try:
        kept = Verdict.from_dict(timing)
        lines = [*_pairs(kept.pairs, kept.at_least), *(_control(kept.control) if kept.control else ())]
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, statistics.StatisticsError) as error:
        return _indented(f"the record is damaged: {type(error).__name__}: {error}")
    run = f"{kept.threads or 'threads not recorded'}, seed {kept.seed}, {kept.seconds:.1f} s"
    return [*lines, *_indented(run, f"recorded: {kept}")]


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


def _indented(*texts: str) -> list[str]:
    return [f"  {line}" for text in texts for line in _wrapped(text, WIDTH - 2)]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(one_line(text).removeprefix("'"), width, subsequent_indent="    ") or [""]
