"""Handing in, from a notebook and from the command: what is missing is said, what is unsafe is stopped."""

import json
import os
import sys
import types
from pathlib import Path
from unittest import mock

import pytest

from unrolled import cli, journal
from unrolled.checks.report import MIME
from unrolled.notebook import frontend, handin, submission
from verdicts import report

LESSON, ZIP = "02_convolution", "02_convolution.ada.zip"
NAMES = ("conv2d_output_size", "conv2d_loops", "im2col", "conv2d_gemm")


def code(text, grade_id=None, **mark):
    metadata = {"nbgrader": {"grade_id": grade_id, "solution": True, **mark}} if grade_id else {}
    return {"cell_type": "code", "source": text, "metadata": metadata, "outputs": [], "execution_count": None}


def answer(text="Because of the product.", grade_id="explain_gemm"):
    mark = {"nbgrader": {"grade_id": grade_id, "grade": True, "solution": True}} if grade_id else {}
    return {"cell_type": "markdown", "source": text, "metadata": mark}


def exercise(name):
    return code(f"def {name}(x):\n    return x", name)


def notebook(*cells, lesson=LESSON, version="1.0.0"):
    metadata = {"unrolled": {"lesson": lesson, "version": version}} if lesson else {}
    return {"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": list(cells)}


def whole(**of):
    return notebook(*map(exercise, NAMES), answer(), **of)


def note(name, word="pass"):
    journal.note(report(name, word, points=2))


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(autouse=True)
def unnamed(monkeypatch):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)


NO_CELL, OTHER = "missing: no cell defines im2col", "its cell does not define im2col"
STUB = code("def im2col(x):\n    # your code here\n    raise NotImplementedError", "im2col")
LINES = {"cell_type": "code", "source": ["def im2col(x):\n", "    return x"], "metadata": {"id": "abc"}}  # Colab's


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([], NO_CELL),
        ([code("im2col == 3")], NO_CELL),
        ([STUB], "not written yet"),
        ([STUB, exercise("im2col"), STUB], None),
        ([code("def im2col_mine(x):\n    return x", "im2col")], OTHER),
        ([code("    def im2col(x): pass", "im2col")], OTHER),
        ([LINES], None),
        ([code("def im2col(x):\n    return x")], None),
        ([code("%timeit 3\ndef im2col(x):\n    return x")], None),
        ([code("async def im2col(x): ...")], None),
        ([code("im2col = helper")], None),
        ([code("im2col: object = helper")], None),
        ([code("class im2col: ...")], None),
    ],
)
def test_an_exercise_is_found_by_its_mark_or_its_name(cells, words):
    found = submission.problems(notebook(*cells, answer()), ["im2col"])
    assert found == ({"im2col": words} if words else {})


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (answer("Your answer here."), "not answered yet"),
        (answer("  "), "not answered yet"),
        (answer("Your answer here.", None), "not answered yet"),
        (answer("Something", None), "lost its mark"),
    ],
)
def test_an_answer_in_words_that_is_not_there(cell, words):
    assert words in submission.problems(notebook(cell), [])[submission.WORDS]


def test_a_line_for_each_exercise_with_what_the_check_says():
    found = {"conv2d_loops": "not written yet", "in your own words": "not answered yet"}
    failed = report("im2col", "fail", ("shape (2,)", "more"), points=3)
    outcomes = {"conv2d_output_size": submission.Outcome(True, 1, 1), "im2col": submission.outcome(failed)}
    assert submission.table(NAMES, found, outcomes).splitlines() == [
        "  ✓ conv2d_output_size   1 of 1 points",
        "  – conv2d_loops         not written yet",
        "  ✗ im2col               0 of 3 points   a case: shape (2,)",
        "  – conv2d_gemm          not checked yet",
        "  – in your own words    not answered yet",
        "1 of 4 checks pass.",
    ]


def test_the_lesson_and_the_version_are_what_the_notebook_says():
    assert submission.note_on_version(whole()) == ""
    assert "version 0.0.9 of the course" in submission.note_on_version(whole(version="0.0.9"))
    assert submission.lesson_of(whole()) == LESSON
    started = notebook(code('check.start("02_convolution", "0.0.9")'), lesson=None)
    assert submission.claims(started) == (LESSON, "0.0.9")
    for nb in (started, notebook(exercise("im2col"), lesson=None)):
        assert submission.lesson_of(nb, LESSON) == LESSON


@pytest.mark.parametrize(
    ("nb", "wanted", "words"),
    [
        (notebook(lesson="03_pooling"), LESSON, "the notebook of 03_pooling, not of 02_convolution"),
        (notebook(lesson="99_other"), LESSON, "says it is lesson '99_other'"),
        (notebook(code("1"), lesson=None), LESSON, "does not say which lesson it is"),
        (notebook(lesson=None), None, "does not say which lesson it is"),
    ],
)
def test_another_lessons_notebook_is_refused(nb, wanted, words):
    with pytest.raises(submission.NotReadyError, match=words):
        submission.lesson_of(nb, wanted)


