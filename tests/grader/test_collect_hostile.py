"""Taking in hostile uploads: one of them, a link or a damaged line stops nobody else's."""

import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from lms_exports import Upload, canvas_zip, zipped
from test_collect import ADA, ALAN, GRACE, LESSON, Desk, notebook, outcomes, problems

from unrolled.notebook import handin
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.receiving import collect, placing, received
from unrolled_grader.receiving import uploads as uploaded


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


BAD = {
    "../../evil.ipynb": (notebook(), "its name leads out of the folder"),
    "/s001/evil.ipynb": (notebook(), "its name leads out of the folder"),
    "__MACOSX/._s001.ipynb": (b"\0", "it was left by the system or by Jupyter, not by a person"),
    "s001/.DS_Store": (b"\0", "it was left by the system or by Jupyter, not by a person"),
    "s001/bomb.ipynb": (bytes(20_000_000), "as a zip bomb does"),
    "s001/answer.pdf": (b"%PDF", "it is no notebook"),
    "s001/broken.ipynb": (b"{", "the file is not valid JSON"),
    "s001/other.ipynb": (notebook("", "99_other"), "the notebook is of 99_other, which is no lesson of this course"),
    "s001/newer.ipynb": (notebook("", LESSON, "99.0"), "newer than this course"),
    "s001/silent.ipynb": (notebook("", None), "does not say which lesson it is"),
    "stranger/x.ipynb": (notebook(), "nobody in the roster is x or stranger"),
    "s001/s002.ipynb": (notebook(), "could be s001 or s002"),
}


def test_each_bad_upload_is_named_and_kept_and_the_rest_goes_on(desk: Desk) -> None:
    members = [(name, data) for name, (data, _) in BAD.items()]
    file = desk.file("export.zip", zipped([*members, ("s003/good.ipynb", notebook("good"))]))
    report = desk.take(file)
    assert desk.placed(GRACE) == notebook("good")
    assert [path.name for path in desk.submitted.iterdir()] == [GRACE.id]
    home = collect.home(desk.submitted)
    for row, (name, (data, message)) in zip(report.rows, BAD.items(), strict=False):
        assert row.entry.path == f"export.zip/{name}"
        assert message in row.entry.problem
        kept = [one.read_bytes() for one in (home / row.entry.kept).iterdir()]
        assert kept == [file.read_bytes() if row.entry.whole else data]
    assert {str(path.relative_to(desk.folder)).split("/")[0] for path in desk.folder.rglob("*")} == {
        "export.zip",
        "grader",
    }
    assert desk.take(file).new == 0


def test_a_file_that_is_no_zip_is_kept_and_named(desk: Desk) -> None:
    good = desk.file("good.zip", zipped([("s001/a.ipynb", notebook())]))
    report = desk.take(desk.file("export.zip", b"no zip"), good)
    assert outcomes(report) == ["set aside", "newest"]
    assert "it is not a zip" in report.rows[0].entry.problem
    assert (collect.home(desk.submitted) / report.rows[0].entry.kept / "export.zip").read_bytes() == b"no zip"
    assert desk.take(desk.folder / "export.zip", good).new == 0


def test_a_folder_with_links_and_pipes_is_read_and_they_are_not_followed(desk: Desk) -> None:
    desk.file(f"in/{ADA.id}/{LESSON}/{LESSON}.ipynb", notebook("a"))
    secret = desk.file("secret.ipynb", notebook("secret"))
    (desk.folder / "in" / "s002.ipynb").symlink_to(secret)
    (desk.folder / "in" / "loop").symlink_to(desk.folder / "in")
    os.mkfifo(desk.folder / "in" / "pipe")
    report = desk.take(desk.folder / "in")
    assert sorted(problems(report)) == [
        "it is a device or pipe, not a file",
        "it is a link, not a file",
        "it is a link, not a file",
    ]
    assert desk.placed(ADA) == notebook("a")
    assert notebook("secret") not in [path.read_bytes() for path in (desk.folder / "grader").rglob("*.ipynb")]


BOTH = canvas_zip([Upload(ADA, notebook("a"), f"{LESSON}.ipynb"), Upload(ALAN, notebook("b"), f"{LESSON}.ipynb")])


def sabotaged(handed: bytes, **about: str) -> bytes:
    """A hand-in that says other things of itself."""
    read = handin.read(handed)
    header = {"format": handin.FORMAT, "version": 1, "course": read.course, "lesson": read.lesson,
              "student": read.student, "made": "2027-01-10T10:00:00+00:00", "nonce": read.nonce,
              "digest": read.digest}  # fmt: skip
    members = {
        f"{read.lesson}.ipynb": read.notebook,
        "journal.json": b"{}",
        "handin.json": json.dumps(header | about).encode(),
    }
    return zipped(members.items())


