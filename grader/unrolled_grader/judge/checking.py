"""Judging the checks of a notebook: each by its spec, on what stands here for a function that a worker has bound."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from unrolled import checks, device, timing
from unrolled.checks import Report, Spec
from unrolled.checks.crashes import TEXT_LIMIT, ReportedError
from unrolled.checks.gpu import connected
from unrolled.checks.run import Place
from unrolled_grader.box import gpu, lease
from unrolled_grader.box.gpu import Guarded, SimulatedGPU
from unrolled_grader.box.process import START_LIMIT
from unrolled_grader.box.transport import Worker, WorkerDiedError
from unrolled_grader.box.wire import alien, text_of
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.outputs import in_sight
from unrolled_grader.judge.race import derived, time_against_baseline

_bandwidth = functools.cache(timing.copy_bandwidth)
CACHE_FACTOR = 4.0
"""How much faster than memory a function may move its inputs and results before a person should look at it: caches
are faster than memory, but not by more."""
LEAST_BANDWIDTH = 4e9
"""Bytes per second that any memory moves. To measure what this machine's does takes each judge 256 MB and 0.5 s."""
HONEST_FACTOR = 10.0
"""How many times as fast as the reference a right answer may be, where a check of correctness times both, before a
person should look at it: several times what work of one's own has reached."""
ENDED = "the process ended ({}): exit, a crash, or too much memory?"
GPU_PATIENCE = 3
"""How many times as long a case on the simulated GPU may take here: each command goes through three processes."""
NAME_LIMIT = PARAMETERS_LIMIT = 100  # characters of a parameter's name, and how many parameters a function may have


@functools.cache
def found_gpu(boxed: bool) -> Mapping[str, Any]:
    """Return what `device.describe` gives in a worker's process: a box may keep from it what this process finds."""
    if importlib.util.find_spec("cupy") is None:
        return device.describe()
    with Worker(boxed=boxed, baseline=device.describe, gpu=True) as worker:
        return worker.call((), {}, START_LIMIT)  # type: ignore[no-any-return]


