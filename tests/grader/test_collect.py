"""Taking in: everything is kept, the newest is placed, what is not certain is set aside and named."""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from lms_exports import CLASS, Student, Upload, canvas_name, canvas_zip, moodle_zip, roster_csv, zipped

from unrolled.notebook import handin
from unrolled_grader.classroom import roster
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.receiving import collect, received
from unrolled_grader.receiving.collect import Classroom, Collected, CollectedRow
from unrolled_grader.receiving.lms import Groups

LESSON, OTHER = "02_convolution", "03_pooling"
LESSONS = {LESSON: ("im2col",), OTHER: ("max_pool2d",)}
ADA, ALAN, GRACE = CLASS[:3]


def notebook(source: str = "", lesson: str | None = LESSON, version: str = "1.0.0") -> bytes:
    """A notebook of a lesson, the smaller half of what a build writes."""
    about = {"unrolled": {"lesson": lesson, "version": version}} if lesson else {}
    cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]}).encode()


class Desk:
    """An instructor's folder, and what they do in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.submitted = folder, folder / "grader" / "submitted"
        self.people = roster.read(roster_csv().encode())
        self.settings = Settings()
        self.groups: Groups = {}
        self.pattern: re.Pattern[str] | None = None

    def file(self, name: str, data: bytes, when: float | None = None) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if when is not None:
            os.utime(path, (when, when))
        return path

    def take(self, *files: Path, lesson: str = "") -> Collected:
        room = Classroom(self.people, LESSONS, lesson, self.groups, self.pattern, settings=self.settings)
        return collect.take(self.submitted, files, room)

    def take_zip(self, data: bytes, name: str = "export.zip", **more: Any) -> Collected:
        return self.take(self.file(name, data), **more)

    def placed(self, student: Student, lesson: str = LESSON) -> bytes:
        return (self.submitted / student.id / lesson / f"{lesson}.ipynb").read_bytes()

    def stamp(self, student: Student, lesson: str = LESSON) -> str:
        file = self.submitted / student.id / lesson / "timestamp.txt"
        return file.read_text() if file.exists() else ""

    def everything(self) -> dict[str, str]:
        """Each file below, with a hash and the time of its last change."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        return {
            str(path): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}" for path in files
        }


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def the(report: Collected) -> CollectedRow:
    (row,) = report.rows
    return row


def problems(report: Collected) -> list[str]:
    return [row.entry.problem for row in report.rows if row.entry.problem]


def outcomes(report: Collected) -> list[str]:
    return [row.outcome for row in report.rows]


def uploads(students: Sequence[Student] = CLASS, **more: Any) -> list[Upload]:
    return [Upload(student, notebook(student.id), f"{LESSON}.ipynb", **more) for student in students]


@pytest.mark.parametrize(
    "export",
    [
        lambda: canvas_zip(uploads()),
        lambda: moodle_zip(uploads()),
        lambda: moodle_zip(uploads(), old=True),
        lambda: moodle_zip(uploads(), folders=False),
        lambda: zipped([(f"{student.id}/{LESSON}/{LESSON}.ipynb", notebook(student.id)) for student in CLASS]),
        lambda: zipped([(f"all/{student.name}/{LESSON}.ipynb", notebook(student.id)) for student in CLASS]),
    ],
    ids=["canvas", "moodle", "moodle-old", "moodle-flat", "folders", "names"],
)
def test_a_class_of_thirty_is_taken_in_once(export: Callable[[], bytes], desk: Desk) -> None:
    file = desk.file("export.zip", export())
    report = desk.take(file)
    assert outcomes(report).count("newest") == 30
    assert set(problems(report)) <= {"it is no notebook"}  # what was written online in Moodle
    assert [desk.placed(student) for student in CLASS] == [notebook(student.id) for student in CLASS]
    before = desk.everything()
    again = desk.take(file)
    assert again.new == 0
    assert outcomes(again) == outcomes(report)
    assert desk.everything() == before
    renamed = file.rename(desk.folder / "export (1).zip")
    assert desk.take(renamed).new == 0


def test_a_resubmission_takes_the_place_and_the_earlier_one_stays_in_the_history(desk: Desk) -> None:
    first = canvas_zip([Upload(ADA, notebook("first"), f"{LESSON}.ipynb", file=1)])
    both = [(canvas_name(Upload(ADA, notebook("third"), f"{LESSON}-1.ipynb", file=3)), notebook("third"))]
    both += [(canvas_name(Upload(ADA, notebook("second"), f"{LESSON}.ipynb", file=2)), notebook("second"))]
    desk.take_zip(first, "monday.zip")
    report = desk.take_zip(zipped(both, flag=False, when=(2027, 1, 27, 9, 0, 0)), "next week.zip")
    assert sorted(outcomes(report)) == ["earlier", "newest"]
    assert desk.placed(ADA) == notebook("third")
    store = received.Received(collect.home(desk.submitted))
    history = [store.folder(entry) for entry in store.attempts(ADA.id, LESSON)]
    assert [next(folder.glob("*.ipynb")).read_bytes() for folder in history] == [
        notebook("first"),
        notebook("second"),
        notebook("third"),
    ]
    late_arrival = desk.take(desk.file("monday again.zip", first))
    assert (outcomes(late_arrival), late_arrival.new) == (["earlier"], 0)
    assert desk.placed(ADA) == notebook("third")


