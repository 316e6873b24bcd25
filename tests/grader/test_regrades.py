"""The log of regrades: what changed, from what to what, and why; and what a person gave stays."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_course
from nbgrader.api import Gradebook
from small_course import GOOD, LESSON, answered, hand_in, table

from unrolled_grader import commands
from unrolled_grader.grading import Grading
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge.evidence import Score
from unrolled_grader.results import regrades

KEPT = Record("ann", LESSON, "1", (Score("double", "pass", 2.0, 2.0, ""), Score("total", "fail", 0.0, 1.0, "")))


def lines(grades: Path) -> list[tuple[str, ...]]:
    """The log without the times."""
    rows = table(grades / "regrades.csv") if (grades / "regrades.csv").exists() else []
    assert all(tuple(row) == regrades.COLUMNS for row in rows)
    return [tuple(row.values())[1:] for row in rows]


def changed(part: str, verdict: str, points: float, **others: Any) -> Record:
    scores = tuple(replace(one, verdict=verdict, points=points) if one.part == part else one for one in KEPT.scores)
    return replace(KEPT, scores=scores, **others)


@pytest.mark.parametrize(
    ("before", "after", "given", "expected"),
    [
        (KEPT, changed("total", "pass", 1), "", "graded again"),
        (KEPT, changed("total", "pass", 1), "=the bus was late\n", "'=the bus was late"),
        (KEPT, changed("total", "pass", 1, digest="2"), "", "handed in again"),
        (replace(KEPT, key=Key(specs="a")), changed("total", "pass", 1, key=Key(specs="b")), "", "the checks changed"),
        (changed("total", "deferred", 0), changed("total", "pass", 1), "", "completed: deferred"),
        (changed("total", "deferred", 0), changed("total", "pass", 1), "GPU host", "completed: deferred"),
        (changed("total", "marked", 0), changed("total", "marked", 1), "", "marked by a person"),
        (changed("total", "late", 0), changed("total", "late", 1), "", "lateness: due date, extension, time, policy"),
    ],
)
def test_why_points_changed(before: Record, after: Record, given: str, expected: str, tmp_path: Path) -> None:
    assert regrades.note(tmp_path, [before], given) == {("ann", LESSON)}
    assert lines(tmp_path) == []  # the first grading is no regrade
    assert regrades.note(tmp_path, [after], given) == {("ann", LESSON)}
    ((*rest, reason),) = lines(tmp_path)
    assert rest == ["ann", LESSON, "total", "0", "1"]
    assert reason.startswith(expected)
    assert regrades.note(tmp_path, [after], given) == set()
    assert len(lines(tmp_path)) == 1


def test_first_marks_are_no_regrade_and_what_goes_is_logged(tmp_path: Path) -> None:
    """So is a part that nobody measured yet when it vanishes, and a forced regrade that changes nothing."""
    without = replace(KEPT, scores=KEPT.scores[:1])
    regrades.note(tmp_path, [changed("total", "waits", 0)])
    assert regrades.note(tmp_path, [changed("total", "marked", 1)]) == {("ann", LESSON)}
    assert lines(tmp_path) == []
    regrades.note(tmp_path, [without], "no words")
    regrades.note(tmp_path, [changed("total", "deferred", 0)])
    regrades.note(tmp_path, [without], "no speed")
    regrades.note(tmp_path, [without], "ann asked", {("ann", LESSON)})
    assert [line[2:] for line in lines(tmp_path)] == [
        ("total", "1", "0", "no words"), ("total", "0", "0", "no speed"), ("all", "2", "2", "ann asked")
    ]  # fmt: skip


@pytest.fixture
def course(root: Path, monkeypatch: pytest.MonkeyPatch) -> Grading:
    """A class of one, whose answer in words waits."""
    hand_in(root, "ann", answered(root, GOOD | {"explain_total": "One call."}))
    return Grading.at(root)


def judge_gives(monkeypatch: pytest.MonkeyPatch, points: float) -> None:
    score = Score("double", "pass" if points else "fail", points, 2.0, "")
    small_course.judged_here(monkeypatch, lambda submission: [score])


@contextmanager
def answer(course: Grading) -> Iterator[Any]:
    """Ann's answer in words in the gradebook."""
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        grades = book.find_submission_notebook(LESSON, LESSON, "ann").grades
        yield next(grade for grade in grades if grade.name == "explain_total")
        book.db.commit()


def test_a_regrade_keeps_what_a_person_gave(course: Grading, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge_gives(monkeypatch, 2.0)
    commands.grade_class(course)
    with answer(course) as grade:
        assert grade.needs_manual_grade
        grade.manual_score, grade.needs_manual_grade = 1.5, False
    judge_gives(monkeypatch, 0.0)
    commands.grade_class(course, force=True, reason="the judge was wrong")
    assert lines(course.grades) == [("ann", LESSON, "double", "2", "0", "the judge was wrong")]
    with answer(course) as grade:
        assert (grade.score, grade.needs_manual_grade) == (1.5, False)  # the same text needs no second reading
    scores = (course.grades / "scores.csv").read_text()
    assert f"ann,{LESSON},explain_total,1.5,2,marked,by a person" in scores
    commands.grade_class(course, force=True, reason="once more")
    assert lines(course.grades)[1:] == [("ann", LESSON, "all", "1.5", "1.5", "once more")]

    hand_in(root, "ann", answered(root, GOOD | {"explain_total": "One call, and no loop."}))
    commands.grade_class(course)
    with answer(course) as grade:
        assert (grade.score, grade.needs_manual_grade) == (1.5, True)  # the text is another: a person looks again
    row = "explain_total,1.5,2,marked,to be read again: the answer changed"
    assert row in (course.grades / "scores.csv").read_text()
