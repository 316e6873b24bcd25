"""A job gives the same wherever it is performed, and nothing is judged twice without need."""

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
from small_course import GOOD, LESSON, SPECS, answered, autograde, grades, hand_in, perform_here, recorded, released
from sqlalchemy.exc import SQLAlchemyError

import unrolled
import unrolled_grader
from unrolled_grader import commands
from unrolled_grader.classroom import gradebook
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import job, queue, record
from unrolled_grader.judge import intake, opening, verdicts
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts


class Judged(list[Submission]):
    """In place of the judge: keeps what it is given, and finds every correctness right and every speed deferred."""

    def __call__(self, submission: Submission, options: Options) -> Verdicts:
        self.append(submission)
        notebook = copy.deepcopy(submission.notebook)
        speed = Score("total/speed", "pass" if options.timing else "deferred", float(options.timing), 1.0, "")
        scores = (Score("double", "pass", 2.0, 2.0, ""), Score("total", "pass", 1.0, 1.0, ""), speed)
        return Verdicts(notebook, scores, 0.5, (7,), "a box", ("look at cell 7",))

    @property
    def students(self) -> list[str]:
        return [submission.student for submission in self]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    found = Judged()
    monkeypatch.setattr(verdicts, "judge", found)
    monkeypatch.setattr(queue, "run", perform_here)
    return found


@pytest.fixture(scope="module")
def course(root: Path) -> Grading:
    course = Grading.at(root)
    course.fill_gradebook(LESSON)
    return course


def file_of(root: Path, student: str) -> Path:
    return root / "grader" / "submitted" / student / LESSON / f"{LESSON}.ipynb"


def handed(root: Path, student: str) -> intake.Handed:
    return intake.handed(file_of(root, student).parent, list(SPECS))


def test_a_sanitized_notebook_has_what_was_handed_out_and_ids_do_not_count(root: Path) -> None:
    nb = answered(root, {"double": GOOD["double"], "check_double": "\n  check.double(double)  \n", "check_total": "1"})
    nb.metadata[job.REPAIRS] = [["double", "forged"]]
    for cell in nb.cells:
        cell.id = f"another-{cell.id}"
        cell.metadata.get("nbgrader", {}).update(points=99, locked=False)
    data = nbformat.writes(nb).encode()
    ours = job.sanitized(opening.opened(data, LESSON, SPECS), released(root))
    marked = {cell.metadata.nbgrader.grade_id: cell for cell in ours.cells if "nbgrader" in cell.metadata}
    assert marked["check_double"].source == "check.double(double)"
    assert marked["check_total"].source == "check.total(total)"
    assert marked["check_double"].metadata.nbgrader.points == 2
    assert ours.metadata[job.REPAIRS] == [["check_total", "its text was changed; it is as handed out again", False]]
    whole = answered(root, {"double": GOOD["double"], "check_total": "1"})
    again = job.sanitized(opening.opened(nbformat.writes(whole).encode(), LESSON, SPECS), released(root))
    assert job.submission_hash(ours) == job.submission_hash(again)


def test_what_one_door_judged_no_other_judges_again(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "ann", answered(root, GOOD))
    assert commands.grade_class(course, student="ann") == 0
    first = recorded(course, "ann")
    assert (first.flags, first.sandbox, first.seeds) == (("look at cell 7",), "a box", (7,))
    assert autograde(root, "ann")["success"]
    file_of(root, "ann").write_bytes(file_of(root, "ann").read_bytes() + b"\n")  # saved again
    commands.grade_class(course, student="ann")
    again = recorded(course, "ann")
    assert again == replace(first, digest=again.digest)
    assert judged.students == ["ann"]
    commands.grade_class(course, student="ann", force=True)
    assert judged.students == ["ann", "ann"]
    hand_in(root, "ann", answered(root, {"double": "def double(number):\n    return 0"}))
    assert autograde(root, "ann")["success"]
    commands.grade_class(course, student="ann")
    assert judged.students == ["ann", "ann", "ann"]


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(job, "_code", lambda: b"new specs"),
        lambda patch: patch.setattr(job, "environment", lambda options: "Python 4"),
        lambda patch: patch.setenv("UNROLLED_UNSAFE_NO_SANDBOX", "1"),
    ],
    ids=["specs", "environment", "sandbox"],
)
def test_another_judge_judges_again(
    change: Callable[[pytest.MonkeyPatch], None], course: Grading, root: Path, judged: Judged
) -> None:
    hand_in(root, "bob", answered(root, GOOD))
    commands.grade_class(course, student="bob")
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        commands.grade_class(course, student="bob")
    assert judged.students == ["bob", "bob"]


