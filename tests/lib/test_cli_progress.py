"""`unrolled progress`: what passed, what is next, the minutes; and the record."""

import datetime
import html.parser
import json
import re

import pytest

from unrolled import cli, journal
from unrolled.cli import plan, progress, record
from unrolled.cli.plan import Exercise, Lesson

FIRST = Lesson("01_first", "First", 60, (Exercise("merge", False, 10), Exercise("matmul", True, 30)))
SECOND = Lesson("02_second", "Second", 40, (Exercise("im2col", True, 20),))
# At 10:30 UTC it is the same day from Honolulu to Auckland: days are shown as they are where the test runs.
DONE = {"passed": True, "ever_passed": True, "points": 2, "max_points": 3, "date": "2026-10-21T10:30:00+00:00"}
TRIED = {"passed": False, "ever_passed": False, "points": 0, "max_points": 2, "date": "2026-10-20T10:30:00+00:00"}


def notebook(*texts):
    cells = [{"cell_type": "markdown", "source": text.splitlines(keepends=True)} for text in texts]
    return json.dumps({"cells": [{"cell_type": "code", "source": "# Lesson 09, about 1 minutes."}, *cells]})


# What the lessons say of themselves


def test_minutes_and_core_stand_in_the_notebook(home):
    texts = (
        "# A title\n\nLesson 01, about 60 minutes; more.",
        "### Exercise: merge\n\n**More**, about 10 minutes. (x)",
    )
    (home / "01_first").mkdir()
    (home / "01_first" / "01_first.ipynb").write_text(notebook(*texts), encoding="utf-8")
    (home / "02_second.ipynb").write_text("{", encoding="utf-8")
    first, second = plan.read({"01_first": ["merge", "matmul"], "02_second": ["im2col"]}, [home])
    assert first == Lesson("01_first", "A title", 60, (Exercise("merge", False, 10), Exercise("matmul")))
    assert second == Lesson("02_second", "Second", 0, (Exercise("im2col"),)), "broken: nothing is known"
    left = [FIRST.left(passed) for passed in ((), ["merge"], ["merge", "matmul"])]
    assert [*left, Lesson("x", "X", 0, (Exercise("a"),)).left(())] == [60, 45, 0, 0], "reading goes along"


@pytest.fixture(autouse=True)
def course(home, monkeypatch):
    (home / "work").mkdir()
    (home / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    monkeypatch.delenv("UNROLLED_JOURNAL")


# What is printed


def test_progress_marks_what_passed_and_names_what_is_next():
    assert progress.progress([FIRST, SECOND], {"matmul": DONE, "im2col": TRIED}).splitlines() == [
        "01_first   1 of 2 passed, about 15 min left",
        "  – merge    more  10 min",
        "  ✓ matmul   core  30 min   2 of 3 points",
        "02_second   0 of 1 passed, about 40 min left",
        "  ✗ im2col   core  20 min   0 of 2 points",
        "",
        "next: im2col in 02_second, about 20 minutes   (unrolled lab 02)",
        "left: about 55 min for all of it, 40 min for what is core",
        "last checked: matmul, on 21 October 2026",
    ]


def test_lessons_not_begun_take_a_line_each():
    text = progress.progress([FIRST, SECOND], {"merge": DONE})
    assert text.splitlines()[3] == "02_second   0 of 1 passed, about 40 min left"
    assert "\n  – im2col" not in text
    assert "\n  – im2col" in progress.progress([FIRST, SECOND], {"merge": DONE}, True)
    assert "\n  – matmul" in progress.progress([FIRST, SECOND], {}), "the next one's lesson"


def test_a_course_without_minutes_still_has_a_next():
    text = progress.progress([Lesson("02_second", "Second", 0, (Exercise("im2col"),))], {})
    assert text.splitlines() == [
        "02_second   0 of 1 passed",
        "  – im2col",
        "",
        "next: im2col in 02_second   (unrolled lab 02)",
        "your journal is empty: checks in a notebook fill it, `unrolled check` does not; `unrolled lab 00`",
    ]


def test_the_journal_is_the_one_here_or_in_work(home):
    assert progress._journal(None) == home / "work" / "journal.json"
    (home / "journal.json").write_text("{}", encoding="utf-8")
    assert progress._journal(None) is None, "journal.path() finds the one here"
    assert progress._journal(home / "journal.json") == home / "journal.json"


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"matmul": DONE, "im2col": DONE}, "next: merge in 01_first, about 10 minutes"),
        (dict.fromkeys(("merge", "matmul", "im2col"), DONE), "nothing is left: every exercise passed"),
        ({"im2col": {**TRIED, "ever_passed": True}}, "✓ im2col   core  20 min   0 of 2 points (passed before)"),
        ({"im2col": {"date": "long ago"}}, "✗ im2col"),  # of another version
        ({"im2col": DONE, "fold": DONE, "old": TRIED}, "passed, from another version or choice of lessons: fold"),
    ],
)
def test_what_progress_says_of_entries(entries, words):
    assert words in progress.progress([FIRST, SECOND], entries)


