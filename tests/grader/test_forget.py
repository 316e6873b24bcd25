"""A student is forgotten in every place, the others stay as they were, and what is left is found and said."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sqlite3
import urllib.parse
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import small_course
from nbgrader.api import Gradebook
from small_course import GOOD, LESSON, answered, hand_in

import unrolled.cli
from unrolled_grader import commands
from unrolled_grader.classroom import staged
from unrolled_grader.classroom.roster import Person
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue
from unrolled_grader.judge import evidence, verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts
from unrolled_grader.results import forget, people, pseudonyms, traces
from unrolled_grader.results.spellings import Finder

ADA = Person("ada", "Ada Lovelace", "a.lovelace@example.org", "9000017")
WANTED = people.Names({"ada": ADA}).finder("ada")
ROSTER = """\
id,name,email,lms_id
bob,"Byron, Bob",bob@example.org,9000018
ada,Ada Lovelace,a.lovelace@example.org,9000017
adam,Adam Smith,adam@example.org,9000019
"""
TOML = """\
# dates of our class
[due]
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
    with pytest.MonkeyPatch.context() as patch:
        yield graded_twice(tmp_path_factory.mktemp("forget"), patch)


def graded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:

    def judge_quickly(submission: Submission, options: Options) -> Verdicts:
        scores = (evidence.Score("double", "pass", points.pop(0), 2.0, f"said {submission.student}"),)
        return Verdicts(submission.notebook, scores, 0.1, ())

    points = [2.0] * 3 + [1.0] * 3
    monkeypatch.setattr(queue, "run", small_course.perform_here)
    monkeypatch.setattr(verdicts, "judge", judge_quickly)
    root = small_course.make(tmp_path / "class")
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
    commands.grade_class(course, force=True, reason="as ada asked")
    (root / ".nbgrader.log").write_text("[WARNING] ada is late\n[WARNING] adam is late\n")
    (root / "canvas.csv").write_text('Student,ID\n"Lovelace, Ada",9000017\n"Smith, Adam",9000019\n')
    (course.grades / "similar").mkdir()
    (course.grades / "similar" / "index.html").write_text("ada and bob")
    received = root / "grader" / "received"
    kept = received / "students" / "ada" / LESSON / "1"
    kept.mkdir(parents=True)
    (kept / "upload.zip").write_bytes(zipped({"07.ada.ipynb": b"{}"}))
    entries = [
        {"id": name, "source": "z.zip", "path": f"{name}.zip", "student": name, "kept": f"students/{name}/{LESSON}/1"}
        for name in ("ada", "bob")
    ]
    (received / "index.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return root


def root_of(course: Grading) -> Path:
    return Path(course.directory.root)


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return buffer.getvalue()


def run(course: Grading, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.chdir(root_of(course))
    monkeypatch.setattr("unrolled.cli.checkout.find", lambda: root_of(course))
    return unrolled.cli.main(list(words))


def test_every_trace_is_gone(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(course)
    places = {trace.file for trace in traces.find(root, WANTED)}
    for file in ("grades/grades.db", "grader/gradebook.db", "grades/scores.csv", "grades/regrades.csv", "roster.csv",
                 "course.toml", "canvas.csv", ".nbgrader.log", "grades/similar/index.html",
                 f"grader/submitted/ada/{LESSON}/journal.json", f"grader/autograded/ada/{LESSON}/{LESSON}.ipynb",
                 f"grader/feedback/ada/{LESSON}/{LESSON}.html", "grader/received/index.jsonl"):  # fmt: skip
        assert file in places
    assert b"ada07_doubling" in (root / "grades" / "grades.db").read_bytes() + wal(root / "grades" / "grades.db")

    assert run(course, monkeypatch, "forget", "ada", "--yes") == 0
    said = capsys.readouterr().out
    assert "Nothing is left." in said
    for what in ("grader/submitted/ada/", "gradebook.db", "grades.db: ", "[extensions.ada]", "received/students/ada"):
        assert what in said
    assert traces.find(root, WANTED) == []
    for file in traces.files(root):  # not by the code that is tested: as bytes, whatever they are
        assert b"lovelace" not in file.read_bytes().lower(), file
        assert b"9000017" not in file.read_bytes(), file
    # In the gradebook, a random id that happens to end in "ada" may stand before the lesson's name.
    assert b"ada07_doubling" not in (root / "grades" / "grades.db").read_bytes() + wal(root / "grades" / "grades.db")
    for database in ("grades/grades.db", "grader/gradebook.db"):
        with sqlite3.connect(root / database) as base:
            assert base.execute("PRAGMA freelist_count").fetchone() == (0,)


def wal(database: Path) -> bytes:
    log = database.with_name(f"{database.name}-wal")
    return log.read_bytes() if log.exists() else b""


def test_what_a_killed_change_of_the_class_left_goes_too(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(course)
    for folder in (staged.PART, staged.DONE, staged.READY):
        (root / folder).mkdir()
        (root / folder / "0").write_text("[extensions.ada]\n")
        (root / folder / staged.PLAN).write_text('{"files": {}, "reasons": {}}')
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert run(course, monkeypatch, "forget", "ada", "--yes") == 1
    assert "`unrolled class change` finishes it; nothing was deleted" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    shutil.rmtree(root / staged.READY)
    assert run(course, monkeypatch, "forget", "ada", "--yes") == 0
    assert not (root / staged.PART).exists()
    assert [path.name for path in (root / staged.DONE).iterdir()] == [staged.PLAN]


def test_the_others_stay(course: Grading, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_of(course)
    files = [root / f"grader/{step}/{student}" for step in ("submitted", "autograded", "feedback")
             for student in ("adam", "bob")]  # fmt: skip
    before = [path.read_bytes() for folder in files for path in sorted(folder.rglob("*")) if path.is_file()]
    assert run(course, monkeypatch, "forget", "ada", "--yes") == 0
    assert [path.read_bytes() for folder in files for path in sorted(folder.rglob("*")) if path.is_file()] == before
    assert (root / "roster.csv").read_text() == "".join(ROSTER.splitlines(keepends=True)[i] for i in (0, 1, 3))
    assert (root / "course.toml").read_text() == TOML.replace(
        "[extensions.ada]  # she was ill\n07_doubling = 2027-01-18T23:59:00+09:00\n\n", ""
    )
    assert (root / ".nbgrader.log").read_text() == "[WARNING] adam is late\n"
    scores = (course.grades / "scores.csv").read_text()
    assert "adam,07_doubling,double,1,2" in scores
    log = (course.grades / "regrades.csv").read_text()
    assert "adam,07_doubling,double,2,1,as (removed) asked" in log
    with Gradebook(course.directory.db_url, course.directory.course_id) as book:
        assert [student.id for student in book.students] == ["adam", "bob"]
        assert book.find_submission(LESSON, "adam").score == 1
    capture = commands.grade_class(course)
    assert capture == 0
    assert "ada," not in (course.grades / "scores.csv").read_text()


def test_it_asks_first_and_names_what_it_does_not_know(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for answer, student, said in (("yes", "ada", "nothing was deleted"), ("ada", "Ada", "'Ada' is no id")):
        monkeypatch.setattr("builtins.input", lambda prompt, answer=answer: answer)
        assert run(course, monkeypatch, "forget", student) == 1
        assert said in capsys.readouterr().err
    assert (course.submitted / "ada").is_dir()
    monkeypatch.setattr("builtins.input", lambda prompt: "ada")
    assert run(course, monkeypatch, "forget", "ada") == 0


def test_what_is_left_is_said(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = root_of(course)
    hand_in(root, "bob", answered(root, {"explain_total": "I worked with Ada Lovelace."}))
    (root / "lists").mkdir()
    (root / "roster.csv").rename(root / "lists" / "all.csv")
    (root / "upload.zip").write_bytes(zipped({"inner.zip": zipped({"ada_1.ipynb": b"{}"})}))
    assert run(course, monkeypatch, "forget", "ada", "--yes", "--roster", str(root / "lists" / "all.csv")) == 1
    assert "ada" not in (root / "lists" / "all.csv").read_text().split(",")
    said = capsys.readouterr().out
    assert f"still there: grader/submitted/bob/{LESSON}/{LESSON}.ipynb, line " in said
    assert "still there: upload.zip, the name inner.zip ada_1.ipynb: ada" in said
    assert "Nothing is left" not in said


@pytest.mark.parametrize(
    "pack",
    [
        lambda text: text.encode(),
        lambda text: text.upper().encode(),
        lambda text: text.encode("utf-16"),
        lambda text: json.dumps(text).encode(),
        lambda text: text.encode("cp1252"),
        lambda text: text.encode("cp850"),
        lambda text: text.encode().decode("cp1252").encode(),
        lambda text: json.dumps(json.dumps(text)).encode(),
        lambda text: repr(text.encode()).encode(),
        lambda text: urllib.parse.quote_plus(text, safe="").encode(),
        lambda text: gzip.compress(text.encode()),
        lambda text: zlib.compress(text.encode()),
        lambda text: zipped({"a": zipped({"b": gzip.compress(text.encode())})}),
    ],
)
def test_a_name_is_found_however_it_is_packed(pack: Callable[[str], bytes], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(pack("from: José Müller"))
    found = traces.find(tmp_path, people.Names({"x17": Person("x17", "José Müller")}).finder("x17"))
    assert [trace.found.casefold().replace("+", " ") for trace in found] == ["josé müller"]


def test_a_name_is_found_in_a_database_and_so_are_free_pages(tmp_path: Path) -> None:
    file = tmp_path / "some.db"
    with sqlite3.connect(file) as base:
        base.execute("CREATE TABLE t (a)")
        base.executemany("INSERT INTO t VALUES (?)", [(zlib.compress(b"by ada"),), ("x" * 9000,), ("y" * 9000,)])
    assert [trace[1:] for trace in traces.find(tmp_path, WANTED)] == [("table t unpacked", "ada")]
    with sqlite3.connect(file) as base:
        base.execute("DELETE FROM t")
    (trace,) = traces.find(tmp_path, WANTED)
    assert "free pages" in trace.place
    forget.compact(file)
    assert traces.find(tmp_path, WANTED) == []


def test_what_cannot_be_read_is_not_called_clean(tmp_path: Path) -> None:
    (tmp_path / "cut.zip").write_bytes(zipped({"a": b"some text " * 50})[:60])
    with zipfile.ZipFile(tmp_path / "worn.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("a", "some text " * 50)
    worn = bytearray((tmp_path / "worn.zip").read_bytes())
    worn[40:60] = b"x" * 20
    (tmp_path / "worn.zip").write_bytes(worn)
    assert [trace.place for trace in traces.find(tmp_path, WANTED)] == ["is a damaged zip"] * 2


def test_only_whole_words_count() -> None:
    for text in ("ada_solution", "/home/ada/x", "ADA!", "by ada"):
        assert [*WANTED.hits(text)]
    for text in ("adam", "canada", "19000017", "3f2ada45-0000"):  # the last is half an id of nbgrader's
        assert not [*WANTED.hits(text)]
    assert [*Finder(["李 明"]).hits("李明さん")] == [(0, 2, "李明")]
    assert [*Finder(()).hits("anything")] == []


def test_the_pseudonym_is_told(
    course: Grading, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (name,) = pseudonyms.of(pseudonyms.key(course.grades), ["ada"]).values()
    run(course, monkeypatch, "forget", "ada", "--yes")
    assert f"In pseudonymous exports this student is {name}." in capsys.readouterr().out
