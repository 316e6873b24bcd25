"""One walk through a notebook: its cells run in a worker, and in place of each check its spec is judged.

A cell that ends the worker, or never ends, costs no more than itself and what needs it: for the next check there is a
new worker, which has run the other cells above it.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import math
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output
from unrolled.notebook.cells import grade_id

from unrolled import checks, device, timing
from unrolled.checks import Report, Spec
from unrolled.checks.gpu import connected
from unrolled.checks.limits import TimeLimitError
from unrolled.checks.run import Place, ReportedError
from unrolled_grader.box import gpu, sandbox
from unrolled_grader.box.gpu import SimulatedGPU
from unrolled_grader.box.lease import lease
from unrolled_grader.box.transport import Worker, WorkerDiedError
from unrolled_grader.box.wire import alien
from unrolled_grader.judge import evidence, outputs
from unrolled_grader.judge.evidence import CELL, Score
from unrolled_grader.judge.outputs import MARK, Outputs, in_sight
from unrolled_grader.judge.race import derived, race

CELL_LIMIT = 90.0
"""Seconds for one cell. A check stops a slow function long before; this is for what students write around it."""
NOTEBOOK_LIMIT = 600.0
"""Seconds after which no further cell of a notebook is started."""
ENDED = "the process ended ({}): exit, a crash, or too much memory?"
GPU_PATIENCE = 3
"""How many times as long a case on the simulated GPU may take here: each command goes through three processes."""
NAME_LIMIT = PARAMETERS_LIMIT = 100
"""Characters of a parameter's name, and how many parameters a function may have."""
CACHE_FACTOR = 4.0
"""How much faster than memory a function may move its inputs and results before a person should look at it: caches
are faster than memory, but not by more."""