def test_the_same_notebook_again_keeps_the_first_time(desk: Desk) -> None:
    when = datetime(2027, 1, 4, 10, 0, tzinfo=timezone.utc).timestamp()
    desk.take(desk.file(f"in/{ADA.id}/{LESSON}.ipynb", notebook("a"), when))
    report = desk.take(desk.file(f"in/{ADA.id}/{LESSON} (1).ipynb", notebook("a"), when + 86400))
    assert outcomes(report) == ["the same again"]
    assert desk.stamp(ADA) == "2027-01-04 10:00:00 UTC"
    back = [desk.file(f"in/{ADA.id}/x{LESSON}.ipynb", notebook("b"), when + 2 * 86400)]
    back.append(desk.file(f"in/{ADA.id}/y{LESSON}.ipynb", notebook("a"), when + 3 * 86400))
    assert outcomes(desk.take(*back)) == ["earlier", "newest"]  # whoever goes back to an earlier answer means it
    assert (desk.placed(ADA), desk.stamp(ADA)) == (notebook("a"), "2027-01-07 10:00:00 UTC")


def test_times_are_those_of_handing_in_not_of_the_download(desk: Desk) -> None:
    made = handin.make(notebook("made"), {"rungs": 1}, GRACE.id, LESSON)
    report = desk.take_zip(
        canvas_zip([*uploads([ADA]), *uploads([ALAN], late=True), Upload(GRACE, made, f"{LESSON}.{GRACE.id}.zip")])
    )
    assert outcomes(report) == ["newest"] * 3
    assert desk.stamp(ADA) == ""  # in time, as Canvas says; the zip's time is the download's
    assert desk.stamp(ALAN) == "2027-01-20 09:30:00 UTC"
    assert "marks it LATE; it was handed in before that download" in report.rows[1].entry.note
    at = handin.read(made).made
    assert desk.stamp(GRACE) == at.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert json.loads((desk.submitted / GRACE.id / LESSON / "journal.json").read_text()) == {"rungs": 1}
    assert "Moodle tells no time" in the(desk.take_zip(zipped([moodle_member(CLASS[4])]), "m.zip")).entry.note


def moodle_member(student: Student) -> tuple[str, bytes]:
    return f"{student.name}_1_assignsubmission_file/{LESSON}.ipynb", notebook("moodle")


def test_a_hand_in_alone_says_whose_it_is_and_the_same_one_is_known_again(desk: Desk) -> None:
    made = handin.make(notebook("a"), {}, ADA.id, LESSON)
    report = desk.take(desk.file(f"{LESSON}.{ADA.id}.zip", made))
    assert (the(report).outcome, the(report).entry.student) == ("newest", ADA.id)
    assert desk.take(desk.file(f"{LESSON}.{ADA.id} (1).zip", made)).rows[0].outcome in ("newest", "the same again")
    assert the(desk.take_zip(canvas_zip([Upload(ALAN, made, "x.zip")]))).entry.problem == (
        f"{ALAN.id} handed in what says it is {ADA.id}'s"
    )
    anonymous = canvas_zip([Upload(GRACE, handin.make(notebook("g"), {}, GRACE.id, LESSON), "x.zip")], anonymous=True)
    assert the(desk.take_zip(anonymous, "anonymous.zip")).entry.student == GRACE.id
    stranger = Student("eve", "Eve Nobody", "", "1")
    posing = canvas_zip([Upload(stranger, handin.make(notebook("e"), {}, GRACE.id, LESSON), "x.zip")])
    assert f"(the hand-in says {GRACE.id})" in the(desk.take_zip(posing, "posing.zip")).entry.problem
    assert desk.placed(GRACE) == notebook("g")
    damaged = made[:-40] + bytes(4) + made[-36:]
    assert problems(desk.take(desk.file(f"{ADA.id}/{LESSON}.zip", damaged)))


