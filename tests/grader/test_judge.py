"""The judge on real workers: each test starts one or two."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell
from small_course import GOOD, LESSON, SPECS, answered, rows

from unrolled.timing.verdict import Pair, TimedBlock, Verdict, conclude
from unrolled_grader.box import sandbox
from unrolled_grader.box.transport import Worker
from unrolled_grader.judge import checking, walk
from unrolled_grader.judge.outputs import MARK
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts, judge, settle

LOUD = """\
import warnings

def double(number):
    warnings.warn("a warning costs nothing")
    return 2 * number

print("double\\n  ✓ two")
42"""
FORGED = """\
from IPython.display import display
from unrolled.checks import MIME, Finding, Part, Report
parts = (Part("total", "pass", 1, 1, ""), Part("total/speed", "pass", 1, 1, ""))
report = Report("total", "0", (Finding("one", "pass"),), parts)
display({MIME: report.to_dict(), "text/plain": str(report)}, raw=True, metadata={"unrolled": "judge"})"""
STUBBORN = """\
import time
while True:
    try:
        time.sleep(600)
    except KeyboardInterrupt:
        pass"""
UNTIMED = Options(timing=False)
NOTHING = {"total": ("missing", 0.0), "total/speed": ("missing", 0.0)}


def judged(root: Path, answers: dict[str, str], extra: str = "", options: Options = UNTIMED) -> Verdicts:
    notebook = answered(root, answers)
    if extra:
        notebook.cells.append(new_code_cell(extra))
    return judge(Submission("ann", LESSON, notebook, SPECS), options)


def under(verdicts: Verdicts, check: str) -> str:
    """What the judge wrote under a check's cell."""
    cell = next(cell for cell in verdicts.notebook.cells if walk.check_of(cell) == check)
    (output,) = [output for output in cell.outputs if output.metadata == MARK]
    text: str = output.data["text/plain"]
    return text


def race_of(seconds: float, pairs: int = 8, control: float = 1.0) -> Any:
    """A race in which the candidate takes so many seconds a call, the baseline one, and in its control `control`."""

    def race(worker: Any, spec: Any, seed: int, cores: Any, alone: Any) -> Verdict:
        raced, controlled = (Pair(TimedBlock(1, 1.0), TimedBlock(1, took)) for took in (seconds, control))
        return conclude([raced] * pairs, [controlled] * 8, spec.speed.at_least)

    return race


def test_only_what_the_judge_found_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    verdicts = judged(root, {"double": LOUD}, FORGED)
    assert rows(verdicts.scores) == {"double": ("pass", 2.0), **NOTHING}
    assert os.environ["NBGRADER_EXECUTION"] == "autograde"
    assert len(verdicts.seeds) == 1
    assert verdicts.sandbox.startswith("bubblewrap ")
    forged = verdicts.notebook.cells[-1].outputs[-1]
    assert forged.metadata == {}  # what marks the judge's own words cannot be displayed


def test_the_findings_stand_under_the_check(root: Path) -> None:
    verdicts = judged(root, {"double": "def double(number):\n    return number * number"})
    assert "a fraction   fail" in under(verdicts, "double")
    assert "got 0.25, expected 1" in under(verdicts, "double")
    assert under(verdicts, "double").endswith("double: 0 of 2 points, fail")


