"""What a check does with wrong answers made by machine: refuses them, or else the difference is to be shown.

Each mutant has to be refused at every seed. That needs no trial where a case refused it whose inputs are the same at
every seed, or one of fixed sizes at three seeds. One that passes is compared with the answer that it was made of, over
the exercise's whole domain: it is called equivalent where both give the same, however lax the check's own comparison
is. Anything else is a hole in the check.

mutmut and cosmic-ray are not used for this: see `unrolled.checks.mutants`.
"""

from __future__ import annotations

import difflib
import inspect
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from unrolled import checks
from unrolled.checks.causes import is_bare
from unrolled.checks.compare import Mismatch, agree, as_numbers, mismatch, shortened
from unrolled.checks.domain import shown_by
from unrolled.checks.mutants import mutants, plain
from unrolled.checks.run import HERE, Place
from unrolled.checks.spec import Case, Spec
from unrolled.checks.words import call
from unrolled_grader.authoring import one_cell, slips

OFTEN = 0.1
"""What share of the domain's inputs has a feature that a check must show at every seed: see `domain.DRAWN`."""
SECONDS = 25.0
"""For a share of an exercise's mutants, of its process's CPU time: what is tried does not depend on what else the
machine does. When they are over, no other mutant, seed or draw is begun."""
SETTLING = 0.25  # share of these for more draws of what passed
SURE = 3  # seeds at which one case of the same sizes refuses a mutant: it does so at the others
SEEN, FIRST = 100, 10  # inputs of the domain whose features are looked at; for which what passes is compared at once
LUCK = 3  # trainings that decide about a mutant that passed: by luck, or because it learns
ROUNDING = {"float16": 1e-3, "float32": 1e-5}  # share of the largest value, by dtype; of all others 1e-10
SHOWN = 60  # characters of a result
DRAWN = 10_000  # the seed of the first draw: none of those that the check is tried at
GUARDED = replace(HERE, ported=lambda function: None)
UNASKED = replace(GUARDED, borrowed=lambda function: None)
UNGUARDED = replace(UNASKED, withhold=False)
"""On the simulated GPU alone; for what names no other library; and for what has passed, and so takes no answer."""
PATIENCE = 5.0  # times as long as the right answer takes, and a second: then a case is stopped


