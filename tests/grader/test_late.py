"""What lateness costs, and that every door and every list says the same; a changed date judges nothing again."""

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import small_course
from hypothesis import given
from hypothesis import strategies as st
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from small_course import GOOD, LESSON, answered, hand_in

from unrolled_grader import commands
from unrolled_grader.authoring import notebooks
from unrolled_grader.classroom import late, settings
from unrolled_grader.classroom.settings import Late, Settings
from unrolled_grader.export import Canvas, Moodle
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import record
from unrolled_grader.judge import evidence
from unrolled_grader.judge.verdicts import Submission
from unrolled_grader.results import report, standing

POLICY = Late(grace_minutes=15, per_day=0.1, at_most=0.5)
DUE = datetime(2027, 1, 15, 23, 59, tzinfo=timezone(timedelta(hours=9)))
TOML = """
[due]
timezone = "Asia/Tokyo"
07_doubling = 2027-01-15T23:59:00
[extensions.bob]
07_doubling = 2027-01-18T08:59:00-06:00
[late]
grace_minutes = 15
per_day = 0.1
at_most = 0.5
"""


@pytest.mark.parametrize(
    ("late_by", "part"),
    [
        (timedelta(seconds=-5), 0),
        (timedelta(minutes=15), 0),
        (timedelta(minutes=15, seconds=1), 0.1),
        (timedelta(days=1), 0.1),
        (timedelta(days=1, seconds=1), 0.2),
        (timedelta(days=4, hours=1), 0.5),
        (timedelta(days=400), 0.5),
    ],
)
def test_each_day_begun_takes_its_part_up_to_the_most(late_by: timedelta, part: float) -> None:
    assert late.share(DUE, DUE + late_by, Settings(late=POLICY)) == pytest.approx(part)


@pytest.mark.parametrize(
    ("due", "came", "words"),
    [
        ("2027-01-15T23:59", "2027-01-15T23:59:30", "less than a minute late (1 day begun)"),
        ("2027-01-15T23:59", "2027-01-16T00:00", "1 minute late (1 day begun)"),
        ("2027-01-15T23:59", "2027-01-16T23:59", "24 hours late (1 day begun)"),
        ("2027-01-15T23:59", "2027-01-17T00:00", "24 hours late (2 days begun)"),
        ("2027-03-27T23:59", "2027-03-28T23:59", "23 hours late (1 day begun)"),  # clocks go forward
        ("2027-03-27T23:59", "2027-03-29T00:00", "23 hours late (2 days begun)"),
        ("2027-10-30T23:59", "2027-10-31T23:59", "25 hours late (1 day begun)"),  # and back
        ("2027-03-28T02:30", "2027-03-29T03:00", "23 hours late (1 day begun)"),  # of an hour that is left out
        ("2027-10-31T02:50", "2027-10-31T03:00", "10 minutes late (1 day begun)"),  # the second 2:50 of that night
    ],
)
def test_days_are_those_of_the_calendar_in_words_too(due: str, came: str, words: str) -> None:
    parsed = settings.parse(f'[due]\ntimezone = "Europe/Berlin"\n{LESSON} = {due}:00', {LESSON})
    moment = datetime.fromisoformat(came).replace(tzinfo=parsed.zone)
    assert late.in_words(parsed.due[LESSON], moment, parsed.zone) == words


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Tokyo", "Australia/Lord_Howe"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)),
    st.timedeltas(timedelta(seconds=1), timedelta(days=20)),
)
def test_one_day_more_has_begun_at_each_return_of_the_due_hour(name: str, due: datetime, after: timedelta) -> None:
    zone = ZoneInfo(name)
    moment = due.replace(tzinfo=zone)
    came = moment.astimezone(timezone.utc) + after
    returned = sum(due + timedelta(days=day) < came.astimezone(zone).replace(tzinfo=None) for day in range(1, 30))
    assert late.days_begun(moment, came, zone) == 1 + returned


