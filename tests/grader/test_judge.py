"""The judge on real kernels: each test starts one or two."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell
from small_course import GOOD, LESSON, SPECS, answered, rows

from unrolled import notebooks
from unrolled_grader import judge

LOUD = """\
import warnings

def double(number):
    warnings.warn("a warning costs nothing")
    return 2 * number

print("double\\n  ✓ two")
42"""
FORGED = """\
from IPython.display import display
from unrolled.checks import MIME, Part, Report
parts = (Part("total", "pass", 1, 1, ""), Part("total/speed", "pass", 1, 1, ""))
display({MIME: Report("total", "0", (), parts).to_dict()}, raw=True)"""
DEADLY = "import os\n\ndef double(number):\n    os._exit(1)"
FAILING_CLOCK = """\
from unrolled import timing
from unrolled.timing.verdict import Block, Pair, conclude

def found(function, baseline, **others):
    pairs = [Pair(Block(1, 1.0), Block(1, 1.0))] * 8
    return conclude(pairs, pairs, others["at_least"])

timing.compare = found

"""
STUBBORN = """\
while True:
    try:
        while True:
            pass
    except KeyboardInterrupt:
        pass"""


def judged(root: Path, answers: dict[str, str], extra: str = "") -> judge.Verdicts:
    notebook = answered(root, answers)
    if extra:
        notebook.cells.append(new_code_cell(extra))
    return judge.judge(judge.Submission("ann", LESSON, notebook, SPECS))


def test_only_what_a_check_found_counts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    verdicts = judged(root, {"double": LOUD}, FORGED)
    assert rows(verdicts.scores) == {
        "double": ("pass", 2.0),
        "total": ("missing", 0.0),
        "total/speed": ("missing", 0.0),
    }
    assert os.environ["NBGRADER_EXECUTION"] == "autograde"
    raised = [output for cell in verdicts.notebook.cells for output in cell.get("outputs", []) if "ename" in output]
    assert not raised  # under nbgrader's variable the failing check would have raised
    assert len(verdicts.seeds) == 1


def test_a_kernel_that_dies_earns_what_was_proved_before(root: Path) -> None:
    verdicts = judged(root, {"double": GOOD["double"], "total": DEADLY.replace("double(number)", "total(x)")})
    assert rows(verdicts.scores) == {
        "double": ("pass", 2.0),
        "total": ("crashed", 0.0),
        "total/speed": ("crashed", 0.0),
    }
    written = verdicts.notebook.cells[-3].outputs[-1]["data"]["text/plain"]
    assert written.startswith("total: 0 of 1 points, crashed\n    DeadKernelError: the kernel died")


def test_a_cell_that_never_ends_is_a_timeout(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "CELL_LIMIT", 1.0)
    verdicts = judged(root, {"double": STUBBORN})
    assert {score.verdict for score in verdicts.scores} == {"timeout"}
    assert all("(double)" in score.detail for score in verdicts.scores)


def test_no_cell_is_started_once_time_is_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "NOTEBOOK_LIMIT", 0.0)
    verdicts = judged(root, GOOD)
    assert {score.verdict for score in verdicts.scores} == {"timeout"}


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
    ],
)
def test_a_speed_is_settled_by_a_pass_or_by_two_fails(outcomes: list[str], settled: str | None) -> None:
    assert judge.settle(outcomes) == settled


def test_a_fail_is_measured_again_without_the_other_checks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are real, the outcomes are given: nothing here depends on how fast the machine is."""
    runs: list[notebooks.Executed] = []

    def run(*arguments: Any, **options: Any) -> notebooks.Executed:
        runs.append(notebooks_run(*arguments, **options))
        return runs[-1]

    notebooks_run = notebooks.run
    monkeypatch.setattr(notebooks, "run", run)
    verdicts = judged(root, {"double": GOOD["double"], "total": FAILING_CLOCK + GOOD["total"]})
    speed = verdicts.scores[-1]
    assert (speed.verdict, speed.points, len(speed.timings)) == ("fail", 0.0, 2)
    assert "Measured 2 times: fail, fail." in speed.detail
    assert rows(verdicts.scores)["double"] == ("pass", 2.0)
    assert [set(executed.reports) for executed in runs] == [{"double", "total"}, {"total"}]
    assert len(set(verdicts.seeds)) == 2
