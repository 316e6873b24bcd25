"""Grading a small class through nbgrader: one course, graded once, looked at from all sides."""

from __future__ import annotations

import asyncio
import csv
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from small_course import GOOD, LESSON, answered, hand_in, released

from unrolled_grader import commands, intake, record
from unrolled_grader.course import Course, CourseError

RIGHT = {"double": GOOD["double"], "explain_total": "One call instead of many."}
"""Without `total`: nothing in these tests depends on a measurement."""


@pytest.fixture(scope="module")
def course(root: Path) -> Course:
    """The class, graded by `unrolled grade`."""
    hand_in(root, "ann", answered(root, RIGHT))
    hand_in(root, "bob", released(root))
    cut = answered(root, {"double": GOOD["double"]})
    cut.cells = [cell for cell in cut.cells if "total" not in str(cell.metadata)]
    hand_in(root, "cem", cut)
    hand_in(root, "dan", released(root)).write_bytes(b'{"cells": [')
    before = (root / "notebooks" / LESSON / f"{LESSON}.ipynb").read_bytes()
    course = Course.at(root)
    commands.grade_class(course, ["07"])
    assert (root / "notebooks" / LESSON / f"{LESSON}.ipynb").read_bytes() == before
    return course


@contextmanager
def grades(course: Course, student: str) -> Iterator[tuple[Gradebook, dict[str, Any]]]:
    """The gradebook, and a student's grades by cell."""
    with Gradebook(course.directory.db_url, course.directory.course_id) as gradebook:
        submitted = gradebook.find_submission_notebook(LESSON, LESSON, student)
        yield gradebook, {grade.name: grade for grade in submitted.grades}


def auto_scores(course: Course, student: str) -> dict[str, tuple[float | None, bool]]:
    with grades(course, student) as (_, found):
        return {name: (grade.auto_score, grade.needs_manual_grade) for name, grade in found.items()}


