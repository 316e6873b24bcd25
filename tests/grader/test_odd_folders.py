"""Students' folders with odd names are set aside by name at all three doors, and the class goes on."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbgrader.apps import NbGraderAPI
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from small_course import GOOD, LESSON, SPECS, answered, hand_in, perform_here

from unrolled_grader import commands
from unrolled_grader.authoring import notebooks
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue, record
from unrolled_grader.judge import evidence, intake, verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts

TAKEN = ("ann", "abc", "O'Neil, Ünal", "山田 太郎@uni.edu", "{x}%s", "a\\nb]", "=1.", "\u0645\u06cc\u200c\u062e")
ODD = ("a\nb", " ann", "ann ", "abc\u00a0", "[abc]", "a*", "?", "*", "tab\tbed", "cba\u202e", "bom\ufeff", "\u2028",
       " ", "Zoe\u0308", "Zo\u00eb", "A  B", "A B", "raw\udcff")  # fmt: skip
"""Among them two pairs that look the same."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that only looks whether `double` is right."""

    def quick(submission: Submission, options: Options) -> Verdicts:
        right = any(cell.source == GOOD["double"] for cell in submission.notebook.cells)
        scores = [evidence.Score("double", "pass" if right else "fail", 2.0 * right, 2.0, "")]
        return Verdicts(
            submission.notebook, (*scores, *evidence.without("total", SPECS["total"], "missing", "")), 0.1, ()
        )

    monkeypatch.setattr(verdicts, "judge", quick)
    monkeypatch.setattr(queue, "run", perform_here)


@pytest.fixture
def handed_in(root: Path) -> Iterator[Path]:
    """The class's course: a right answer of each, except of the second."""
    for name in (*TAKEN, *ODD):
        hand_in(root, name, answered(root, {"double": "1" if name == TAKEN[1] else GOOD["double"]}))
    yield root
    for made in ("submitted", "autograded", "feedback", "gradebook.db", "../grades"):
        path = root / "grader" / made
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def scores(root: Path) -> dict[str, str]:
    """The points for `double` by student, as scores.csv has them."""
    with (root / "grades" / "scores.csv").open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["check"] == "double"]
    assert len({row["student"] for row in rows}) == len(rows)
    return {row["student"].removeprefix("'"): row["points"] for row in rows}


EXPECTED = {name: "0" if name == TAKEN[1] else "2" for name in TAKEN}


def test_unrolled_grade(handed_in: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands.grade_class(Grading.at(handed_in), ["07"])
    assert scores(handed_in) == EXPECTED
    told = capsys.readouterr().out
    assert told.count("passed over: ") == len(ODD)
    assert all(f"passed over: {record.one_line(repr(name))} (" in told for name in ODD)


def test_which_names_are_odd() -> None:
    assert sorted(intake.odd([*TAKEN, *ODD])) == sorted(ODD)
    assert intake.odd(["Ann", "ann", "l" * 255, "-x", "#1", "$(ls)", "a..", "x+y@uni.edu"]) == {}
    assert intake.odd(["=1", "'=1"]).keys() == {"=1", "'=1"}  # scores.csv has a ' before what may be a formula


def converted(root: Path, student: str) -> dict[str, Any]:
    config = notebooks.nbgrader_config(root)
    directory = CourseDirectory(config=config, assignment_id=LESSON, student_id=student)
    result: dict[str, Any] = capture_log(Autograde(coursedir=directory, config=config))
    return result


def test_nbgrader_autograde(handed_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(handed_in)
    result = converted(handed_in, "*")
    assert result["success"], result
    assert scores(handed_in) == EXPECTED
    assert all(f"Set aside: the student's folder {name!r}: " in result["log"] for name in ODD)


def test_the_button(handed_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(handed_in)
    api = NbGraderAPI(config=notebooks.nbgrader_config(handed_in))
    for name in TAKEN:
        assert api.autograde(LESSON, name)["success"], name
    for name in ("a\nb", "a*", "?", "cba\u202e", "Zo\u00eb"):
        result = api.autograde(LESSON, name)
        assert "Nothing was graded: the student's folder " in result["error"]
        assert f"{name!r}: " in result["error"]
    for name in ("[abc]", " "):  # nbgrader finds nothing, and says so
        assert not api.autograde(LESSON, name)["success"]
    assert api.autograde(LESSON, " ann")["success"]  # nbgrader takes this for ann
    assert scores(handed_in) == EXPECTED
