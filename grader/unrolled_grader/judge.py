"""The judge: a submission goes in, verdicts come out. `judge` is the one seam between grading and what runs the code.

This first judge runs the notebook in one kernel and believes the structured verdicts that the checks display there.
It cannot be fooled by printed text, trailing numbers or warnings, but student code lives in the same process as the
checks: **until the out-of-process judge takes its place, the scores are not safe against hostile code.**
"""

from __future__ import annotations

import os
import secrets
import tempfile
import textwrap
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from nbformat import NotebookNode
from nbformat.v4 import new_output

from unrolled import notebooks
from unrolled.checks import MIME, Spec
from unrolled.notebooks import TIMEOUT, CellError, Executed, grade_id
from unrolled_grader import evidence
from unrolled_grader.evidence import CELL, Score
from unrolled_grader.lease import lease

CELL_LIMIT = 90.0
"""Seconds for one cell. A check stops a slow function long before; this is for what students write around it."""
NOTEBOOK_LIMIT = 600.0
"""Seconds after which no further cell of a notebook is started."""
REPEATS = 3
"""How often a speed that is not settled is measured again."""


@dataclass(frozen=True)
class Submission:
    """What is judged: a student's notebook after nbgrader's sanitize pass, and the specs of its lesson's checks."""

    student: str
    lesson: str
    notebook: NotebookNode
    specs: Mapping[str, Spec]


@dataclass(frozen=True)
class Verdicts:
    """What the judge found: the executed notebook, with the scores written under each check, and the scores."""

    notebook: NotebookNode
    scores: tuple[Score, ...]
    seconds: float
    seeds: tuple[int, ...]
    """One seed a run. Secret until the run is over; kept so that a verdict can be reproduced."""
    sandbox: str = ""
    """How the code was held: "bubblewrap 0.8.0, cgroup v1" or "NONE (--unsafe-no-sandbox)"."""
    flags: tuple[str, ...] = ()
    """Why a person should look at the whole submission."""


@dataclass(frozen=True)
class Options:
    """How to judge. Part of what makes two gradings the same."""

    timing: bool = True
    """False: speeds are not measured; their parts are deferred."""
    sandbox: bool = True
    """False: student code runs without a sandbox, and every score says so."""


def judge(submission: Submission, options: Options = Options()) -> Verdicts:
    """Run and score a submission. Whatever its code does is a verdict; nothing it does raises."""
    with lease.working():
        return _judge(submission)


def _judge(submission: Submission) -> Verdicts:
    started = time.monotonic()
    seeds: list[int] = []
    first = _run(submission, seeds)
    seen = {name: [evidence.read(first, name, spec)] for name, spec in submission.specs.items()}
    while again := [name for name, runs in seen.items() if settle(_speeds(runs)) is None]:
        repeated = _run(submission, seeds, only=again)
        for name in again:
            seen[name].append(evidence.read(repeated, name, submission.specs[name]))
    scores = {name: _conclude(runs) for name, runs in seen.items()}
    for name, parts in scores.items():
        _write_under(first.notebook, name, parts, len(seen[name]))
    return Verdicts(
        first.notebook,
        tuple(score for parts in scores.values() for score in parts),
        time.monotonic() - started,
        tuple(seeds),
    )


def settle(outcomes: Sequence[str]) -> str | None:
    """The outcome of a speed measured in several kernels, or None while it must be measured again.

    The first pass settles it, and so does a fail (or crash, or timeout) that a second one confirms. What is still open
    after REPEATS further measurements is inconclusive. Nothing to settle, as for a wrong function, is "missing".
    """
    if not outcomes or outcomes[0] not in ("fail", "inconclusive"):
        return outcomes[0] if outcomes else "missing"
    if "pass" in outcomes:
        return "pass"
    failed = [outcome for outcome in outcomes if outcome != "inconclusive"]
    if len(failed) > 1:
        return failed[0]
    return "inconclusive" if len(outcomes) > REPEATS else None


def _speeds(runs: Sequence[tuple[Score, ...]]) -> list[str]:
    """The outcome of the speed part in each run. One that is worth nothing is not worth another run."""
    speeds = [score for scores in runs for score in scores if score.part.endswith("/speed")]
    return [score.verdict for score in speeds if score.max_points > 0]


