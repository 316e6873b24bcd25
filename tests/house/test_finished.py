"""The finished ladder is made of the records and never typed; on the site it has a picture."""

import json
from pathlib import Path

import pytest

from unrolled.show.ladder import REFERENCES
from unrolled_grader.authoring import finished
from unrolled_grader.authoring.variants import LessonError

ROOT, PAGE = Path(__file__).resolve().parents[2], finished.PAGE
CPU = {"processor": "A", "cores": 2}
GPU = {**CPU, "gpu": "B"}


def record(machine, *rows):
    return {"date": "2026-11-24T02:06:25+00:00", "machine": machine, "rows": list(rows)}


def row(name, seconds, **more):
    return {"name": name, "ours_s": seconds, **more}


def seconds_of(rungs):
    return {(rung["label"], rung["hardware"], rung["batch"]): rung["seconds"] for rung in rungs}


def test_a_rung_has_its_machine_and_its_record():
    (rung,) = finished.ours({"mnist_cnn": record(CPU, row("mnist step, batch 8", 0.001), row("digits", 1.0))})
    assert rung == {
        "label": "this course, NumPy",
        "seconds": pytest.approx(7.5),
        "batch": 8,
        "hardware": "A, 2 cores",
        "origin": "`mnist_cnn.json`, 2026-11-24",
    }


@pytest.mark.parametrize("epoch", ["mnist epoch, batch 8, compiled", "compiled epoch, batch 8"])
def test_an_epoch_counts_before_a_step_times_so_many_and_the_host_is_a_machine_of_its_own(epoch):
    steps = [row("compiled step, batch 8", 0.001, eager_s=0.1), row(epoch, 0.2, eager_s=6.4)]
    peers = [row("compiled step, batch 8, JAX scan", 0.0001), row("mnist epoch, batch 8", 5.0)]
    host = [row("compiled step, batch 8, CPU", 0.0004), row("compiled step, batch 128", 0.01, section="CPU")]
    expected = {
        ("this course, `nn.compiled`", "B", 8): 0.2,
        ("this course, CuPy", "B", 8): 6.4,
        ("this course, `nn.compiled`", "A, 2 cores", 8): 3.0,
        ("this course, `nn.compiled`", "A, 2 cores", 128): 4.6875,
    }
    for rows in (steps, steps[::-1]):
        known = {"compiled": record(GPU, *rows, *peers, *host)}
        assert seconds_of(finished.ours(known)) == pytest.approx(expected)


def test_a_row_that_is_missing_is_no_rung():
    known = {"gpu": record(GPU, {"name": "mnist epoch, batch 8", "absent": "MNIST is not here"})}
    assert finished.ours(known) == []
    assert finished.table([]).count("\n") == 1 + len(REFERENCES)


def test_the_table_goes_down_from_the_source_and_credits_it():
    known = {"gpu": record(GPU, row("mnist epoch, batch 8", 6.0))}
    first, *_, last = finished.table(finished.ours(known)).splitlines()[2:]
    assert first.startswith("| 30 min |  | NumPy, hosted notebook | 8 |")
    assert "Qiita, 2020" in first
    assert last.startswith("| 4 s | 450 times | Keras | 128 |")
    row_of_ours = "| 6 s | 300 times | this course, CuPy | 8 | B | `gpu.json`, 2026-11-24 |"
    assert row_of_ours in finished.table(finished.ours(known))


@pytest.fixture
def checkout(tmp_path):
    """A checkout with two records and a page with the marks."""
    known = {"mnist_cnn": row("mnist step, batch 8", 0.001), "gpu": row("mnist epoch, batch 8", 6.0)}
    for folder, (name, one) in zip(finished.RECORDS, known.items(), strict=True):
        file = tmp_path / folder / f"{name}.json"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(record(GPU if name == "gpu" else CPU, one)), encoding="utf-8")
    (tmp_path / "site").mkdir()
    (tmp_path / PAGE).write_text(f"a\n{finished.BEGIN}\nold\n{finished.END}\nb\n", encoding="utf-8")
    return tmp_path


def test_what_stands_between_the_marks_is_made_again(checkout):
    made = finished.pages(checkout)[PAGE].decode()
    assert made.startswith(f"a\n{finished.BEGIN}\n\n| an epoch |")
    assert made.endswith(f"|\n\n{finished.END}\nb\n")
    assert "| 7.5 s | 240 times | this course, NumPy |" in made
    assert "old" not in made
    (checkout / PAGE).write_text(made, encoding="utf-8")
    assert finished.pages(checkout)[PAGE].decode() == made


def test_a_mark_without_its_end_is_named(checkout):
    (checkout / PAGE).write_text(finished.BEGIN, encoding="utf-8")
    with pytest.raises(LessonError, match=r"site/ladder\.md: after .* a line must say"):
        finished.pages(checkout)


def test_a_course_that_lacks_a_record_or_has_no_marks_keeps_what_stands_there(checkout):
    (checkout / finished.RECORDS[0] / "mnist_cnn.json").unlink()
    assert finished.pages(checkout) == {}
    (checkout / PAGE).write_text("a\n", encoding="utf-8")
    assert finished.pages(checkout) == {}


def test_the_picture_says_all_rungs_in_words():
    drawn = finished.picture(ROOT)
    assert drawn.png().startswith(b"\x89PNG")
    assert (ROOT / PAGE).read_text(encoding="utf-8").count(finished.BEGIN) == 1
    for rung in finished.everybodys(finished.ours(finished.records(ROOT))):
        assert f"batch {rung['batch']}, {rung['hardware']}, " in drawn.alt