class Checking:
    """What the checks of one notebook share: their specs, the seed of their inputs, and a simulated GPU."""

    def __init__(self, specs: Mapping[str, Spec], seed: int, *, boxed: bool, timed: bool) -> None:
        self._specs = specs
        self._seed = seed
        self._boxed = boxed
        self._timed = timed
        asked = timed and any(spec.speed is not None and spec.speed.gpu for spec in specs.values())
        self._gpu = found_gpu(boxed) if asked else {"gpu": None, "cupy": None}
        self._machine: SimulatedGPU | None = None
        self._cases = itertools.count()  # on the simulated GPU

    def close(self) -> None:
        """End the simulated GPU."""
        if self._machine is not None:
            self._machine.close()

    @property
    def wants_gpu(self) -> bool:
        """Whether something is to be timed on a real GPU, and a worker reaches one."""
        return self._gpu["gpu"] is not None

    def _simulated(self) -> Guarded:
        """A fresh machine for a case on the GPU: in a new process, where there is none or the last one ended."""
        if self._machine is not None and self._machine.dead:
            self._machine.close()
            self._machine = None
        if self._machine is None:
            self._machine = SimulatedGPU(boxed=self._boxed)
            self._machine.pin(lease.ours.cores())
        return self._machine.fresh(derived(self._seed, "the order of blocks", next(self._cases)))

    def report(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        """Run a check and return its report; run it once more if the simulated GPU ended, and not by its time limit."""
        report = self._run_check(worker, name, found)
        if self._machine is not None and self._machine.dead and not self._machine.overran and not worker.dead:
            report = self._run_check(worker, name, found)
        # Words of a student's among its lines stay in their line, and no sign in them is out of sight.
        findings = (replace(finding, lines=tuple(map(in_sight, finding.lines))) for finding in report.findings)
        parts = (replace(part, detail=in_sight(part.detail)) for part in report.parts)
        return replace(report, findings=tuple(findings), parts=tuple(parts))

    def _run_check(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        spec = self._specs[name]
        stand_in = StandIn(worker, found, self._simulated)

        def timed(seed: int) -> timing.Verdict:
            on_gpu = spec.speed is not None and spec.speed.gpu
            with ExitStack() as stack:

                def alone() -> None:
                    # In this order: whoever has the GPU must not wait for one who waits for it.
                    for one in (lease.ours, gpu.real) if on_gpu else (lease.ours,):
                        stack.enter_context(one.working(alone=True))

                if on_gpu:
                    stack.enter_context(worker.ported())
                return time_against_baseline(worker, spec, seed, lease.ours.cores(), alone)

        def measured(function: Any, spec: Spec, seed: int, announce: Any) -> timing.Verdict:
            try:
                return timed(seed)
            except WorkerDiedError as death:
                if worker.dead:
                    raise ReportedError([ENDED.format(death)]) from None
                return timed(seed)  # the baseline's worker is no student's fault

        place = Place(
            stand_in.limiter,
            measured if self._timed else None,
            borrowed=lambda function: text_of(found.get("borrowed"), TEXT_LIMIT),
            simulated=stand_in.simulated,
            ported=stand_in.ported if self.wants_gpu else lambda function: None,
            no_gpu=f"a box reaches none here: {self._gpu['why']}" if self._gpu["cupy"] else Place.no_gpu,
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
            flag = _implausible(self._specs[name], report.timing if timed else None, part.ratio)
            earned = part.verdict, float(part.points), float(part.max_points), part.detail
            scores.append(Score(part.name, *earned, flag, timings if timed else (), part.ratio))
        return tuple(scores)


class StandIn:
    """Stands for a function in the worker: it is called with the same parameters, and raises what that raises."""

    def __init__(self, worker: Worker, found: Mapping[str, Any], simulated: Callable[[], Guarded]) -> None:
        self._worker = worker
        self._deadline = 0.0
        self._simulated = simulated
        self._machine: Guarded | None = None
        if (signature := signature_of(found.get("parameters"))) is not None:
            self.__signature__ = signature

    def __call__(self, *positional: Any, **named: Any) -> Any:
        try:
            return self._worker.call(positional, named, max(0.01, self._deadline - time.monotonic()))
        except WorkerDiedError as death:
            raise ReportedError([ENDED.format(death)]) from None

    def cpu_seconds(self) -> float:
        """Return the CPU time of all that runs, or ran, in the worker's box."""
        return self._worker.cpu_seconds()

    @contextmanager
    def limiter(self, seconds: float) -> Iterator[None]:
        """Let the calls within the block take so many seconds together; three times as many on the simulated GPU."""
        self._deadline = time.monotonic() + seconds * (1 if self._machine is None else GPU_PATIENCE)
        if self._machine is not None:
            self._machine.deadline = self._deadline
        yield
        if self._machine is not None:
            self._machine.deadline = math.inf

    @contextmanager
    def simulated(self) -> Iterator[device.Module]:
        """Give the simulated GPU for one case: the worker's function and this process work on the same machine."""
        self._machine = self._simulated()
        try:
            with self._worker.using(self._machine), connected(self._machine) as module:
                yield module
        finally:
            self._machine = None

    def ported(self, function: Any) -> Any:
        """Return the function as it runs on the worker's real GPU."""

        def on_gpu(*positional: Any, **named: Any) -> Any:
            try:
                with self._worker.ported():
                    return self(*positional, **named)
            except WorkerDiedError as death:
                raise ReportedError([ENDED.format(death)]) from None

        return on_gpu


def signature_of(parameters: Any) -> inspect.Signature | None:
    """Return the signature that a worker describes; None if it describes none."""
    if not isinstance(parameters, list) or len(parameters) > PARAMETERS_LIMIT:
        return None

    def parameter(name: Any, kind: Any, optional: Any) -> inspect.Parameter:
        if not (isinstance(name, str) and 0 < len(name) <= NAME_LIMIT and isinstance(kind, int)):
            raise ValueError("no parameter")
        default = None if optional else inspect.Parameter.empty
        return inspect.Parameter(name, inspect._ParameterKind(kind), default=default)

    try:
        return inspect.Signature([parameter(*described) for described in parameters])
    except (TypeError, ValueError):
        return None


def _implausible(spec: Spec, verdict: timing.Verdict | None, ratio: float | None) -> str:
    """A flag if a part was faster than honest work is, empty if not.

    By the ratio of what a check compared and timed; or if a timed function moved its inputs and results faster than
    any memory here.
    """
    if ratio is not None and ratio > HONEST_FACTOR:
        return f"{ratio:.0f} times as fast as the reference: does it do all of the work in each call?"
    if spec.speed is None or verdict is None or not verdict.pairs:
        return ""
    example = spec.speed.draw_inputs(0, 1)[0]
    size = sum(value.nbytes for value in (*example.values(), spec.timed_result(example)) if hasattr(value, "nbytes"))
    seconds = statistics.median(pair.candidate.wall / pair.candidate.calls for pair in verdict.pairs)
    if size <= CACHE_FACTOR * LEAST_BANDWIDTH * seconds or size <= CACHE_FACTOR * _bandwidth() * seconds:
        return ""
    return f"{size / seconds / 1e9:.0f} GB/s of inputs and results: memory here moves {_bandwidth() / 1e9:.0f} GB/s"
