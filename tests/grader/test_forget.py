"""A student is forgotten in every place, the others stay as they were, and what is left is found and said."""

import io
import itertools
import json
import shutil
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import small_course
from nbgrader.api import Gradebook
from small_course import GOOD, LESSON, answered, hand_in

from unrolled.cli import CommandError
from unrolled_grader import commands
from unrolled_grader.classroom.roster import Person
from unrolled_grader.grading import Grading
from unrolled_grader.judge import evidence
from unrolled_grader.receiving import received
from unrolled_grader.results import forget, pseudonyms

ADA = Person("ada", "Ada Lovelace", "a.lovelace@example.org", "9000017")
ROSTER = """\
id,name,email,lms_id
bob,"Byron, Bob",bob@example.org,9000018
ada,Ada Lovelace,a.lovelace@example.org,9000017
adam,Adam Smith,adam@example.org,9000019
"""
TOML = """\
# dates of our class
[due]
timezone = "Asia/Tokyo"
07_doubling = 2027-01-15T23:59:00+09:00

[extensions.bob]
07_doubling = 2027-01-17T23:59:00+09:00
[extensions.ada]  # she was ill
07_doubling = 2027-01-18T23:59:00+09:00

[late]  # for all
per_day = 0.1
"""


@pytest.fixture
def course(left_behind: Path, tmp_path: Path) -> Grading:
    """A copy of the class."""
    return Grading.at(shutil.copytree(left_behind, tmp_path / "class"))


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory, _small_specs: None) -> Iterator[Path]:
    """A class of three that was graded twice, with everything that a class leaves behind."""
    points = [2.0] * 3 + [1.0] * 3
    with pytest.MonkeyPatch.context() as patch:
        small_course.judged_here(
            patch, lambda one: [evidence.Score("double", "pass", points.pop(0), 2.0, f"said {one.student}.")]
        )
        yield graded_twice(small_course.make(tmp_path_factory.mktemp("forget") / "class"))


def graded_twice(root: Path) -> Path:
    (root / "course.toml").write_text(TOML)
    (root / "roster.csv").write_text(ROSTER)
    for student in ("ada", "adam", "bob"):
        folder = hand_in(root, student, answered(root, GOOD)).parent
        (folder / "timestamp.txt").write_text("2027-01-19 00:00:00 UTC")
        (folder / "journal.json").write_text(json.dumps({"student": student}))
    course = Grading.at(root)
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        book.add_student("ada", first_name="Ada", last_name="Lovelace", email=ADA.email, lms_user_id=ADA.lms_id)
    commands.grade_class(course)
    commands.grade_class(course, force=True, reason="for once")
    (root / "canvas.csv").write_text(
        'Student,ID,SIS User ID,SIS Login ID,Section\n"Lovelace, Ada",9000017,,ada,\n"Smith, Adam",9000019,,adam,\n'
    )
    (course.grades / "similar").mkdir()
    (course.grades / "similar" / "index.html").write_text("ada and bob")
    home = root / "grader" / "received"
    kept = home / "students" / "ada" / LESSON / "1"
    kept.mkdir(parents=True)
    (kept / "upload.zip").write_bytes(zipped("07.ada.ipynb"))
    entries = [
        {"id": name, "source": "z.zip", "path": f"{name}.zip", "student": name, "kept": f"students/{name}/{LESSON}/1"}
        | {"note": "" if name == "ada" else "the same notebook as ada"}
        for name in ("ada", "bob")
    ]
    (home / "index.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return root


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, b"{}")
    return buffer.getvalue()


Forget = Callable[..., int]


@pytest.fixture
def forgotten(course: Grading, monkeypatch: pytest.MonkeyPatch) -> Forget:
    """A function that types `unrolled forget` and its words."""
    return partial(small_course.command, course, monkeypatch, "forget")


def traces_of_ada(root: Path) -> list[str]:
    return files_with(root, b"Lovelace", b"lovelace", b"9000017", b"said ada.")


def files_with(root: Path, *texts: bytes) -> list[str]:
    """The files that hold one of these texts: as bytes, whatever they are, and not by the code that is tested."""
    files = (path for path in root.rglob("*") if path.is_file() and "lessons" not in path.parts)
    return [str(path.relative_to(root)) for path in files if any(text in path.read_bytes() for text in texts)]


