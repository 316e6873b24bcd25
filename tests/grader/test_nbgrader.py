"""Grading a small class through nbgrader: one course, graded once, looked at from all sides."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import small_course
from nbformat.v4 import new_code_cell
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from small_course import GOOD, LESSON, answered, hand_in, perform_here, recorded, released, table

from unrolled_grader import commands
from unrolled_grader.authoring import notebooks
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue
from unrolled_grader.jobs.record import one_line
from unrolled_grader.judge import intake, repair, verdicts
from unrolled_grader.judge.verdicts import Verdicts

RIGHT = {"double": GOOD["double"], "explain_total": "One call instead of many."}
"""Without `total`: nothing in these tests depends on a measurement."""


@pytest.fixture(scope="module", autouse=True)
def _here() -> Iterator[None]:
    """Jobs are performed in this process, which knows the small course."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "run", perform_here)
        yield


@pytest.fixture(scope="module")
def course(root: Path) -> Grading:
    """The class, graded by `unrolled grade`."""
    hand_in(root, "ann", answered(root, RIGHT))
    hand_in(root, "bob", released(root))
    cut = answered(root, {"double": GOOD["double"]})
    cut.cells = [cell for cell in cut.cells if "total" not in str(cell.metadata)]
    hand_in(root, "cem", cut)
    hand_in(root, "dan", released(root)).write_bytes(b'{"cells": [')
    before = (root / "notebooks" / LESSON / f"{LESSON}.ipynb").read_bytes()
    course = Grading.at(root)
    commands.grade_class(course, ["07"])
    assert (root / "notebooks" / LESSON / f"{LESSON}.ipynb").read_bytes() == before
    return course


@contextmanager
def grades(course: Grading, student: str) -> Iterator[tuple[Gradebook, dict[str, Any]]]:
    """The gradebook, and a student's grades by cell."""
    with Gradebook(course.directory.db_url, course.directory.course_id) as gradebook:
        submitted = gradebook.find_submission_notebook(LESSON, LESSON, student)
        yield gradebook, {grade.name: grade for grade in submitted.grades}


def scores_csv(course: Grading) -> list[dict[str, str]]:
    return table(course.grades / "scores.csv")


def handed(course: Grading, student: str) -> intake.Handed:
    return intake.handed(course.submitted / student / LESSON, ["double", "total"])


def test_the_gradebook_has_the_judges_scores(course: Grading) -> None:
    assert small_course.grades(course, "ann") == {
        "check_double": (2.0, False),
        "check_total": (0.0, False),
        "explain_total": (None, True),  # an answer in words waits for a person
    }
    nothing = {"check_double": (0.0, False), "check_total": (0.0, False), "explain_total": (0.0, False)}
    assert small_course.grades(course, "bob") == nothing
    assert small_course.grades(course, "cem") == {**nothing, "check_double": (2.0, False)}
    assert small_course.grades(course, "dan") == nothing


def test_scores_csv_agrees_and_has_a_row_for_words(course: Grading) -> None:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for row in scores_csv(course):
        found.setdefault(row["student"], {})[row["check"]] = (row["points"], row["verdict"])
    nothing = {"double": ("0", "missing"), "total": ("0", "missing"), "total/speed": ("0", "missing")}
    unanswered = nothing | {"explain_total": ("0", "unanswered")}
    assert found == {
        "ann": nothing | {"double": ("2", "pass"), "explain_total": ("0", "waits")},
        "bob": unanswered,
        "cem": unanswered | {"double": ("2", "pass")},
        "dan": unanswered,
    }
    reasons = {row["student"]: row["detail"] for row in scores_csv(course) if row["check"] == "total"}
    assert "NameError" in reasons["cem"]  # its check was put back, its function was not
    assert "not valid JSON" in reasons["dan"]


def test_no_answer_is_commented(course: Grading) -> None:
    with Gradebook(course.directory.db_url, course.directory.course_id) as gradebook:
        comments = gradebook.find_submission_notebook(LESSON, LESSON, "ann").comments
        auto_comments = {comment.name: comment.auto_comment for comment in comments}
    assert auto_comments == {"double": None, "total": "No response.", "explain_total": None}