def saved(home, nb=None, name=f"{LESSON}.ipynb"):
    file = home / name
    file.write_text(json.dumps(nb or whole()), encoding="utf-8")
    return file


def handed_in(folder):
    return sorted(file.name for file in folder.glob("*.zip"))


def submit(*words):
    return cli.main(["submit", "2", "--student", "ada", *words])


def test_the_command_makes_the_file_and_remembers_who(home, capsys):
    note("im2col")
    file = saved(home)
    assert submit("--no-run") == 0
    out = capsys.readouterr().out
    assert "✓ im2col               2 of 2 points" in out
    assert f"Made {ZIP}" in out
    read = handin.read((home / ZIP).read_bytes())
    assert (read.student, read.lesson, read.notebook) == ("ada", LESSON, file.read_bytes())
    assert read.journal["checks"]["im2col"]["passed"]
    assert cli.main(["submit", "02_convolution", "--no-run"]) == 0, "asked for once"


def test_the_journal_does_not_vouch_for_what_is_not_in_the_notebook(home, capsys):
    note("im2col")
    saved(home, notebook(code("def im2col(x):\n    raise NotImplementedError", "im2col"), answer()))
    assert submit("--no-run", "--anyway") == 0
    assert "– im2col               not written yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--student", "ada"], "is not there; open the lesson with `unrolled lab`"),
        (["--student", "ada", "--notebook", "x.ipynb"], "x.ipynb cannot be handed in"),
        (["--student", "ada", "--notebook", "other.ipynb"], "the notebook of 03_pooling"),
        (["--no-run", "--notebook", "good.ipynb"], "--student ID"),
        (["--student", "ada", "--no-run", "--notebook", "old.ipynb"], "save the notebook first"),
    ],
)
def test_what_cannot_be_handed_in_makes_no_file(home, capsys, words, message):
    (home / "x.ipynb").write_text("{")
    saved(home, whole(lesson="03_pooling"), "other.ipynb")
    saved(home, name="good.ipynb")
    os.utime(saved(home, name="old.ipynb"), (1_600_000_000, 1_600_000_000))
    note("im2col")  # later than the old one
    os.utime(home / "good.ipynb")
    assert cli.main(["submit", "2", *words]) == 1
    assert message in capsys.readouterr().err
    assert handed_in(home) == []
    if "old.ipynb" in words:
        assert cli.main(["submit", "2", *words, "--anyway"]) == 0


def test_nothing_is_overwritten(home):
    saved(home)
    for _ in range(3):
        assert submit("--no-run") == 0
    names = [f"{LESSON}.ada.2.zip", f"{LESSON}.ada.3.zip", ZIP]
    assert handed_in(home) == names
    assert len({handin.read((home / name).read_bytes()).nonce for name in names}) == 3


def test_the_notebook_and_the_journal_are_those_in_work(home, monkeypatch):
    (home / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    (home / "work").mkdir()
    saved(home / "work")
    monkeypatch.setenv("UNROLLED_JOURNAL", "later undone")  # the command sets it for this process
    monkeypatch.delenv("UNROLLED_JOURNAL")
    assert submit("--no-run") == 0
    assert {file.name for file in (home / "work").glob("*.*")} == {ZIP, f"{LESSON}.ipynb", "journal.json"}


def test_a_half_written_file_does_not_stay(home, monkeypatch):
    opened = Path.open

    def full(path, mode):
        file = opened(path, mode)
        file.close()
        return mock.MagicMock(**{"__enter__.return_value.write.side_effect": OSError(28, "No space left on device")})

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(submission.NotReadyError, match="No space left"):
        submission.pack(whole(), {}, "ada", LESSON, home)
    assert handed_in(home) == []


def test_the_command_runs_the_notebook_and_submits_nothing_from_inside(home, capsys):
    shown = report("im2col", "fail", ("off by one",), points=2)
    shows = f"from IPython.display import display\ndisplay({ {MIME: shown.to_dict()}!r}, raw=True)"
    submits = 'from unrolled import journal\njournal.submit("eve")'
    saved(home, notebook(*map(exercise, NAMES), code(shows), code(submits), answer()))
    note("im2col")
    assert submit("--anyway") == 0
    out = capsys.readouterr().out
    assert "✗ im2col               0 of 2 points   a case: off by one" in out
    assert "im2col passed in your notebook and does not here" in out
    assert handed_in(home) == [ZIP]
    assert journal.student() == "ada"


SUBMIT = 'journal.submit("ada")'
START = f'check.start("{LESSON}", "1.0.0")'


@pytest.fixture
def inside(monkeypatch):
    """Run in a notebook whose cells so far were these inputs, with these names: as much as the front end looks at."""

    def run(*inputs, **names):
        shell = types.SimpleNamespace(
            user_ns=names, history_manager=types.SimpleNamespace(input_hist_raw=["", *inputs])
        )
        monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)

    return run


