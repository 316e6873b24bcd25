"""A class without names: what is removed, what agrees between exports, and what is said to stay."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
import small_course
from nbformat.v4 import new_output
from small_course import GOOD, LESSON, answered, hand_in

import unrolled.cli
from unrolled.cli import CommandError
from unrolled_grader import commands
from unrolled_grader.classroom.roster import Person
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue, record
from unrolled_grader.judge import evidence, verdicts
from unrolled_grader.judge.verdicts import Options, Submission, Verdicts
from unrolled_grader.results import people, pseudonyms

KNOWN = {
    "ada": Person("ada", "Ada Lovelace", "a.lovelace@example.org", "9000017"),
    "s2": Person("s2", "José Müller", "jm@example.org", "9000018"),
    "max": Person("max", "Max Total", "max.total@example.org", "12"),
    "twin": Person("twin", "Anna Lovelace", "twin@example.org", ""),
}
NAMES = {student: f"P{number}" for number, student in enumerate(KNOWN)}


def scrub(text: str, words: set[str] = frozenset()) -> str:  # type: ignore[assignment]
    return pseudonyms.scrubber(people.Names(KNOWN, words), NAMES).text(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Ada Lovelace, ada@home", "P0, P0@home"),
        ("Lovelace, Ada; LOVELACE ada; adalovelace", "P0; P0; P0"),
        ("a.lovelace@example.org 9000017", "P0 P0"),
        ("Jose Muller and Jose\u0301 Mu\u0308ller", "P1 and P1"),
        ("/home/ada/x.py ada_v2 canada adam", "/home/P0/x.py P0_v2 canada adam"),
        ("Ms Lovelace", "Ms someone"),
        ("at 2027-01-15T23:59:10.5+09:00 or 2027-01-15 14:59:00 UTC.", "at 2027-01-15 or 2027-01-15."),
        ("12 rows, 112", "12 rows, 112"),
    ],
)
def test_names_and_times_go(text: str, clean: str) -> None:
    assert scrub(text) == clean


def test_words_of_the_course_stay_and_are_named() -> None:
    words = {"max", "total"}
    assert scrub("x.max() of Max Total", words) == "x.max() of P2"
    assert pseudonyms.scrubber(people.Names(KNOWN, words), NAMES).left == ("Max", "max", "Total")


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Grading:
    """A copy of the class."""
    return Grading.at(shutil.copytree(graded, tmp_path / "class"))


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory, _small_specs: None) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield graded_class(tmp_path_factory.mktemp("pseudonyms"), patch)


def graded_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A class of three, one with a file that is no notebook, whose notebooks hold their names in many places."""

    def judge_quickly(submission: Submission, options: Options) -> Verdicts:
        scores = (evidence.Score("double", "pass", 2.0, 2.0, f"in /home/{submission.student}/x.py"),)
        return Verdicts(submission.notebook, scores, 0.1, (47114711471147,))

    monkeypatch.setattr(queue, "run", small_course.perform_here)
    monkeypatch.setattr(verdicts, "judge", judge_quickly)
    root = small_course.make(tmp_path / "class")
    rows = "".join(f'{one.id},"{one.name}",{one.email},{one.lms_id}\n' for one in KNOWN.values())
    (root / "roster.csv").write_text(f"id,name,email,lms_id\n{rows}", encoding="utf-8")
    for student in ("ada", "s2"):
        notebook = answered(
            root, {"double": f"# by {KNOWN[student].name}\n{GOOD['double']}", "explain_total": "I, Ada."}
        )
        notebook.metadata.colab = {"name": "ada.ipynb", "provenance": [{"displayName": "A. L.", "userId": "077"}]}
        notebook.metadata.authors = [{"name": "A. L."}]
        code = next(cell for cell in notebook.cells if cell.cell_type == "code")
        code.metadata.executionInfo = {"user": {"displayName": "A. L.", "photoUrl": "https://x/y.png"}, "timestamp": 1}
        code.outputs = [new_output("stream", text="A. L.'s machine")]
        notebook.cells[0].attachments = {"me.png": {"image/png": "AAAA"}}
        folder = hand_in(root, student, notebook).parent
        (folder / "journal.json").write_text(json.dumps({"student": student, "date": "2027-01-15T10:00:00+00:00"}))
    hand_in(root, "max", answered(root, {})).write_bytes(b"no notebook")
    course = Grading.at(root)
    commands.grade_class(course)
    return root


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def test_an_export_names_nobody(course: Grading, tmp_path: Path) -> None:
    out = tmp_path / "out"
    known = people.known(course)
    assert pseudonyms.export(course, known, out) == (4, ("Max", "max", "Total"), ())
    made = files(out)
    names = pseudonyms.of(pseudonyms.key(course.grades), KNOWN)
    whole = "\n".join([*made, *made.values()])
    for text in ("Lovelace", "Müller", "example.org", "9000017", "A. L.", "photoUrl", "47114711471147", "T10:00"):
        assert text not in whole
    assert re.search(r"\bada(\b|_)", whole, re.IGNORECASE) is None
    assert f"# by {names['ada']}\n" in "".join(
        cell.source for cell in nbformat.reads(made[f"notebooks/{names['ada']}/{LESSON}/{LESSON}.ipynb"], 4).cells
    )
    assert json.loads(made[f"notebooks/{names['s2']}/{LESSON}/journal.json"]) == {
        "student": names["s2"],
        "date": "2027-01-15",
    }
    rows = list(csv.DictReader(made["scores.csv"].splitlines()))
    assert [row["student"] for row in rows] == sorted(row["student"] for row in rows)
    assert {row["student"] for row in rows} == {names[student] for student in ("ada", "max", "s2")}
    assert f"in /home/{names['ada']}/x.py" in made["scores.csv"]
    data = json.loads(made[f"records/{names['ada']}/{LESSON}.json"])
    assert record.from_dict(data).points == 2  # still a record
    assert (data["digest"], data["seeds"], data["key"]["submission"], len(data["date"])) == ("", [], "", 10)


