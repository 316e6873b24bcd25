"""The learner's record: nothing is lost, whatever lies in the file."""

import json
import os
import subprocess
import sys
from functools import partial

import pytest

import verdicts
from unrolled import journal
from unrolled.journal import galleries

pytestmark = pytest.mark.usefixtures("home")
report = partial(verdicts.report, "conv2d_gemm")
RUNG = {"label": "loops", "what": "convolution", "seconds": 90.0, "batch": 4, "precision": "float32"}


@pytest.mark.parametrize("guess", [..., 0, -3, "many", True, float("nan"), float("inf"), None])
def test_no_guess_is_noted_and_nothing_raised(guess, capsys):
    """An empty journal draws others' rungs and no guesses."""
    assert "Keras" in str(journal.ladder())
    assert journal.guesses() is None
    assert "journal.predict" in capsys.readouterr().out
    journal.predict("conv2d_gemm", guess)
    assert journal.read()["predictions"] == {}
    assert "number" in capsys.readouterr().out


def test_a_rung_says_on_what_hardware_and_whose_code_it_is(home):
    journal.note(report(rung=RUNG))
    assert journal.read()["rungs"]["loops"]["seconds"] == 90.0
    assert journal.read()["rungs"]["loops"]["hardware"]
    assert "your code" in str(journal.ladder())
    journal.give(home / "gallery.json", "moss")
    ((given,),) = (one["rungs"] for one in json.loads((home / "gallery.json").read_text())["ladders"])
    assert given["code"] == "your code"
    journal.rung("on the GPU", "convolution", 0.5, batch=8, hardware="T4, modelled")
    assert journal.read()["rungs"]["on the GPU"]["hardware"] == "T4, modelled"
    with pytest.raises(ValueError, match="seconds must be a positive number, got 0"):
        journal.rung("positions", "convolution", 0, batch=8)
    with pytest.raises(ValueError, match="times must be a positive number, got -1"):
        journal.measured("x", -1)


def test_a_measurement_is_said_beside_the_guess_of_its_name_alone(capsys):
    journal.predict("lesson", 10)
    capsys.readouterr()
    journal.measured("other", 3)
    assert capsys.readouterr().out == ""
    journal.measured("lesson", 5443, where="modelled, T4")
    assert capsys.readouterr().out == "lesson: you guessed 10 times; it is 5,440 times (modelled, T4).\n"
    journal.measured("lesson", 25, where="modelled, T4")
    journal.predict("lesson", 10)
    assert "It was 25 (modelled, T4)." in capsys.readouterr().out, "it was not measured"
    assert "guessed 10 times, 25 (modelled, T4): 2.5 times too low" in str(journal.guesses())


FOREIGN = {
    b"": "",
    b"{": "Run your notebooks again",
    b"[]": "",
    b'{"a": 1}': "is not a journal of this course",
    b'{"format": "unrolled-journal", "version": 99}': "of version 99, expected 1: install the newer course to use it",
    b"\x00\x01": "",
    b"\xff\xfe\x00": "is not a journal: it is not text in UTF-8",
    b"[" * 100_000: "",
    json.dumps(journal.file.empty() | {"predictions": []}).encode(): "",
}


@pytest.mark.parametrize(("content", "words"), FOREIGN.items(), ids=[str(content)[:40] for content in FOREIGN])
def test_a_foreign_file_is_kept_aside_and_never_restored(home, content, words, capsys):
    (home / "journal.json").write_bytes(content)
    (home / "journal.broken-1.json").write_text("an earlier one")
    journal.predict("x", 2)
    assert (home / "journal.broken-1.json").read_text() == "an earlier one"
    assert (home / "journal.broken-2.json").read_bytes() == content
    assert journal.read()["predictions"]["x"]["guess"] == 2
    output = capsys.readouterr().out
    assert "journal.broken-2.json" in output
    assert words in output
    with pytest.raises(ValueError, match=r"journal\.broken-2\.json"):
        journal.restore(home / "journal.broken-2.json")


def test_an_old_journal_without_the_newer_keys_and_with_a_byte_order_mark_goes_on(home, capsys):
    date = "2026-01-01T00:00:00+00:00"
    old = journal.file.empty() | {
        "predictions": {"x": {"guess": 2.0, "date": date}},
        "measurements": {"x": {"times": 4.0, "date": date}},
        "checks": {"merge": {"passed": True, "points": 2, "max_points": 2, "date": date}},
        "rungs": {"loops": {"label": "loops", "what": "convolution", "seconds": 90.0, "date": date}},
    }
    (home / "journal.json").write_text(json.dumps(old), encoding="utf-8-sig")
    journal.predict("y", 3)
    journal.note(report(rung=RUNG | {"label": "other"}))
    assert "guessed 2 times, measured 4" in str(journal.guesses())
    assert "loops" in str(journal.ladder())
    journal.mine("merge")
    assert "merge: library" in capsys.readouterr().out
    after = journal.read()
    assert all(after[part].items() >= old[part].items() for part in journal.file.PARTS)


NOTES = """
import sys
from unrolled import journal
from unrolled.journal import galleries
for number in range(30):
    journal.measured(f"{sys.argv[1]} {number}", 1 + number)
"""


def test_two_notebooks_that_note_at_the_same_time_lose_nothing(home):
    running = [subprocess.Popen([sys.executable, "-c", NOTES, name]) for name in ("one", "other")]
    assert [process.wait() for process in running] == [0, 0]
    assert len(journal.read()["measurements"]) == 60
    assert [file.name for file in home.iterdir()] == ["journal.json"]


def test_a_lock_that_was_left_behind_is_taken_over(home, monkeypatch):
    monkeypatch.setattr(journal.file, "PATIENCE", 0.0)
    (home / ".journal.json.lock").touch()
    journal.predict("x", 2)
    assert "x" in journal.read()["predictions"]
    assert not (home / ".journal.json.lock").exists()