def test_a_students_own_zip_is_opened_once(desk: Desk) -> None:
    lessons = zipped([("work/a.ipynb", notebook("a")), ("b.ipynb", notebook("b", OTHER)), ("data.csv", b"1")])
    report = desk.take_zip(canvas_zip([Upload(ADA, lessons, "work.zip")]))
    assert outcomes(report) == ["newest", "newest"]
    assert (desk.placed(ADA), desk.placed(ADA, OTHER)) == (notebook("a"), notebook("b", OTHER))
    deep = zipped([("x.zip", zipped([("y.ipynb", notebook())]))])
    two = zipped([("a.ipynb", notebook("1")), ("b.ipynb", notebook("2"))])
    twins = zipped([("a.ipynb", notebook("3")), ("copy.ipynb", notebook("3"))])
    bomb = zipped([("big.ipynb", bytes(60_000_000))])
    many = zipped([(str(number), b"") for number in range(1001)])
    bad = {"deep": deep, "two": two, "bomb": bomb, "many": many, "no": zipped([("a.txt", b"")]), "cut": two[:-30]}
    for name, data in {**bad, "twins": twins}.items():
        result = desk.take_zip(canvas_zip([Upload(ALAN, data, f"{name}.zip", file=len(name))]), f"{name}.zip")
        expected = {
            "deep": ["x.zip: a zip in a zip in a zip is not opened"],
            "two": [f"2 different notebooks of {LESSON}, and nothing tells which is meant: a.ipynb, b.ipynb"] * 2,
            "bomb": ["big.ipynb: it unpacks to 60 MB, at most 50 MB are taken"],
            "many": ["the zip holds 1,001 files or more, at most 1,000 are taken"],
            "no": ["it is a zip without a notebook"],
            "cut": ["the zip is cut off: its end is missing"],
            "twins": [],
        }[name]
        assert problems(result) == expected
        assert all(row.entry.student == ALAN.id for row in result.rows)
        kept = collect.home(desk.submitted) / result.rows[0].entry.kept
        assert data in [file.read_bytes() for file in kept.iterdir()]  # kept as it came
    assert desk.placed(ALAN) == notebook("3")


def test_the_lesson_is_what_the_notebook_says_and_the_option_only_confirms(desk: Desk) -> None:
    silent = notebook("def im2col(x):\n    return x", None)
    started = notebook(f'check.start("{OTHER}", "1.0.0")', None)
    files = [desk.file(f"{ADA.id}/x.ipynb", silent), desk.file(f"{ALAN.id}/{LESSON}.ipynb", started)]
    assert [row.entry.lesson for row in desk.take(*files).rows] == ["", OTHER]
    report = desk.take(*files, lesson=LESSON)
    assert [row.entry.lesson for row in report.rows] == [LESSON, ""]
    assert problems(report) == [f"the notebook is of another lesson: {OTHER}"]
    nothing = desk.file(f"{GRACE.id}/x.ipynb", notebook("1 + 1", None))
    assert problems(desk.take(nothing, lesson=LESSON)) == [f"the notebook holds none of the exercises of {LESSON}"]
    assert (
        "made with version 0.0.9" in the(desk.take(desk.file("s004/x.ipynb", notebook("", LESSON, "0.0.9")))).entry.note
    )


def test_what_a_person_put_or_changed_is_not_overwritten(desk: Desk) -> None:
    mine = desk.file(f"grader/submitted/{ADA.id}/{LESSON}/{LESSON}.ipynb", b"by hand")
    report = desk.take(desk.file(f"in/{ADA.id}/{LESSON}.ipynb", notebook("a")))
    assert mine.read_bytes() == b"by hand"
    assert "was put there or changed by hand" in report.problems[0]
    mine.unlink()
    old = time.time() - 1000
    desk.take(desk.file(f"in/{ADA.id}/{LESSON}.ipynb", notebook("a"), old))
    stamp = mine.with_name("timestamp.txt")
    stamp.write_text("2027-01-01 00:00:00 UTC")
    desk.take(desk.folder / f"in/{ADA.id}/{LESSON}.ipynb")
    assert desk.stamp(ADA) == "2027-01-01 00:00:00 UTC"  # corrected by hand: that stays
    desk.take(desk.file(f"in/{ADA.id}/{LESSON}-1.ipynb", notebook("b")))
    assert desk.placed(ADA) == notebook("b")
    assert desk.stamp(ADA) not in ("", "2027-01-01 00:00:00 UTC")
    kept = [path.read_text() for path in desk.folder.rglob("placed-timestamp.txt")]
    assert kept == ["2027-01-01 00:00:00 UTC"]
    outside = desk.folder / "outside"
    outside.mkdir()
    (desk.submitted / ALAN.id).symlink_to(outside)
    assert "a link lies in the way" in desk.take(desk.file(f"in/{ALAN.id}.ipynb", notebook("x"))).problems[0]
    assert list(outside.iterdir()) == []


