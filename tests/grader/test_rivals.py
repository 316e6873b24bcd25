"""Two different notebooks of a lesson from one student: the newest counts where something tells, and never silently."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from lms_exports import CLASS, Upload, canvas_zip, moodle_zip, zipped
from test_collect import LESSON, OTHER, Desk, notebook, outcomes, problems
from test_collect_hostile import sabotaged

from unrolled.notebook import handin
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.receiving import collect
from unrolled_grader.receiving.collect import Classroom

ADA, ALAN = CLASS[:2]
A, B = notebook("a"), notebook("b")
UNSETTLED = f"2 different notebooks of {LESSON}, and nothing tells which is meant: "


def made(source: str, day: int) -> bytes:
    """A hand-in of that day."""
    return sabotaged(handin.make(notebook(source), {}, ADA.id, LESSON), made=f"2027-01-{day:02}T10:00:00+00:00")


def sent(*files: tuple[str, bytes], by: int = 0, number: int = 0) -> list[Upload]:
    return [
        Upload(CLASS[by], data, name, file=number and number + at if len(files) > 1 else number)
        for at, (name, data) in enumerate(files)
    ]


OWN = zipped([("first.zip", made("b", 12)), ("second.zip", made("a", 10))])
DOWNLOADS = {
    "Moodle": (moodle_zip(sent(("a.ipynb", A), ("b.ipynb", B))), None, UNSETTLED + "a.ipynb, b.ipynb"),
    "Moodle, without folders": (moodle_zip(sent(("a.ipynb", A), ("b.ipynb", B)), folders=False), None, UNSETTLED),
    "Moodle, one of them packed": (moodle_zip(sent(("a.ipynb", A), ("b.zip", made("b", 12)))), None, UNSETTLED),
    "Moodle, a zip beside it": (
        moodle_zip(sent(("a.ipynb", A), ("w.zip", zipped([("work/b.ipynb", B)])))),
        None,
        UNSETTLED + "a.ipynb, b.ipynb",
    ),
    "Moodle, hand-in files": (
        moodle_zip(sent(("new.zip", made("b", 12)), ("old.zip", made("a", 10)))),
        B,
        "the newest of 2 different notebooks, by the clock of the hand-in files; not graded: old.zip",
    ),
    "Moodle, made at one moment": (moodle_zip(sent(("a.zip", made("a", 9)), ("b.zip", made("b", 9)))), None, UNSETTLED),
    "Moodle, one notebook twice": (moodle_zip(sent(("a.ipynb", A), ("copy.ipynb", A))), A, ""),
    "Moodle, two lessons": (moodle_zip(sent(("a.ipynb", A), ("b.ipynb", notebook("b", OTHER)))), A, ""),
    "Canvas": (
        canvas_zip(sent(("a.ipynb", A), ("b.ipynb", B), number=7)),
        B,
        "the newest of 2 different notebooks, by Canvas's number of the file; not graded: lovelaceada_70037_7_a.ipynb",
    ),
    "Canvas, a student's own zip": (
        canvas_zip(sent(("w.zip", zipped([("a.ipynb", A), ("b.ipynb", B)])), number=7)),
        None,
        UNSETTLED + "a.ipynb, b.ipynb",
    ),
    "Canvas, hand-in files in a zip": (canvas_zip(sent(("w.zip", OWN), number=7)), B, "not graded: second.zip"),
    "a zip, of one moment": (zipped([(f"{ADA.id}/a.ipynb", A), (f"{ADA.id}/b.ipynb", B)]), None, UNSETTLED),
}
"""What is taken in, what is graded of it, and what is said."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("case", DOWNLOADS)
def test_the_newest_counts_where_something_tells_and_says_so(case: str, desk: Desk) -> None:
    data, graded, message = DOWNLOADS[case]
    file = desk.file("download.zip", data)
    report = desk.take(file)
    mine = [row for row in report.rows if row.entry.student == ADA.id and row.entry.problem != "it is no notebook"]
    if graded is None:
        assert not (desk.submitted / ADA.id).exists()
        assert [row.entry.problem.startswith(message) for row in mine] == [True, True]
        assert {row.entry.note for row in mine} <= {"", "Moodle tells no time"}
    else:
        assert desk.placed(ADA) == graded
        assert [message in row.entry.note for row in mine if row.outcome == "newest"][:1] == [True]
        assert sum("different notebooks" in row.entry.note for row in mine) == bool(message)
    assert desk.take(file).new == 0


