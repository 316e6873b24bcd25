"""The learner's record: nothing is lost, whatever lies in the file."""

import json

import pytest

from unrolled import journal
from unrolled.checks.report import Finding, Part, Report


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("UNROLLED_JOURNAL", str(tmp_path / "journal.json"))
    monkeypatch.setattr(journal.file, "_chosen", None)
    monkeypatch.setattr(journal.file, "_memory", None)
    return tmp_path


def report(verdict="pass", rung=None):
    points = 2 if verdict == "pass" else 0
    return Report(
        check="conv2d_gemm",
        version="0.1.0",
        findings=(Finding("a case", verdict),),
        parts=(Part("conv2d_gemm", verdict, points, 2, ""),),
        rung=rung,
    )


RUNG = {"label": "loops", "what": "convolution", "seconds": 90.0, "batch": 4, "precision": "float32"}


def test_predictions_are_kept():
    journal.predict("conv2d_gemm", 40)
    assert journal.read()["predictions"]["conv2d_gemm"]["guess"] == 40


@pytest.mark.parametrize("guess", [..., 0, -3, "many", True, float("nan"), float("inf"), None])
def test_no_guess_is_noted_and_nothing_raised(guess, capsys):
    journal.predict("conv2d_gemm", guess)
    assert journal.read()["predictions"] == {}
    assert "number" in capsys.readouterr().out


def test_a_check_passed_once_is_remembered_when_it_fails_later():
    journal.note(report("pass"))
    journal.note(report("fail"))
    entry = journal.read()["checks"]["conv2d_gemm"]
    assert (entry["passed"], entry["ever_passed"]) == (False, True)


def test_rungs_carry_the_hardware():
    journal.note(report(rung=RUNG))
    rung = journal.read()["rungs"]["loops"]
    assert rung["seconds"] == 90.0
    assert rung["hardware"]


def test_a_lesson_adds_a_rung_of_its_own():
    journal.rung("positions", "convolution", 12.5, batch=8)
    assert journal.read()["rungs"]["positions"]["seconds"] == 12.5


def test_a_rung_of_other_hardware_says_so():
    journal.rung("on the GPU", "convolution", 0.5, batch=8, hardware="T4, modelled")
    assert journal.read()["rungs"]["on the GPU"]["hardware"] == "T4, modelled"
    with pytest.raises(ValueError, match="seconds must be a positive number, got 0"):
        journal.rung("positions", "convolution", 0, batch=8)


def test_ladder_and_guesses_are_pictures():
    journal.note(report(rung=RUNG))
    journal.predict("lesson", 10)
    journal.measured("lesson", 25)
    assert "loops" in str(journal.ladder())
    assert "lesson" in str(journal.guesses())


def test_an_empty_journal_draws_others_rungs_and_no_guesses(capsys):
    assert "Keras" in str(journal.ladder())
    assert journal.guesses() is None
    assert "journal.predict" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"a": 1}', '{"format": "unrolled-journal", "version": 99}', "\x00\x01", "[" * 100_000,
     '{"format": "unrolled-journal", "version": 1, "predictions": [], "measurements": {}, "checks": {}, "rungs": {}}'],
)  # fmt: skip
def test_a_foreign_file_is_kept_aside(home, text, capsys):
    (home / "journal.json").write_text(text)
    (home / "journal.broken-1.json").write_text("an earlier one")
    journal.predict("x", 2)
    assert (home / "journal.broken-1.json").read_text() == "an earlier one"
    assert (home / "journal.broken-2.json").read_text() == text
    assert journal.read()["predictions"]["x"]["guess"] == 2
    assert "journal.broken-2.json" in capsys.readouterr().out


def test_bytes_that_are_not_text_are_kept_aside(home):
    (home / "journal.json").write_bytes(b"\xff\xfe\x00")
    journal.read()
    assert (home / "journal.broken-1.json").read_bytes() == b"\xff\xfe\x00"


def test_a_crash_while_writing_leaves_the_old_file(home, monkeypatch):
    journal.predict("x", 2)
    monkeypatch.setattr(json, "dump", lambda *args, **options: (_ for _ in ()).throw(KeyboardInterrupt))
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
    theirs = json.loads(copy.read_text())
    theirs["predictions"] = {
        "x": {"guess": 5.0, "date": "2020-01-01T00:00:00+00:00"},
        "y": {"guess": 7.0, "date": "2020-01-01T00:00:00+00:00"},
    }
    copy.write_text(json.dumps(theirs))
    journal.restore(copy)
    assert {name: entry["guess"] for name, entry in journal.read()["predictions"].items()} == {"x": 2.0, "y": 7.0}


def test_restore_refuses_other_files(home):
    (home / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json is not a journal of this course"):
        journal.restore(home / "other.json")
    assert (home / "other.json").exists()


def test_use_moves_the_journal(home):
    journal.use(home / "elsewhere.json")
    journal.predict("x", 2)
    assert (home / "elsewhere.json").exists()
    assert not (home / "journal.json").exists()


def test_a_measurement_must_be_a_number_of_times():
    with pytest.raises(ValueError, match="times must be a positive number, got -1"):
        journal.measured("x", -1)