def test_a_mended_roster_finds_a_place_for_what_was_set_aside(desk: Desk) -> None:
    file = desk.file("export.zip", canvas_zip(uploads([ADA, ALAN])))
    people, desk.people = desk.people, roster.read(f"{ADA.id},{ADA.name}\n".encode())
    report = desk.take(file)
    assert outcomes(report) == ["set aside", "set aside"]
    assert "roster: it has no header" in report.problems[0]
    desk.people = roster.read(b"id,name\ns001,Ada Lovelace\ns002,Alan Turing\nS002,Al Turing\n")
    report = desk.take(file)
    assert [row.entry.student for row in report.rows] == [ADA.id, ""]
    assert "two people in the roster have one id" in problems(report)[0]
    desk.people = people
    report = desk.take(file)
    assert (outcomes(report), report.new) == (["newest", "newest"], 1)
    assert not any((collect.home(desk.submitted) / "set_aside").iterdir())  # moved, not copied


def test_what_a_mended_roster_gives_to_another_leaves_its_old_place(desk: Desk) -> None:
    file = desk.file("export.zip", moodle_zip(uploads([ADA, ALAN])))
    right, swapped = desk.people, [ADA._replace(name=ALAN.name), ALAN._replace(name=GRACE.name)]
    desk.people = roster.read(roster_csv(swapped).encode())
    desk.take(file)
    assert [path.name for path in desk.submitted.iterdir()] == [ADA.id]
    assert desk.placed(ADA) == notebook(ALAN.id)
    desk.people = right
    report = desk.take(file)
    assert report.problems == (f"{ADA.id}, {LESSON}: what lay there is {ALAN.id}'s: out of {desk.submitted}",)
    assert [desk.placed(one) for one in (ADA, ALAN)] == [notebook(ADA.id), notebook(ALAN.id)]
    desk.people = roster.read(roster_csv([ALAN._replace(name=ADA.name)]).encode())
    assert len(desk.take(file).problems) == 1
    assert [path.name for path in desk.submitted.iterdir()] == [ALAN.id]
    assert desk.placed(ALAN) == notebook(ADA.id)
    assert desk.take(file).problems == ()


def test_what_two_students_share_is_said(desk: Desk) -> None:
    same = [(f"{student.id}/{LESSON}.ipynb", notebook("same")) for student in (ADA, ALAN)]
    assert [row.entry.note for row in desk.take_zip(zipped(same)).rows] == ["", f"the same notebook as {ADA.id}"]


def test_a_student_is_forgotten_and_nobody_else(desk: Desk) -> None:
    bomb = ("s001/bomb.ipynb", bytes(20_000_000))
    desk.take_zip(zipped([(f"{one.id}/{LESSON}.ipynb", notebook(one.id)) for one in (ADA, ALAN)] + [bomb]))
    home = collect.home(desk.submitted)
    gone = received.forget(home, ADA.id)
    assert len(gone) == 2  # the student's folder, and the zip that was kept whole
    left = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert ADA.id.encode() not in left
    assert notebook(ALAN.id) in left
    assert received.forget(home, ADA.id) == []
    line = {"id": "x", "source": "export.zip", "path": "a", "student": ADA.id, "kept": ""}  # a line without a file
    (home / received.INDEX).open("a").write(json.dumps(line) + "\n")
    assert received.forget(home, ADA.id) == []
    with pytest.raises(ValueError, match="expected an id"):
        received.forget(home, "")
    assert notebook(ALAN.id) in b"".join(path.read_bytes() for path in home.rglob("*.ipynb"))


def test_an_index_that_was_cut_off_is_read_as_far_as_it_goes(desk: Desk) -> None:
    file = desk.file("export.zip", canvas_zip(uploads([ADA, ALAN])))
    desk.take(file)
    index = collect.home(desk.submitted) / received.INDEX
    index.write_bytes(index.read_bytes()[:-20])
    report = desk.take(file)
    assert [row.new for row in report.rows] == [False, True]
    assert outcomes(report) == ["newest", "newest"]
    assert desk.take(file).new == 0


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a/../b.ipynb", "b.ipynb"),
        ("..", "_"),
        ("con.txt", "_con.txt"),
        ("山田.ipynb", "山田.ipynb"),
        ("a:b\n*", "a_b__"),
    ],
)
def test_names_on_disk_are_safe(name: str, safe: str) -> None:
    assert received.safe_name(name) == safe
    assert len(received.safe_name("長" * 300).encode()) < 200


def test_a_newer_version_that_is_here_too_is_taken(desk: Desk) -> None:
    file = desk.file(f"{ADA.id}/x.ipynb", notebook("", LESSON, "99.0"))
    assert "newer than this course" in problems(desk.take(file))[0]
    room = Classroom(desk.people, LESSONS, versions=["99.0"])
    assert the(collect.take(desk.submitted, [file], room)).entry.note == "made with version 99.0"
