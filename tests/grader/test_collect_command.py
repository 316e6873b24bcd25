"""`unrolled collect` as an instructor types it."""

import csv
import shutil
from pathlib import Path

import nbformat
import pytest
from lms_exports import CLASS, Upload, canvas_zip, moodle_zip, roster_csv
from small_course import GOOD, LESSON, answered

from unrolled.cli import main
from unrolled_grader.classroom import gradebook
from unrolled_grader.classroom.roster import Roster
from unrolled_grader.grading import Grading
from unrolled_grader.receiving import collect_command
from unrolled_grader.receiving.received import Received

ADA, ALAN, GRACE, SEAN = CLASS[:4]


@pytest.fixture
def export(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Canvas's download of the small course, and a roster without Seán."""
    monkeypatch.chdir(root)
    data = nbformat.writes(answered(root, GOOD)).encode()
    name = f"{LESSON}.ipynb"
    uploads = [Upload(ADA, data, name), Upload(ALAN, data + b" ", name, late=True), Upload(GRACE, b"PK\3\4", "x.zip")]
    more = {"__MACOSX/._x": b"\0", "=cmd()|'\x1b[2J.pdf": b"%PDF"}
    file = root / "export.zip"
    file.write_bytes(canvas_zip([*uploads, Upload(SEAN, data + b"  ", name)], more=more))
    (root / "roster.csv").write_text(roster_csv(CLASS[:3]), encoding="utf-8-sig")
    return file


def test_what_needs_a_person_is_said_and_a_second_run_changes_nothing(
    root: Path, export: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", str(export)]) == 1
    output = capsys.readouterr().out
    assert "set aside: export.zip/hoppergrace_70111_970111_x.zip: the zip is cut off: its end is missing" in output
    assert f"its end is missing ({GRACE.id})\n" in output
    assert "nobody in the roster is obrienseán" in output
    assert f"{ALAN.id}, {LESSON}: the platform marks it LATE" in output
    assert "set aside: 1 files that the system or Jupyter left\n" in output
    assert "6 received: 2 newest, 0 earlier, 0 the same again, 4 set aside\n" in output
    assert f"\n{LESSON}: 2 of 3 have a notebook to be graded; not yet: {GRACE.id}\n" in output
    with gradebook.opened(Grading.at(root).directory) as book:
        known = [(one.id, one.first_name, one.last_name, one.lms_user_id) for one in book.students]
    assert sorted(known)[0] == (ADA.id, "Ada", "Lovelace", ADA.lms_id)
    assert len(known) == 3
    assert "\x1b" not in output
    with (root / "grades" / "collected.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["student"], row["outcome"], row["late"]) for row in rows if row["lesson"]] == [
        (ADA.id, "newest", ""),
        (ALAN.id, "newest", "late"),
    ]
    table = (root / "grades" / "collected.csv").read_bytes()
    assert main(["collect", "export.zip", "--lesson", "07"]) == 1
    assert "Nothing new: all of this was received before, and nothing was changed.\n" in capsys.readouterr().out
    assert (root / "grades" / "collected.csv").read_bytes() == table
    assert collect_command.waiting(Grading.at(root)).startswith(
        "received but set aside, and not graded: 3; why stands in "
    )
    (root / "roster.csv").write_text(roster_csv(), encoding="utf-8")
    good = root / "good.zip"
    same = nbformat.writes(answered(root, GOOD)).encode()
    good.write_bytes(canvas_zip([Upload(ADA, same, f"{LESSON}-1.ipynb", late=True)]))
    assert main(["collect", "good.zip"]) == 0
    assert f"that download; {collect_command.AGAIN}\n" in capsys.readouterr().out
    assert not (root / "grader" / "submitted" / ADA.id / LESSON / "timestamp.txt").exists()


def test_a_second_download_says_who_is_new_and_counts_what_was_said(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_others = shutil.ignore_patterns("received", "submitted", "grades", "gradebook.db")
    home = shutil.copytree(root, tmp_path / "course", ignore=of_others)
    monkeypatch.chdir(home)
    (home / "roster.csv").write_text(roster_csv(CLASS[:7]), encoding="utf-8")
    books = [nbformat.writes(answered(home, GOOD)).encode() + b" " * at for at in range(9)]
    name = f"{LESSON}.ipynb"
    first = [Upload(one, data, name) for one, data in zip(CLASS[:5], books, strict=False)]
    cut = Upload(CLASS[5], b"{", name)
    (home / "first.zip").write_bytes(moodle_zip([*first, cut], texts=False))
    assert main(["collect", "first.zip"]) == 1
    output = capsys.readouterr().out
    assert f"\n{LESSON}: Moodle tells no time: 5 (s001, s002, s003, s004, s005)\n" in output
    assert output.count("Moodle tells no time") == 1
    assert "new: " not in output  # all are
    assert f"{cut.student.id}_assign" not in output
    assert main(["collect", "first.zip"]) == 1
    output = capsys.readouterr().out
    assert "remarks of an earlier run stand in collected.csv: 5 notebooks\n" in output
    assert "Moodle tells no time" not in output
    assert "set aside: first.zip/Juan" in output  # still nothing of theirs
    again, mended, new = (Upload(CLASS[at], books[at + 2], name) for at in (0, 5, 6))
    (home / "second.zip").write_bytes(
        moodle_zip([again, *first[1:], mended, new], texts=False, when=(2027, 1, 27, 9, 0, 0))
    )
    assert main(["collect", "first.zip", "second.zip"]) == 0
    output = capsys.readouterr().out
    assert f"\n{LESSON}: new: s006, s007; in place of an earlier: s001\n" in output
    assert "remarks of an earlier run stand in collected.csv: 4 notebooks\n" in output
    assert "set aside in an earlier run, of students who have a notebook by now: 1\n" in output
    assert f"s006, {LESSON}: Moodle tells no time\n" in output


def test_a_full_disk_is_said_and_due_dates_are_known(
    root: Path, export: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "course.toml").write_text(f'[due]\ntimezone = "Asia/Tokyo"\n{LESSON} = 2027-01-15T23:59:00\n')
    room = collect_command.classroom(Grading.at(root), Roster())
    assert str(room.settings.due_for(ADA.id, LESSON)) == "2027-01-15 23:59:00+09:00"

    def full(self: Received, counting: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Received, "table", full)
    assert main(["collect", str(export)]) == 1
    assert "No space left on device" in capsys.readouterr().err