def test_every_trace_is_gone(course: Grading, forgotten: Forget, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(course.directory.root)
    places = {line.partition(",")[0] for line in forget.remaining(root, ADA).found}
    for file in ("grades/scores.csv", "grades/regrades.csv", "roster.csv", "course.toml", "canvas.csv",
                 "grades/similar/index.html", f"grader/submitted/ada/{LESSON}/journal.json",
                 f"grader/autograded/ada/{LESSON}/{LESSON}.ipynb", f"grader/feedback/ada/{LESSON}/{LESSON}.html",
                 "grader/received/index.jsonl", "grader/received/students/ada/07_doubling/1/upload.zip"):  # fmt: skip
        assert file in places
    databases = ("grades/grades.db", "grader/gradebook.db")
    assert {*databases} <= {*files_with(root, b"ada07_doubling", b"Lovelace")}
    assert forgotten("ada", "--yes") == 0
    output = capsys.readouterr().out
    submitted, received = "grader/submitted/ada/", "grader/received/students/ada"
    for what in (submitted, received, "gradebook.db", "grades.db: ", "course.toml: [ext"):
        assert f"deleted  {what}" in output
    assert "still found" not in output
    assert "text files for exactly: ada; Ada Lovelace; a.lovelace@example.org.\n" in output
    assert "as they are no text: 2 .db" in output
    for limit in ("other spellings", "parts of a name", "git's history", "the learning platform"):
        assert limit in output
    # In the gradebook, a random id that happens to end in "ada" may stand before the lesson's name.
    assert traces_of_ada(root) == []
    assert "grades/grades.db" not in files_with(root, b"ada07_doubling")
    for database in databases:
        with sqlite3.connect(root / database) as base:
            assert base.execute("PRAGMA freelist_count").fetchone() == (0,)


def test_who_is_killed_on_the_way_starts_it_again(course: Grading, forgotten: Forget, tmp_path: Path) -> None:
    root = Path(course.directory.root)
    left = shutil.copytree(root, tmp_path / "left")
    steps = len([*forget.deleted(course, "ada", root / "roster.csv")])
    assert steps > 10
    for done in range(steps):
        shutil.rmtree(root)
        shutil.copytree(left, root)
        running = forget.deleted(course, "ada", root / "roster.csv")
        assert len([*itertools.islice(running, done)]) == done
        running.close()  # type: ignore[attr-defined]
        assert forgotten("ada", "--yes") == 0
        assert traces_of_ada(root) == []


def test_the_others_stay(course: Grading, forgotten: Forget) -> None:
    root = Path(course.directory.root)

    def theirs() -> list[bytes]:
        return [path.read_bytes() for name in ("adam", "bob")
                for path in sorted(root.glob(f"grader/*/{name}/**/*")) if path.is_file()]  # fmt: skip

    before = theirs()
    assert forgotten("ada", "--yes") == 0
    assert before == theirs() != []
    assert (root / "roster.csv").read_text() == "".join(ROSTER.splitlines(keepends=True)[i] for i in (0, 1, 3))
    assert (root / "course.toml").read_text() == TOML.replace(
        "[extensions.ada]  # she was ill\n07_doubling = 2027-01-18T23:59:00+09:00\n\n", ""
    )
    assert "adam,07_doubling,double,1,2" in (course.grades / "scores.csv").read_text()
    assert "adam,07_doubling,double,2,1,for once" in (course.grades / "regrades.csv").read_text()
    (line,) = (root / "grader" / "received" / "index.jsonl").read_text().splitlines()
    assert (json.loads(line)["student"], json.loads(line)["note"]) == ("bob", "")
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        assert [student.id for student in book.students] == ["adam", "bob"]
        assert book.find_submission(LESSON, "adam").score == 1
    assert commands.grade_class(course) == 0
    assert "ada," not in (course.grades / "scores.csv").read_text()


def test_it_asks_first_and_names_what_it_does_not_know(
    course: Grading, forgotten: Forget, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = pseudonyms.of(pseudonyms.key(course.grades), "ada")
    for answer, student, message in (("yes", "ada", "nothing was deleted"), ("ada", "Ada", "'Ada' is no id")):
        monkeypatch.setattr("builtins.input", lambda prompt, answer=answer: answer)
        assert forgotten(student) == 1
        assert message in capsys.readouterr().err
    assert (course.submitted / "ada").is_dir()
    monkeypatch.setattr("builtins.input", lambda prompt: "ada")
    assert forgotten("ada") == 0
    assert f"In pseudonymous exports this student is {name}." in capsys.readouterr().out


def test_what_is_left_is_said(course: Grading, forgotten: Forget, capsys: pytest.CaptureFixture[str]) -> None:
    root = Path(course.directory.root)
    hand_in(root, "bob", answered(root, {"explain_total": "I worked with Ada Lovelace."}))
    (root / "lists").mkdir()
    (root / "roster.csv").rename(root / "lists" / "all.csv")
    (root / "by_ada.zip").write_bytes(zipped("inner ada"))
    (root / "notes.txt").write_text("adam and canada\nLOVELACE\nask ada!\n")
    (root / "old").symlink_to(root.parent)
    assert forgotten("ada", "--yes", "--roster", str(root / "lists" / "all.csv")) == 1
    assert "ada" not in (root / "lists" / "all.csv").read_text().split(",")
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("still", "Not searched, as"))]
    assert found[:2] == ["still found: by_ada.zip, its name: ada", "still found: notes.txt, line 3: ada"]
    assert found[2].startswith(f"still found: grader/submitted/bob/{LESSON}/{LESSON}.ipynb, line ")
    assert found[2].endswith(": Ada Lovelace")
    assert found[3:] == ["Not searched, as they are no text: 2 .db, 1 .zip, 1 link."]


