"""Running a spec against a function: cases in order, then the speed, then the rung of the ladder.

The function may live in this process, as in a learner's notebook, or stand for one in another: the grader's judge gives
a stand-in, and `limiter` and `race` of its own, and so finds what the learner's own check finds, in the same words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

import unrolled
from unrolled import device, timing

from . import arguments, causes, foreign, gpu, graphs, kernels, rounding, words
from .ambient import first_lines, set_aside, silence
from .answers import AnswerUsedError, OnRanks, functions_in, lifted, restored, withheld_from, withheld_from_timed
from .compare import Mismatch, Remark, agree, changed, mismatch, shortened
from .crashes import TEXT_LIMIT, crash_lines, headline
from .domain import shown_by
from .limits import TimeLimitError, UnableError, UnfairError, time_limit
from .report import Finding, Report, correctness_part, speed_part
from .spec import Case, Compare, Function, Inputs, Mistake, Rung, Spec, Speed

if TYPE_CHECKING:
    from unrolled.simgpu.trace import Trace

CASE_LIMIT = 10.0  # seconds for one case
SPEED_LIMIT = 30.0  # seconds for the speed: `timing.compare` keeps to 12, the rest is for a call that takes for ever

Announce = Callable[[str], None]
Race = Callable[[Function, Spec, int, "Announce | None"], timing.Verdict]  # (function, spec, seed, announce)


@dataclass(frozen=True)
class Place:
    """Where the function runs: what stops it after so many seconds, and what times it. By default, this process.

    `withhold` keeps the library's answers from a function in this process while a case runs; what stands for one
    elsewhere raises AnswerUsedError by itself, and is run on ranks there. With `apart` it is elsewhere, and its real
    GPU is out of this process's reach: a case whose inputs hold functions stays on the simulated one.
    """

    limiter: Callable[[float], AbstractContextManager[None]]  # of seconds: raises TimeLimitError inside its block
    race: Race | None  # None: no speed is measured, and its part is deferred
    withhold: bool = False
    borrowed: Callable[[Any], str | None] = foreign.used_by  # what it uses of a library that has answers ready
    simulated: Callable[[], AbstractContextManager[device.Module]] = gpu.connected  # to a machine for one case
    ported: Callable[[Function], Function | None] = lambda function: None  # with NumPy arrays, on a real GPU, if any
    no_gpu: str = "this machine has none"  # why there is none
    apart: bool = False


def _race_here(function: Function, spec: Spec, seed: int, announce: Announce | None) -> timing.Verdict:
    speed = spec.speed
    assert speed is not None
    if speed.ranks > 1:
        from . import ranked

        with set_aside():
            program = OnRanks(spec.allows, speed.share, function)
            return ranked.race(program, spec, seed, announce, SPEED_LIMIT)
    drawn = speed.draw_inputs(seed)
    inputs = gpu.placed(drawn, gpu.real()) if speed.gpu else drawn
    with withheld_from_timed(spec), time_limit(SPEED_LIMIT), set_aside():
        return timing.compare(function, speed.baseline, inputs=inputs, at_least=speed.at_least, announce=announce)


HERE = Place(time_limit, _race_here, withhold=True, ported=lambda function: gpu.ported(function, gpu.real()))


def run(
    name: str,
    spec: Spec,
    function: Any,
    *,
    seed: int = 0,
    case_limit: float = CASE_LIMIT,
    announce: Announce | None = None,
    climb: bool = True,
    place: Place = HERE,
) -> Report:
    """Check `function` against `spec`: every case until the first failure, the speed if all are right.

    Never raises for anything the function does. `announce` is told before the timing starts; `climb` measures the rung.
    """
    if spec.limit is not None and announce is not None:
        announce(f"this may take a while, up to {spec.limit:g} s for a case")
    check = _Check(spec, function, seed, max(case_limit, spec.limit or 0), place)
    with first_lines() if place.withhold else nullcontext():
        findings = check.cases()
    right = all(finding.verdict == "pass" for finding in findings)
    parts = [correctness_part(name, spec.points, findings)]
    verdict = None
    if spec.speed is not None:
        with silence() if place.withhold else nullcontext():
            finding, verdict = check.speed(spec.speed, announce) if right else (_NOT_TIMED, None)
        findings.append(finding)
        parts.append(speed_part(name, spec.speed.points, finding))
    report = Report(name, unrolled.__version__, tuple(findings), tuple(parts), verdict)
    if spec.rung is None or not climb or report.points + report.deferred < report.max_points:
        return report
    return replace(report, rung=_measure_rung(spec.rung, function, seed))


_NOT_TIMED = Finding("speed", "not run", ("measured once all cases are right",))


def _deferred(speed: Speed, why: str) -> Finding:
    return Finding("speed", "deferred", (f"{why}: the points are withheld, not lost" if speed.points else why,))


@dataclass(frozen=True)
class _Check:
    """A function that is put to a spec: inputs come from this seed, and a case may take so many seconds."""

    spec: Spec
    function: Any
    seed: int
    limit: float
    place: Place
    shown: set[str] = field(default_factory=set)  # features of the fixed cases' inputs

    def cases(self) -> list[Finding]:
        """Check every case until the first failure."""
        cases, domain = self.spec.cases, self.spec.domain
        findings, inputs = list[Finding](), cases[0].inputs(self.seed)
        if theirs := self.place.borrowed(self.function):
            findings = [Finding("the function", "fail", (f"this calls {theirs}, {words.FOREIGN}",))]
        elif problem := arguments.not_callable(self.function, self.spec, inputs):
            findings = [Finding("the function", "crashed", (problem,))]
        with ExitStack() as around, set_aside():
            if self.place.withhold:  # once for all cases, which lift it but where the function is called
                around.enter_context(withheld_from(self.spec, inputs))
                around.enter_context(lifted())
            for index, case in enumerate(cases):
                right = all(finding.verdict == "pass" for finding in findings)
                findings.append(self.case(case, cases[:index]) if right else Finding(case.name, "not run"))
            if domain is not None:
                right = all(finding.verdict == "pass" for finding in findings)
                findings.append(self.drawn(domain) if right else Finding(domain.name, "not run"))
        return findings

    def drawn(self, domain: Case) -> Finding:
        """Check inputs that cover the spec's domain until the first failure: all of them are one finding."""
        earlier = list(self.spec.cases)
        for case in (drawn := self.spec.drawn(self.seed, self.shown)):
            if (finding := self.case(case, earlier)).verdict != "pass":
                return finding
            earlier.append(case)
        return Finding(domain.name, "pass", (f"{len(drawn)} drawn",))

    def case(self, case: Case, earlier: Sequence[Case] = ()) -> Finding:
        """Call the function and compare; `earlier` cases went right. What went wrong on drawn inputs tells the call."""
        finding = self._judged(case, earlier)
        if finding.verdict in ("pass", "missing") or case.draw is None or self.spec.call is not None:
            return finding
        return replace(finding, lines=(*finding.lines, f"the call: {words.call(case.inputs(self.seed))}"))

    def _judged(self, case: Case, earlier: Sequence[Case]) -> Finding:
        """Call the function and compare. On a real GPU, too, if the case is for one."""
        if not case.on_gpu:
            return self._call(case, earlier, np)
        if case.anywhere and (found := self._call(case, earlier, np)).verdict == "pass":
            return found
        with self.place.simulated() as module:
            finding = self._call(case, earlier, module)
        shut_in = self.place.apart and gpu.functions_in(case.inputs(self.seed))
        reached = finding.verdict == "pass" and self.spec.on_real and not shut_in
        on_gpu = self.place.ported(self.function) if reached else None
        if on_gpu is None:
            return finding
        again = replace(self, function=on_gpu)._call(case, earlier, np)
        return again if again.verdict == "pass" else replace(again, lines=(words.ON_REAL, *again.lines))

    def _call(self, case: Case, earlier: Sequence[Case], module: device.Module) -> Finding:
        """Call the function with arrays of this module, and compare."""
        inputs = case.inputs(self.seed)
        pristine = arguments.copied(inputs)
        if self.spec.domain and any(case is each for each in self.spec.cases):
            self.shown.update(shown_by(inputs) if case.shown is None else case.shown)
        trace = None
        try:
            given = inputs if module is np else gpu.placed(inputs, module)
            # Withheld outermost: the alarm of a time limit cannot strike while codes are given back.
            with (
                withheld_from(self.spec, inputs) if self.place.withhold else nullcontext(),
                self.place.limiter(self.limit),
                set_aside(),
                gpu.traced(module) as trace,
            ):
                own = _called_from_here(self.function) if self.place.withhold else self.function
                function = own if self.place.apart else _program(self.spec, own)
                got = _called(self.spec, function, given)
        except BaseException as error:  # SystemExit and its like, too
            return self._crashed(case, error, trace, inputs)
        if failed := kernels.faults(trace):
            return Finding(case.name, "fail", failed)
        try:
            found = self._mismatch(case, got, given, pristine, earlier, module)
        except Exception as error:  # what was returned is an object with ideas of its own
            line = f"what your function returned cannot be compared: {type(error).__name__}"
            return Finding(case.name, "fail", kernels.race(error) or (line,))
        if isinstance(found, Mismatch):
            return Finding(case.name, "fail", found.lines, found)
        lines = () if trace is None else self._beyond(trace, case, pristine, got)
        if lines:
            return Finding(case.name, "fail", ("the values are right, but not how they came about:", *lines))
        remark = found or Remark(())
        return Finding(case.name, "pass", remark.lines, ratio=remark.ratio)

    def _crashed(self, case: Case, error: BaseException, trace: Trace | None, inputs: Inputs) -> Finding:
        """What is wrong with a call that raised this; `inputs` may tell what it did before."""
        if isinstance(error, TimeLimitError):
            return Finding(case.name, "timeout", (f"stopped after {self.limit:g} s: does a loop never end?",))
        if isinstance(error, AnswerUsedError):
            return Finding(case.name, "fail", (str(error),))
        if failed := kernels.faults(trace):
            return Finding(case.name, "fail", failed)
        # What a notebook's kernel raises at input() is a kind of NotImplementedError. One in a CUDA kernel is refused.
        if type(error) is NotImplementedError or UNWRITTEN in shortened(headline(error), TEXT_LIMIT):
            return Finding(case.name, "missing", (UNWRITTEN,))
        lines = crash_lines(error, self.function)
        own = () if self.spec.crash_advice is None else self.spec.crash_advice(lines, inputs)
        return Finding(case.name, "crashed", (*lines, *(own or words.advice(lines))))

    def _beyond(self, trace: Trace, case: Case, inputs: Inputs, got: Any) -> tuple[str, ...]:
        """What was done on the GPU beyond the case's budget."""
        if case.budget is None:
            return ()
        budget, function = case.budget, self.function
        spent = gpu.overspent(trace, budget, function, inputs)
        return (*spent, *kernels.beyond(trace, budget, inputs, got), *graphs.beyond(trace, budget, function))

    def _mismatch(
        self, case: Case, got: Any, given: Inputs, pristine: Inputs, earlier: Sequence[Case], module: device.Module
    ) -> Mismatch | Remark | None:
        """What is wrong with a call that returned `got`; `pristine` is what its inputs were before."""
        if lines := gpu.strayed(got, module):
            return Mismatch(lines)
        if module is not np:
            got, given = gpu.fetched(got), gpu.fetched(given)
        spec = self.spec
        if touched := [name for name in given if changed(given[name], pristine[name])]:
            argument = arguments.changed_on_a_rank(spec, given, pristine) if touched[0] == "arguments" else touched[0]
            return Mismatch((f"your function changed its input {argument}: work on a copy",))
        compare: Compare = spec.compare or (lambda got, expected, given: mismatch(got, expected, spec.tolerance, given))
        # Functions among inputs may have kept what was done with them.
        kept = case.inputs(self.seed) if functions_in([pristine]) else pristine
        expected = spec.expected(kept) if spec.expected else self._answer(spec.reference, kept)
        found = compare(got, expected, given)
        if isinstance(found, Mismatch) and spec.limit is None and not spec.ranks:
            right = partial(self._answer, spec.reference)
            rounded = rounding.corrected(got, expected, right, case.inputs(self.seed))
            found = found if rounded is got else compare(rounded, expected, given)
        if not isinstance(found, Mismatch) and spec.new and (name := arguments.given_back(got, given)):
            return Mismatch((f"right, but it is an array that came in ({name}): return a new one, such as .copy()",))
        if not isinstance(found, Mismatch) or agree(got, expected, spec.tolerance):
            return found
        with restored():  # some of these read the library's code
            if (mistake := self._recognized(case, got, earlier)) is not None:
                sure = tuple(line for line in found.lines if line not in found.guesses)
                return replace(found, lines=(*sure, mistake.says))
            guess = self._guess(case, got, expected) if causes.is_bare(found.lines) else None
            return replace(found, lines=(*found.lines, *filter(None, [guess])))

    def _guess(self, case: Case, got: Any, expected: Any) -> str | None:
        """What may have led to a result that is no usual mistake's."""

        def called(function: Function, **changed: Any) -> Any:
            return self._answer(function, {**case.inputs(self.seed), **changed})

        inputs, reference, tolerance = case.inputs(self.seed), self.spec.reference, self.spec.tolerance
        answers = (reference, *((self.spec.speed.baseline,) if self.spec.speed else ()))
        return (
            causes.of_arguments(got, inputs, partial(called, reference), tolerance, reference)
            or causes.of_slips(got, inputs, called, answers, tolerance)
            or causes.of_places(got, expected, inputs, tolerance)
        )

    def _recognized(self, case: Case, got: Any, earlier: Sequence[Case]) -> Mistake | None:
        """The first usual mistake whose result this is, and which would have passed the earlier cases as well."""
        for mistake in (*_in_float32(self.spec.reference, case.inputs(self.seed)), *self.spec.mistakes):
            if self._agrees(mistake, case, got) and all(
                self._agrees(mistake, before, self._result(self.spec.reference, before)) for before in earlier
            ):
                return mistake
        return None

    def _agrees(self, mistake: Mistake, case: Case, result: Any) -> bool:
        try:
            usual = self._result(mistake.of(self.spec.reference), case)
            if isinstance(usual, np.ma.MaskedArray):  # where it is masked, the learner's may be anything
                usual = np.where(np.ma.getmaskarray(usual), result, usual.data)
        except (ValueError, IndexError, TypeError, ArithmeticError, RuntimeError):  # not all fit all inputs
            return False
        return agree(result, usual, self.spec.tolerance)

    def _result(self, function: Function, case: Case, inputs: Inputs | None = None) -> Any:
        return self._answer(function, inputs or case.inputs(self.seed))

    def _answer(self, function: Function, inputs: Inputs) -> Any:
        return _called(self.spec, _program(self.spec, function), inputs)

    def speed(self, speed: Speed, announce: Announce | None) -> tuple[Finding, timing.Verdict | None]:
        """Correct on the timed inputs first; then the verdict on pairs."""
        if self.place.race is None:
            return _deferred(speed, "not measured yet"), None
        checked = self.place.ported(self.function) if speed.gpu else self.function
        if checked is None:
            return _deferred(speed, f"needs a GPU, and {self.place.no_gpu}"), None
        timed = Case("speed", {}, lambda rng: speed.draw_case(self.seed))
        with set_aside():
            finding = replace(self, function=checked, limit=SPEED_LIMIT).case(timed)
        if finding.verdict != "pass":
            return finding, None
        try:
            verdict = self.place.race(self.function, self.spec, self.seed, announce)
        except TimeLimitError:
            return Finding("speed", "timeout", (f"stopped after {SPEED_LIMIT:g} s",)), None
        except UnfairError as error:
            return Finding("speed", "fail", (str(error),)), None
        except UnableError as error:
            return _deferred(speed, str(error)), None
        except (Exception, SystemExit) as error:
            return Finding("speed", "crashed", tuple(crash_lines(error, self.function))), None
        lines = [f"against {speed.against}:", *str(verdict).splitlines()]
        if verdict.outcome == "pass":
            return Finding("speed", "pass", tuple(lines)), verdict
        if not verdict.unable and not verdict.ratio >= speed.at_least:
            lines += [*(() if speed.loops else words.loop_in(self.function)), *filter(None, [speed.advice])]
        if verdict.outcome == "inconclusive":
            lines.append(words.BUSY if verdict.excused or not verdict.pairs else words.SLOW)
        return Finding("speed", verdict.outcome, tuple(lines)), verdict


