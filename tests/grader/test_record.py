"""Jobs are kept whatever ends the process, records come back as they were, and scores.csv has one form."""

import json
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Key, Record, RecordError
from unrolled_grader.judge.evidence import Score

TIMING = {"ratio": 41.5, "at_least": 2.5, "pairs": [{"first": "baseline"}], "control": []}
SCORES = (
    Score("conv2d_gemm", "pass", 2.0, 2.0, "11 cases right"),
    Score("conv2d_gemm/speed", "inconclusive", 1.0, 1.0, "too\nclose", "look", (TIMING,)),
)
LESSON = "02_convolution"


def kept(student: str = "ann", **others: Any) -> Record:
    return Record(student, LESSON, "abc", **{"scores": SCORES, **others})


def sql(grades: Path, statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(grades / record.TABLE)) as table, table:
        return table.execute(statement, values).fetchall()


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    first = kept(seconds=3.5, seeds=(1, 2**62), repairs=("a",), flags=("b",), key=Key("x", "y", "z"), timing=False)
    notebook = new_notebook(cells=[new_code_cell("1 + 1", id="a")])
    record.save(tmp_path, first, notebook)
    assert record.load(tmp_path, "ann", LESSON) == first
    assert record.finished(tmp_path, "ann", LESSON) == first
    assert record.notebook(tmp_path, "ann", LESSON) == notebook
    assert record.load(tmp_path, "bob", LESSON) is None
    assert record.notebook(tmp_path, "bob", LESSON) is None
    assert all(file.stat().st_mode & 0o077 == 0 for file in tmp_path.iterdir())  # it holds seeds


def test_without_a_table_there_is_nothing_and_none_is_made(tmp_path: Path) -> None:
    assert record.load(tmp_path / "grades", "ann", LESSON) is None
    assert list(record.load_all(tmp_path / "grades")) == []
    assert not (tmp_path / "grades").exists()


def test_a_job_waits_runs_and_is_done(tmp_path: Path) -> None:
    who = ("ann", LESSON)
    record.queue(tmp_path, [who, ("bob", LESSON)])
    assert record.states(tmp_path) == {who: ("queued", 0), ("bob", LESSON): ("queued", 0)}
    record.start(tmp_path, *who)
    assert record.states(tmp_path)[who] == ("running", 1)
    record.queue(tmp_path, [("bob", LESSON)])
    assert record.states(tmp_path)[who] == ("queued", 1)  # a dead run left it running
    record.start(tmp_path, *who)
    assert record.states(tmp_path)[who] == ("running", 2)
    record.save(tmp_path, kept())
    assert record.states(tmp_path)[who] == ("done", 2)
    record.queue(tmp_path, [who])
    assert record.states(tmp_path)[who] == ("queued", 0)
    assert record.finished(tmp_path, *who) is None  # a forced run that was killed goes on by this
    assert record.load(tmp_path, *who) is not None  # until there is a new one


def test_what_was_recorded_before_is_kept_apart(tmp_path: Path) -> None:
    first, second = kept(date="2030-01-01"), kept(date="2030-01-02", scores=SCORES[:1])
    for saved in (first, second, second):
        record.save(tmp_path, saved)
    assert record.load(tmp_path, "ann", LESSON) == second
    assert sql(tmp_path, "SELECT student, lesson, date FROM earlier") == [("ann", LESSON, "2030-01-01")]


def test_a_damaged_row_is_as_good_as_none(tmp_path: Path) -> None:
    record.save(tmp_path, kept(), new_notebook())
    (text,) = sql(tmp_path, "SELECT result FROM jobs")[0]
    for damaged in ("", "[]", text[:-9], '{"format": 99}', text.replace('"key"', '"kee"'), text.replace("[1", '"')):
        if damaged != text:
            sql(tmp_path, "UPDATE jobs SET result = ?, notebook = ?", damaged, b"x")
            assert record.load(tmp_path, "ann", LESSON) is None
            assert record.notebook(tmp_path, "ann", LESSON) is None
            assert list(record.load_all(tmp_path)) == []