def test_files_tell_by_their_own_times_also_one_by_one(desk: Desk) -> None:
    new, old = desk.file(f"in/{ADA.id}/a.ipynb", A, 1_800_000_900), desk.file(f"in/{ADA.id}/b.ipynb", B, 1_800_000_000)
    for given in ((desk.folder / "in",), (new, old)):
        desk.submitted = desk.folder / str(len(given)) / "submitted"
        report = desk.take(*given)
        assert sorted(outcomes(report)) == ["earlier", "newest"]
        assert desk.placed(ADA) == A
        notes = {row.entry.note for row in report.rows}
        assert notes == {"", "the newest of 2 different notebooks, by the files' own times; not graded: b.ipynb"}


def test_a_file_that_joins_an_earlier_one_in_moodle_is_the_newer(desk: Desk) -> None:
    first = desk.file("first.zip", moodle_zip(sent(("b.ipynb", B))))
    desk.take(first)
    members = [(f"{ADA.name}_5037_assignsubmission_file/{name}.ipynb", data) for name, data in (("a", A), ("b", B))]
    second = desk.file("second.zip", zipped(members, when=(2027, 1, 27, 9, 0, 0)))
    report = desk.take(second)
    assert sorted(outcomes(report)) == ["earlier", "newest"]
    assert desk.placed(ADA) == A
    why = "an earlier download did not have it; not graded: b.ipynb"
    assert report.rows[0].entry.note == f"Moodle tells no time; the newest of 2 different notebooks, {why}"
    assert desk.take(first, second).new == 0
    assert desk.placed(ADA) == A


def test_two_that_join_an_earlier_one_wait_and_it_stays(desk: Desk) -> None:
    desk.take_zip(moodle_zip(sent(("b.ipynb", B))), "first.zip")
    report = desk.take_zip(moodle_zip(sent(("b.ipynb", B), ("c.ipynb", notebook("c")), ("d.ipynb", notebook("d")))))
    assert sum(problem.startswith(UNSETTLED + "c.ipynb, d.ipynb") for problem in problems(report)) == 2
    assert desk.placed(ADA) == B


def test_the_others_of_the_class_are_taken_and_the_one_that_is_meant_finds_its_place(desk: Desk) -> None:
    mine = sent(("a.ipynb", A), ("b.ipynb", B))
    desk.take_zip(moodle_zip([*mine, *sent(("a.ipynb", notebook("c")), by=1)]))
    assert desk.placed(ALAN) == notebook("c")
    meant = desk.file(f"{ADA.name}_5037_assignsubmission_file/b.ipynb", B)
    assert outcomes(desk.take(meant)) == ["newest"]
    assert desk.placed(ADA) == B
    assert desk.stamp(ADA) == ""  # the disk's time says nothing of a file of Moodle's


DUE = datetime(2027, 1, 15, 23, 59, tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("name", "data", "note"),
    [
        (
            f"{ADA.id}/a.ipynb",
            A,
            "the file's own time, 2027-01-20 18:30, is 114 hours late (5 days begun) "
            "(if it came in time, correct its timestamp.txt)",
        ),
        (f"{ADA.id}/a.zip", made("a", 15), ""),
        (f"{ADA.id}/a.zip", made("a", 16), "the hand-in's time, 2027-01-16 19:00, is 19 hours late (1 day begun)"),
        (f"{ADA.name}_5_assignsubmission_file/a.ipynb", A, "Moodle tells no time"),
        ("lovelaceada_70037_7_a.ipynb", A, ""),
        ("stranger/a.ipynb", A, ""),
    ],
)
def test_a_file_whose_own_time_is_past_its_due_date_is_named(name: str, data: bytes, note: str, desk: Desk) -> None:
    room = Classroom(desk.people, {LESSON: ("im2col",)}, settings=Settings(due={LESSON: DUE}))
    saved = datetime(2027, 1, 20, 9, 30, tzinfo=timezone.utc).timestamp()
    (row,) = collect.take(desk.submitted, [desk.file(name, data, saved)], room).rows
    assert row.entry.note == note
    early = desk.file(name.replace("a.", "b."), notebook("early"), saved - 6 * 86400)
    if note.startswith("the file's"):
        assert "own time" not in collect.take(desk.submitted, [early], room).rows[0].entry.note
