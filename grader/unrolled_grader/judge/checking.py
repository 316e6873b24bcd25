"""Judging the checks of a notebook: each by its spec, on a function that a worker has bound."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from unrolled import checks, timing
from unrolled.checks import Report, Spec
from unrolled.checks.run import Place, ReportedError
from unrolled_grader.box import gpu, lease
from unrolled_grader.box.gpu import SimulatedGPU
from unrolled_grader.box.transport import Worker, WorkerDiedError
from unrolled_grader.box.wire import alien
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.outputs import in_sight
from unrolled_grader.judge.race import derived, time_against_baseline
from unrolled_grader.judge.stand_in import ENDED, StandIn

CACHE_FACTOR = 4.0
"""How much faster than memory a function may move its inputs and results before a person should look at it: caches
are faster than memory, but not by more."""


class Checking:
    """What the checks of one notebook share: their specs, the seed of their inputs, and a simulated GPU."""

    def __init__(self, specs: Mapping[str, Spec], seed: int, *, boxed: bool, timed: bool) -> None:
        self._specs = specs
        self._seed = seed
        self._boxed = boxed
        self._timed = timed
        self._machine: SimulatedGPU | None = None

    def close(self) -> None:
        """End the simulated GPU."""
        if self._machine is not None:
            self._machine.close()

    @property
    def wants_gpu(self) -> bool:
        """Whether something is to be timed on a real GPU, and there is one."""
        asked = any(spec.speed is not None and spec.speed.gpu for spec in self._specs.values())
        return self._timed and asked and gpu.name() is not None

    def _simulated(self) -> SimulatedGPU:
        """A machine for the checks on the GPU: in a new process, where there is none or the last one ended."""
        if self._machine is not None and self._machine.ended:
            self._machine.close()
            self._machine = None
        if self._machine is None:
            self._machine = SimulatedGPU(boxed=self._boxed)
            self._machine.pin(lease.ours.cores())
        return self._machine

    def report(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        """Run a check and return its report; run it once more if the simulated GPU ended, and not by its time limit."""
        report = self._run_check(worker, name, found)
        if self._machine is not None and self._machine.ended and not self._machine.overran and not worker.dead:
            report = self._run_check(worker, name, found)
        return _legible(report)

    def _run_check(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        spec = self._specs[name]
        stand_in = StandIn(worker, found, self._simulated)

        def timed(speed: checks.Speed, seed: int) -> timing.Verdict:
            with ExitStack() as stack:
                if speed.gpu:
                    stack.enter_context(gpu.alone())
                    stack.enter_context(worker.ported())
                return time_against_baseline(worker, spec, seed, lease.ours.cores())

        def measured(function: Any, speed: checks.Speed, seed: int, announce: Any) -> timing.Verdict:
            with _alone():
                try:
                    return timed(speed, seed)
                except WorkerDiedError as death:
                    if worker.dead:
                        raise ReportedError([ENDED.format(death)]) from None
                    return timed(speed, seed)  # the baseline's worker is no student's fault

        place = Place(
            stand_in.limiter,
            measured if self._timed else None,
            simulated=stand_in.simulated,
            ported=stand_in.ported if self.wants_gpu else lambda function: None,
            apart=True,
        )
        kind = found.get("bound")
        function = stand_in if found.get("callable") else alien(kind if isinstance(kind, str) else "object")
        return checks.run(name, spec, function, seed=derived(self._seed, name), climb=False, place=place)

    def scores(self, name: str, report: Report) -> tuple[Score, ...]:
        """Return what the parts of a check are worth by its report."""
        timings = (report.timing.to_dict(),) if report.timing else ()
        scores = []
        for part in report.parts:
            timed = part.name.endswith("/speed")
            flag = _implausible(self._specs[name], report.timing) if timed and report.timing else ""
            scores.append(
                Score(
                    part.name,
                    part.verdict,
                    float(part.points),
                    float(part.max_points),
                    part.detail,
                    flag,
                    timings if timed else (),
                )
            )
        return tuple(scores)


def _legible(report: Report) -> Report:
    """The report. Words of a student's among its lines stay in their line, and no sign in them is out of sight."""
    findings = (replace(finding, lines=tuple(map(in_sight, finding.lines))) for finding in report.findings)
    parts = (replace(part, detail=in_sight(part.detail)) for part in report.parts)
    return replace(report, findings=tuple(findings), parts=tuple(parts))


@contextmanager
def _alone() -> Iterator[None]:
    """Have the machine, or one part of it, for what is timed."""
    lease.ours.take(alone=True)
    try:
        yield
    finally:
        lease.ours.take()


def _implausible(spec: Spec, verdict: timing.Verdict) -> str:
    """A flag if the function moved its inputs and results faster than any memory here; empty if it did not."""
    if spec.speed is None or not verdict.pairs:
        return ""
    example = spec.speed.draw_inputs(0, 1)[0]
    size = sum(value.nbytes for value in (*example.values(), spec.reference(**example)) if hasattr(value, "nbytes"))
    seconds = statistics.median(pair.candidate.wall / pair.candidate.calls for pair in verdict.pairs)
    bound = CACHE_FACTOR * _bandwidth()
    if size <= bound * seconds:
        return ""
    return f"{size / seconds / 1e9:.0f} GB/s of inputs and results: memory here moves {_bandwidth() / 1e9:.0f} GB/s"


@functools.cache
def _bandwidth() -> float:
    return timing.copy_bandwidth()
