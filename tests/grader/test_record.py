"""Records come back as they were, and scores.csv has one form."""

from __future__ import annotations

import csv
from pathlib import Path

from unrolled_grader import record
from unrolled_grader.evidence import Score
from unrolled_grader.record import Record

TIMING = {"ratio": 41.5, "at_least": 2.5}
SCORES = (
    Score("conv2d_gemm", "pass", 2.0, 2.0, "11 cases right"),
    Score("conv2d_gemm/speed", "inconclusive", 1.0, 1.0, "too\nclose", "look", (TIMING,)),
)


def kept(student: str = "ann", **others: object) -> Record:
    return Record(student, "02_convolution", "abc", SCORES, **others)  # type: ignore[arg-type]


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    first = kept(seconds=3.5, seeds=(1, 2**62))
    record.save(tmp_path, first)
    assert record.load(tmp_path, "ann", "02_convolution") == first
    assert record.load(tmp_path, "bob", "02_convolution") is None


def test_scores_csv_has_a_row_a_part(tmp_path: Path) -> None:
    for student in ("bob", "ann"):
        record.save(tmp_path, kept(student))
    with record.write_scores(tmp_path).open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    assert rows == [
        ["student", "lesson", "check", "points", "max_points", "verdict", "detail"],
        ["ann", "02_convolution", "conv2d_gemm", "2", "2", "pass", "11 cases right"],
        ["ann", "02_convolution", "conv2d_gemm/speed", "1", "1", "inconclusive", "too close"],
        ["bob", "02_convolution", "conv2d_gemm", "2", "2", "pass", "11 cases right"],
        ["bob", "02_convolution", "conv2d_gemm/speed", "1", "1", "inconclusive", "too close"],
    ]


def test_text_from_students_is_tame_in_a_table(tmp_path: Path) -> None:
    assert record.one_line('=HYPERLINK("x")') == '\'=HYPERLINK("x")'
    assert record.one_line("a\x1b[2Jb\r\nc\x00") == "a [2Jb c"
    assert len(record.one_line("x" * 10_000)) == record.DETAIL_LIMIT
    nasty = Score("conv2d_gemm", "fail", 0.0, 2.0, "\ud800")
    record.save(tmp_path, Record("ann", "02_convolution", "", (nasty,)))
    assert "\\ud800" in record.write_scores(tmp_path).read_text(encoding="utf-8")