@pytest.fixture
def course(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Grading]:
    """A class of three who handed in one and a half days late; bob has an extension. The judge gives 4 points."""
    judged.clear()
    small_course.judged_here(monkeypatch, all_points)
    (root / "course.toml").write_text(TOML)
    for student in ("ann", "bob", "cem"):
        words = {"explain_total": "One call."} if student == "ann" else {}
        folder = hand_in(root, student, answered(root, GOOD | words)).parent
        stamp(folder, DUE + timedelta(days=1.5) if student != "cem" else DUE + timedelta(minutes=10))
    yield Grading.at(root)
    for name in ("grades", "grader"):
        for file in sorted((root / name).rglob("*"), reverse=True):
            if file.name != "nbgrader_config.py":
                file.rmdir() if file.is_dir() else file.unlink()


judged: list[str] = []


def all_points(submission: Submission) -> list[evidence.Score]:
    judged.append(submission.student)
    parts = [("double", 2.0), ("total", 1.0), ("total/speed", 1.0)]
    return [evidence.Score(part, "pass", points, points, "") for part, points in parts]


def stamp(folder: Path, when: datetime) -> None:
    """As nbgrader's exchange writes it: in UTC."""
    utc = when.astimezone(timezone.utc)
    (folder / "timestamp.txt").write_text(utc.strftime("%Y-%m-%d %H:%M:%S.%f UTC"))


@contextmanager
def submission(course: Grading, student: str) -> Iterator[Any]:
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        yield book.find_submission(LESSON, student)
        book.db.commit()


def rows(course: Grading, student: str) -> dict[str, tuple[str, str]]:
    """Points and detail by part, from scores.csv."""
    with (course.grades / "scores.csv").open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["student"] == student]
    return {row["check"]: (row["points"], row["detail"]) for row in found}


def exported(course: Grading, plugin: type[Canvas | Moodle], student: str) -> str:
    """The cell of a student in the platform's CSV."""
    file = course.grades / "lms.csv"
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        plugin(to=str(file), unfinished="points", config=course.config).export(book)
    with file.open(newline="", encoding="utf-8") as stream:
        (row,) = [row for row in csv.reader(stream) if student in row]
    return row[5]


def page(course: Grading, student: str) -> str:
    return (course.feedback / student / LESSON / f"{LESSON}.html").read_text(encoding="utf-8")


def mark(course: Grading, points: float) -> None:
    """Ann's answer in words gets points, as formgrader's box gives them."""
    with submission(course, "ann") as found:
        (grade,) = [grade for grade in found.notebooks[0].grades if grade.name == "explain_total"]
        grade.manual_score, grade.needs_manual_grade = points, False


def agree(course: Grading, student: str, points: float) -> None:
    """Every list says the same."""
    assert sum(float(given) for given, _ in rows(course, student).values()) == pytest.approx(points)
    for plugin in (Canvas, Moodle):
        assert exported(course, plugin, student) == f"{points:g}"
    assert f"{LESSON}: {points:g} of 6 points" in page(course, student)
    with submission(course, student) as found:
        assert found.score - found.late_submission_penalty == pytest.approx(points)


