"""The class report stands alone, says what it shows, and lets nothing of a student's through unescaped."""

from __future__ import annotations

import re

from unrolled_grader import figures, report
from unrolled_grader.evidence import Score
from unrolled_grader.record import Record

EVIL = "<script>alert('x')</script>"


def kept(student: str, points: float, ratio: float, flag: str = "", problem: str = "") -> Record:
    scores = (
        Score("conv2d_gemm", "pass" if points else "fail", points, 2.0, "detail"),
        Score("conv2d_gemm/speed", "pass", 1.0, 1.0, "", flag, ({"ratio": ratio, "at_least": 2.5},)),
    )
    return Record(student, "02_convolution", "", scores, problem)


CLASS = [kept("ann", 2, 40.0), kept("bob", 0, 1.5, flag=EVIL), kept(EVIL, 0, 8.0, problem=f"broken {EVIL}")]


def test_the_page_loads_nothing() -> None:
    page = report.page(CLASS)
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert not re.search(r"<script|<link|@import|url\(|https?:", page)


def test_everything_from_students_is_escaped() -> None:
    page = report.page(CLASS)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3


def test_every_picture_has_a_text_alternative() -> None:
    images = re.findall(r"<img [^>]*>", report.page(CLASS))
    assert len(images) == 3
    assert all(re.search(r'alt="[^"]{20,}"', image) for image in images)


def test_the_pictures_say_the_figures() -> None:
    counts, speeds = figures.part_counts(CLASS), figures.speeds(CLASS)
    assert figures.pass_rates(counts).alt == "Passed, by check: conv2d_gemm 1 of 3; conv2d_gemm/speed 3 of 3."
    assert "asked 2.5x, 3 measured, from 1.5x to 40x, median 8x" in figures.speedups(speeds).alt
    assert "3 students, median 33 %, 1 with all points, 0 with none" in figures.histogram(CLASS).alt


def test_flagged_and_ungraded_items_are_listed() -> None:
    page = report.page(CLASS)
    assert "not graded" in page
    assert "broken" in page
    assert "<td>bob</td>" in page
    assert "<td>ann</td>" not in page


def test_an_empty_class_has_a_report() -> None:
    assert "Nothing has been graded yet" in report.page([])
