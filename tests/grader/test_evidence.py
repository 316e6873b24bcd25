"""Scores come from the structured verdict in the check's own cell, and from nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from small_course import SPECS, rows

from unrolled import checks, timing
from unrolled.notebooks import DEAD, TIMEOUT, CellError, Executed
from unrolled_grader import evidence

SPEC = SPECS["total"]
NOTHING = {"total": ("missing", 0.0), "total/speed": ("missing", 0.0)}


def verdict(outcome: str = "pass", at_least: float = 5.0) -> timing.Verdict:
    return timing.Verdict(outcome, 9.0, 8.0, 10.0, at_least, "", "wall clock", False, (), (), "one", 1.0, 1)  # type: ignore[arg-type]


def report(check: str = "total", speed: str = "pass") -> dict[str, Any]:
    """What a check displays for a right and fast function."""
    parts = (
        checks.Part(check, "pass", 1, 1, "2 cases right"),
        checks.Part(f"{check}/speed", speed, 1 if speed in ("pass", "inconclusive") else 0, 1, "9x"),
    )
    return checks.Report(check, "0", (), parts, verdict()).to_dict()


def shows(data: dict[str, Any]) -> NotebookNode:
    return new_output("display_data", data={"text/plain": "total", checks.MIME: data})


def executed(*outputs: NotebookNode, cell: str = "check_total", **others: Any) -> Executed:
    """A run whose cell `cell` has these outputs."""
    other = new_code_cell("total = sum")
    check = new_code_cell("check.total(total)", metadata={"nbgrader": {"grade_id": cell}}, outputs=list(outputs))
    facts = {"errors": (), "stopped": None, **others}
    return Executed(new_notebook(cells=[other, check]), {}, seconds=1.0, **facts)


def read(*outputs: NotebookNode, **others: Any) -> dict[str, tuple[str, float]]:
    return rows(evidence.read(executed(*outputs, **others), "total", SPEC))


def test_a_verdict_counts() -> None:
    assert read(shows(report())) == {"total": ("pass", 1.0), "total/speed": ("pass", 1.0)}
    assert read(shows(report(speed="fail"))) == {"total": ("pass", 1.0), "total/speed": ("fail", 0.0)}


def test_the_timing_is_kept() -> None:
    correct, speed = evidence.read(executed(shows(report())), "total", SPEC)
    assert correct.timings == ()
    assert speed.timings == (verdict().to_dict(),)


def test_warnings_and_printed_text_cost_nothing() -> None:
    warning = new_output("stream", name="stderr", text="RuntimeWarning: overflow")
    assert read(warning, shows(report()), new_output("stream", text="0")) == read(shows(report()))


@pytest.mark.parametrize(
    "output",
    [
        new_output("stream", text="total\n  ✓ four numbers\n  ✓ speed"),
        new_output("execute_result", data={"text/plain": "2.0"}),
        new_output("display_data", data={"text/html": "<b>pass</b>", "application/json": report()}),
        new_output("display_data", data={checks.MIME: "pass"}),
        shows(report("double")),
    ],
    ids=["printed", "a trailing number", "another type", "no dictionary", "of another check"],
)
def test_nothing_else_is_evidence(output: NotebookNode) -> None:
    assert read(output) == NOTHING


def test_a_verdict_of_another_check_beside_it_changes_nothing() -> None:
    assert read(shows(report("double")), shows(report())) == read(shows(report()))


def test_a_verdict_in_another_cell_counts_for_nothing() -> None:
    assert read(shows(report()), cell="total") == NOTHING


def test_two_verdicts_in_one_cell_are_refused_and_flagged() -> None:
    scores = evidence.read(executed(shows(report()), shows(report())), "total", SPEC)
    assert rows(scores) == NOTHING
    assert all(score.flag for score in scores)


def _changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    data = copy.deepcopy(report())
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parts", 0, "points"), 2),
        (("parts", 0, "points"), -1),
        (("parts", 0, "points"), float("nan")),
        (("parts", 0, "points"), True),
        (("parts", 0, "points"), "1"),
        (("parts", 0, "verdict"), "fail"),
        (("parts", 0, "verdict"), "excellent"),
        (("parts", 0, "verdict"), ["pass"]),
        (("parts", 0, "name"), "double"),
        (("parts", 0), {"name": "total"}),
        (("parts",), None),
        (("parts",), [report()["parts"][0]] * 3),
        (("timing",), {"outcome": "pass"}),
        (("timing", "at_least"), 0.1),
        (("timing", "ratio"), "fast"),
    ],
)
def test_a_verdict_that_no_check_writes_is_refused(path: tuple[Any, ...], value: Any) -> None:
    scores = evidence.read(executed(shows(_changed(path, value))), "total", SPEC)
    assert rows(scores) == NOTHING
    assert all("refused" in score.detail and score.flag for score in scores)


def test_what_a_part_is_worth_comes_from_the_spec() -> None:
    scores = evidence.read(executed(shows(_changed(("parts", 0, "max_points"), 100))), "total", SPEC)
    assert [score.max_points for score in scores] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CellError(1, "check_total", "NameError", "name 'total' is not defined"), "missing"),
        (CellError(1, "check_total", "ZeroDivisionError", "division by zero"), "crashed"),
        (CellError(1, "check_total", TIMEOUT, "interrupted after 90 s"), "timeout"),
        (CellError(1, "check_total", DEAD, "the kernel died"), "crashed"),
    ],
)
def test_a_silent_cell_gets_the_reason(error: CellError, expected: str) -> None:
    scores = evidence.read(executed(errors=(error,)), "total", SPEC)
    assert {score.verdict for score in scores} == {expected}
    assert all(error.message in score.detail for score in scores)


def test_a_cell_below_the_end_of_the_run_gets_its_reason() -> None:
    end = CellError(0, "total", DEAD, "the kernel died")
    scores = evidence.read(executed(errors=(end,), stopped="the kernel died"), "total", SPEC)
    assert {score.verdict for score in scores} == {"crashed"}
    assert "cell 0 (total)" in scores[0].detail


def test_a_missing_cell_is_said_to_be_missing() -> None:
    scores = evidence.read(executed(cell="other"), "total", SPEC)
    assert rows(scores) == NOTHING
    assert "not in the notebook" in scores[0].detail
