"""A class without names: what is left out, what agrees between exports, and what is said to stay."""

import csv
import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
import small_course
from nbformat.v4 import new_output
from small_course import GOOD, LESSON, answered, hand_in

from unrolled.cli import CommandError
from unrolled_grader import commands
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue, record
from unrolled_grader.judge import evidence, verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts
from unrolled_grader.results import pseudonyms

STUDENTS = ("ada", "max", "s2")


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Grading:
    """A copy of the class."""
    return Grading.at(shutil.copytree(graded, tmp_path / "class"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, _small_specs: None) -> Iterator[Path]:
    """A class of three, one with a file that is no notebook, whose notebooks hold their names in many places."""

    def judge_quickly(submission: Submission, options: Options) -> Verdicts:
        score = evidence.Score("double", "pass", points.pop(), 2.0, f"in /home/{submission.student}/x.py", "at Ada's")
        return Verdicts(submission.notebook, (score,), 0.1, (47114711471147,))

    points = [1.0, 1.0, 2.0, 2.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue, "run", small_course.perform_here)
        patch.setattr(verdicts, "judge", judge_quickly)
        root = small_course.make(tmp_path_factory.mktemp("pseudonyms") / "class")
        for student in ("ada", "s2"):
            notebook = answered(root, {"double": f"# by Ada\n{GOOD['double']}", "explain_total": "I, Ada."})
            notebook.metadata.colab = {"name": "ada.ipynb", "provenance": [{"displayName": "A. L.", "userId": "077"}]}
            code = next(cell for cell in notebook.cells if cell.cell_type == "code")
            code.metadata.executionInfo = {"user": {"displayName": "A. L.", "photoUrl": "https://x/y.png"}}
            code.outputs = [new_output("stream", text="A. L.'s machine")]
            notebook.cells[0].attachments = {"me.png": {"image/png": "AAAA"}}
            folder = hand_in(root, student, notebook).parent
            (folder / "journal.json").write_text(json.dumps({"student": student, "mine": "Ada's"}))
        hand_in(root, "max", answered(root, {})).write_bytes(b"no notebook")
        commands.grade_class(Grading.at(root))
        commands.grade_class(Grading.at(root), force=True, reason="as Ada asked")
        yield root


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def test_an_export_names_nobody(course: Grading, tmp_path: Path) -> None:
    assert pseudonyms.export(course, tmp_path / "out") == 3
    made = files(tmp_path / "out")
    names = {student: pseudonyms.of(pseudonyms.key(course.grades), student) for student in STUDENTS}
    records = [f"records/{name}/{LESSON}.json" for name in names.values()]
    assert sorted(made) == sorted(["README.txt", "scores.csv", "regrades.csv", *records])
    data = "\n".join(text for name, text in made.items() if name != "README.txt")
    for pseudonym in names.values():
        data = data.replace(pseudonym, "")
    for text in ("Ada", "ada", "A. L.", "not valid", "47114711471147"):
        assert text not in data
    rows = list(csv.DictReader(made["scores.csv"].splitlines()))
    assert [row["student"] for row in rows] == sorted(row["student"] for row in rows)
    assert {row["student"] for row in rows} == {*names.values()}
    points = [row["points"] for row in rows if (row["student"], row["check"]) == (names["ada"], "double")]
    assert points == ["1"]
    (line,) = [row for row in csv.DictReader(made["regrades.csv"].splitlines()) if row["student"] == names["ada"]]
    assert (len(line["when"]), line["before"], line["after"], line["reason"]) == (10, "2", "1", "")
    kept = json.loads(made[f"records/{names['ada']}/{LESSON}.json"])
    assert record.from_dict(kept).points == 1  # still a record
    assert (kept["digest"], kept["seeds"], kept["key"]["submission"], len(kept["date"])) == ("", [], "", 10)


def test_texts_come_only_if_asked_for_and_are_warned_of(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    export = partial(small_course.command, course, monkeypatch, "pseudonymous")
    assert export(str(tmp_path / "out")) == 0
    assert "findings are left out, as they may hold names; --texts adds them" in capsys.readouterr().out
    assert export(str(tmp_path / "all"), "--texts") == 0
    assert "WARNING: notebooks, journals and findings are there as they were written" in capsys.readouterr().out
    made = files(tmp_path / "all")
    assert "NOT taken out" in made["README.txt"]
    name = pseudonyms.of(pseudonyms.key(course.grades), "ada")
    notebook = nbformat.reads(made[f"notebooks/{name}/{LESSON}/{LESSON}.ipynb"], 4)
    nbformat.validate(notebook)
    assert f"# by Ada\n{GOOD['double']}" in [cell.source for cell in notebook.cells]
    for text in ("A. L.", "AAAA", "photoUrl"):
        assert text not in "".join(made.values())
    assert json.loads(made[f"notebooks/{name}/{LESSON}/journal.json"]) == {"student": name, "mine": "Ada's"}
    assert "in /home/ada/x.py" in made["scores.csv"]
    assert "as Ada asked" in made["regrades.csv"]
    assert len([file for file in made if file.endswith(".ipynb")]) == 2


def test_two_exports_agree_and_another_key_does_not(course: Grading, tmp_path: Path) -> None:
    for name in ("one", "two"):
        pseudonyms.export(course, tmp_path / name, texts=True)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    key = course.grades / pseudonyms.KEY
    assert key.stat().st_mode & 0o077 == 0
    key.unlink()
    pseudonyms.export(course, tmp_path / "three", texts=True)
    assert {*files(tmp_path / "three")} & {*files(tmp_path / "one")} == {"README.txt", "scores.csv", "regrades.csv"}


def test_nothing_is_overwritten_and_nothing_half_done_stays(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").touch()
    with pytest.raises(CommandError, match="is there already"):
        pseudonyms.export(course, tmp_path / "there")
    with monkeypatch.context() as patch:
        patch.setattr(record, "write_scores", Mock(side_effect=OSError("no space left")))
        with pytest.raises(OSError, match="no space"):
            pseudonyms.export(course, tmp_path / "full")
    (course.grades / pseudonyms.KEY).write_text("abc")
    with pytest.raises(CommandError, match="is damaged"):
        pseudonyms.export(course, tmp_path / "damaged")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class", "there"]


def test_hostile_notebooks_and_journals_do_not_stop_the_export(course: Grading, tmp_path: Path) -> None:
    deep = '{"a":' * 900 + "1" + "}" * 900
    for text in ('{"a": "\\ud800"}', deep, "[" * 100_000, "[]", "7"):
        (course.submitted / "ada" / LESSON / "journal.json").write_text(text)
        pseudonyms.export(course, tmp_path / f"{len(text)} of a journal", texts=True)
    handed = course.submitted / "ada" / LESSON / f"{LESSON}.ipynb"
    for text in (handed.read_text().replace("by Ada", "by \\ud800 Ada"), "[" * 100_000):
        handed.write_text(text)
        pseudonyms.export(course, tmp_path / f"{len(text)} of a notebook", texts=True)