def test_all_lists_agree(course: Grading, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.grade_class(course) == 0
    assert re.search(
        r"^ann +3\.2\+ +36 hours late \(2 days begun\): 0\.8 points less$", capsys.readouterr().out, re.MULTILINE
    )
    agree(course, "ann", 3.2)
    agree(course, "bob", 4)
    agree(course, "cem", 4)
    assert rows(course, "ann")["late"] == ("-0.8", "36 hours late (2 days begun): 0.8 points less")
    assert "late" not in rows(course, "bob")
    assert rows(course, "cem")["late"] == ("-0", "10 minutes late (1 day begun): no points less")
    assert "Handed in late: 0.8 points less" in page(course, "ann")
    whole = report.page(standing.of_class(course))
    assert "36 hours late (2 days begun): 0.8 points less" in whole
    assert "10 minutes late (1 day begun): no points less" in whole
    with submission(course, "bob") as found:
        assert found.assignment.duedate == datetime(2027, 1, 15, 14, 59)  # UTC, as formgrader shows it
        assert found.extension == timedelta(days=3)
        assert found.duedate == datetime(2027, 1, 18, 14, 59)


def test_a_changed_date_changes_points_and_judges_nothing_again(course: Grading, root: Path) -> None:
    commands.grade_class(course)
    before = record.load(course.grades, "ann", LESSON)
    (root / "course.toml").write_text(TOML.replace("[extensions.bob]", "[extensions.ann]"))
    judged.clear()
    commands.grade_class(course, reason="ann was ill")
    assert judged == []
    assert record.load(course.grades, "ann", LESSON) == before
    agree(course, "ann", 4)
    agree(course, "bob", 3.2)
    log = (course.grades / "regrades.csv").read_text(encoding="utf-8")
    for line in (f"ann,{LESSON},late,-0.8,0,ann was ill\n", f"bob,{LESSON},late,0,-0.8,ann was ill\n"):
        assert line in log
    assert log.count("\n") == 3
    (root / "course.toml").write_text(TOML.replace("01-15T", "01-25T"))
    commands.grade_class(course)
    agree(course, "bob", 4)


def test_a_corrected_time_changes_lateness_and_judges_nothing_again(
    course: Grading, capsys: pytest.CaptureFixture[str]
) -> None:
    commands.grade_class(course)
    before = record.load(course.grades, "ann", LESSON)
    judged.clear()
    for when, points in ((DUE + timedelta(days=3), 2.8), (DUE, 4), (None, 4)):  # whose time is not known is not late
        if when:
            stamp(course.submitted / "ann" / LESSON, when)
        else:
            (course.submitted / "ann" / LESSON / "timestamp.txt").unlink()
        capsys.readouterr()
        commands.grade_class(course, reason="she wrote an e-mail")
        assert "3 of 3 are graded already" in capsys.readouterr().out
        assert record.load(course.grades, "ann", LESSON) == before
        agree(course, "ann", points)
    assert judged == []
    assert "ann,07_doubling,late,-1.2,0,she wrote an e-mail" in (course.grades / "regrades.csv").read_text()


def test_lateness_takes_its_part_of_a_persons_points_too(course: Grading) -> None:
    commands.grade_class(course)
    mark(course, 2.0)
    config = notebooks.nbgrader_config(Path(course.directory.root))
    directory = CourseDirectory(config=config, assignment_id=LESSON, student_id="ann")
    assert capture_log(GenerateFeedback(coursedir=directory, config=config, force=True))["success"]
    assert f"{LESSON}: 4.8 of 6 points" in page(course, "ann")  # formgrader's button, before anything else
    mark(course, 1.0)
    assert exported(course, Canvas, "ann") == "4"
    commands.grade_class(course)
    agree(course, "ann", 4)


def test_nbgraders_own_commands_take_the_same(course: Grading) -> None:
    config = notebooks.nbgrader_config(Path(course.directory.root))
    directory = CourseDirectory(config=config, assignment_id=LESSON, student_id="*")
    assert capture_log(Autograde(coursedir=directory, config=config))["success"]
    assert capture_log(GenerateFeedback(coursedir=directory, config=config))["success"]
    agree(course, "ann", 3.2)
    agree(course, "bob", 4)


def test_without_dates_in_course_toml_formgraders_stay(course: Grading, root: Path) -> None:
    (root / "course.toml").unlink()
    commands.grade_class(course)
    with submission(course, "ann") as found:
        found.assignment.duedate = datetime(2027, 1, 16)
    commands.grade_class(course, force=True)
    with submission(course, "ann") as found:
        assert found.assignment.duedate == datetime(2027, 1, 16)
        assert found.total_seconds_late > 0
    agree(course, "ann", 4)  # a policy that takes nothing