def submitting():
    return notebook(*map(exercise, NAMES), code(SUBMIT), answer())


@pytest.mark.parametrize("how", ["jupyter", "vscode", "started"])
def test_the_notebook_finds_itself(home, monkeypatch, capsys, inside, how):
    file = saved(home, submitting(), f"{LESSON}.ipynb" if how == "started" else "mine.ipynb")
    if how == "jupyter":
        monkeypatch.setenv("JPY_SESSION_NAME", str(file))
    inside(START, SUBMIT, **({"__vsc_ipynb_file__": str(file)} if how == "vscode" else {}))
    note("im2col")
    journal.submit("ada")
    out = capsys.readouterr().out
    assert "by your journal" in out
    assert "✓ im2col" in out
    assert handin.read((home / ZIP).read_bytes()).notebook == file.read_bytes()


def test_a_notebook_that_is_not_found_can_be_named(home, monkeypatch, capsys, inside):
    inside(SUBMIT)
    monkeypatch.setenv("JPY_SESSION_NAME", "renamed since.ipynb")
    journal.submit("ada")
    assert "Nothing was handed in: the notebook's file is not known here; name it" in capsys.readouterr().out
    journal.submit(notebook=saved(home, submitting(), "mine.ipynb"))
    assert handed_in(home) == [ZIP]


@pytest.mark.parametrize(
    ("ran", "words"),
    [
        (["def im2col(x):\n    return 2 * x", SUBMIT], "on disk is older than im2col."),
        (["def im2col(x):\n    return x", "journal.submit('ada') "], "on disk is older than this very cell."),
    ],
)
def test_a_notebook_that_was_not_saved_is_not_handed_in(home, capsys, inside, ran, words):
    saved(home, submitting())
    inside(START, *ran)
    journal.submit("ada")
    out = capsys.readouterr().out
    assert words in out
    assert "Save it first" in out
    assert handed_in(home) == []


def test_submit_asks_once_who_it_is_and_never_raises(home, monkeypatch, capsys, inside):
    saved(home, submitting())
    inside(START, SUBMIT)
    journal.submit()
    assert 'journal.submit("ID")' in capsys.readouterr().out
    journal.submit("..")
    assert "cannot be a student's id" in capsys.readouterr().out
    for name in (submission.REHEARSAL, "NBGRADER_EXECUTION"):  # a run that is not the learner's
        with monkeypatch.context() as patch:
            patch.setenv(name, "1")
            journal.submit("ada")
        assert "Nothing is handed in here" in capsys.readouterr().out
    assert handed_in(home) == []
    journal.submit("ada")
    journal.submit()
    assert len(handed_in(home)) == 2


@pytest.fixture
def colab(monkeypatch, home):
    """Colab's page, as far as it is asked; its reply and the files it offered for download."""
    page = types.SimpleNamespace(reply={"ipynb": whole()}, offered=[], asked=[])
    package = types.ModuleType("google.colab")
    package._message = types.SimpleNamespace(
        blocking_request=lambda kind, request="", timeout_sec=5: page.asked.append(kind) or page.reply
    )
    package.files = types.SimpleNamespace(download=page.offered.append)
    monkeypatch.setitem(sys.modules, "google", types.ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setattr(frontend, "DRIVE", home / "drive" / "MyDrive")
    return page


def test_colab_saves_it_to_drive_where_that_is_mounted(home, colab):
    frontend.DRIVE.mkdir(parents=True)
    journal.submit("ada")
    assert colab.asked == ["get_ipynb"]
    assert colab.offered == [str(frontend.DRIVE / ZIP)]
    assert json.loads(handin.read((frontend.DRIVE / ZIP).read_bytes()).notebook) == whole()
    journal.use(frontend.DRIVE / "course" / "journal.json")
    journal.submit("ada")
    assert handed_in(frontend.DRIVE / "course") == [ZIP], "beside the journal"
    journal.submit("ada", to=home / "here")
    assert handed_in(home / "here") == [ZIP]
    assert len(colab.offered) == 3


@pytest.mark.parametrize("reply", [None, {}, {"ipynb": "?"}, {"ipynb": {}}, "?"])
def test_a_colab_page_that_does_not_answer_is_said(colab, capsys, reply):
    colab.reply = reply
    journal.submit("ada")
    assert "Nothing was handed in: Colab did not send the notebook. Choose File" in capsys.readouterr().out


def test_a_colab_that_changed_is_said(home, colab, capsys, monkeypatch):
    page = sys.modules["google.colab"]
    page.files.download = mock.Mock(side_effect=RuntimeError("no such message"))
    journal.submit("ada")
    assert "find it in the folder on the left" in capsys.readouterr().out
    assert len(handed_in(home)) == 1
    del page._message
    journal.submit("ada")
    assert "Colab did not send the notebook" in capsys.readouterr().out