def test_only_what_is_deferred_and_can_be_settled_is_judged_again(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "cem", answered(root, GOOD))
    quick = Grading.at(root)
    quick.judge_with(timing=False)
    for _ in range(2):
        commands.grade_class(quick, student="cem")
    assert judged.students == ["cem"]
    assert recorded(course, "cem").scores[2].verdict == "deferred"
    assert grades(course, "cem")["check_total"] == (1.0, True)  # marked for a person
    for course_ in (course, course, quick):
        commands.grade_class(course_, student="cem")
    assert judged.students == ["cem", "cem"]
    assert recorded(course, "cem").points == 4
    assert grades(course, "cem")["check_total"] == (2.0, False)


def test_where_the_judge_fails_it_is_no_ones_verdict(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "dan", answered(root, GOOD))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "judge", Mock(side_effect=ZeroDivisionError("in the judge")))
        commands.grade_class(course, student="dan")
    kept = recorded(course, "dan")
    assert kept.points == 0
    assert "grade again" in kept.scores[0].flag
    commands.grade_class(course, student="dan")
    assert judged.students == ["dan"]


def test_what_is_our_fault_grades_nobody(
    course: Grading, root: Path, judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(root, "eve", answered(root, GOOD))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "judge", Mock(side_effect=OSError(28, "No space left on device")))
        assert commands.grade_class(course, student="eve") == 1
        assert "not graded: [Errno 28] No space left on device" in capsys.readouterr().out
        assert not autograde(root, "eve")["success"]
    assert record.load(course.grades, "eve", LESSON) is None
    assert record.states(course.grades)["eve", LESSON] == ("running", 1)
    assert not gradebook.has_scores(course.directory, "eve", LESSON)
    assert commands.grade_class(course, student="eve") == 0
    assert record.states(course.grades)["eve", LESSON] == ("done", 2)


def test_what_was_judged_and_not_applied_is_applied(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "fay", answered(root, GOOD))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grading, "apply", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            commands.grade_class(course, student="fay")
    assert record.states(course.grades)["fay", LESSON] == ("done", 1)
    assert course.done(handed(root, "fay")) is None
    commands.grade_class(course, student="fay")
    assert course.done(handed(root, "fay")) is not None
    assert judged.students == ["fay"]


def test_a_page_that_a_killed_run_was_renewing_is_made_by_the_next(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "lou", answered(root, GOOD))
    commands.grade_class(course, student="lou")
    page = course.feedback / "lou" / LESSON / f"{LESSON}.html"
    shutil.rmtree(page.parent)  # as nbgrader begins
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grading, "_convert", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            course._renew_feedback("lou", LESSON)
    assert course.done(handed(root, "lou")) is None
    commands.grade_class(course, student="lou")
    assert page.exists()
    assert course.done(handed(root, "lou")) is not None


def test_a_forced_run_that_was_killed_goes_on(course: Grading, root: Path, judged: Judged) -> None:
    hand_in(root, "gil", answered(root, GOOD))
    commands.grade_class(course, student="gil")
    record.queue(course.grades, [("gil", LESSON)])
    record.start(course.grades, "gil", LESSON)
    commands.grade_class(course, student="gil")
    assert judged.students == ["gil", "gil"]
    assert record.states(course.grades)["gil", LESSON] == ("done", 2)


