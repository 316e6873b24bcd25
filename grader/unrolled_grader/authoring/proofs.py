"""What a check does with wrong answers made by machine: refuses them, or else the difference is to be shown.

A mutant that passes at any of the seeds is compared with the right answer over the exercise's domain. Where both give
the same for every draw it is called equivalent: it is no wrong answer. Anything else is a hole in the check.
"""

from __future__ import annotations

import difflib
import inspect
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unrolled import checks
from unrolled.checks.causes import is_bare
from unrolled.checks.mutants import mutants, plain
from unrolled.checks.spec import Spec
from unrolled_grader.authoring import one_cell, slips

OFTEN = 0.1
"""What share of the domain's inputs has a feature that a check must show at every seed: see `domain.DRAWN`."""
SECONDS, FEWEST = 20.0, 40
"""Where the check itself takes so long that mutants, or draws for one of these, take longer: how many all the same."""
SLOW = 1.0  # seconds of a check of which a fourth of these is tried
PATIENCE = 5.0  # times as long as the right answer takes, and a second: then a case is stopped


@dataclass
class Proof:
    """What became of an exercise's mutants. `holes` are texts: what passes, and the input that tells it apart."""

    exercise: str
    mutants: int = 0
    refused: int = 0
    named: int = 0
    equivalent: int = 0
    holes: list[str] = field(default_factory=list)
    unnamed: Counter[str] = field(default_factory=Counter)  # refused ones without a cause in words, by kind
    examples: dict[str, str] = field(default_factory=dict)  # one of each kind of these: the slip, and what was said
    seconds: float = 0.0

    def __str__(self) -> str:
        named = f", {self.named / self.refused:.0%} of these named" if self.refused else ""
        holes = f"{len(self.holes)} hole{'s' * (len(self.holes) != 1)}"
        return (
            f"{self.exercise}: {self.mutants} mutants, {self.refused} refused{named}, {self.equivalent} equivalent, "
            f"{holes}, {self.seconds:g} s"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data for the record."""
        counts = {name: getattr(self, name) for name in ("mutants", "refused", "named", "equivalent", "seconds")}
        return {**counts, "holes": len(self.holes)}


def prove(name: str, spec: Spec, cells: Sequence[Any], *, seeds: int = 3, draws: int = 2000) -> Proof:
    """Try an exercise's check with every mutant of the answer in its cell. Raises ValueError if that does not pass."""
    started = time.perf_counter()
    trial = _Trial(name, replace(spec, speed=None, rung=None), *one_cell.read(cells, name))
    proof = Proof(name)
    trial.require_right(seeds)
    seeds = max(1, min(seeds, int(SECONDS / trial.typical)))
    for kind, text, function in trial.chosen(list(trial.wrong(draws)), seeds):
        proof.mutants += 1
        trial.judge(proof, kind, text, function, seeds, draws)
    proof.seconds = round(time.perf_counter() - started, 1)
    return proof


@dataclass
class _Trial:
    """An exercise, the source of its answer, and the names that this needs."""

    name: str
    spec: Spec
    source: str
    names: Mapping[str, Any]
    limit: float = 10.0
    typical: float = 0.0  # seconds that the check takes for the right answer

    def __post_init__(self) -> None:
        self.right = self.function(self.source)

    def function(self, source: str) -> Any:
        return one_cell.define(source, self.names)[self.name]

    def require_right(self, seeds: int) -> None:
        """Raise ValueError unless the answer passes. Then a case may take a mutant some times as long as that."""
        times = []
        for seed in (0, *range(seeds)):  # the first also loads what is needed
            started = time.perf_counter()
            if not (report := self.report(self.right, seed)).passed:
                raise ValueError(f"the solution does not pass at seed {seed}: {report}")
            times.append(time.perf_counter() - started)
            if sum(times) > SECONDS:
                break
        self.limit, self.typical = min(self.limit, 1 + PATIENCE * max(times)), statistics.median(times)
        self.spec = replace(self.spec, limit=None)

    def report(self, function: Any, seed: int) -> checks.Report:
        return checks.run(self.name, self.spec, function, seed=seed, case_limit=self.limit, climb=False)

    def wrong(self, draws: int) -> Iterator[tuple[str, str, Any]]:
        """Yield kind, text and function of every mutant, of the source's first."""
        original = plain(self.source)
        for mutant in mutants(self.source):
            try:
                function = self.function(mutant.source)
            except Exception:  # a decorator that refuses its function, a definition that fails at once
                continue
            yield mutant.kind, _diff(original, mutant.source), function
        if inspect.isfunction(self.right):
            for kind, text, make in slips.slips(self._calls(draws), OFTEN):
                yield kind, text, make(self.right)

    def chosen(self, all_mutants: list[Any], seeds: int) -> list[Any]:
        """Return some, evenly chosen, where all would take longer than `SECONDS` if they were refused at the end."""
        fewest = FEWEST if self.typical < SLOW else FEWEST // 4
        most = min(len(all_mutants), max(fewest, int(SECONDS / (seeds * self.typical))))
        return [all_mutants[number * len(all_mutants) // most] for number in range(most)]

    def _calls(self, draws: int) -> slips.Calls:
        """How the domain's inputs lead to calls of the function; without one, how the cases do, which have no edges."""
        calls = slips.Calls()
        for number in range(min(draws, 300) if self.spec.domain else 1):
            self.drawn(slips.watched(self.right, calls), number)
        return calls if self.spec.domain else replace(calls, features=[])

    def drawn(self, function: Any, number: int) -> checks.Report:
        """What the check says for inputs of the domain, or of the cases where there is none, from this number on."""
        cases = self.spec.cases if self.spec.domain is None else [self.spec.domain]
        spec = replace(self.spec, cases=cases, domain=None)
        return checks.run(self.name, spec, function, seed=10_000 + number, case_limit=self.limit, climb=False)

    def judge(self, proof: Proof, kind: str, text: str, function: Any, seeds: int, draws: int) -> None:
        """Note in the proof what the check says of a wrong answer."""
        for seed in range(seeds):
            report = self.report(function, seed)
            if report.passed or any(finding.verdict == "timeout" for finding in report.findings):
                break
        if not report.passed:
            proof.refused += 1
            if _is_named(report):
                proof.named += 1
            else:
                proof.unnamed[kind] += 1
                proof.examples.setdefault(kind, f"{text}\n{report}")
            return
        difference = self._difference(function, draws)
        if difference is None:
            proof.equivalent += 1
        else:
            proof.holes.append(f"{self.name}, {kind}: passes at seed {seed}\n{text}\n{difference}")

    def _difference(self, function: Any, draws: int) -> str | None:
        """The first input of the domain for which a function is wrong, in words; None if there is none."""
        for number in range(min(draws, max(FEWEST // 4, int(SECONDS / self.typical)))):
            if not (report := self.drawn(function, number)).passed:
                return str(report)
        return None


def _is_named(report: checks.Report) -> bool:
    """Whether what was said names a cause: more than where a result differs."""
    finding = next(finding for finding in report.findings if finding.verdict not in ("pass", "not run"))
    return finding.verdict != "fail" or not is_bare(finding.lines)


def _diff(original: str, changed: str) -> str:
    lines = difflib.unified_diff(original.splitlines(), changed.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