def test_two_exports_agree_and_another_key_does_not(course: Grading, tmp_path: Path) -> None:
    known = people.known(course)
    for name in ("one", "two"):
        pseudonyms.export(course, known, tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "two")
    key = course.grades / pseudonyms.KEY
    assert key.stat().st_mode & 0o077 == 0
    key.unlink()
    pseudonyms.export(course, known, tmp_path / "three")
    assert not set(files(tmp_path / "three")) & set(files(tmp_path / "one")) - {"README.txt", "scores.csv"}


def test_nothing_is_overwritten_and_nothing_half_done_stays(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "mine.txt").touch()
    with pytest.raises(CommandError, match="is there already"):
        pseudonyms.export(course, people.known(course), tmp_path / "there")
    monkeypatch.setattr(pseudonyms.Scrubber, "text", lambda self, text: text)
    with pytest.raises(CommandError, match=r"names would have been left: .*ada"):
        pseudonyms.export(course, people.known(course), tmp_path / "leak")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["class", "there"]
    (course.grades / pseudonyms.KEY).write_text("abc")
    with pytest.raises(CommandError, match="is damaged"):
        pseudonyms.export(course, people.known(course), tmp_path / "damaged")


def test_the_command_says_what_it_cannot(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("unrolled.cli.checkout.find", lambda: Path(course.directory.root))
    (Path(course.directory.root) / "roster.csv").unlink()
    assert unrolled.cli.main(["pseudonymous", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Of 3 students no name is known" in said
    assert "Read before you publish" in said
    assert "a name that the roster does not know" in (tmp_path / "out" / "README.txt").read_text()


def test_an_address_that_nobody_is_known_by_is_shown(
    course: Grading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(course.directory.root)
    monkeypatch.setattr("unrolled.cli.checkout.find", lambda: root)
    (root / "roster.csv").unlink()
    (handed,) = root.glob("grader/submitted/ada/*/*.ipynb")
    handed.write_text(
        handed.read_text("utf-8").replace("I, Ada.", "Ask a.lovelace@mail.example.org or me@home, x @ y.")
    )
    assert unrolled.cli.main(["pseudonymous", str(tmp_path / "out")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("E-mail address")]
    assert re.search(r"look whose it is: notebooks/s-\w+/.*\.ipynb: a\.lovelace@mail\.example\.org$", line)


def test_hostile_notebooks_and_journals_do_not_stop_the_export(course: Grading, tmp_path: Path) -> None:
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"a": deep}
    for text in ('{"a": "\\ud800", "n": 9000017}', json.dumps(deep), "[" * 100_000):
        (course.submitted / "ada" / LESSON / "journal.json").write_text(text)
        out = tmp_path / str(len(text))
        pseudonyms.export(course, people.known(course), out)
        kept = "".join(file.read_text() for file in out.glob(f"notebooks/*/{LESSON}/journal.json"))
        assert ("?" in kept) == ("ud800" in text)
        assert "9000017" not in kept
    handed = course.submitted / "ada" / LESSON / f"{LESSON}.ipynb"
    for text in (handed.read_text().replace("by Ada", "by \\ud800 Ada"), "[" * 100_000):
        handed.write_text(text)
        pseudonyms.export(course, people.known(course), tmp_path / f"{len(text)} of a notebook")


def test_a_short_id_does_not_stop_the_export(course: Grading, tmp_path: Path) -> None:
    known = people.known(course) | {name: Person(name) for name in ("n", "id", "1")}
    pseudonyms.export(course, known, tmp_path / "short")