HAND_IN = handin.make(notebook(), {}, ADA.id, LESSON)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (f"lovelaceada_{ADA.lms_id}_1_x.zip", sabotaged(HAND_IN, made="9999-12-31T23:59:59-23:59")),
        (f"lovelaceada_{ADA.lms_id}_1_x.zip", sabotaged(HAND_IN, made="0001-01-01T00:00:00+23:59")),
        (f"lovelaceada_{ADA.lms_id}_1_x.zip", handin.make(notebook(), {}, ALAN.id, LESSON)),
        (f"lovelaceada_{ADA.lms_id}_1_x.ipynb", notebook(version="9" * 5000)),
        (f"lovelaceada_{ADA.lms_id}_{'9' * 5000}_x.ipynb", notebook()),
    ],
    ids=["the last second", "the first second", "somebody else's", "a version of 5000 digits", "a file of 5000 digits"],
)
def test_it_is_set_aside_and_the_rest_goes_on(desk: Desk, name: str, data: bytes) -> None:
    alans = f"turingalan_{ALAN.lms_id}_2_{LESSON}.ipynb"
    report = desk.take_zip(zipped([(name, data), (alans, notebook("b"))]))
    assert outcomes(report) == ["set aside", "newest"]
    assert desk.placed(ALAN) == notebook("b")


def test_damage_that_nobody_thought_of_stops_no_other(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(item: uploaded.UploadedFile) -> list[uploaded.UploadedNotebook]:
        if ADA.lms_id in item.name:
            raise RecursionError("too deep")
        return pieces(item)

    pieces = uploaded.pieces
    monkeypatch.setattr(uploaded, "pieces", broken)
    report = desk.take_zip(BOTH)
    assert outcomes(report) == ["set aside", "newest"]
    assert "RecursionError: too deep" in report.rows[0].entry.problem
    monkeypatch.undo()
    assert [row.outcome for row in desk.take_zip(BOTH).rows] == ["newest", "newest"], "once it can be read, it is"


def test_a_full_disk_is_named_and_the_next_run_mends_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path, content: bytes | Path, *, replacing: bool = False) -> None:
        if ADA.id in str(file):
            raise OSError(28, "No space left on device")
        put(file, content, replacing=replacing)

    put = received.put
    for module in (received, placing):
        monkeypatch.setattr(module, "put", full)
        report = desk.take_zip(BOTH)
        assert "No space left" in " ".join(report.problems)
        assert desk.placed(ALAN) == notebook("b")
        monkeypatch.undo()
    assert desk.take_zip(BOTH).problems == ()
    assert desk.placed(ADA) == notebook("a")


def into_received(desk: Desk, outside: Path) -> Path:
    return desk.folder / "grader" / "received" / "students" / ADA.id


def into_submitted(desk: Desk, outside: Path) -> Path:
    return desk.submitted / ADA.id


def as_the_file(desk: Desk, outside: Path) -> Path:
    (outside / "file").write_text("mine")
    return desk.submitted / ADA.id / LESSON / f".{LESSON}.ipynb.part"


@pytest.mark.parametrize("planted", [into_received, into_submitted, as_the_file])
def test_nothing_is_written_through_a_link(desk: Desk, planted: Callable[[Desk, Path], Path]) -> None:
    outside = desk.folder / "outside"
    outside.mkdir()
    link = planted(desk, outside)
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "file" if (outside / "file").exists() else outside)
    before = {path: path.read_text() for path in outside.iterdir()}
    report = desk.take_zip(BOTH)
    assert "a link lies in the way" in " ".join(report.problems)
    assert {path: path.read_text() for path in outside.iterdir()} == before
    assert desk.placed(ALAN) == notebook("b")


def test_a_folder_or_file_in_the_way_is_named(desk: Desk) -> None:
    (desk.submitted / ADA.id / LESSON / f"{LESSON}.ipynb").mkdir(parents=True)
    (desk.submitted / ALAN.id).write_text("hm")
    assert [problem.split(": ")[1] for problem in desk.take_zip(BOTH).problems] == ["not placed", "not placed"]
    assert (desk.submitted / ALAN.id).read_text() == "hm"


def test_a_damaged_index_says_nothing(desk: Desk) -> None:
    file = desk.folder / "grader" / "received" / "index.jsonl"
    file.parent.mkdir(parents=True)
    lines = [{"id": [], "source": 1, "path": None}, [1], {"id": "x", "source": "", "path": ""},
             {"id": "y", "source": "", "path": "", "student": ADA.id, "lesson": LESSON, "order": ["a", None],
              "problem": 3, "late": "no", "kept": "../.."}]  # fmt: skip
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    known = received.Received(file.parent).entries
    assert set(known) == {"x", "y"}
    assert (known["y"].problem, known["y"].late, known["y"].order, known["y"].kept) == ("", False, (), "")
    assert [row.outcome for row in desk.take_zip(BOTH).rows] == ["newest", "newest"]


def test_a_learners_clock_does_not_outvote_the_platforms_late(desk: Desk) -> None:
    due = datetime(2027, 1, 15, tzinfo=timezone.utc)
    room = collect.Classroom(desk.people, {LESSON: ("im2col",)}, settings=Settings(due={LESSON: due}))
    for made, stamp in ((due - timedelta(days=3), "2027-01-20"), (due + timedelta(hours=2), "2027-01-15 02:00")):
        data = sabotaged(HAND_IN, made=made.isoformat())
        file = desk.file("late.zip", canvas_zip([Upload(ADA, data, "x.zip", late=True)]))
        (row,) = collect.take(desk.folder / stamp[:13] / "submitted", [file], room).rows
        assert row.entry.when.startswith(stamp.replace(" ", "T"))
        assert ("before it was due" in row.entry.note) == (made < due)
