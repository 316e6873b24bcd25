"""The class report stands alone, says what it shows, and lets nothing of a student's through unescaped."""

import random
import re
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from unrolled import checks
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge.evidence import Score
from unrolled_grader.results import figures, report
from unrolled_grader.results.tally import tallied

EVIL = "<script>alert('x')</script>"
LESSON = "02_convolution"


def kept(student: str, points: float, ratio: float, flag: str = "", problem: str = "", **others: Any) -> Record:
    scores = (
        Score("conv2d_gemm", "pass" if points else "fail", points, 2.0, "detail"),
        Score("conv2d_gemm/speed", "pass", 1.0, 1.0, "", flag, ({"ratio": ratio, "at_least": 2.5},)),
    )
    return Record(student, LESSON, "", scores, problem, **others)


CLASS = [kept("ann", 2, 40.0), kept("bob", 0, 1.5, flag=EVIL), kept(EVIL, 0, 8.0, problem=f"broken {EVIL}")]


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = report.page(CLASS)
    assert re.findall(r'(?:src|href)="(?!data:)', page) == []
    assert not re.search(r"<script|<link|@import|url\(|https?:|\son\w+=", page)
    assert "default-src 'none'; script-src 'none'" in page


def test_everything_from_students_is_escaped() -> None:
    hostile = kept("eve", 1, 3.0, flags=(EVIL,), repairs=(EVIL,), sandbox=EVIL)
    hostile = replace(hostile, lesson=EVIL, machine={**hostile.machine, "cpu": EVIL})
    hostile = replace(hostile, scores=(Score(f'"{EVIL}', "deferred", 0.0, 1.0, EVIL), *hostile.scores))
    page = report.page([*CLASS, hostile])
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 10


def test_every_picture_says_its_figures() -> None:
    page = report.page(CLASS)
    speeds = re.findall(r'<td class="number">([^<]*)</td>', page.split("Speedups")[1])
    assert speeds[:6] == ["2.5x", "3", "2", "1.5x", "8x", "40x"]
    scores = f"Scores of {LESSON}: 3 students, median 33 %, 1 with all points, 0 with none."
    assert re.findall(r'role="img" aria-label="([^"]*)"', page) == [scores, "1 pass, 2 fail", "3 pass"]
    assert "1 of 3</span>" in page


def test_what_waits_is_in_no_bar_and_full_for_nobody() -> None:
    """Twelve of twelve points so far, and an answer of two that nobody has read, are 86 % and not all."""
    waits = (Score("explain", "waits", 0.0, 2.0, ""),)
    read = (Score("explain", "marked", 2.0, 2.0, ""),)
    judged = (Score("gemm", "pass", 12.0, 12.0, ""),)
    gpu = (Score("gemm/speed", "deferred", 0.0, 2.0, "needs a GPU: the points are withheld, not lost"),)
    parts = {"ann": waits, "bob": read, "cem": waits, "dan": gpu}
    records = [Record(student, LESSON, "", (*judged, *more)) for student, more in parts.items()]
    found = tallied(records)
    assert (found.shares, found.open) == ({LESSON: [1.0]}, {LESSON: [12 / 14] * 3})
    page = report.page(records)
    assert "<b>1</b>full scores" in page
    assert "<b>3</b>waiting" in page
    assert "<b>86 %</b>median so far" in page
    assert '<span class="waits"></span>students of whom something waits' in page
    picture = figures.histogram(LESSON, [1.0], found.open[LESSON])
    columns = re.findall(r'<div class="(?:up|down)">(?:<span class="(\w+)" [^>]*></span>(\d+))?</div>', picture)
    assert columns == [*[("", "")] * 10, ("all", "1"), *[("", "")] * 8, ("waits", "3"), *[("", "")] * 2]
    assert "1 with all points, 0 with none; of 3 something waits, they have 86 to 86 % so far." in picture
    settled = report.page(records[1:2])
    assert "<b>100 %</b>median score" in settled
    assert "waits" not in re.sub(r"<style>.*?</style>", "", settled, flags=re.DOTALL)


def test_nothing_is_withheld_where_there_are_no_points() -> None:
    scores = (Score("ink", "pass", 2.0, 2.0, ""), Score("ink/speed", "deferred", 0.0, 0.0, "not measured yet"))
    page = report.page([Record("ann", "00_start_here", "", scores)])
    assert "<b>1</b>full scores" in page
    assert "<b>0</b>waiting" in page
    assert "<b>0</b>deferred" in page
    assert "neither lost nor given" not in page
    assert "ink/<wbr>speed" not in page