def test_a_table_that_cannot_be_used_is_our_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record.save(tmp_path, kept())
    connect = sqlite3.connect

    def on_a_full_disk(*arguments: Any, **others: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **others)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", on_a_full_disk)
        with pytest.raises(RecordError, match=r"grades\.db cannot be used: database or disk is full"):
            record.save(tmp_path, kept("bob", repairs=("x" * 100_000,)))
    assert [found.student for found in record.load_all(tmp_path)] == ["ann"]
    sql(tmp_path, "PRAGMA user_version = 99")
    with pytest.raises(RecordError, match="made by another version"):
        record.load(tmp_path, "ann", LESSON)
    for file in tmp_path.glob("grades.db*"):
        file.unlink()
    (tmp_path / record.TABLE).write_text("not a table at all " * 100)
    with pytest.raises(RecordError, match="file is not a database"):
        record.load(tmp_path, "ann", LESSON)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    for _ in range(2):
        with record.alone(tmp_path):
            with pytest.raises(RecordError, match="another run grades into"), record.alone(tmp_path):
                pass
            record.save(tmp_path, kept())  # nbgrader's own commands are not kept out


def test_reading_a_class_holds_one_record_at_a_time(tmp_path: Path) -> None:
    side = {"calls": 1, "wall": 0.123456789, "cpu": 0.123456789}
    pairs = [{"baseline": side, "candidate": side, "first": "baseline"}] * 32
    scores = (Score("conv2d_gemm/speed", "pass", 1.0, 1.0, "", "", ({**TIMING, "pairs": pairs},) * 3),)
    text = json.dumps(record.to_dict(kept(scores=scores)))
    record.save(tmp_path, kept(scores=scores))
    with closing(sqlite3.connect(tmp_path / record.TABLE)) as table, table:
        rows = [(f"s{number:03}", LESSON, "done", text) for number in range(39)]
        table.executemany("INSERT INTO jobs (student, lesson, state, result) VALUES (?, ?, ?, ?)", rows)
    del rows
    tracemalloc.start()
    try:
        count = sum(found.points for found in record.load_all(tmp_path))
        _, all_peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        record.load(tmp_path, "ann", LESSON)
        _, one_peak = tracemalloc.get_traced_memory()
        briefs = list(record.load_all(tmp_path))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 40
    assert all_peak < 4 * one_peak
    assert held / len(briefs) < 20_000  # what the report holds: a measured pair more would be 500 times that
    assert "pairs" not in briefs[0].scores[0].timings[0]


def test_scores_csv_has_a_row_a_part(tmp_path: Path) -> None:
    for student in ("bob", "ann"):
        record.save(tmp_path, kept(student))
    rows = ("conv2d_gemm,2,2,pass,11 cases right", "conv2d_gemm/speed,1,1,inconclusive,too close")
    head = "student,lesson,check,points,max_points,verdict,detail"
    lines = [f"{student},{LESSON},{row}" for student in ("ann", "bob") for row in rows]
    assert record.write_scores(tmp_path).read_text(encoding="utf-8").splitlines() == [head, *lines]


def test_text_from_students_is_tame_in_a_table(tmp_path: Path) -> None:
    for text, tame in {
        '=HYPERLINK("x")': '\'=HYPERLINK("x")',
        "\uff1dSUM(A1)": "'\uff1dSUM(A1)",
        "a\x1b[2Jb\r\nc\x00": "a [2Jb c",
        "a\x9b2Jb\x85c": "a 2Jb c",  # the same commands in 8 bits
        "10\u202e1 fo\u202c \u2066x\u2069 José ü": "10 1 fo x José ü",
        "\udcff": "\\udcff",
    }.items():
        assert record.one_line(text) == tame
    assert len(record.one_line("x" * 10_000)) == record.DETAIL_LIMIT
    nasty = Score("conv2d_gemm", "fail", 0.0, 2.0, "\ud800")
    record.save(tmp_path, Record("ann", "02_convolution", "", (nasty,)))
    assert "\\ud800" in record.write_scores(tmp_path).read_text(encoding="utf-8")
