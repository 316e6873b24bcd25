"""What a grading shows on a terminal: the table fits into 100 columns, and says who may still get points."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from wcwidth import wcswidth

from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import Score
from unrolled_grader.judge.intake import Handed
from unrolled_grader.results import terminal

PARTS = ("conv2d_output_size", "conv2d_loops", "conv2d_gemm", "conv2d_gemm/speed")


def kept(student: str, lesson: str = "02_convolution", *scores: Score, **others: Any) -> Record:
    return Record(student, lesson, "", scores or tuple(score(part) for part in PARTS), machine={}, **others)


def score(part: str, verdict: str = "pass", most: float = 2.0, points: float | None = None, detail: str = "") -> Score:
    given = most if verdict == "pass" else 0.0
    return Score(part, verdict, given if points is None else points, most, detail)


def whole_class(students: int, lessons: int, name: str = "s{:03}") -> list[Record]:
    """A class in which everybody lost something everywhere, and points with a fraction at that."""
    scores = (
        *(score(part, "fail") for part in PARTS),
        score("merge"),
        score("explain", "waits"),
        score("late", "late", 0.0, -0.25, "1 day late: 0.25 points less"),
        *(score(f"more{number}", most=11.0) for number in range(8)),
    )
    return [
        kept(name.format(student), f"{lesson:02}_lesson", *scores)
        for student in range(students)
        for lesson in range(lessons)
    ]


@pytest.mark.parametrize("lessons", [1, 2, 8, 14])
@pytest.mark.parametrize("name", ["s{:03}", "学生の名前はとても長いです学生の名前はとても長いです{:03}"])
def test_the_table_fits_a_terminal_of_100_columns(lessons: int, name: str) -> None:
    lines = terminal.table(whole_class(200, lessons, name)).split("\n")
    assert max(map(wcswidth, lines)) <= 100
    points = [line for line in lines if "89.7+" in line]
    assert len({line.partition(" ")[0] for line in points}) == 200, "each can be told from the others"
    assert all(line.count("89.7+") == lessons for line in points)


def test_a_class_as_it_is_shown() -> None:
    records = [
        kept("ann"),
        kept("ann", "03_pooling"),
        kept("bob", "02_convolution", *(score(part, "fail" if part == "conv2d_loops" else "pass") for part in PARTS)),
        kept("cem", "02_convolution", score("gemm", "crashed"), score("gemm/speed", "missing"), score("a")),
        kept("dan", "02_convolution", score("conv2d_gemm"), score("conv2d_gemm/speed", "deferred")),
        kept("eve", "02_convolution", score("conv2d_gemm"), score("explain", "waits")),
        kept("fay", "02_convolution", *(score(part, "missing") for part in PARTS), problem="not a notebook"),
        kept("gil", "02_convolution", *(score(part, "missing") for part in PARTS), score("explain", "unanswered")),
        kept("hal", "02_convolution", score("a"), score("late", "late", 0.0, -0.04, "1 day late: 0.04 points less")),
    ]
    assert terminal.table(records) == "\n".join(
        [
            "student     02  03   not all points in",
            "at most     10   8",
            "ann          8   8",
            "bob          6   –   fail: conv2d_loops",
            "cem          2   –   crashed: gemm",
            "dan          2+  –",
            "eve          2+  –",
            "fay          0!  –   not graded: all of 02",
            "gil          0   –   missing: all of 02",
            "hal        1.9   –   1 day late: 0.04 points less",
            "",
            "+  points may still come: an answer in words waits to be read, or a part is deferred",
            "!  the notebook could not be graded; the report says why",
            "–  nothing was handed in",
        ]
    )


def test_reasons_that_do_not_fit_are_cut_off_and_those_without_room_stay_out() -> None:
    assert "…" in terminal.table(whole_class(1, 9)).split("\n")[2]
    assert "not all points in" not in terminal.table(whole_class(1, 12))


def test_no_legend_where_nothing_needs_one_and_a_name_gives_no_commands() -> None:
    assert terminal.table([kept("ann")]).split("\n")[-1].split() == ["ann", "8"]
    assert terminal.table([]) == "Nothing was graded."
    assert "\x1b" not in terminal.table([kept("ann\x1b[2J\u202e")])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_a_terminal_is_told_how_long_the_rest_takes(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", progress := stream())
    items = [Handed(student, "02_convolution", Path(), "") for student in ("ann", "bob")]
    outcomes = [(items[0], kept("ann")), (items[1], OSError("no disk\x1b"))]
    assert list(terminal.print_outcomes(iter(outcomes), 2)) == items[:1]
    assert capsys.readouterr().out == (
        "[1/2] ann, 02_convolution: 8 of 8 points in 0 s\n[2/2] bob, 02_convolution: not graded: no disk\n"
    )
    if stream is Terminal:
        assert "0 of 2 graded in 00:00, about ? left" in progress.getvalue()
        assert "1 of 2 graded in 00:00, about 00:00 left" in progress.getvalue()
    else:
        assert progress.getvalue() == ""
