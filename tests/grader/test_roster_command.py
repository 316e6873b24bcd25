"""A raw export as a roster: shown, refused before anything is written, or taken, and taken back in one command."""

import csv
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import small_course
from lms_exports import CLASS, Upload, canvas_zip, moodle_zip
from small_course import GOOD, LESSON, answered

from unrolled import checks
from unrolled.cli import main
from unrolled_grader.classroom import gradebook
from unrolled_grader.grading import Grading

ADA, ALAN = CLASS[:2]
CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,07 doubling (11)\n"
    "    Points Possible,,,,,6\n"
    '"Lovelace, Ada",70037,,ada,Spring,\n'
    '"Turing, Alan",70074,,alan,Spring,\n'
    '"Student, Test",70999,,0f3c7a9be1d24c58a6b7f0e1d2c3b4a5968778a9,Spring,\n'
).encode("utf-8-sig")
MOODLE = b"First name,Surname,ID number,Email address\nAda,Lovelace,,ada@example.org\nAlan,Turing,,alan@example.org\n"
MISREAD = b"id,name\n70037,Ada Lovelace\n70074,Alan Turing\n"
"""Canvas's numbers as ids, by a hand that cut out the wrong columns."""

Typed = Callable[..., tuple[int, str]]


@pytest.fixture
def course(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small course in a folder of its own, with the downloads of two students."""
    home = shutil.copytree(root, tmp_path / "course")
    monkeypatch.chdir(home)
    data = nbformat.writes(answered(home, GOOD)).encode()
    uploads = [Upload(one, data + bytes(" " * at, "ascii"), f"{LESSON}.ipynb") for at, one in enumerate((ADA, ALAN))]
    (home / "canvas.zip").write_bytes(canvas_zip(uploads))
    (home / "moodle.zip").write_bytes(moodle_zip(uploads))
    assert checks.lessons().keys() == {small_course.LESSON}
    return home


@pytest.fixture
def typed(course: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    def command(*words: str) -> tuple[int, str]:
        code = main([*words])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return command


def students(course: Path) -> dict[str, tuple[str, str, str, str]]:
    with gradebook.opened(Grading.at(course).directory) as book:
        return {
            one.id: (one.first_name or "", one.last_name or "", one.email or "", one.lms_user_id or "")
            for one in book.students
        }


def everything(course: Path) -> dict[str, str]:
    files = [path for path in course.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(course)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def submitted(course: Path) -> list[str]:
    return sorted(path.parts[-3] for path in (course / "grader" / "submitted").glob("*/*/*.ipynb"))


def test_canvass_gradebook_is_the_roster_as_it_comes(course: Path, typed: Typed) -> None:
    (course / "grades.csv").write_bytes(CANVAS)
    before = everything(course)
    code, output = typed("roster", "grades.csv")
    assert (code, everything(course)) == (0, before)
    assert 'id from "SIS Login ID", name from "Student", no email, lms_id from "ID"' in output
    assert 'passed over: "Points Possible", "Student, Test"' in output
    assert "such as: ada; Lovelace, Ada; 70037\n" in output
    assert "new to the gradebook: 2; there already: 0\nNothing was written." in output
    code, output = typed("collect", "canvas.zip", "--roster", "grades.csv")
    assert code == 0
    assert output.startswith("grades.csv: Canvas's gradebook export, 2 people: id from")
    assert students(course) == {"ada": ("Ada", "Lovelace", "", "70037"), "alan": ("Alan", "Turing", "", "70074")}
    assert submitted(course) == ["ada", "alan"]
    code, output = typed("forget", "ada", "--yes", "--roster", "grades.csv")
    assert "rosters.csv: 1 rows" in output
    assert b"Lovelace" not in (course / "grades" / "rosters.csv").read_bytes()


def test_moodles_participants_are_the_roster_as_they_come(course: Path, typed: Typed) -> None:
    (course / "roster.csv").write_bytes(MOODLE)
    code, output = typed("collect", "moodle.zip")
    assert 'Moodle\'s list of people, 2 people: id from "Email address"' in output
    assert code == 1  # the text that somebody wrote online
    assert submitted(course) == ["ada@example.org", "alan@example.org"]
    assert students(course)["ada@example.org"] == ("Ada", "Lovelace", "ada@example.org", "")


def test_what_cannot_be_used_is_refused_before_anything_is_written(course: Path, typed: Typed) -> None:
    (course / "roster.csv").write_bytes(b"id,name\n" + b"a/b,Ada\n" * 5)
    before = everything(course)
    for words in (["collect", "canvas.zip"], ["roster"]):
        code, printed = typed(*words)
        assert code == 1
        assert "cannot be used, and nothing was written" in printed
        assert "; and 2 more" in printed
    assert everything(course) == before


def test_one_student_under_two_ids_is_refused_before_anything_is_written(course: Path, typed: Typed) -> None:
    (course / "grades.csv").write_bytes(CANVAS)
    typed("collect", "canvas.zip", "--roster", "grades.csv")
    (course / "roster.csv").write_bytes(MISREAD)
    before = everything(course)
    code, output = typed("collect", "canvas.zip")
    assert (code, everything(course)) == (1, before)
    assert "gives 2 students of the gradebook another id, and nothing was written: 70037 is ada there" in output
    code, output = typed("roster")
    assert code == 1
    assert "under another id in the gradebook: 70037 is ada there; 70074 is alan there\n" in output
    assert "`unrolled collect` refuses it." in output


def test_a_mistaken_roster_is_taken_back_by_one_command(course: Path, typed: Typed) -> None:
    (course / "roster.csv").write_bytes(b"id,name\nada,Lovelace\n")
    typed("collect", "canvas.zip")
    assert submitted(course) == []
    before = students(course), submitted(course)
    (course / "wrong.csv").write_bytes(MISREAD + b"ada,Countess\n")
    code, output = typed("collect", "canvas.zip", "moodle.zip", "--roster", "wrong.csv")
    assert submitted(course) == ["70037", "70074"]
    assert students(course)["ada"] == ("", "Countess", "", "")
    code, output = typed("roster", "--undo")
    assert code == 0
    assert "70037: is no longer in the gradebook\n" in output
    assert "ada: name, e-mail and number are as before\n" in output
    assert f"70074, {LESSON}: out of {course}/grader/submitted; collect it again\n" in output
    assert (students(course), submitted(course)) == before
    (course / "roster.csv").write_bytes(CANVAS)
    assert typed("collect", "canvas.zip")[0] == 0
    assert submitted(course) == ["ada", "alan"]
    assert {*students(course)} == {"ada", "alan"}
    assert sorted(path.name for path in (course / "grader" / "received" / "students").iterdir()) == ["ada", "alan"]
    with (course / "grades" / "rosters.csv").open(newline="", encoding="utf-8") as stream:
        rows = [(row["roster"], row["id"], row["change"]) for row in csv.DictReader(stream)]
    assert rows == [("roster.csv", "ada", "new"), ("roster.csv", "ada", "changed"), ("roster.csv", "alan", "new")]
    for _ in range(2):
        typed("roster", "--undo")
    assert (students(course), submitted(course)) == ({}, [])
    assert typed("roster", "--undo") == (0, "There is nothing to take back: no roster changed the gradebook.\n")


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_who_was_graded_or_placed_by_hand_stays_and_is_named(course: Path, typed: Typed) -> None:
    (course / "roster.csv").write_bytes(MISREAD)
    typed("collect", "moodle.zip")
    (course / "grader" / "submitted" / "70074" / LESSON / f"{LESSON}.ipynb").write_bytes(b"by hand")
    with gradebook.opened(Grading.at(course).directory) as book:
        book.add_assignment(LESSON)
        book.update_or_create_submission(LESSON, "70037")
    output = typed("roster", "--undo")[1]
    assert "70037: stays, as it was graded; `unrolled forget 70037` deletes that\n" in output
    assert f"70074, {LESSON}: stays, as somebody put or changed it by hand\n" in output
    assert [*students(course)] == ["70037"]
    assert submitted(course) == ["70074"]


def test_undo_takes_no_file(course: Path, typed: Typed) -> None:
    (course / "roster.csv").write_bytes(MISREAD)
    code, output = typed("roster", "roster.csv", "--undo")
    assert code == 1
    assert "give no file with it" in output
    (course / "roster.csv").unlink()
    assert "there is no roster" in typed("roster")[1]
