"""Points reach a learning platform as its importer reads them, and no name becomes a formula or breaks a row."""

import csv
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from unrolled_grader.classroom.gradebook import opened
from unrolled_grader.export import Canvas, Moodle

LESSONS = ("01_matrix_parallelism", "02_convolution")
NAMES = {
    "ann": ("Ann", 'O\'Neil, the "2nd"'),
    "bob": ("=HYPERLINK(1)", "+1"),
    "cem": ("Çem", "Ünsal 李"),
    "-dan": ("@SUM\tA1", "line\nbreak"),
    "eve": (None, None),
}


pytestmark = pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gradebook of two lessons, each a check (3 points) and an answer in words (2). Eve handed in nothing."""
    file = tmp_path_factory.mktemp("course") / "gradebook.db"
    config = Config({"CourseDirectory": {"db_url": f"sqlite:///{file}"}})
    with opened(CourseDirectory(config=config)) as book:
        for lesson in LESSONS:
            book.add_assignment(lesson)
            book.add_notebook(lesson, lesson)
            for name, points in (("check_im2col", 3), ("explain_gemm", 2)):
                book.add_grade_cell(name, lesson, lesson, max_score=points, cell_type="code")
        for student, (first, last) in NAMES.items():
            book.add_student(student, first_name=first, last_name=last, email=f"{student}@x.org", lms_user_id="7")
        for student in ("ann", "bob", "cem", "-dan"):
            hand_in(book, LESSONS[0], student, 2.5, 1.0)
        hand_in(book, LESSONS[1], "ann", 3.0, None)
    return file


@pytest.fixture
def database(filled: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(filled, tmp_path)}"


@pytest.fixture
def gradebook(database: str) -> Iterator[Gradebook]:
    with Gradebook(database) as book:
        yield book


def hand_in(book: Gradebook, lesson: str, student: str, auto: float, manual: float | None) -> None:
    """A submission that the judge has graded, and a person too unless `manual` is None."""
    submission = book.add_submission(lesson, student)
    for grade in submission.notebooks[0].grades:
        by_judge = grade.name == "check_im2col"
        grade.auto_score = auto if by_judge else None
        grade.manual_score = None if by_judge else manual
        grade.needs_manual_grade = not by_judge and manual is None
    book.db.commit()


def exported(plugin: type[Canvas] | type[Moodle], book: Gradebook, folder: Path, **options: object) -> list[list[str]]:
    file = folder / "points.csv"
    plugin(to=str(file), **options).export(book)
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def test_canvas_gets_its_columns(gradebook: Gradebook, tmp_path: Path) -> None:
    head, possible, *rows = exported(Canvas, gradebook, tmp_path)
    assert head == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *LESSONS]
    assert possible == ["    Points Possible", "", "", "", "", "5", "5"]
    by_id = {row[3]: row for row in rows}
    assert by_id["cem"] == ["Ünsal 李, Çem", "7", "", "cem", "", "3.5", ""]
    assert by_id["ann"][0] == 'O\'Neil, the "2nd", Ann'
    assert by_id["eve"] == ["eve", "7", "", "eve", "", "", ""]  # nothing was handed in: not ours to call 0
    assert len(rows) == len(NAMES)


def test_moodle_gets_its_columns(gradebook: Gradebook, tmp_path: Path) -> None:
    head, *rows = exported(Moodle, gradebook, tmp_path)
    assert head[:5] == ["First name", "Last name", "Username", "ID number", "Email address"]
    assert head[5:] == [text for lesson in LESSONS for text in (lesson, f"{lesson} (feedback)")]
    by_id = {row[2]: row for row in rows}
    made_of = "im2col 2.5 of 3, explain_gemm 1 of 2"
    assert by_id["cem"] == ["Çem", "Ünsal 李", "cem", "7", "cem@x.org", "3.5", made_of, "", ""]
    assert by_id["eve"][5:] == ["", "", "", ""]


@pytest.mark.parametrize("plugin", [Canvas, Moodle])
def test_nothing_is_a_formula_and_what_waits_is_left_out_and_counted(
    plugin: type[Canvas], gradebook: Gradebook, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        rows = exported(plugin, gradebook, tmp_path, log=logging.getLogger("export"))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not any(cell[:1] in ("=", "+", "-", "@", "\t", "\r") or "\n" in cell for row in rows for cell in row)
    assert any("'-dan" in row for row in rows)
    assert not any("3" in row for row in rows)
    assert "1 of 5 submissions are not graded to the end; they are left empty" in caplog.text
    assert "['-dan']" in caplog.text
    assert sum("3" in row for row in exported(plugin, gradebook, tmp_path, unfinished="points")) == 1


def test_lateness_costs_and_a_person_decides(gradebook: Gradebook, tmp_path: Path) -> None:
    late = gradebook.find_submission_notebook(LESSONS[0], LESSONS[0], "ann")
    late.late_submission_penalty = 1.25
    lost = gradebook.find_submission_notebook(LESSONS[0], LESSONS[0], "bob")
    lost.late_submission_penalty = 99.0
    gradebook.find_grade("check_im2col", LESSONS[0], LESSONS[0], "cem").manual_score = 0.333
    gradebook.db.commit()
    points = {row[3]: row[5] for row in exported(Canvas, gradebook, tmp_path)[2:]}
    assert (points["ann"], points["bob"], points["cem"]) == ("2.25", "0", "1.33")
    assert any("late -1.25" in cell for row in exported(Moodle, gradebook, tmp_path) for cell in row)


def test_students_and_lessons_can_be_chosen(gradebook: Gradebook, tmp_path: Path) -> None:
    rows = exported(Canvas, gradebook, tmp_path, assignment=[LESSONS[0]], student=["ann", "eve"])
    assert rows[0][5:] == [LESSONS[0]]
    assert [row[3] for row in rows[2:]] == ["ann", "eve"]


def test_nbgraders_command_runs_it(gradebook: Gradebook, database: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "nbgrader", "export", "--db", database, "--to", "moodle.csv"]
    command += ["--exporter=unrolled_grader.export.Moodle", "--Moodle.unfinished=points"]
    environment = {**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert "exported with the points so far" in result.stderr
    assert '"O\'Neil, the ""2nd"""' in (tmp_path / "moodle.csv").read_text(encoding="utf-8")