def scores_csv(course: Course) -> list[dict[str, str]]:
    with (course.grades / "scores.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def handed(course: Course, student: str) -> intake.Handed:
    return intake.handed(course.submitted / student / LESSON, ["double", "total"])


def test_the_gradebook_has_the_judges_scores(course: Course) -> None:
    assert auto_scores(course, "ann") == {
        "check_double": (2.0, False),
        "check_total": (0.0, False),
        "explain_total": (None, True),  # an answer in words waits for a person
    }
    nothing = {"check_double": (0.0, False), "check_total": (0.0, False), "explain_total": (0.0, False)}
    assert auto_scores(course, "bob") == nothing
    assert auto_scores(course, "cem") == {**nothing, "check_double": (2.0, False)}
    assert auto_scores(course, "dan") == nothing


def test_scores_csv_agrees_and_leaves_out_words(course: Course) -> None:
    points = {(row["student"], row["check"]): (row["points"], row["verdict"]) for row in scores_csv(course)}
    zero = ("0", "missing")
    assert points == {
        ("ann", "double"): ("2", "pass"),
        ("ann", "total"): zero,
        ("ann", "total/speed"): zero,
        ("bob", "double"): zero,
        ("bob", "total"): zero,
        ("bob", "total/speed"): zero,
        ("cem", "double"): ("2", "pass"),
        ("cem", "total"): zero,
        ("cem", "total/speed"): zero,
        ("dan", "double"): zero,
        ("dan", "total"): zero,
        ("dan", "total/speed"): zero,
    }
    reasons = {row["student"]: row["detail"] for row in scores_csv(course)}
    assert "NameError" in reasons["cem"]  # its check was put back, its function was not
    assert "not valid JSON" in reasons["dan"]


def test_no_answer_is_commented(course: Course) -> None:
    with Gradebook(course.directory.db_url, course.directory.course_id) as gradebook:
        comments = gradebook.find_submission_notebook(LESSON, LESSON, "ann").comments
        assert {comment.name: comment.auto_comment for comment in comments} == {
            "double": None,
            "total": "No response.",
            "explain_total": None,
        }


def test_feedback_is_written_for_what_opened(course: Course) -> None:
    pages = sorted(file.parent.parent.name for file in course.feedback.glob("*/*/*.html"))
    assert pages == ["ann", "bob", "cem"]
    text = (course.feedback / "ann" / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "double: 2 of 2 points, pass" in text
    assert "CheckFailedError" not in text


def test_the_report_is_written(course: Course) -> None:
    assert "4</b>submissions" in (course.grades / "report.html").read_text(encoding="utf-8")


def test_graded_and_unchanged_is_skipped(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    dates = {student: course.done(handed(course, student)).date for student in ("ann", "bob", "dan")}  # type: ignore[union-attr]
    commands.grade_class(course)
    assert "4 of 4 are graded already" in capsys.readouterr().out
    for student, date in dates.items():
        kept = record.load(course.grades, student, LESSON)
        assert kept is not None
        assert kept.date == date


def test_a_grading_that_was_killed_is_not_done(course: Course) -> None:
    item = handed(course, "bob")
    folder = Path(course.directory.format_path(course.directory.autograded_directory, "bob", LESSON))
    file = folder / f"{LESSON}.ipynb"
    complete = file.read_bytes()
    file.unlink()
    assert course.done(item) is None
    shutil.copy(item.path, file)  # sanitized, not yet judged
    assert course.done(item) is None
    file.unlink()
    file.write_bytes(complete)
    assert course.done(item) is not None


def test_nbgraders_own_autograde_gives_the_same(course: Course) -> None:
    """As formgrader's button does it: through the API, inside a running event loop. A manual score stays."""
    before, rows = auto_scores(course, "ann"), scores_csv(course)
    with grades(course, "ann") as (gradebook, found):
        found["explain_total"].manual_score = 1.5
        found["check_double"].manual_score = 1.0
        gradebook.db.commit()

    async def press() -> dict[str, Any]:
        result: dict[str, Any] = NbGraderAPI(config=course.config).autograde(LESSON, "ann")
        return result

    assert asyncio.run(press())["success"]
    after = auto_scores(course, "ann")
    assert {name: score for name, (score, _) in after.items()} == {name: score for name, (score, _) in before.items()}
    assert scores_csv(course) == rows
    with grades(course, "ann") as (_, found):
        assert (found["explain_total"].manual_score, found["check_double"].score) == (1.5, 1.0)
        assert found["check_double"].needs_manual_grade  # a person's score is shown for review, as nbgrader does


def test_a_submission_that_breaks_later_loses_what_it_had(course: Course, root: Path) -> None:
    hand_in(root, "eve", answered(root, RIGHT))
    commands.grade_class(course, student="eve")
    assert auto_scores(course, "eve")["check_double"] == (2.0, False)
    handed(course, "eve").path.write_bytes(b"\0")
    commands.grade_class(course, student="eve")
    assert auto_scores(course, "eve")["check_double"] == (0.0, False)
    assert not (course.feedback / "eve" / LESSON).exists()


def test_what_nbgrader_cannot_open_is_recorded(course: Course, root: Path) -> None:
    notebook = answered(root, RIGHT)
    notebook.cells[2].metadata["nbgrader"] = {"grade": True, "grade_id": "double", "schema_version": 99}
    hand_in(root, "fay", notebook)
    commands.grade_class(course, student="fay")
    kept = record.load(course.grades, "fay", LESSON)
    assert kept is not None
    assert kept.points == 0
    assert kept.problem.startswith("nbgrader cannot open it: MissingEntry: No such grade cell")


def test_unknown_lessons_and_folders_are_named(root: Path) -> None:
    with pytest.raises(CourseError, match="08 names 0 lessons; there are 07_doubling"):
        Course.at(root).choose(["08"])
    with pytest.raises(CourseError, match="there is no folder nowhere"):
        Course.at(root, root / "nowhere")