def test_a_worker_that_is_killed_from_outside_costs_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system does for want of memory: here in a cell, in a case, and the baseline's in a block."""
    killed: list[str] = []

    def first_killed(method: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def patched(self: Worker, *arguments: Any) -> Any:
            if method not in killed:
                killed.append(method)
                self.send_signal(signal.SIGKILL)
            return original(self, *arguments)

        return patched

    for method in ("run_cell", "call", "go"):
        monkeypatch.setattr(Worker, method, first_killed(method, getattr(Worker, method)))
    verdicts = judged(root, GOOD, options=Options())
    assert killed == ["run_cell", "call", "go"]
    assert {score.verdict for score in verdicts.scores} == {"pass"}
    assert verdicts.scores[-1].timings[0]["pairs"]  # a real race: the answer is some hundred times as fast


@pytest.mark.parametrize(
    ("source", "verdict", "says"),
    [("import os\nos._exit(0)", "crashed", ""), (STUBBORN, "timeout", "its cell was stopped after 1 s")],
    ids=["ends the worker", "never ends"],
)
def test_such_a_cell_costs_its_own_exercise_alone(
    source: str, verdict: str, says: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "CELL_LIMIT", 1.0)
    scores = judged(root, {"double": source, "total": GOOD["total"]}).scores
    assert (rows(scores)["double"], rows(scores)["total"]) == ((verdict, 0.0), ("pass", 1.0))
    assert says in scores[0].detail


def test_of_the_lessons_own_cells_those_run_whose_names_another_has(root: Path) -> None:
    """Text counts too, as `eval` may run it; a cell that was changed is the learner's own. The answer is above all."""
    notebook = answered(root, GOOD | {"double": "def double(number):\n    return eval('twice')(number)"})
    own = ["twice = lambda number: factor * number", "factor = 2", "shown = 1 / 0", "import os\nos._exit(0)"]
    place = next(place for place, cell in enumerate(notebook.cells) if "twice" in cell.source) + 1
    notebook.cells[place:place] = [new_code_cell(source) for source in (own[1], own[0], *own[2:], "1 / 0")]
    verdicts = judge(Submission("ann", LESSON, notebook, SPECS, None, frozenset(own)), UNTIMED)
    assert {score.verdict for score in verdicts.scores} == {"pass", "deferred"}
    raised = [cell.source for cell in verdicts.notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert "1 / 0" in raised
    assert not {*own} & {*raised}


def test_no_cell_is_started_once_time_is_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "NOTEBOOK_LIMIT", 0.0)
    assert {score.verdict for score in judged(root, GOOD).scores} == {"timeout"}


@pytest.mark.parametrize(
    ("answer", "verdict", "says"),
    [
        ("total = 1 / 0", "crashed", "its cell raised ZeroDivisionError"),
        ("", "missing", "NameError: name 'total' is not defined"),
        ("total = 3", "crashed", "expected a function, got int"),
        ("def total():\n    return 1", "crashed", "cannot be called as f(x=…)"),
        ("def total(x):\n    raise NotImplementedError", "missing", "not written yet"),
        ("def total(x):\n    x[:] = 0\n    return x.sum()", "fail", "changed its input x"),
        ("def total(x):\n    return x.nosuch", "crashed", "in line 2: return x.nosuch"),
        ("def total(x):\n    return 'much'", "fail", "expected a number"),
    ],
)
def test_what_is_no_answer_is_said_in_words(root: Path, answer: str, verdict: str, says: str) -> None:
    correct, speed = judged(root, {"total": answer}).scores[1:]
    assert (correct.verdict, correct.points, speed.points) == (verdict, 0, 0)
    assert says in correct.detail


def test_without_a_working_sandbox_it_refuses_and_names_why(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is not installed")
    with pytest.raises(sandbox.SandboxError, match="bubblewrap is not installed"):
        judged(root, GOOD)


@pytest.mark.parametrize(
    ("outcomes", "settled"),
    [
        ([], "missing"),
        (["missing"], "missing"),
        (["timeout"], "timeout"),
        (["pass"], "pass"),
        (["fail"], None),
        (["fail", "fail"], "fail"),
        (["fail", "pass"], "pass"),
        (["fail", "inconclusive"], None),
        (["fail", "crashed"], "fail"),
        (["inconclusive", "pass"], "pass"),
        (["inconclusive", "inconclusive", "inconclusive"], None),
        (["inconclusive", "inconclusive", "inconclusive", "inconclusive"], "inconclusive"),
        (["inconclusive", "fail", "inconclusive", "fail"], "fail"),
        (["inconclusive", "fail", "inconclusive", "inconclusive"], "inconclusive"),
        (["undecided"], None),
        (["undecided", "pass"], "pass"),
        (["undecided", "undecided", "undecided"], None),
        (["undecided", "undecided", "undecided", "undecided"], "fail"),
        (["undecided", "inconclusive", "inconclusive", "inconclusive"], "inconclusive"),
        (["undecided", "inconclusive", "inconclusive", "undecided"], "fail"),
        (["fail", "inconclusive", "undecided", "inconclusive"], "fail"),
        (["crashed", "undecided"], "crashed"),
    ],
)
def test_a_speed_is_settled_by_a_pass_or_by_two_fails(outcomes: list[str], settled: str | None) -> None:
    assert settle(outcomes) == settled


def test_a_fail_is_measured_again_in_a_new_worker_and_what_no_memory_allows_is_flagged(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs are real, the outcomes are given: nothing here depends on how fast the machine is."""
    monkeypatch.setattr(checking, "time_against_baseline", race_of(1e-9))
    speed = judged(root, GOOD, options=Options()).scores[-1]
    assert (speed.verdict, speed.points) == ("pass", 1.0)
    assert "GB/s of inputs and results" in speed.flag
    monkeypatch.setattr(checking, "time_against_baseline", race_of(1.0))
    verdicts = judged(root, GOOD, options=Options())
    speed = verdicts.scores[-1]
    assert (speed.verdict, speed.points, len(speed.timings)) == ("fail", 0.0, 2)
    assert "Measured 2 times: fail, fail." in speed.detail
    assert rows(verdicts.scores)["double"] == ("pass", 2.0)
    assert len(set(verdicts.seeds)) == 2


@pytest.mark.parametrize(
    ("times", "control", "verdict", "points"),
    [(4.5, 1.0, "fail", 0.0), (4.5, 1.5, "inconclusive", 1.0), (2.4, 1.5, "fail", 0.0)],  # 5 is asked: too close, far
)
def test_a_speed_that_stays_open_earns_its_points_only_where_the_machine_was_the_cause(
    root: Path, monkeypatch: pytest.MonkeyPatch, times: float, control: float, verdict: str, points: float
) -> None:
    monkeypatch.setattr(checking, "time_against_baseline", race_of(1 / times, 32, control))
    speed = judged(root, GOOD, options=Options()).scores[-1]
    assert (speed.verdict, speed.points, len(speed.timings)) == (verdict, points, 4)
    assert bool(speed.flag) == (verdict == "inconclusive")
    outcome = "inconclusive" if points else "undecided"
    assert f"Measured 4 times: {', '.join([outcome] * 4)}." in speed.detail
    assert ("the machine alone was not the cause" in speed.detail) == (verdict == "fail")