def _conclude(runs: Sequence[tuple[Score, ...]]) -> tuple[Score, ...]:
    """The scores of a check: correctness from the first run, speed from all of them."""
    if len(runs) == 1:
        return runs[0]
    return tuple(
        _settled([run[place] for run in runs]) if score.part.endswith("/speed") else score
        for place, score in enumerate(runs[0])
    )


def _settled(measured: Sequence[Score]) -> Score:
    """One score from the same speed measured in several kernels."""
    outcomes = [score.verdict for score in measured]
    verdict = settle(outcomes) or "inconclusive"
    decisive = [score for score in measured if score.verdict == verdict][-1:] or [measured[-1]]
    points = measured[0].max_points if verdict in ("pass", "inconclusive") else 0.0
    return replace(
        measured[0],
        verdict=verdict,
        points=points,
        detail=f"{decisive[0].detail} Measured {len(outcomes)} times: {', '.join(outcomes)}.",
        flag="speed still inconclusive, points given" if verdict == "inconclusive" else "",
        timings=tuple(timing for score in measured for timing in score.timings),
    )


def _run(submission: Submission, seeds: list[int], only: Collection[str] | None = None) -> Executed:
    """Run the notebook in a new kernel, in an empty folder, with a secret seed; of the checks, only those in `only`."""
    seeds.append(secrets.randbits(63))
    turns = _Turns(submission.specs, only, time.monotonic() + NOTEBOOK_LIMIT)
    with tempfile.TemporaryDirectory(prefix="unrolled-judge-") as folder, _without("NBGRADER_EXECUTION"):
        executed = notebooks.run(
            submission.notebook,
            cwd=folder,
            env={"UNROLLED_SEED": str(seeds[-1])},
            cell_timeout=CELL_LIMIT,
            skip=turns.before,
            on_cell=turns.after,
        )
    if turns.first_late is None or executed.stopped:
        return executed
    message = f"the notebook ran longer than {NOTEBOOK_LIMIT:g} s; the cells below were not run"
    index = next(index for index, cell in enumerate(executed.notebook.cells) if cell is turns.first_late)
    late = CellError(index, grade_id(turns.first_late), TIMEOUT, message)
    return replace(executed, errors=(*executed.errors, late), stopped=message)


class _Turns:
    """What happens around each cell: whether it runs at all, and that a timed check has the machine for itself."""

    def __init__(self, specs: Mapping[str, Spec], only: Collection[str] | None, deadline: float) -> None:
        self.specs = specs
        self.only = specs if only is None else only
        self.deadline = deadline
        self.first_late: NotebookNode | None = None

    def before(self, cell: NotebookNode) -> bool:
        """Wait for the cell's turn; True if it is not to be run."""
        if time.monotonic() > self.deadline:
            self.first_late = cell if self.first_late is None else self.first_late
            return True
        spec = self.specs.get(_check_of(cell))
        if spec is not None and _check_of(cell) not in self.only:
            return True
        lease.take(alone=spec is not None and spec.speed is not None)
        return False

    def after(self, index: int, cell: NotebookNode) -> None:
        lease.take()


def _check_of(cell: NotebookNode) -> str:
    """The name of the check whose cell this is, or something that is no check's name."""
    name = grade_id(cell) or ""
    return name[len(CELL) :] if name.startswith(CELL) else ""


@contextmanager
def _without(variable: str) -> Iterator[None]:
    """Hide an environment variable: under nbgrader's own, failing checks raise, and the feedback would show it."""
    value = os.environ.pop(variable, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[variable] = value


def _write_under(notebook: NotebookNode, check: str, scores: Sequence[Score], runs: int) -> None:
    """Put the scores under the check's cell, as plain text, which viewers escape.

    The reasons stand there already, unless the check said nothing or was run again.
    """
    for cell in notebook.cells:
        if cell.cell_type == "code" and _check_of(cell) == check:
            said = runs == 1 and any(MIME in output.get("data", {}) for output in cell.outputs)
            text = "\n".join(_lines(score, said) for score in scores)
            cell.outputs.append(new_output("display_data", data={"text/plain": text}))


def _lines(score: Score, said: bool) -> str:
    line = f"{score.part}: {score.points:g} of {score.max_points:g} points, {score.verdict}"
    if said or score.verdict == "pass":
        return line
    return f"{line}\n{textwrap.fill(score.detail, 100, initial_indent='    ', subsequent_indent='    ')}"