def test_feedback_is_written_for_what_opened(course: Grading) -> None:
    pages = sorted(file.parent.parent.name for file in course.feedback.glob("*/*/*.html"))
    assert pages == ["ann", "bob", "cem"]
    text = (course.feedback / "ann" / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "double: 2 of 2 points, pass" in text
    assert "CheckFailedError" not in text


def test_a_grading_that_was_killed_is_not_done(course: Grading) -> None:
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


def test_nbgraders_own_autograde_gives_the_same(course: Grading) -> None:
    """As formgrader's button does it: through the API, inside a running event loop. A manual score stays."""
    before, rows = small_course.grades(course, "ann"), scores_csv(course)
    with grades(course, "ann") as (gradebook, found):
        found["explain_total"].manual_score = 1.5
        found["check_double"].manual_score = 1.0
        gradebook.db.commit()

    assert press(course, "ann")["success"]
    after = small_course.grades(course, "ann")
    assert {name: score for name, (score, _) in after.items()} == {name: score for name, (score, _) in before.items()}
    by_judge = [row for row in scores_csv(course) if row["verdict"] != "marked"]
    assert by_judge == [row for row in rows if (row["student"], row["check"]) != ("ann", "explain_total")]
    by_hand = {row["check"]: (row["points"], row["max_points"]) for row in scores_csv(course) if row not in by_judge}
    assert by_hand == {"double/by a person": ("-1", "0"), "explain_total": ("1.5", "2")}
    with grades(course, "ann") as (_, found):
        assert (found["explain_total"].manual_score, found["check_double"].score) == (1.5, 1.0)
        assert not found["check_double"].needs_manual_grade  # the judge found what the person knew: nothing to review


def test_a_submission_that_breaks_later_loses_what_it_had(course: Grading, root: Path) -> None:
    hand_in(root, "eve", answered(root, RIGHT))
    commands.grade_class(course, student="eve")
    assert small_course.grades(course, "eve")["check_double"] == (2.0, False)
    handed(course, "eve").path.write_bytes(b"\0")
    commands.grade_class(course, student="eve")
    assert small_course.grades(course, "eve")["check_double"] == (0.0, False)
    assert not (course.feedback / "eve" / LESSON).exists()


def test_what_nbgrader_cannot_open_is_recorded(course: Grading, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "repaired", Mock(side_effect=ValueError("no such cell")))
    hand_in(root, "fay", answered(root, RIGHT))
    commands.grade_class(course, student="fay")
    kept = recorded(course, "fay")
    assert (kept.points, kept.problem) == (0, "it cannot be repaired: ValueError: no such cell")


def damage(root: Path, student: str) -> Path:
    """Hand in a right answer that lost its grade_id and its check, among files that would do harm; its folder."""
    notebook = answered(root, {"explain_total": RIGHT["explain_total"]})
    notebook.cells = [cell for cell in notebook.cells if "double" not in str(cell.metadata)]
    notebook.cells.insert(2, new_code_cell(f"import numpy as np\n\n{RIGHT['double']}"))
    notebook.metadata.kernelspec = {"name": "ir", "display_name": "R", "language": "R"}
    folder = hand_in(root, student, notebook).parent
    (folder / "unrolled").mkdir()
    for name in ("numpy.py", "sitecustomize.py", "unrolled/__init__.py"):
        (folder / name).write_text("raise SystemExit('the submission's own module was imported')")
    (folder / "secret.txt").symlink_to(root / "pyproject.toml")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    (folder / "timestamp.txt").write_text("yesterday, I think")
    return folder


def press(course: Grading, student: str) -> dict[str, Any]:
    """Autograde as formgrader's button does it: through the API, inside a running event loop."""

    async def pressed() -> dict[str, Any]:
        config = notebooks.nbgrader_config(Path(course.directory.root))
        result: dict[str, Any] = NbGraderAPI(config=config).autograde(LESSON, student)
        return result

    return asyncio.run(pressed())


def test_a_damaged_notebook_is_repaired_and_graded_alone_by_every_door(course: Grading, root: Path) -> None:
    """On real kernels. What else was handed in neither runs, nor is copied, nor stops anything."""
    damage(root, "gil")
    commands.grade_class(course, student="gil")
    first = recorded(course, "gil")
    assert first.repairs == (
        "double: its cell had lost its grade_id; taken is the cell that defines double",
        "check_double: its cell was missing; it was put back",
        "it asks for the kernel ir (r); it is graded with Python",
    )
    assert first.scores[0].verdict == "pass"
    assert first.scores[0].detail.startswith("(repaired: its cell had lost its grade_id")
    folder = Path(course.directory.format_path(course.directory.autograded_directory, "gil", LESSON))
    assert [file.name for file in folder.iterdir()] == [f"{LESSON}.ipynb"]
    assert press(course, "gil")["success"]
    assert recorded(course, "gil") == first  # the job was done
    assert [file.name for file in folder.iterdir()] == [f"{LESSON}.ipynb"]
    assert "its cell had lost its grade_" in (course.grades / "report.html").read_text(encoding="utf-8")


def test_every_door_records_what_it_refuses(course: Grading, root: Path) -> None:
    """And no door follows a link out of the folder."""
    theirs = hand_in(root, "ida", answered(root, RIGHT))
    mine = hand_in(root, "jon", released(root))
    mine.unlink()
    mine.symlink_to(theirs)
    result = press(course, "jon")
    assert not result["success"]
    assert "expected a file, not a link or folder" in result["log"]
    first = recorded(course, "jon")
    commands.grade_class(course, student="jon", force=True)
    second = recorded(course, "jon")
    assert first.problem == second.problem == "expected a file, not a link or folder"
    assert first.scores == second.scores
    assert small_course.grades(course, "jon")["check_double"] == (0.0, False)


def test_the_time_stamp_alone_comes_along(course: Grading, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So nbgrader knows a later submission from one that is graded."""
    judge = Mock(side_effect=lambda submission, options: Verdicts(submission.notebook, (), 0.0, ()))
    monkeypatch.setattr(verdicts, "judge", judge)
    folder = hand_in(root, "kim", answered(root, RIGHT)).parent
    into = Path(course.directory.format_path(course.directory.autograded_directory, "kim", LESSON))
    for day in ("2030-01-01", "2030-01-01", "2030-01-02"):
        (folder / "timestamp.txt").write_text(f"{day} 00:00:00 UTC\n")
        assert small_course.autograde(root, "kim", force=False)["success"]
        assert (into / "timestamp.txt").read_text() == f"{day} 00:00:00 UTC\n"
        assert recorded(course, "kim").digest == handed(course, "kim").digest
    judge.assert_called_once()  # it is the same notebook


def test_folders_with_odd_names_are_set_aside_by_name_at_every_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verdicts, "judge", small_course.judge_double)
    root = small_course.make(tmp_path / "checkout")
    monkeypatch.chdir(root)
    valid, odd = ("ann", "O'Neil, Ünal", "{x}%s", "=1."), ("a\nb", " ann", "a*", "cba\u202e", "Zoe\u0308", "Zo\u00eb")
    for name in (*valid, *odd):
        hand_in(root, name, answered(root, {"double": "1" if name == valid[1] else GOOD["double"]}))
    expected = {name: "0" if name == valid[1] else "2" for name in valid}
    course = Grading.at(root)

    def points() -> dict[str, str]:
        rows = [row for row in scores_csv(course) if row["check"] == "double"]
        return {row["student"].removeprefix("'"): row["points"] for row in rows}

    result = small_course.autograde(root, "*")
    assert result["success"], result
    assert all(f"Set aside: the student's folder {name!r}: " in result["log"] for name in odd)
    assert points() == expected
    commands.grade_class(course, force=True)
    output = capsys.readouterr().out
    assert all(f"passed over: {one_line(repr(name))} (" in output for name in odd)
    assert points() == expected
    assert all(press(course, name)["success"] for name in valid)
    for name in ("a\nb", "a*", "cba\u202e", "Zo\u00eb"):
        result = press(course, name)
        assert "Nothing was graded: the student's folder " in result["error"]
        assert f"{name!r}: " in result["error"]
    assert press(course, " ann")["success"]  # nbgrader takes this for ann
    assert points() == expected
