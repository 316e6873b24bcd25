"""The judge: a submission goes in, verdicts come out. `judge` is all that grading calls of what runs the code.

This process decides and times, and never runs student code. That runs in a worker, in a box of its own: cell by cell,
but for the checks' cells. In a check's place the judge sends inputs that it draws from a secret seed, gets plain arrays
back, and finds what the learner's own check would find, in the same words.
"""

from __future__ import annotations

import secrets
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nbformat import NotebookNode
from nbformat.v4 import new_output

from unrolled.checks import Report, Spec
from unrolled.timing import Verdict
from unrolled_grader.box import lease, sandbox
from unrolled_grader.judge import embedded
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.outputs import MARK
from unrolled_grader.judge.race import derived
from unrolled_grader.judge.walk import Walk, check_of

REPEATS = 3  # how often a speed that is not settled is measured again
UNDECIDED = "undecided"  # what a measurement says that is inconclusive, though the machine was not the cause


@dataclass(frozen=True)
class Submission:
    """What is judged: a student's notebook after nbgrader's sanitize pass, and the specs of its lesson's checks."""

    student: str
    lesson: str
    notebook: NotebookNode
    specs: Mapping[str, Spec]
    seed: int | None = None  # what its hidden inputs follow from; None leaves them to chance
    handed_out: frozenset[str] = frozenset()  # the sources of the lesson's own cells


@dataclass(frozen=True)
class Verdicts:
    """What the judge found: the executed notebook, with the scores written under each check, and the scores."""

    notebook: NotebookNode
    scores: tuple[Score, ...]
    seconds: float
    seeds: tuple[int, ...]  # One seed a run. Secret until the run is over; kept so that a verdict can be reproduced.
    sandbox: str = ""
    """How the code was held: "bubblewrap 0.8.0, cgroup (cpu time, memory, pids)" or "NONE (--unsafe-no-sandbox)"."""
    flags: tuple[str, ...] = ()  # why a person should look at the whole submission
    notes: tuple[tuple[str, str], ...] = ()  # what was passed over in an exercise's cell, in words, by its name


@dataclass(frozen=True)
class Options:
    """How to judge. Part of what makes two gradings the same."""

    timing: bool = True  # False: speeds are not measured; their parts are deferred
    sandbox: bool = True  # False: student code runs without a sandbox, and every score says so
    gpu: bool = False  # True: the machines that judge have a GPU, whether or not this one has


def judge(submission: Submission, options: Options = Options()) -> Verdicts:
    """Run and score a submission, and return what was found. Whatever its code does is a verdict.

    Raises SandboxError if its code cannot be confined here, ZygoteError if no worker can be started.
    """
    if options.sandbox and (problem := sandbox.problem()):
        raise sandbox.SandboxError(problem)
    with lease.ours.working():
        return _judge(submission, options)


def _judge(submission: Submission, options: Options) -> Verdicts:
    started = time.monotonic()
    seed = secrets.randbits(63) if submission.seed is None else submission.seed
    walk = partial(Walk, submission.notebook, submission.specs, handed_out=submission.handed_out)
    walk = partial(walk, boxed=options.sandbox, timed=options.timing)
    walks = [first := walk(seed=derived(seed, 0))]
    seen = {name: [first.scores[name]] for name in submission.specs}
    while again := [name for name, scores in seen.items() if settle(_speeds(scores)) is None]:
        walks.append(walk(only=again, seed=derived(seed, len(walks))))
        for name in again:
            seen[name].append(walks[-1].scores[name])
    scores = {name: _conclude(parts) for name, parts in seen.items()}
    if not options.sandbox:
        prefix = "(graded without a sandbox)"
        for name, parts in scores.items():
            scores[name] = tuple(replace(score, detail=f"{prefix} {score.detail}".rstrip()) for score in parts)
    for name, parts in scores.items():
        _write_under(first.notebook, name, first.reports.get(name), parts, len(seen[name]))
    return Verdicts(
        first.notebook,
        tuple(score for parts in scores.values() for score in parts),
        time.monotonic() - started,
        tuple(walk.seed for walk in walks),
        first.held,
        embedded.flags(submission.notebook),
        tuple(first.notes.items()),
    )


def settle(outcomes: Sequence[str]) -> str | None:
    """Return the outcome of a speed measured in several runs, or None while it must be measured again.

    The first pass settles it, and so does a fail (or crash, or timeout) that a second one confirms. What is still open
    after REPEATS further measurements is inconclusive, which earns its points, only where the machine kept all of them
    but one from an answer. Two that it did not disturb, and that did not pass, are a fail. Nothing to settle, as for a
    wrong function, is "missing".
    """
    if not outcomes or outcomes[0] not in ("fail", "inconclusive", UNDECIDED):
        return outcomes[0] if outcomes else "missing"
    if "pass" in outcomes:
        return "pass"
    failed = [outcome for outcome in outcomes if outcome not in ("inconclusive", UNDECIDED)]
    if len(failed) > 1:
        return failed[0]
    if len(outcomes) <= REPEATS:
        return None
    return "inconclusive" if len(outcomes) - outcomes.count("inconclusive") <= 1 else "fail"


def _speeds(runs: Sequence[tuple[Score, ...]]) -> list[str]:
    """The outcome of the speed part in each run. One that is worth nothing is not worth another run."""
    speeds = [score for scores in runs for score in scores if score.part.endswith("/speed")]
    return [_outcome_of(score) for score in speeds if score.max_points > 0]


def _outcome_of(score: Score) -> str:
    """What a run says to `settle`; UNDECIDED is an inconclusive outcome that is not the machine's fault."""
    if score.verdict != "inconclusive" or not score.timings or Verdict.from_dict(score.timings[0]).excused:
        return score.verdict
    return UNDECIDED


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
    outcomes = [_outcome_of(score) for score in measured]
    verdict = settle(outcomes) or "inconclusive"
    decisive = [score for score in measured if score.verdict == verdict][-1:] or [measured[-1]]
    points = measured[0].max_points if verdict in ("pass", "inconclusive") else 0.0
    detail = f"{decisive[0].detail} Measured {len(outcomes)} times: {', '.join(outcomes)}."
    if verdict == "fail" and outcomes.count("fail") < 2:  # why it is one
        detail += " None of them showed that it is fast enough, and the machine alone was not the cause."
    return replace(
        measured[0],
        verdict=verdict,
        points=points,
        detail=detail,
        flag="speed still inconclusive, points given" if verdict == "inconclusive" else "",
        timings=tuple(timing for score in measured for timing in score.timings),
    )


def _write_under(
    notebook: NotebookNode, check: str, report: Report | None, scores: Sequence[Score], measured: int
) -> None:
    """Put the findings and the scores under the check's cell, as plain text, which viewers escape."""
    lines = [] if report is None else [str(report)]
    lines += [_line(score, explained=report is not None and measured == 1) for score in scores]
    for cell in notebook.cells:
        if cell.cell_type == "code" and check_of(cell) == check:
            cell.outputs.append(new_output("display_data", data={"text/plain": "\n".join(lines)}, metadata=MARK))


def _line(score: Score, explained: bool) -> str:
    """What a part earned; and why not more, unless the findings above tell."""
    line = f"{score.part}: {score.points:g} of {score.max_points:g} points, {score.verdict}"
    if explained or score.verdict == "pass":
        return line
    return f"{line}\n{textwrap.fill(score.detail, 100, initial_indent='    ', subsequent_indent='    ')}"