class Walk:
    """What a walk found. It is over once this is made.

    With `only`, checks of other names are passed over, and it ends at the last of these. ZygoteError if no worker can
    be started.
    """

    def __init__(
        self,
        notebook: NotebookNode,
        specs: Mapping[str, Spec],
        *,
        boxed: bool,
        timed: bool,
        seed: int | None = None,
        only: Collection[str] | None = None,
    ) -> None:
        self.notebook = copy.deepcopy(notebook)
        self.seed = secrets.randbits(63) if seed is None else seed
        self.scores: dict[str, tuple[Score, ...]] = {}
        self.reports: dict[str, Report] = {}
        self.held = sandbox.UNSAFE
        self._specs = specs
        self._boxed = boxed
        self._timed = timed
        self._outputs = Outputs()
        self._machine: SimulatedGPU | None = None
        self._errors: dict[str, tuple[str, str]] = {}
        """Verdict and words for exercises whose cell did not run to its end."""
        self._deadly: set[int] = set()
        """Cells that ended the worker: left out when the cells above a check are run again."""
        self._deaths: Counter[int] = Counter()
        """How often a worker ended in each cell. Once may be no fault of the cell: the system kills processes, too."""
        self._deadline = time.monotonic() + NOTEBOOK_LIMIT
        places = {check_of(cell): index for index, cell in enumerate(self.notebook.cells) if cell.cell_type == "code"}
        asked = {places[name]: name for name in (specs if only is None else only) if name in places}
        self._walk(asked, len(self.notebook.cells) if only is None else max(asked, default=-1) + 1)
        for name in specs.keys() - self.scores.keys():
            self.scores[name] = self._without(name, "missing", "the check's cell is not in the notebook")

    def _walk(self, asked: Mapping[int, str], end: int) -> None:
        """Run the cells up to `end`, and judge the checks in the cells that are asked for."""
        worker = self._new_worker()
        try:
            for index, cell in enumerate(self.notebook.cells[:end]):
                if cell.cell_type != "code":
                    continue
                if index in asked and not worker.dead:
                    worker.settle()  # what the check above left behind may end the worker only now
                if worker.dead and (index in asked or check_of(cell) not in self._specs):
                    worker.close()
                    worker = self._revived(index)
                if index in asked or check_of(cell) not in self._specs:
                    self._visit(worker, index, cell, asked.get(index))
                    if self._lost(worker, index):
                        worker.close()
                        worker = self._revived(index)
                        self._visit(worker, index, cell, asked.get(index))
        finally:
            worker.close()
            if self._machine is not None:
                self._machine.close()

    def _visit(self, worker: Worker, index: int, cell: NotebookNode, check: str | None) -> None:
        """Run a cell, or judge the check in its place."""
        if check is None:
            self._run_cell(worker, index, cell)
        else:
            self._judge_check(worker, check, cell)

    def _lost(self, worker: Worker, index: int) -> bool:
        """Whether the worker ended here for the first time, and not because its time was over."""
        ended = bool(worker.dead) and not worker.overran and time.monotonic() < self._deadline
        self._deaths[index] += ended
        if not ended or self._deaths[index] > 1:
            return False
        self._deadly.discard(index)
        return True

    def _new_worker(self) -> Worker:
        worker = Worker(boxed=self._boxed, gpu=self._wants_gpu)
        worker.pin(lease.cores())
        if worker.boxed:
            self.held = f"{sandbox.version()}, {worker.group or 'setrlimit'}"
        return worker

    def _revived(self, end: int) -> Worker:
        """A new worker that has run the cells above `end`, but for those that ended one."""
        while True:
            worker = self._new_worker()
            for index, cell in enumerate(self.notebook.cells[:end]):
                if cell.cell_type == "code" and check_of(cell) not in self._specs and index not in self._deadly:
                    self._run_cell(worker, index, copy.deepcopy(cell))
                    if worker.dead:
                        self._lost(worker, index)
                        break
            else:
                return worker
            if time.monotonic() > self._deadline:
                return worker
            worker.close()

    def _run_cell(self, worker: Worker, index: int, cell: NotebookNode) -> None:
        """Run a cell. What it raises, or that it ends the worker, is kept as the reason for what fails below."""
        name = grade_id(cell) or ""
        self._errors.pop(name, None)
        left = self._deadline - time.monotonic()
        self._outputs.begin(cell)
        worker.on_event, worker.on_print = self._outputs.take, self._outputs.stream
        if left <= 0:
            self._errors[name] = ("timeout", f"the notebook ran longer than {NOTEBOOK_LIMIT:g} s; its cell was not run")
            return
        try:
            error = worker.run_cell(cell.source, min(CELL_LIMIT, left))
            if error is not None:
                self._errors[name] = ("crashed", f"its cell raised {': '.join(error)}")
        except TimeLimitError:
            self._ended(index, cell, "timeout", f"stopped after {min(CELL_LIMIT, left):.3g} s, as it ran on")
        except WorkerDiedError as death:
            self._ended(index, cell, "crashed", ENDED.format(death))

    def _ended(self, index: int, cell: NotebookNode, verdict: str, words: str) -> None:
        self._deadly.add(index)
        self._errors[grade_id(cell) or ""] = (verdict, f"its cell was {words}" if verdict == "timeout" else words)
        cell.outputs.append(new_output("display_data", data={"text/plain": words}, metadata=MARK))

    def _judge_check(self, worker: Worker, name: str, cell: NotebookNode) -> None:
        """Judge one check, where its cell stands."""
        self.reports.pop(name, None)
        if time.monotonic() > self._deadline:
            reason = f"the notebook ran longer than {NOTEBOOK_LIMIT:g} s; what is below was not run"
            self.scores[name] = self._without(name, "timeout", reason)
            return
        self._outputs.begin(cell)
        worker.on_event, worker.on_print = self._outputs.take, self._outputs.stream
        try:
            found = worker.bind(_argument(cell.source, name), name)
        except (WorkerDiedError, TimeLimitError) as death:
            self.scores[name] = self._without(name, "crashed", f"the process ended: {death}")
            return
        if "unbound" in found:
            self.scores[name] = self._without(name, *self._why_unbound(name, found["unbound"]))
            return
        report = self._report(worker, name, found)
        self.reports[name] = report
        self.scores[name] = self._scored(name, report)

    @property
    def _wants_gpu(self) -> bool:
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
            self._machine.pin(lease.cores())
        return self._machine

    def _report(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        """What the check finds; a simulated GPU that ended is no verdict the first time."""
        report = self._run_check(worker, name, found)
        if self._machine is not None and self._machine.ended and not self._machine.overran and not worker.dead:
            report = self._run_check(worker, name, found)
        return _legible(report)

    def _run_check(self, worker: Worker, name: str, found: Mapping[str, Any]) -> Report:
        spec = self._specs[name]
        stand_in = _StandIn(worker, found, self._simulated)

        def timed(speed: checks.Speed, seed: int) -> timing.Verdict:
            with ExitStack() as stack:
                if speed.gpu:
                    stack.enter_context(gpu.alone())
                    stack.enter_context(worker.ported())
                return race(worker, spec, seed, lease.cores())

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
            ported=stand_in.ported if self._wants_gpu else lambda function: None,
            apart=True,
        )
        kind = found.get("bound")
        function = stand_in if found.get("callable") else alien(kind if isinstance(kind, str) else "object")
        return checks.run(name, spec, function, seed=derived(self.seed, name), climb=False, place=place)

    def _scored(self, name: str, report: Report) -> tuple[Score, ...]:
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

    def _why_unbound(self, name: str, error: Any) -> tuple[str, str]:
        """Verdict and reason where the name that is to be judged means nothing."""
        told = error if isinstance(error, list) and len(error) == 2 else ("", "")
        kind, text = outputs.text(told[0])[:80], outputs.text(told[1])[:300]
        verdict = "missing" if kind == "NameError" else "crashed"
        if name in self._errors:
            verdict, because = self._errors[name]
            return verdict, f"{kind}: {text}; {because}"
        return verdict, f"{kind}: {text}"

    def _without(self, name: str, verdict: str, reason: str) -> tuple[Score, ...]:
        return evidence.without(name, self._specs[name], verdict, in_sight(reason))


