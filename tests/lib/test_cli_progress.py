"""`unrolled progress`: what passed, what is next, the minutes; and the record."""

import datetime
import html.parser
import json
import re
import subprocess
import sys

import pytest

from unrolled import checks, cli, journal
from unrolled.checks.report import Finding, Part, Report
from unrolled.cli import plan, progress, record
from unrolled.cli.plan import Exercise, Lesson

FIRST = Lesson("01_first", "First", 60, (Exercise("merge", False, 10), Exercise("matmul", True, 30)))
SECOND = Lesson("02_second", "Second", 40, (Exercise("im2col", True, 20),))
# At 10:30 UTC it is the same day from Honolulu to Auckland: days are shown as they are where the test runs.
DONE = {"passed": True, "ever_passed": True, "points": 2, "max_points": 3, "date": "2026-10-21T10:30:00+00:00"}
TRIED = {"passed": False, "ever_passed": False, "points": 0, "max_points": 2, "date": "2026-10-20T10:30:00+00:00"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    root = tmp_path / "course"
    (root / "work").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setenv("UNROLLED_JOURNAL", "set, so that what the command sets is undone")
    monkeypatch.delenv("UNROLLED_JOURNAL")
    monkeypatch.setattr(journal.file, "_chosen", None)
    monkeypatch.setattr(journal.file, "_memory", None)
    return root


def report(name, word="pass"):
    return Report(name, "1", (Finding("a case", word),), (Part(name, word, 1, 1, ""),))


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


def test_every_released_exercise_says_its_minutes():
    root = progress.checkout.find(plan.Path(__file__).parent)
    for lesson in plan.read(checks.lessons(), [root / "notebooks"]):
        assert lesson.minutes
        for exercise in lesson.exercises:
            assert exercise.minutes, f"{lesson.name}: {exercise.name}"
            assert exercise.core is not None


def test_reading_goes_along_with_the_exercises():
    assert FIRST.left(()) == 60
    assert FIRST.left(["merge"]) == 45
    assert FIRST.left(["merge", "matmul"]) == 0
    assert Lesson("x", "X", 0, (Exercise("a"),)).left(()) == 0


@pytest.mark.parametrize(
    ("minutes", "words"), [(3, "3 min"), (29, "29 min"), (44, "45 min"), (60, "1 h"), (123, "2 h 5 min")]
)
def test_minutes_in_words(minutes, words):
    assert progress.clock(minutes) == words


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
    said = progress.progress([FIRST, SECOND], {"merge": DONE}).splitlines()
    assert said[3] == "02_second   0 of 1 passed, about 40 min left"
    assert not any("im2col" in line for line in said)
    assert any("im2col" in line for line in progress.progress([FIRST, SECOND], {"merge": DONE}, True).splitlines())
    assert any("matmul" in line for line in progress.progress([FIRST, SECOND], {}).splitlines()), (
        "the next one's lesson"
    )


def test_what_is_more_comes_next_when_the_core_is_done():
    said = progress.progress([FIRST, SECOND], {"matmul": DONE, "im2col": DONE})
    assert "next: merge in 01_first, about 10 minutes" in said
    everything = dict.fromkeys(("merge", "matmul", "im2col"), DONE)
    assert "nothing is left: every exercise passed" in progress.progress([FIRST, SECOND], everything)


def test_what_passed_once_stays_passed():
    said = progress.progress([SECOND], {"im2col": {**TRIED, "ever_passed": True}})
    assert "✓ im2col   core  20 min   0 of 2 points (passed before)" in said


def test_a_course_without_minutes_still_has_a_next():
    said = progress.progress([Lesson("02_second", "Second", 0, (Exercise("im2col"),))], {})
    assert said.splitlines() == [
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


def test_the_command_prints_the_learners_own(home, monkeypatch, capsys):
    monkeypatch.setenv("UNROLLED_JOURNAL", str(home / "mine.json"))
    journal.note(report("merge"))
    assert cli.main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "journal: mine.json\n" in out
    assert "✓ merge" in out


def test_a_named_file_that_is_no_journal_stays_where_it_is(home, capsys):
    (home / "notes.json").write_text("mine", encoding="utf-8")
    for name, words in (("notes.json", "is not a journal"), ("work", "is a folder"), ("absent.json", "is not there")):
        assert cli.main(["progress", "--journal", name]) == 1
        said = capsys.readouterr().err
        assert name in said
        assert words in said
        assert said.count("\n") == 1
    assert (home / "notes.json").read_text(encoding="utf-8") == "mine"


# Coming back after a month


def test_a_damaged_journal_is_kept_and_the_way_back_said(home, capsys):
    (home / "work" / "journal.json").write_text('{"format": "unrolled-journal", "ver', encoding="utf-8")
    assert cli.main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "kept as" in out
    assert "Run your notebooks again" in out
    assert (home / "work" / "journal.broken-1.json").is_file()


def test_what_an_update_renamed_or_left_out_is_still_there(home):
    said = progress.progress([SECOND], {"im2col": DONE, "fold": DONE, "old": TRIED})
    assert "also passed, from another version or choice of lessons: fold" in said


def test_a_notebook_of_an_older_version_is_named_and_left_alone(home, capsys):
    metadata = {"unrolled": {"lesson": "02_convolution", "version": "0.0.9"}}
    file = home / "work" / "02_convolution.ipynb"
    file.write_text(json.dumps({"metadata": metadata, "cells": []}), encoding="utf-8")
    (home / "work" / "03_pooling.ipynb").write_text("{", encoding="utf-8")
    before = file.read_bytes()
    assert cli.main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "02_convolution.ipynb is of version 0.0.9" in out
    assert "unrolled upgrade 02" in out
    assert "03_pooling.ipynb" not in out
    assert file.read_bytes() == before


def test_a_notebook_of_a_newer_version_wants_a_newer_course(home, capsys):
    metadata = {"unrolled": {"lesson": "02_convolution", "version": "99.1"}}
    file = home / "work" / "02_convolution.ipynb"
    file.write_text(json.dumps({"metadata": metadata, "cells": []}), encoding="utf-8")
    assert cli.main(["progress"]) == 0
    out = capsys.readouterr().out
    assert "02_convolution.ipynb is of version 99.1" in out
    assert "update the course" in out
    assert "unrolled upgrade" not in out


def test_entries_of_another_version_do_not_stop_the_command():
    said = progress.progress([SECOND], {"im2col": {"date": "long ago"}})
    assert "✗ im2col" in said


def test_a_journal_of_a_newer_version_is_kept_for_it(home, capsys):
    newer = {"format": journal.file.FORMAT, "version": 2, "checks": {"im2col": DONE}}
    (home / "work" / "journal.json").write_text(json.dumps(newer), encoding="utf-8")
    assert cli.main(["progress"]) == 0
    assert "is a journal of version 2, expected 1" in capsys.readouterr().out
    assert json.loads((home / "work" / "journal.broken-1.json").read_text()) == newer


def test_another_process_goes_on_where_the_last_one_ended(home, monkeypatch):
    monkeypatch.setenv("UNROLLED_JOURNAL", str(home / "work" / "journal.json"))
    for name in ("ink", "merge"):
        program = (
            "from unrolled import journal; from unrolled.checks.report import *; "
            f"journal.note(Report({name!r}, '1', (Finding('a', 'pass'),), (Part({name!r}, 'pass', 1, 1, ''),)))"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
    assert plan.passed(journal.read()["checks"]) == {"ink", "merge"}


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


def test_the_record_loads_nothing_from_elsewhere():
    entries = kept(matmul=DONE)
    entries["rungs"] = {"loops": rung("loops", 9.0)}
    entries["measurements"] = {"matmul": {"times": 41.3, "date": DONE["date"]}}
    written = page(entries)
    assert Page(written).loads == []
    assert not re.search(r"url\(|@import|<script|<link|https?:", written)
    assert "41×" in written


def test_the_ladder_goes_from_the_slowest_to_the_fastest_of_each_work():
    entries = kept(matmul=DONE)
    rungs = [
        rung("loops", 100.0),
        rung("<middle>", 10.0),
        rung("product", 1.0),
        rung("alone", 10.0, "more", "T4, modelled"),
    ]
    entries["rungs"] = {one["label"]: one for one in rungs}
    written = page(entries)
    text = Page(written).text
    assert "loops: 100 s → product: 1 s" in text
    assert "100 times" in text
    assert "<middle>" not in text
    assert "alone: 10 s" in text
    assert "T4, modelled; a laptop" in text
    assert written.count("left:0.0%") == 2
    assert written.count("left:100.0%") == 1
    assert written.count("left:50.0%") == 2, "the lone rung: a dot, and a line of no length"


def test_names_are_text():
    assert "<script>" not in page(kept(), name="<script>alert(1)</script>")


def test_the_command_writes_a_record_once(home, capsys):
    assert cli.main(["progress", "--record", "mine.html", "--name", "Ada"]) == 0
    assert "Ada" in (home / "mine.html").read_text(encoding="utf-8")
    assert cli.main(["progress", "--record", "mine.html"]) == 1
    assert "nothing is overwritten" in capsys.readouterr().err
    assert cli.main(["progress", "--record", "mine.html/x.html"]) == 1
    assert "expected a folder" in capsys.readouterr().err
