"""Points that need the speed of a GPU: deferred without one, completed where there is one.

There is no GPU here. What says that there is one is told to say so, and the simulated GPU stands for it: then NumPy is
what is measured.
"""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import small_course
from small_course import GOOD, LESSON, answered, grades, hand_in, recorded, table

from unrolled import checks, device
from unrolled.checks.spec import normal
from unrolled_grader import commands, export
from unrolled_grader.box import sandbox
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import job, queue, record
from unrolled_grader.judge import checking, intake
from unrolled_grader.judge.evidence import Score
from unrolled_grader.results import report

pytestmark = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())


def row_by_row(x: Any) -> Any:
    """The baseline: a sum, row by row."""
    return np.stack([np.asarray(device.to_host(row.sum())) for row in x])


SPECS = MappingProxyType(
    {
        "double": small_course.SPECS["double"],
        "total": checks.Spec(
            reference=lambda x: x.sum(axis=1),
            cases=[checks.spec.gpu_case("two rows", checks.Budget(), x=normal(2, 4))],
            points=1,
            hints=("idea", "shape", "code"),
            tolerance=1e-3,
            speed=checks.Speed(row_by_row, {"x": normal(300, 50)}, at_least=5, points=1, against="rows", gpu=True),
        ),
    }
)
ROWS = GOOD | {"total": "def total(x):\n    return x.sum(axis=1)"}


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Grading:
    """A class of two, graded in this process."""
    monkeypatch.setattr(queue, "run", small_course.perform_here)
    monkeypatch.setattr(checks, "lessons", lambda: {LESSON: SPECS})
    monkeypatch.setattr(small_course, "SPECS", SPECS)
    root = small_course.make(tmp_path / "checkout")
    hand_in(root, "ann", answered(root, ROWS))
    hand_in(root, "bob", answered(root, ROWS | {"total": "def total(x):\n    return 0 * x.sum(axis=1)"}))
    return Grading.at(root)


def with_gpu(monkeypatch: pytest.MonkeyPatch, name: str | None, **more: str) -> None:
    facts = device.describe() | {"gpu": name} | more
    monkeypatch.setattr(device, "describe", lambda: facts)
    monkeypatch.setattr(checking, "found_gpu", lambda boxed: facts)


def grade(course: Grading) -> dict[str, dict[str, str]]:
    """Grade the class; the rows of scores.csv by student and part."""
    assert commands.grade_class(course) == 0
    return {f"{row['student']} {row['check']}": row for row in table(course.grades / "scores.csv")}


def test_deferred_and_completed(course: Grading, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch, None, cupy="14.2.0", why="CUDA does not start")
    rows = grade(course)
    assert (rows["ann total"]["verdict"], rows["ann total"]["points"]) == ("pass", "1")
    late = rows["ann total/speed"]
    assert (late["verdict"], late["points"], late["max_points"]) == ("deferred", "0", "1")
    why = "needs a GPU, and a box reaches none here: CUDA does not start"
    assert late["detail"] == f"{why}: the points are withheld, not lost"
    assert rows["bob total/speed"]["verdict"] == "missing"
    assert grades(course, "ann")["check_total"] == (1.0, True)
    assert grades(course, "bob")["check_total"] == (0.0, False)
    page = report.page(record.load_all(course.grades))
    assert "<b>1</b>deferred" in page
    assert why in page

    before = recorded(course, "ann")
    grade(course)
    assert recorded(course, "ann") == before, "nothing new here, so nothing is judged again"

    with_gpu(monkeypatch, "a simulated one")
    rows = grade(course)
    assert (rows["ann total/speed"]["verdict"], rows["ann total/speed"]["points"]) == ("pass", "1")
    assert grades(course, "ann")["check_total"] == (2.0, False)
    done = recorded(course, "ann")
    assert done.machine["gpu"] == "a simulated one"
    assert "<b>0</b>deferred" in report.page(record.load_all(course.grades))
    (line,) = table(course.grades / "regrades.csv")
    assert (line["student"], line["part"], line["before"], line["after"]) == ("ann", "total/speed", "0", "1")
    assert line["reason"] == "completed: deferred"
    grade(course)
    assert recorded(course, "ann") == done


def test_a_speed_on_a_gpu_without_points_is_for_the_notebook_alone(
    course: Grading, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpaid = replace(SPECS["total"], speed=replace(SPECS["total"].speed, points=0))
    monkeypatch.setattr(checks, "lessons", lambda: {LESSON: MappingProxyType({**SPECS, "total": unpaid})})
    with_gpu(monkeypatch, None)
    assert not [name for name in grade(course) if name.endswith("/speed")]
    assert export._on_another_scale(course.grades) == {}


def test_a_clusters_gpus_settle_what_this_machine_cannot(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpu(monkeypatch, None)
    late = Score("total/speed", "deferred", 0.0, 1.0, "")
    kept = record.Record("ann", LESSON, "", (late,), machine={"gpu": None})
    assert not job.could_settle(kept, course.options)
    for cores, larger in ((1, False), (4, True)):  # than the two that could not have four ranks
        monkeypatch.setattr(record.os, "cpu_count", lambda cores=cores: cores)
        assert job.could_settle(replace(kept, machine={"gpu": None, "cores": 2}), course.options) == larger
    (handed, *_) = intake.find(course.submitted, {LESSON: list(SPECS)}, "ann")
    assert "resources" not in course.order(handed)
    course.judge_with(gpu=True)
    assert job.could_settle(kept, course.options)
    assert not job.could_settle(replace(kept, machine={"gpu": "an H200 elsewhere"}), course.options)
    assert course.order(handed)["resources"] == {"TIMING": 1, "GPU": 1}
    course.judge_with(timing=False)
    assert course.order(handed)["resources"] == {}
    assert not job.could_settle(kept, course.options)
