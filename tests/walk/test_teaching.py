"""docs/teaching.md, typed from top to bottom: one course with 30 students. It shows what is printed; nobody is lost."""

import csv
import hashlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from classroom30 import AGAIN, ANSWERS, CLASS, CONVOLUTION, MANY_DEVICES, START, TWO
from course import TEACHING, fork
from page import same

ZIPS = ("submissions.zip", "submissions-2.zip", "convolution.zip", "many_devices.zip")
ODD = {
    "s009": "the zip is cut off",
    "s010": "it unpacks to 60 MB",
    "s011": "",
    "s012": "",
    "s013": "nobody in the roster is",
    "s014": "it is no notebook",
    "s015": "the notebook is of another lesson: 02_convolution",
    "s016": "the file is not valid JSON",
    "s020": "s020 handed in what says it is s012's",
}
"""Whose file is set aside at first, and what is said about it."""


@dataclass
class Walked:
    """What the walk left before its end of term."""

    blocks: list[tuple[str, str]]
    failed: list[str]
    collected: list[dict[str, str]]
    canvas: dict[str, dict[str, str]]
    uploads: dict[str, bytes]
    """What the downloads hold, by name."""
    kept: set[str]
    """The digests of the files in grader/received."""

    def printed(self, command: str, at: int = 0) -> str:
        return [printed for _, printed in self.blocks if f"$ {command}" in printed][at]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    walk, found = fork(tmp_path_factory.mktemp("home")), Walked([], [], [], {}, {}, set())
    for shown, printed in walk.run(TEACHING.read_text(encoding="utf-8")):
        found.blocks.append((shown, printed))
        if "$ cat canvas.csv" in shown:
            found.collected = rows(walk.folder / "grades" / "collected.csv")
            found.canvas = {row["SIS Login ID"]: row for row in rows(walk.folder / "canvas.csv")}
            found.kept = {digest(file.read_bytes()) for file in files(walk.folder / "grader" / "received")}
            for name in ZIPS:
                with zipfile.ZipFile(walk.home / "Downloads" / name) as archive:
                    found.uploads |= {f"{name}/{one.filename}": archive.read(one) for one in archive.infolist()}
    found.failed = walk.failed
    return found


def rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_page_shows_what_is_printed(walked: Walked) -> None:
    for shown, printed in walked.blocks:
        assert same(printed) == same(shown), "docs/teaching.md is old: python tests/walk/write.py makes it anew"
    collect = "unrolled collect ~/Downloads/submissions.zip"
    needs_a_person = [f"{collect} --lesson 00", f"{collect} ~/Downloads/submissions-2.zip --lesson 00"]
    assert walked.failed == needs_a_person


def test_every_file_of_every_download_is_kept(walked: Walked) -> None:
    assert len(walked.uploads) == 34 + len(AGAIN) + 6 + len(TWO)
    assert [name for name, data in walked.uploads.items() if digest(data) not in walked.kept] == []


def test_each_of_the_thirty_has_a_notebook_to_be_graded(walked: Walked) -> None:
    newest = [row["student"] for row in walked.collected if row["outcome"] == "newest" and row["lesson"] == START]
    assert sorted(newest) == [student.id for student in CLASS]


def test_each_odd_file_is_reported(walked: Walked) -> None:
    first, second = (walked.printed("unrolled collect ~/Downloads/submissions.zip", at) for at in (0, 1))
    aside = [line for line in first.split("\n") if line.startswith("set aside: submissions.zip/")]
    for student, reason in ODD.items():
        surname = CLASS[int(student[1:]) - 1].sortable.partition(",")[0].lower().replace(" ", "")
        assert [line for line in aside if f"/{surname}" in line and reason in line], student
    assert [line for line in aside if "its name leads out of the folder" in line]
    assert len(aside) == len(ODD) + 1
    late, counts = "s007, 00_start_here: the platform marks it LATE", " 1 earlier, 1 the same again, "
    for text in (late, "the same notebook as", "the system or Jupyter left", counts):
        assert text in first
    assert "30 newest" in second
    reasons = [row["problem"] for row in walked.collected if row["outcome"] == "set aside"]
    assert len(reasons) == len(AGAIN) + 2  # the climbing name and the system's own file
    assert all(reasons)


def test_the_csv_has_the_points_of_each_of_the_thirty(walked: Walked) -> None:
    for number, student in enumerate(CLASS, 1):
        row = walked.canvas[student.id]
        assert row["ID"] == student.lms_id
        assert float(row[START]) == expected(number), student
        assert bool(row[CONVOLUTION]) == (number <= 6)
        assert row[MANY_DEVICES] == "", "nobody has read the answers in words"


def test_a_late_lesson_is_taken_in_and_judges_nothing_else_again(walked: Walked) -> None:
    added = walked.printed("unrolled class change --lessons 00,02,12")
    assert "this lesson is added" in added
    assert "judged again" not in added
    graded = walked.printed("unrolled grade 12").split("\n")
    assert [line.split()[:4] for line in graded if line.startswith("[")] == [
        ["[1/2]", "s001,", f"{MANY_DEVICES}:", "16"],
        ["[2/2]", "s002,", f"{MANY_DEVICES}:", "10"],
    ]


def expected(number: int) -> float:
    """Ink and an answer in words; a tenth less for a day; what s022 and s023 handed in is what s022 wrote."""
    by = 22 if number == 23 else number
    right = 0.0 if by in ANSWERS else 1.0
    words = 0.0 if ANSWERS.get(by) == "not written" else (1, 0.5, 1)[number % 3]
    return round((right + words) * (0.9 if number == 7 else 1), 2)


def test_at_the_end_nothing_is_left_of_who_is_forgotten(walked: Walked) -> None:
    output = walked.printed("unrolled forget s030")
    assert "deleted  grader/received/students/s030/\n" in output
    assert "still found" not in output