REGRADES = "when,student,lesson,part,before,after,reason\n2027-01-15,bob,02,im2col,1,2,a pass: marked by a person\n"
CANVAS = 'Student,ID,SIS User ID,SIS Login ID,Section,02\n    Points Possible,,,,,2\n"Hope, Bob",1,,bob,,2\n'
MOODLE = "First name,Last name,Username,ID number,Email address,02\nBob,Hope,bob,1,bob@example.org,2\n"
LISTS = {
    REGRADES: "2027,1,02,im2col,1,2,why\n",
    "id,name,email,lms_id\nbob,Bob Hope,bob@example.org,1\n": "1,Ada,a@x,70\n",
    CANVAS: '"Hope, Bob",70,,1,,2\n',
    MOODLE: "Bob,Hope,1,70,a@x,2\n",
    "Name;Punkte\nBob;1\n": "",
}
"""What a row of a student whose id is 1 looks like, by the list without it."""


@pytest.mark.parametrize("text", LISTS)
def test_their_row_goes_and_nobody_elses_whatever_the_id(text: str) -> None:
    assert forget.without_rows(text + LISTS[text], "1") == (text, bool(LISTS[text]))
    for student in ("1", "2", "01", "a", "id", "student", "pass", "02", "im2col", "person", "when", "ID", "Bob"):
        assert forget.without_rows(text, student) == (text, 0)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_list_keeps_its_encoding(course: Grading, forgotten: Forget, encoding: str) -> None:
    text = "id;name\r\nada;Ada Lovelace\r\nbob;Bób\r\n"
    file = Path(course.directory.root) / "list.csv"
    file.write_bytes(text.encode(encoding))
    assert forgotten("ada", "--yes") == 0
    assert file.read_bytes() == text.replace("ada;Ada Lovelace\r\n", "").encode(encoding)


def test_ids_links_and_an_index_that_lead_elsewhere_delete_nothing_there(root: Path, tmp_path: Path) -> None:
    received_files, outside = tmp_path / "received", tmp_path / "outside"
    for folder in (outside / "ada", outside / "1", received_files / "students" / "bob", received_files / "set_aside"):
        folder.mkdir(parents=True)
    for name in (".", "..", "../bob", "a\\b", ""):
        with pytest.raises(ValueError, match="expected an id"):
            received.forget(received_files, name)
        with pytest.raises(CommandError, match="nothing was deleted"):
            list(forget.deleted(Grading.at(root), name, root / "roster.csv"))
    (received_files / "students" / "ada").symlink_to(outside / "ada")
    (received_files / "set_aside" / "1").symlink_to(outside / "1")
    lines = [{"id": str(kept), "source": "z", "path": "p", "student": "ada", "kept": kept}
             for kept in ("../outside", str(outside), "set_aside/../..", "set_aside/1", 7)]  # fmt: skip
    (received_files / "index.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    received.forget(received_files, "ada")
    assert sorted(path.name for path in outside.iterdir()) == ["1", "ada"]
    assert [path.name for path in (received_files / "students").iterdir()] == ["bob"]