def _in_float32(reference: Function, inputs: Inputs) -> list[Mistake]:
    """The mistake of computing in float32 what came in float64, if anything did."""
    wide = np.dtype(float)

    def narrow(*given: Any, **named: Any) -> Any:
        given, named = gpu.each_leaf((given, named), lambda x: np.float32(x) if getattr(x, "dtype", 0) == wide else x)
        return reference(*given, **named)

    return [Mistake(words.NARROWED, narrow)] if any(getattr(x, "dtype", 0) == wide for x in gpu.leaves(inputs)) else []


UNWRITTEN = "not written yet: the line `raise NotImplementedError` is still there"


def _program(spec: Spec, function: Function) -> Function:
    """The function as `spec.call` calls it in this process: on all ranks, if it is a program of ranks."""
    if not spec.ranks:
        return function
    from unrolled.parallel.emulation import on_ranks

    return on_ranks(function)


def _called_from_here(function: Any) -> Any:
    """The function below a frame of this module: what `spec.call` may call of the library is not the learner's."""
    if not isinstance(function, (FunctionType, MethodType, partial)):
        return function

    @wraps(function)
    def own(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        return _drawn_from_here(result) if inspect.isgenerator(result) else result

    return own


def _drawn_from_here(results: Iterator[Any]) -> Iterator[Any]:
    yield from results


def _called(spec: Spec, function: Function, inputs: Inputs) -> Any:
    return function(**inputs) if spec.call is None else spec.call(function, inputs)


def _measure_rung(rung: Rung, function: Function, seed: int) -> dict[str, Any] | None:
    """Seconds for one epoch of 60,000 images, projected from one batch."""
    try:
        with time_limit(SPEED_LIMIT), set_aside(), silence():
            measured = timing.measure(function, rung.draw_inputs(seed))
    except (Exception, SystemExit, TimeLimitError):
        return None
    seconds = measured.seconds / rung.images * 60_000
    return {"label": rung.label, "what": rung.what, "seconds": seconds, "batch": rung.images, "precision": "float32"}