def test_an_order_and_its_answer_are_json_and_a_broken_file_raises_nothing(
    course: Grading, root: Path, judged: Judged, tmp_path: Path
) -> None:
    file = hand_in(root, "ida", answered(root, GOOD))
    order = course.order(handed(root, "ida"))
    order["result"] = str(tmp_path / "deep" / "result.json")
    assert json.loads(json.dumps(order)) == order
    answer = job.perform(order)
    assert json.loads(json.dumps(answer)) == answer
    found, notebook = job.result_of(answer)
    assert (found.points, found.student, found.digest) == (4, "ida", order["digest"])
    assert notebook is not None
    nbformat.validate(notebook)
    file.write_bytes(b"\0")
    damaged = "the file holds null bytes: it is no notebook, or it was damaged on the way"
    found, notebook = job.result_of(job.perform(order))
    assert (found.problem, notebook) == (damaged, None)
    with pytest.raises(queue.JobError, match="another version of the course"):
        job.perform({**order, "specs": "others"})


@pytest.mark.parametrize("content", [None, "", "{}", '{"record": {"format": 99}, "notebook": null}'])
def test_a_result_that_cannot_be_read_grades_nobody(
    content: str | None, course: Grading, root: Path, judged: Judged, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As where a cluster's machines share no folder; the class goes on."""
    file = tmp_path / "result.json"
    if content is not None:
        file.write_text(content)
    hand_in(root, "jon", answered(root, GOOD))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "perform", lambda order: {"result": str(file)})
        assert commands.grade_class(course, student="jon") == 1
    assert "not graded: its result cannot be read" in capsys.readouterr().out
    assert record.load(course.grades, "jon", LESSON) is None


def test_a_gradebook_that_cannot_be_written_grades_nobody(
    course: Grading, root: Path, judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    hand_in(root, "kim", answered(root, GOOD)).write_bytes(b"\0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradebook, "save_zero", Mock(side_effect=SQLAlchemyError("database is locked")))
        assert commands.grade_class(course, student="kim") == 1
    assert "not graded: the gradebook cannot be written: database is locked" in capsys.readouterr().out
    assert commands.grade_class(course, student="kim") == 0


JUDGES = (
    *("unrolled_grader/box/wire.py", "unrolled_grader/judge/walk.py", "unrolled_grader/jobs/job.py"),
    *("unrolled/ops/conv.py", "unrolled/checks/compare.py"),
)
OTHERS = (
    *("unrolled_grader/results/inert.py", "unrolled_grader/jobs/queue.py", "unrolled_grader/commands.py"),
    *("unrolled/show/style.py", "unrolled/cli/lab.py", "unrolled/checks/course.json"),
)


def test_a_class_is_judged_again_when_what_judges_changed(tmp_path: Path) -> None:
    for package in (unrolled, unrolled_grader):
        source = Path(package.__file__).parent
        shutil.copytree(source, tmp_path / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    folders = tmp_path / "unrolled", tmp_path / "unrolled_grader"
    hashes = [job.code_hash(*folders)]
    for changed in (*OTHERS, *JUDGES):
        with (tmp_path / changed).open("a", encoding="utf-8") as file:
            file.write("\n")
        hashes.append(job.code_hash(*folders))
    assert len(set(hashes[: len(OTHERS) + 1])) == 1
    assert len(set(hashes)) == 1 + len(JUDGES)


def test_what_forks_the_judges_loads_only_what_judges_need() -> None:
    program = "import sys, unrolled_grader.jobs.job; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    workers, doors = {"IPython", "matplotlib", "sklearn"}, {"nbgrader", "nbconvert", "sqlalchemy"}
    parsers = {"lark"}  # of IRIs, which takes over a second to build
    assert not (workers | doors | parsers) & set(done.stdout.split())
