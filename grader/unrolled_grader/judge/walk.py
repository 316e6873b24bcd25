"""One walk through a notebook: its cells run in a worker, and in place of each check its spec is judged.

A cell that ends the worker, or never ends, costs no more than itself and what needs it: for the next check there is a
new worker, which has run the other cells above it. What was handed out and shows something is not run: see `idle`.
"""

from __future__ import annotations

import ast
import copy
import secrets
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from unrolled.checks import Report, Spec
from unrolled.checks.limits import TimeLimitError
from unrolled.notebook.cells import grade_id
from unrolled_grader.box import lease, sandbox
from unrolled_grader.box.transport import Worker, WorkerDiedError
from unrolled_grader.box.wire import text_of
from unrolled_grader.judge import evidence, opening
from unrolled_grader.judge.checking import ENDED, Checking
from unrolled_grader.judge.evidence import CELL, Score
from unrolled_grader.judge.outputs import MARK, Outputs, in_sight

CELL_LIMIT = 90.0
"""Seconds for one cell. A check stops a slow function long before; this is for what students write around it."""
NOTEBOOK_LIMIT = 600.0  # seconds after which no further cell of a notebook is started


class Walk:
    """One walk through a notebook, and what it found. The walk is over once this object is made.

    With `only`, checks of other names are passed over, and the walk ends at the last of these. `handed_out` are the
    sources of the lesson's own cells. Raises ZygoteError if no worker can be started.
    """

    def __init__(
        self,
        notebook: NotebookNode,
        specs: Mapping[str, Spec],
        *,
        handed_out: Collection[str] = (),
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
        self._outputs = Outputs()
        self._checking = Checking(specs, self.seed, boxed=boxed, timed=timed)
        self._errors: dict[str, tuple[str, str]] = {}
        """Verdict and words for exercises whose cell did not run to its end."""
        self.notes: dict[str, str] = {}
        """A line of an exercise's cell that raised while what stands below it was run, in words."""
        self._deadly: set[int] = set()
        """Cells that ended the worker: left out when the cells above a check are run again."""
        self._deaths: Counter[int] = Counter()
        """How often a worker ended in each cell. Once may be no fault of the cell: the system kills processes, too."""
        self._deadline = time.monotonic() + NOTEBOOK_LIMIT
        self._idle = idle(self.notebook, handed_out)
        places = {check_of(cell): index for index, cell in enumerate(self.notebook.cells) if cell.cell_type == "code"}
        asked = {places[name]: name for name in (specs if only is None else only) if name in places}
        self._walk(asked, len(self.notebook.cells) if only is None else max(asked, default=-1) + 1)
        for name in specs.keys() - self.scores.keys():
            self.scores[name] = self._without(name, "missing", "the check's cell is not in the notebook")

    def _walk(self, asked: Mapping[int, str], end: int) -> None:
        """Run the cells up to `end`, and judge the checks in the cells that are asked for."""
        worker = self._new_worker()
        try:
            for index, cell in self._code(end, asked):
                if index in asked and not worker.dead:
                    worker.settle()  # what the check above left behind may end the worker only now
                if worker.dead:
                    worker.close()
                    worker = self._revived(index)
                self._visit(worker, index, cell, asked.get(index))
                if self._lost(worker, index):
                    worker.close()
                    worker = self._revived(index)
                    self._visit(worker, index, cell, asked.get(index))
        finally:
            worker.close()
            self._checking.close()

    def _code(self, end: int, asked: Collection[int] = ()) -> Iterator[tuple[int, NotebookNode]]:
        """The code cells above `end`, with their places: of those of the checks the ones that are asked for."""
        for index, cell in enumerate(self.notebook.cells[:end]):
            runs = cell.cell_type == "code" and index not in self._idle
            if runs and (index in asked or check_of(cell) not in self._specs):
                yield index, cell

    def _visit(self, worker: Worker, index: int, cell: NotebookNode, check: str | None) -> None:
        """Run a cell, or judge the check in its place."""
        if check is None:
            self._run_cell(worker, index, cell)
        else:
            self.scores[check] = self._judged(worker, check, cell)

    def _lost(self, worker: Worker, index: int) -> bool:
        """Whether the worker ended here for the first time, and not because its time was over."""
        ended = bool(worker.dead) and not worker.overran and time.monotonic() < self._deadline
        self._deaths[index] += ended
        if not ended or self._deaths[index] > 1:
            return False
        self._deadly.discard(index)
        return True

    def _new_worker(self) -> Worker:
        worker = Worker(boxed=self._boxed, gpu=self._checking.wants_gpu)
        worker.on_event, worker.on_print = self._outputs.take, self._outputs.stream
        worker.pin(lease.ours.cores())
        if worker.boxed:
            self.held = f"{sandbox.version()}, {worker.group or 'setrlimit'}"
        return worker

    def _revived(self, end: int) -> Worker:
        """A new worker that has run the cells above `end`, but for those that ended one."""
        while True:
            worker = self._new_worker()
            for index, cell in self._code(end):
                if index not in self._deadly:
                    self._run_cell(worker, index, copy.deepcopy(cell))
                    if worker.dead:
                        self._lost(worker, index)
                        break
            if not worker.dead or time.monotonic() > self._deadline:
                return worker
            worker.close()

    def _run_cell(self, worker: Worker, index: int, cell: NotebookNode) -> None:
        """Run a cell. What it raises, or that it ends the worker, is kept as the reason for what fails below."""
        name = grade_id(cell) or ""
        self._errors.pop(name, None)
        left = self._deadline - time.monotonic()
        self._outputs.begin(cell)
        if left <= 0:
            self._errors[name] = ("timeout", f"the notebook ran longer than {NOTEBOOK_LIMIT:g} s; its cell was not run")
            return
        try:
            error = worker.run_cell(cell.source, min(CELL_LIMIT, left))
            if error is not None:
                self._errors[name] = ("crashed", f"its cell raised {': '.join(error[:2])}")
            if error is not None and error[2] and name in self._specs:
                sentence = f"`{in_sight(error[2])}` raised {in_sight(': '.join(error[:2]))}"
                self.notes[name] = f"{sentence}; the rest of the cell was run all the same"
        except TimeLimitError:
            self._ended(index, cell, "timeout", f"stopped after {min(CELL_LIMIT, left):.3g} s, as it ran on")
        except WorkerDiedError as death:
            self._ended(index, cell, "crashed", ENDED.format(death))

    def _ended(self, index: int, cell: NotebookNode, verdict: str, words: str) -> None:
        self._deadly.add(index)
        self._errors[grade_id(cell) or ""] = (verdict, f"its cell was {words}" if verdict == "timeout" else words)
        cell.outputs.append(new_output("display_data", data={"text/plain": words}, metadata=MARK))

    def _judged(self, worker: Worker, name: str, cell: NotebookNode) -> tuple[Score, ...]:
        """The scores of one check, judged where its cell stands."""
        self.reports.pop(name, None)
        if time.monotonic() > self._deadline:
            reason = f"the notebook ran longer than {NOTEBOOK_LIMIT:g} s; what is below was not run"
            return self._without(name, "timeout", reason)
        self._outputs.begin(cell)
        try:
            spec = self._specs[name]
            found = worker.bind(_argument(cell.source, name), spec.allows, spec.ranks)
        except (WorkerDiedError, TimeLimitError) as death:
            return self._without(name, "crashed", f"the process ended: {death}")
        if "unbound" in found:
            return self._without(name, *self._why_unbound(name, found["unbound"]))
        self.reports[name] = self._checking.report(worker, name, found)
        return self._checking.scores(name, self.reports[name])

    def _why_unbound(self, name: str, error: Any) -> tuple[str, str]:
        """Verdict and reason where the name that is to be judged means nothing."""
        raised = error if isinstance(error, list) and len(error) == 2 else ("", "")
        kind, text = text_of(raised[0], 80), text_of(raised[1], 300)
        if name in self._errors:
            verdict, because = self._errors[name]
            return verdict, f"{kind}: {text}; {because}"
        return "missing" if kind == "NameError" else "crashed", f"{kind}: {text}"

    def _without(self, name: str, verdict: str, reason: str) -> tuple[Score, ...]:
        return evidence.without(name, self._specs[name], verdict, in_sight(reason))


def _argument(source: str, name: str) -> str:
    """What a check's cell, `check.NAME(argument)`, hands to the check. The cell is as the course wrote it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name and node.args:
            return ast.unparse(node.args[0])
    return name


def check_of(cell: NotebookNode) -> str:
    """Return the name of the check whose cell this is, by its grade_id; empty if it is no check's."""
    name = grade_id(cell) or ""
    return name[len(CELL) :] if name.startswith(CELL) else ""


def idle(notebook: NotebookNode, handed_out: Collection[str]) -> set[int]:
    """Return the places of code cells that do not run: as handed out, and what they bind no other cell uses.

    They draw and measure for the learner, which takes more than half of a lesson's time. A learner's cell may use what
    is bound below it, by the time it is called; one of the lesson what is bound above.
    """
    code = [(place, cell.source) for place, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    given = {place: cell for place, cell in code if cell in handed_out and not grade_id(notebook.cells[place])}
    used = {name for place, cell in code if place not in given for name in opening.used(cell)}
    for place, cell in [*given.items()][::-1]:
        if opening.bound(cell) & used:
            used |= opening.used(cell)
            del given[place]
    return set(given)
