"""A run that is killed loses nothing: the next one goes on."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import small_course
from nbgrader.api import Gradebook
from small_course import GOOD, LESSON, answered, hand_in

from unrolled_grader.grading import Grading
from unrolled_grader.jobs import record
from unrolled_grader.judge import intake

RUN = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import small_course
from unrolled_grader import commands
from unrolled_grader.jobs import job
from unrolled_grader.grading import Grading
small_course.know()
job.perform = small_course.perform_quickly
course = Grading.at(Path(sys.argv[2]))
course.judge_with(sandbox=False)
sys.exit(commands.grade_class(course, jobs=2))
"""


@pytest.mark.usefixtures("_small_specs")
def test_a_class_is_graded_once_however_often_the_run_is_killed(tmp_path: Path) -> None:
    """`kill -9` of the coordinator when one is graded; its processes end with it, and the next run goes on."""
    root = small_course.make(tmp_path / "checkout")
    students = [f"s{number:02}" for number in range(8)]
    for number, student in enumerate(students):
        hand_in(root, student, answered(root, GOOD if number % 2 else {}))
    command = [sys.executable, "-c", RUN, str(Path(__file__).parent), str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if line.startswith("["))  # others are on their way
        run.kill()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    grades, feedback = root / "grades", root / "grader" / "feedback"
    states = record.states(grades)
    assert {student for student, _ in states} == {*students}
    assert {state for state, _ in states.values()} == {"done"}
    assert all(1 <= attempts <= 2 for _, attempts in states.values())
    with closing(sqlite3.connect(grades / record.TABLE)) as table:
        assert table.execute("SELECT count(*) FROM earlier").fetchone() == (0,)  # nobody was graded twice
    found = list(record.load_all(grades))
    assert [kept.points for kept in found] == [2 * (number % 2) for number in range(8)]
    course = Grading.at(root)
    for kept in found:
        assert (feedback / kept.student / LESSON / f"{LESSON}.html").exists()
        with Gradebook(course.directory.db_url, course.directory.course_id) as gradebook:
            submitted = gradebook.find_submission_notebook(LESSON, LESSON, kept.student)
            assert {grade.name: grade.auto_score for grade in submitted.grades}["check_double"] == kept.points
    course.judge_with(sandbox=False)
    handed = intake.find(course.submitted, {LESSON: list(small_course.SPECS)})
    assert len([item for item in handed if course.done(item)]) == len(students)