class _StandIn:
    """Stands for a function in the worker: called like it, with the same parameters, it raises what that raises."""

    def __init__(self, worker: Worker, found: Mapping[str, Any], simulated: Callable[[], SimulatedGPU]) -> None:
        self._worker = worker
        self._deadline = 0.0
        self._simulated = simulated
        self._machine: gpu.Guarded | None = None
        if (signature := _signature(found.get("parameters"))) is not None:
            self.__signature__ = signature

    def __call__(self, *positional: Any, **named: Any) -> Any:
        try:
            return self._worker.call(positional, named, max(0.01, self._deadline - time.monotonic()))
        except WorkerDiedError as death:
            raise ReportedError([ENDED.format(death)]) from None

    @contextmanager
    def limiter(self, seconds: float) -> Iterator[None]:
        """The calls within the block may take so long together; on the simulated GPU, longer."""
        self._deadline = time.monotonic() + seconds * (1 if self._machine is None else GPU_PATIENCE)
        if self._machine is not None:
            self._machine.deadline = self._deadline
        yield
        if self._machine is not None:
            self._machine.deadline = math.inf

    @contextmanager
    def simulated(self) -> Iterator[device.Module]:
        """The simulated GPU for one case: the worker's function and this process work on the same machine."""
        self._machine = self._simulated().fresh()
        try:
            with self._worker.using(self._machine), connected(self._machine) as module:
                yield module
        finally:
            self._machine.over = True
            self._machine = None

    def ported(self, function: Any) -> Any:
        """The function, run on the worker's real GPU."""

        def on_gpu(*positional: Any, **named: Any) -> Any:
            try:
                with self._worker.ported():
                    return self(*positional, **named)
            except WorkerDiedError as death:
                raise ReportedError([ENDED.format(death)]) from None

        return on_gpu


def _legible(report: Report) -> Report:
    """The report. Words of a student's among its lines stay in their line, and no sign in them is out of sight."""
    findings = (replace(finding, lines=tuple(map(in_sight, finding.lines))) for finding in report.findings)
    parts = (replace(part, detail=in_sight(part.detail)) for part in report.parts)
    return replace(report, findings=tuple(findings), parts=tuple(parts))


def _signature(parameters: Any) -> inspect.Signature | None:
    """The signature that a worker describes; None if it describes none."""
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


@contextmanager
def _alone() -> Iterator[None]:
    """Have the machine, or one part of it, for what is timed."""
    lease.take(alone=True)
    try:
        yield
    finally:
        lease.take()


def _argument(source: str, name: str) -> str:
    """What a check's cell, `check.NAME(argument)`, hands to the check. The cell is as the course wrote it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name and node.args:
            return ast.unparse(node.args[0])
    return name


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


def check_of(cell: NotebookNode) -> str:
    """The name of the check whose cell this is, or something that is no check's name."""
    name = grade_id(cell) or ""
    return name[len(CELL) :] if name.startswith(CELL) else ""