@dataclass
class Proof:
    """What became of an exercise's mutants. `holes` are texts: what passes, and the input that tells it apart."""

    exercise: str
    made: int = 0
    mutants: int = 0  # of these, tried at one seed at least
    seeds: int = 0  # at which all of them were tried
    refused: int = 0
    named: int = 0
    lucky: int = 0  # besides: they reach the accuracy that is asked at some seeds alone
    equivalent: int = 0
    near: int = 0  # of these: results differ from the right answer's, by no more than the check's tolerance
    own: int = 0  # of these: there are several right results, and the check's own comparison accepts this
    holes: list[str] = field(default_factory=list)
    unnamed: Counter[str] = field(default_factory=Counter)  # refused ones without a cause in words, by kind
    examples: dict[str, str] = field(default_factory=dict)  # one of each kind of these: the slip, and what was said
    seconds: float = 0.0

    def __str__(self) -> str:
        of = f" of {self.made}" if self.mutants < self.made else ""
        named = f", {self.named / self.refused:.0%} of these named" if self.refused else ""
        lucky = f", {self.lucky} lucky" * bool(self.lucky)
        how = f" ({self.near} within the tolerance, {self.own} by the check alone)" if self.near + self.own else ""
        holes = f"{len(self.holes)} hole{'s' * (len(self.holes) != 1)}"
        return (
            f"{self.exercise}: {self.mutants}{of} mutants, {self.refused} refused{named}{lucky}, {self.equivalent} "
            f"equivalent{how}, {holes}, at {self.seeds} seed{'s' * (self.seeds != 1)}, {self.seconds:g} s"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data for the record."""
        names = ("made", "mutants", "refused", "named", "lucky", "equivalent", "near", "own", "seconds", "seeds")
        return {**{name: getattr(self, name) for name in names}, "holes": len(self.holes)}


@dataclass
class _Wrong:
    """A mutant: its kind, how it differs from the answer that it was made of, and what became of it."""

    kind: str
    text: str
    function: Any
    trial: _Trial
    named: bool = False  # refused in words for the cause
    place: int = 0  # of the case that refused it last
    sure: int = 0  # at how many seeds one case of the same sizes has refused it, one after another
    passed: int | None = None  # at this seed
    draws: int = 0  # for which it was compared since
    lost: list[str] = field(default_factory=list)  # how it differed for some of these
    near: bool = False
    own: bool = False


def prove(
    name: str,
    spec: Spec,
    cells: Sequence[Any],
    *,
    others: Sequence[str] = (),
    seeds: int = 3,
    draws: int = 2000,
    share: slice = slice(None),
    seconds: float = SECONDS,
) -> Proof:
    """Try an exercise's check with mutants of the answer in its cell, and of other right answers, given as sources.

    With a `share` of them alone, in `seconds` of CPU time. Raises ValueError if one of these answers does not pass.
    """
    started, proof = time.process_time(), Proof(name)
    spec = replace(spec, speed=None, rung=None)
    trials = [_Trial(name, spec, *one_cell.read(cells, name, source)) for source in (None, *others)]
    for trial in trials:
        trial.require_right(seeds)
    wrong = _spread([each for index, trial in enumerate(trials) for each in trial.wrong(slipped=index == 0)])[share]
    proof.made, tried = len(wrong), _tried(proof, wrong, seeds, started, seconds)
    passed = [each for each in tried if each.passed is not None]
    for index, each in enumerate(passed):
        now = time.process_time()
        each.trial.compare(each, draws, now + (started + seconds - now) / (len(passed) - index))
    _count(proof, tried)
    proof.seconds = round(time.process_time() - started, 1)
    return proof


def joined(proofs: Sequence[Proof]) -> Proof:
    """Return one proof of those of an exercise, each of a share of its mutants."""
    first, *others = proofs
    for other in others:
        for count in ("made", "mutants", "refused", "named", "lucky", "equivalent", "near", "own", "seconds"):
            setattr(first, count, round(getattr(first, count) + getattr(other, count), 1))
        first.seeds = min(first.seeds, other.seeds)
        first.holes += [hole for hole in other.holes if hole not in first.holes]
        first.unnamed += other.unnamed
        first.examples |= other.examples
    return first


def _spread(items: list[_Wrong]) -> list[_Wrong]:
    """Return the items in an order of which each beginning is an even choice of all."""
    return [items[index] for index in sorted(range(len(items)), key=lambda index: index * 0.6180339887 % 1)]


def _tried(proof: Proof, waiting: list[_Wrong], seeds: int, started: float, seconds: float) -> list[_Wrong]:
    """Try mutants seed by seed, each until it passes, while there is time; return those that were tried."""
    tried = list[_Wrong]()
    for seed in range(seeds):
        refused = list[_Wrong]()
        for wrong in waiting:
            if time.process_time() > started + (1 - SETTLING if seed else 1) * seconds:
                return tried
            if not seed:
                tried.append(wrong)
            verdict = "refused" if wrong.sure >= SURE else wrong.trial.judge(proof, wrong, seed)
            if verdict == "pass" and wrong.trial.spec.domain:  # memory that is never written may hold zeros by chance
                verdict = wrong.trial.judge(proof, wrong, seed, again=True)
            if verdict == "pass":
                wrong.passed = seed
                wrong.trial.compare(wrong, FIRST)
            elif verdict != "timeout":
                refused.append(wrong)
        waiting, proof.seeds = refused, seed + 1
    return tried


def _count(proof: Proof, tried: list[_Wrong]) -> None:
    proof.mutants = len(tried)
    for wrong in tried:
        if wrong.passed is None:
            proof.refused += 1
            proof.named += wrong.named
        elif 2 * len(wrong.lost) <= (0 if wrong.trial.spec.domain else wrong.draws):
            proof.equivalent += 1
            proof.near += wrong.near
            proof.own += wrong.own
        elif wrong.trial.training:
            proof.lucky += 1
        else:
            where = f"{proof.exercise}, {wrong.kind}: passes at seed {wrong.passed}"
            proof.holes.append(f"{where}\n{wrong.text}\n{wrong.lost[0]}")


@dataclass
class _Trial:
    """An exercise, the source of a right answer, and the names that this needs."""

    name: str
    spec: Spec
    source: str
    names: Mapping[str, Any]
    limit: float = 10.0
    training: bool = False  # whether an accuracy is asked, and no values
    right_results: dict[int, list[Any] | None] = field(default_factory=dict)  # by the number of a draw
    cases: dict[int, list[Case]] = field(default_factory=dict)  # of the last seed that mutants were tried at

    def __post_init__(self) -> None:
        self.right = self.function(self.source)

    def function(self, source: str) -> Any:
        return one_cell.define(source, self.names)[self.name]

    def require_right(self, seeds: int) -> None:
        """Raise ValueError unless the answer passes. Then a case may take a mutant some times as long as that."""
        times = []
        for seed in (0, *range(seeds)):  # the first also loads what is needed
            started = time.perf_counter()
            if not (report := self.report(self.spec, self.right, seed)).passed:
                raise ValueError(f"a right answer does not pass at seed {seed}: {report}")
            times.append(time.perf_counter() - started)
            if sum(times) > SECONDS / 10:
                break
        self.training = self.spec.limit is not None and self.spec.domain is None
        self.limit = min(self.spec.limit or self.limit, 1 + PATIENCE * max(times))
        self.spec = replace(self.spec, limit=None)

    def report(self, spec: Spec, function: Any, seed: int, place: Place = GUARDED) -> checks.Report:
        return checks.run(self.name, spec, function, seed=seed, case_limit=self.limit, climb=False, place=place)

    def wrong(self, *, slipped: bool) -> Iterator[_Wrong]:
        """Yield every mutant of the source, and besides what is made of the function itself where that is asked for."""
        original = plain(self.source)
        for mutant in mutants(self.source):
            try:
                function = self.function(mutant.source)
            except Exception:  # a decorator that refuses its function, a definition that fails at once
                continue
            yield _Wrong(mutant.kind, _diff(original, mutant.source), function, self)
        if slipped and inspect.isfunction(self.right):
            for kind, text, make in slips.slips(self._calls(), OFTEN):
                yield _Wrong(kind, text, make(self.right), self)

    def _calls(self) -> slips.Calls:
        """How the domain's inputs lead to calls of the function; without one, how the cases do, which have no edges."""
        calls = slips.Calls()
        for number in range(SEEN if self.spec.domain else 1):
            self._drawn(slips.watched(self.right, calls), number)
        return calls if self.spec.domain else replace(calls, features=[])

    def judge(self, proof: Proof, wrong: _Wrong, seed: int, *, again: bool = False) -> str:
        """Return what the check says of a mutant: "pass", "timeout" or another verdict; at the first seed in words.

        Later the case that refused it last comes first, unless it is tried `again`: one that refuses it is enough.
        """
        first = 0 if again else min(wrong.place, len(self.spec.cases))
        if seed:
            report = self.report(self._turned(seed, first), wrong.function, seed, UNASKED)
        else:
            report = self.report(self.spec, wrong.function, seed)
        if report.passed:
            return "pass"
        place, found = next(each for each in enumerate(report.findings) if each[1].verdict != "pass")
        wrong.sure = wrong.sure * (wrong.place == (first + place) % len(report.findings)) + self._sureness(found.case)
        wrong.place = (first + place) % len(report.findings)
        if seed:
            return found.verdict
        wrong.named = _is_named(report)
        if not wrong.named:
            proof.unnamed[wrong.kind] += 1
            proof.examples.setdefault(wrong.kind, f"{wrong.text}\n{report}")
        return found.verdict

    def _sureness(self, name: str) -> int:
        """For how many seeds a refusal by the case of this name stands: for all where its inputs are the same."""
        case = next((case for case in self.spec.cases if case.name == name), None)
        if case is None:
            return SURE * (name == "the function")
        return 0 if case.draw else 1 if case.varies else SURE

    def _turned(self, seed: int, first: int) -> Spec:
        """The spec with what a check at this seed takes one after another, from one of these on, and without words."""
        if seed not in self.cases:
            shown = set[str]().union(*(shown_by(case.inputs(seed)) for case in self.spec.cases))
            self.cases = {seed: [*self.spec.cases, *self.spec.drawn(seed, shown)]}
        cases = self.cases[seed]
        return replace(_brief(self.spec, []), cases=[*cases[first:], *cases[:first]], domain=None)

    def compare(self, wrong: _Wrong, draws: int, until: float = float("inf")) -> None:
        """Compare what passed with the right answer until something differs, for so many inputs of the domain.

        Without one, these are trainings, and others at other seeds: what learns as well is refused by bad luck as well.
        What is asked of a training is an accuracy; so who trains too little, and reaches it, has been lucky.
        """
        if self.spec.domain is None:
            draws = LUCK if wrong.lost or until < float("inf") else 1
        while wrong.draws < draws and time.process_time() < until and not (self.spec.domain and wrong.lost):
            if found := self._difference(wrong, wrong.draws):
                wrong.lost.append(found)
                draws = max(draws, LUCK)
            wrong.draws += 1

    def _difference(self, wrong: _Wrong, number: int) -> str | None:
        """How a mutant's results differ for a draw, in words; None if they are right."""
        report, pairs = self._drawn(wrong.function, number)
        if number not in self.right_results:
            rights, results = self._drawn(self.right, number)
            if self.spec.domain and not rights.passed:
                words = self._in_words(self.right, number)
                return words and f"a right answer is refused\n{words}"
            self.right_results[number] = None if self.training else _sole_results(results, 2 * self.spec.tolerance)
        if not report.passed:
            return self._in_words(wrong.function, number)
        if (right := self.right_results[number]) is None:
            wrong.own = True
            return None
        for (got, _), expected, case in zip(pairs, right, self._on_domain(self.spec).cases, strict=True):
            wrong.near |= not _same(got, expected)
            if wrong.near and not _same(got, expected, 2 * self.spec.tolerance):
                differ = f"{shortened(got, SHOWN)}, not {shortened(expected, SHOWN)}"
                return f"accepted, and not the same: {differ}\nthe call: {call(case.inputs(DRAWN + number))}"
        return None

    def _drawn(self, function: Any, number: int) -> tuple[checks.Report, list[tuple[Any, Any]]]:
        """What the check says for a draw, and each result with the expected one."""
        pairs = list[tuple[Any, Any]]()
        return self.report(self._on_domain(_brief(self.spec, pairs)), function, DRAWN + number, UNGUARDED), pairs

    def _in_words(self, function: Any, number: int) -> str | None:
        """What the check says of a draw; None if it passes: what failed before was a limit on a busy machine."""
        report = self.report(self._on_domain(self.spec), function, DRAWN + number)
        return None if report.passed else str(report)

    def _on_domain(self, spec: Spec) -> Spec:
        """The spec with inputs of the domain alone, or of the cases where there is none."""
        cases = spec.cases if spec.domain is None else [replace(spec.domain, anywhere=False)]
        return replace(spec, cases=cases, domain=None)


def _brief(spec: Spec, pairs: list[tuple[Any, Any]]) -> Spec:
    """The spec without the words for a cause, which take most of the time; notes what it compares."""

    def compare(got: Any, expected: Any, inputs: Any) -> Any:
        pairs.append((got, expected))
        found = (spec.compare or _compare)(got, expected, inputs)
        return Mismatch.of("wrong") if isinstance(found, Mismatch) else found

    def _compare(got: Any, expected: Any, inputs: Any) -> Mismatch | None:
        return mismatch(got, expected, spec.tolerance, inputs)

    return replace(spec, compare=compare, mistakes=())


def _sole_results(pairs: list[tuple[Any, Any]], tolerance: float) -> list[Any] | None:
    """The right answer's results; None if they are not the reference's, or no data: then others are right as well."""
    try:
        return [got for got, _ in pairs] if all(_same(got, expected, tolerance) for got, expected in pairs) else None
    except TypeError:
        return None


def _same(got: Any, right: Any, tolerance: float | None = None) -> bool:
    """Whether a result is the right one, by default but for rounding. Raises TypeError if that is no data."""
    if isinstance(right, Mapping):
        return got.keys() == right.keys() and all(_same(got[name], right[name], tolerance) for name in right)
    if isinstance(right, (list, tuple)):
        return len(got) == len(right) and all(_same(*pair, tolerance) for pair in zip(got, right, strict=True))
    if not (right is None or isinstance(right, str)) and as_numbers(right) is None:
        raise TypeError(f"{type(right).__name__} is no data")
    dtype = getattr(right, "dtype", None)
    alike = np.ndim(right) == 0 or getattr(got, "dtype", None) == dtype
    return alike and agree(got, right, tolerance or ROUNDING.get(str(dtype), 1e-10))


def _is_named(report: checks.Report) -> bool:
    """Whether what was said names a cause: more than where a result differs."""
    finding = next(finding for finding in report.findings if finding.verdict not in ("pass", "not run"))
    return finding.verdict != "fail" or not is_bare(finding.lines)


def _diff(original: str, changed: str) -> str:
    lines = difflib.unified_diff(original.splitlines(), changed.splitlines(), lineterm="", n=0)
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))