def test_flagged_and_ungraded_items_are_listed_once_for_all_whom_they_concern() -> None:
    page = report.page([*CLASS, kept("cem", 2, 9.0, flag=EVIL), kept("dan", 2, 9.0, flags=("embeds 31 KB of data",))])
    assert "not graded" in page
    assert "broken" in page
    assert "<td>bob, cem</td>" in page
    assert re.search(r"the whole notebook</td><td>embeds 31 KB of data</td><td>dan</td>", page)
    assert "ann" not in re.sub(
        r"<style>.*</style>|\bmeans?\b", "", page[page.index("To look at") : page.index("Machines")]
    )


def test_deferred_points_stand_apart_with_their_reason() -> None:
    late = Score("gpu/speed", "deferred", 0.0, 1.0, "needs a GPU")
    records = [Record(f"s{number}", "06_gpu_port", "", (late,)) for number in range(9)]
    page = report.page(records)
    assert "<td>needs a GPU</td>" in page
    assert "<summary>9 students</summary>" in page
    assert "<b>9</b>deferred" in page
    assert "<b>0</b>to look at" in page
    assert "Nothing: every submission opened" in page


def test_an_unsandboxed_score_stamps_the_page() -> None:
    safe = [kept("ann", 2, 9.0, sandbox="bubblewrap 0.8.0, cgroup v1")]
    assert 'class="stamp"' not in report.page(safe)
    page = report.page([*safe, kept("bob", 2, 9.0, sandbox="NONE (--unsafe-no-sandbox)")])
    assert "NO SANDBOX: 1 of 2 submissions" in page
    assert page.index('class="stamp"') < page.index("<h1>")
    assert "bubblewrap 0.8.0" in page


@pytest.mark.usefixtures("_without_gpu")
def test_machines_are_shown() -> None:
    page = report.page([kept("ann", 2, 9.0)])
    assert "cores, GPU none, Python" in page
    assert "docs/threat-model.md" in page.replace("<wbr>", "")


def test_an_empty_class_has_a_report() -> None:
    assert "Nothing has been graded yet" in report.page([])


def a_class(students: int, lessons: int = 6) -> Iterator[Record]:
    """A record a student and lesson, one at a time, with all parts of the lesson's checks."""
    dice = random.Random(0)
    for number in range(students):
        for lesson, specs in sorted(checks.lessons().items())[:lessons]:
            scores = (score for name, spec in specs.items() for score in some_scores(dice, name, spec))
            yield Record(f"student{number:03}", lesson, "", tuple(scores))


def some_scores(dice: random.Random, name: str, spec: checks.Spec) -> Iterator[Score]:
    right = dice.random() < 0.7
    detail = "" if right else "case 'stride 2': differs at (0, 1): expected 4, got 3"
    yield Score(name, "pass" if right else "fail", float(spec.points * right), float(spec.points), detail)
    if spec.speed is not None:
        timing = {"ratio": dice.lognormvariate(2, 1), "at_least": spec.speed.at_least}
        yield Score(f"{name}/speed", "pass", 1.0, 1.0, f"{timing['ratio']:.1f}x", "", (timing,))


def test_parts_are_in_the_order_of_lessons_and_checks() -> None:
    parts = [*tallied(a_class(5, lessons=2)).verdicts]
    assert [part.lesson for part in parts] == sorted(part.lesson for part in parts)
    assert [part.name for part in parts if part.lesson.startswith("00")] == ["ink", "ink/speed"]


def heavy_class() -> Iterator[Record]:
    """600 records with all their measured pairs."""
    for one in a_class(100):
        for timing in (timing for score in one.scores for timing in score.timings):
            timing["pairs"] = [[0.01, 0.02] for _ in range(32)]
        yield one


def test_a_large_class_keeps_no_timings() -> None:
    tallied(heavy_class())  # what is loaded once does not count
    tracemalloc.start()
    found = tallied(heavy_class())
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert found.submissions.total() == 600
    assert size < 600_000  # 1 KB a submission; the pairs of one timing alone are more


def test_a_large_class_fits_a_page() -> None:
    assert len(report.page(a_class(200))) < 1_000_000