def test_a_crash_while_writing_leaves_the_old_file(home, monkeypatch):
    journal.predict("x", 2)
    monkeypatch.setattr(os, "replace", lambda *args, **options: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        journal.predict("y", 3)
    assert list(journal.read()["predictions"]) == ["x"]
    assert [file.name for file in home.iterdir()] == ["journal.json"]


def test_an_unwritable_folder_keeps_the_record_in_memory(home, monkeypatch, capsys):
    (home / "file").write_text("")
    monkeypatch.setenv("UNROLLED_JOURNAL", str(home / "file" / "journal.json"))
    journal.predict("x", 2)
    journal.predict("y", 3)
    assert capsys.readouterr().out.count("cannot be written") == 1
    assert set(journal.read()["predictions"]) == {"x", "y"}


def test_export_and_restore_keep_the_newer_entry(home):
    journal.predict("x", 2)
    copy = journal.export(home / "drive" / "copy.json")
    older = {name: {"guess": guess, "date": "2020-01-01T00:00:00+00:00"} for name, guess in (("x", 5.0), ("y", 7.0))}
    copy.write_text(json.dumps(json.loads(copy.read_text()) | {"predictions": older}))
    journal.restore(copy)
    assert {name: entry["guess"] for name, entry in journal.read()["predictions"].items()} == {"x": 2.0, "y": 7.0}


# Ladders given by choice: only the rungs go, nobody's is lost, and they can be compared


@pytest.fixture
def learner(home, monkeypatch):
    """Become somebody with a ladder of one's own."""

    def become(name, *rungs):
        monkeypatch.setenv("UNROLLED_JOURNAL", str(home / f"{name}.json"))
        for label, seconds in rungs:
            journal.rung(label, "convolution", seconds, batch=8)

    return become


LOOPS, PRODUCT = ("plain loops", 90.0), ("one product", 0.5)


def test_only_the_rungs_are_given(home, learner):
    with pytest.raises(ValueError, match="no rung to give yet"):
        journal.give("gallery.json", name="moss")
    learner("zoe", LOOPS, PRODUCT)
    for name in ("", "  ", "x" * 41, "a\nb", "a\x00"):
        with pytest.raises(ValueError, match="name must be"):
            journal.give("gallery.json", name=name)
    assert sorted(file.name for file in home.iterdir()) == ["zoe.json"]
    journal.student("s12345")
    journal.predict("conv2d_gemm", 40)
    journal.give("gallery.json", name="moss")
    text = (home / "gallery.json").read_text()
    (ladder,) = json.loads(text)["ladders"]
    assert set(ladder) == {"name", "key", "rungs"}
    assert ladder["name"] == "moss"
    assert all(set(rung) == {"label", "what", "seconds", "batch", "precision", "hardware"} for rung in ladder["rungs"])
    for word in ("s12345", "conv2d_gemm", "zoe"):  # no hexadecimal digits, which the key is made of
        assert word not in text


def test_several_people_share_a_file_and_each_may_give_again(home, learner):
    learner("ada", LOOPS)
    journal.give("gallery.json", name="moss")
    learner("bob", LOOPS)
    with pytest.raises(ValueError, match="somebody gave a ladder as 'moss' already"):
        journal.give("gallery.json", name="moss")
    journal.give("gallery.json", name="fern")
    learner("ada", PRODUCT)
    journal.give("gallery.json", name="lichen")
    ladders = galleries.read(home / "gallery.json")
    assert [(one["name"], len(one["rungs"])) for one in ladders] == [("fern", 1), ("lichen", 2)]


STEP = {"label": "loops", "what": "work", "seconds": 1.0}
LADDER = {"name": "moss", "key": "1", "rungs": [STEP]}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not a gallery"),
        ("[]", "not a gallery of this course"),
        ('{"format": "unrolled-journal"}', "not a gallery of this course"),
        (json.dumps({**galleries.document([]), "version": 2}), "version 2, expected 1"),
        *[
            (json.dumps(galleries.document([bad])), "damaged gallery")
            for bad in (
                3,
                {**LADDER, "name": ""},
                {**LADDER, "key": None},
                {**LADDER, "rungs": [{**STEP, "seconds": 0}]},
                {**LADDER, "rungs": [{**STEP, "seconds": "1"}]},
                {**LADDER, "rungs": [{"seconds": 1.0}]},
            )
        ],
    ],
)
def test_a_file_that_is_no_gallery_stays_as_it_is(home, learner, content, words):
    (home / "other.json").write_text(content, encoding="utf-8")
    learner("ada", LOOPS)
    with pytest.raises(ValueError, match=words):
        journal.give("other.json", name="moss")
    assert (home / "other.json").read_text(encoding="utf-8") == content


def test_files_are_merged_by_whose_ladder_it_is():
    old = {**LADDER, "name": "moss"}
    new = {**LADDER, "name": "lichen", "rungs": [STEP, {**STEP, "label": "product"}]}
    other = {**LADDER, "key": "2", "name": "lichen"}
    for files in ([[old], [new, other]], [[new, other], [old]]):
        assert [(one["name"], len(one["rungs"])) for one in galleries.merged(files)] == [
            ("lichen", 2),
            ("lichen (2)", 1),
        ]


def test_a_restored_journal_is_still_the_same_persons(home, learner):
    learner("ada", LOOPS)
    journal.give("gallery.json", name="moss")
    learner("elsewhere", PRODUCT)
    journal.restore(home / "ada.json")
    journal.give("gallery.json", name="moss")
    assert [len(one["rungs"]) for one in galleries.read(home / "gallery.json")] == [2]