@pytest.mark.parametrize(
    ("version", "advice", "other"),
    [("0.0.9", "unrolled upgrade 02", "update the course"), ("99.1", "update the course", "unrolled upgrade")],
)
def test_a_notebook_of_another_version_is_named_and_left_alone(home, capsys, version, advice, other):
    metadata = {"unrolled": {"lesson": "02_convolution", "version": version}}
    file = home / "work" / "02_convolution.ipynb"
    file.write_text(json.dumps({"metadata": metadata, "cells": []}), encoding="utf-8")
    (home / "work" / "03_pooling.ipynb").write_text("{", encoding="utf-8")
    before = file.read_bytes()
    assert cli.main(["progress"]) == 0
    output = capsys.readouterr().out
    assert f"02_convolution.ipynb is of version {version}" in output
    assert advice in output
    assert other not in output
    assert "03_pooling.ipynb" not in output
    assert file.read_bytes() == before


# The record


class Page(html.parser.HTMLParser):
    """Collects what a page loads, and its text."""

    def __init__(self, page):
        super().__init__()
        self.loads, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.loads += [value for name, value in attributes if name in ("src", "href", "srcset", "action")]

    def handle_data(self, data):
        self.text += data


def kept(**checked):
    return {**journal.file.empty(), "checks": checked}


def page(entries, name="Ada", lessons=(FIRST, SECOND)):
    return record.page(list(lessons), entries, name, datetime.date(2026, 11, 21))


def test_the_record_says_what_passed_and_that_nobody_watched():
    read = Page(page(kept(matmul=DONE, im2col=TRIED)))
    for words in ("Ada", "21 November 2026", "1 of 3", "matmul", "21 Oct 2026", "Self-checked.", "Not begun: Second."):
        assert words in read.text
    assert "no examination, no grade and no certificate" in read.text
    assert "im2col" not in read.text, "what is not passed in a lesson that is not begun"


def rung(label, seconds, what="work", hardware="a laptop"):
    return {"label": label, "what": what, "seconds": seconds, "batch": 8, "hardware": hardware, "date": DONE["date"]}


def test_the_record_loads_nothing_from_elsewhere_and_has_a_ladder_of_each_work():
    """From the slowest to the fastest."""
    entries = kept(matmul=DONE)
    rungs = [rung(label, seconds) for label, seconds in (("loops", 100.0), ("<middle>", 10.0), ("product", 1.0))]
    entries["rungs"] = {one["label"]: one for one in (*rungs, rung("alone", 10.0, "more", "T4, modelled"))}
    entries["measurements"] = {"matmul": {"times": 41.3, "date": DONE["date"]}}
    written = page(entries, name="<script>alert(1)</script>")
    read = Page(written)
    assert read.loads == []
    assert not re.search(r"url\(|@import|<script|<link|https?:", written)
    for words in ("41×", "loops: 100 s → product: 1 s", "100 times", "alone: 10 s", "T4, modelled; a laptop"):
        assert words in read.text
    assert "<middle>" not in read.text
    lefts = [written.count(f"left:{place}.0%") for place in (0, 100, 50)]
    assert lefts == [2, 1, 2], "the lone rung: a dot, and a line of no length"
