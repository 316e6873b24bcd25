"""The `unrolled` command: its own commands, those from the entry point, and what it says in one line."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from unittest import mock

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from unrolled import cli
from unrolled.checks.report import MIME
from unrolled.cli import checkout, handing_in, lab
from unrolled.notebook import run
from verdicts import report


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two lessons, as far as the learner's commands look at it; the current folder."""
    root = tmp_path / "course"
    for name in ("01_first", "02_second"):
        (root / "notebooks" / name).mkdir(parents=True)
        (root / "notebooks" / name / f"{name}.ipynb").write_text(f"the course's {name}", encoding="utf-8")
    (root / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.delenv("UNROLLED_JOURNAL", raising=False)
    return root


@pytest.fixture
def jupyter(monkeypatch):
    """What JupyterLab would have been started with, on Windows. It ends at the second Ctrl-C."""
    calls = []

    def started(command):
        calls.append(command)
        return mock.Mock(wait=mock.Mock(side_effect=[KeyboardInterrupt, KeyboardInterrupt, 0]))

    monkeypatch.setattr(lab.sys, "platform", "win32")
    monkeypatch.setattr(lab.subprocess, "Popen", started)
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: object())
    return calls


def test_the_checkout_is_found_from_any_folder_in_it(course, tmp_path):
    assert checkout.find(course / "notebooks" / "01_first") == course
    with pytest.raises(checkout.NotACheckoutError, match="clone or unpack the course"):
        checkout.find(tmp_path)


def test_lab_copies_each_lesson_once_and_never_again(course, jupyter, capsys):
    assert cli.main(["lab"]) == 0
    mine = course / "work" / "01_first.ipynb"
    assert mine.read_text(encoding="utf-8") == "the course's 01_first"
    mine.write_text("mine", encoding="utf-8")
    (course / "work" / "02_second.ipynb").unlink()
    (course / "notebooks" / "02_second" / "02_second.ipynb").write_text("newer", encoding="utf-8")
    assert "01_first, 02_second" in capsys.readouterr().out
    assert cli.main(["lab"]) == 0
    assert "Copied to " + str(course / "work") + ": 02_second\n" in capsys.readouterr().out
    assert mine.read_text(encoding="utf-8") == "mine"
    assert (course / "work" / "02_second.ipynb").read_text(encoding="utf-8") == "newer"
    assert sorted(file.name for file in (course / "work").iterdir()) == ["01_first.ipynb", "02_second.ipynb"]


@pytest.mark.parametrize("lesson", ["2", "02", "02_second"])
def test_lab_opens_the_lesson_that_is_asked_for_and_works_in_another_folder(course, jupyter, lesson, tmp_path):
    assert cli.main(["lab", lesson, "--no-open", "--", "--port", "9999"]) == 0
    assert cli.main(["lab", "--work", str(tmp_path / "mine")]) == 0
    command, plain = jupyter
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={course / 'work'}" in command
    assert {"--LabApp.default_url=/lab/tree/02_second.ipynb", "--no-browser"} <= set(command)
    assert command[-2:] == ["--port", "9999"]
    assert (tmp_path / "mine" / "01_first.ipynb").exists()
    assert f"--ServerApp.root_dir={tmp_path / 'mine'}" in plain
    assert not any("default_url" in word or word == "--no-browser" for word in plain)


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without asking it")
def test_what_ends_the_command_ends_jupyterlab(course, tmp_path):
    """A stand-in for JupyterLab says that it runs, and holds the pipe for as long as it does."""
    waiting = "import time; print('up', flush=True); time.sleep(600)"
    (tmp_path / "jupyterlab.py").write_text(waiting, encoding="utf-8")
    command, env = [sys.executable, "-m", "unrolled.cli", "lab"], {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while process.stdout.readline() != "up\n":
            pass
        process.terminate()
        process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def entry_points(monkeypatch, tmp_path, source):
    """Let the grader have one command, `grade`, which this module adds."""
    (tmp_path / "fake_grade.py").write_text(source, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "fake_grade", raising=False)
    entries = [metadata.EntryPoint("grade", "fake_grade:add", cli.GROUP)]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cli.metadata, "entry_points", lambda group: entries if group == cli.GROUP else [])


GRADE = """
def add(subparsers):
    parser = subparsers.add_parser("grade")
    parser.add_argument("lessons", nargs="*")
    parser.set_defaults(run=run)

def run(arguments):
    print("graded", *arguments.lessons)
    return 3
"""


def test_commands_come_in_through_the_entry_point_and_describe_themselves_by_their_line(tmp_path, monkeypatch, capsys):
    entry_points(monkeypatch, tmp_path, GRADE.replace('"grade"', '"grade", help="grade what is there"'))
    assert cli.main(["grade", "01", "02"]) == 3
    assert capsys.readouterr().out == "graded 01 02\n"
    for words, text in (
        (["grade", "--help"], "\nGrade what is there.\n"),
        (["--help"], "  grade     grade what is there\n"),
    ):
        with pytest.raises(SystemExit):
            cli.main(words)
        assert text in capsys.readouterr().out


def does(statement):
    """The grader's command with a statement before what it does."""
    return GRADE.replace('print("graded"', f'{statement}; print("graded"')


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nbgrader.nowhere", 'needs nbgrader, which the extra "grading" brings'),
        (does("import nbgrader.nowhere"), 'needs nbgrader, which the extra "grading" brings'),
        ("import nowhere", "cannot be loaded: No module named 'nowhere'"),
        (does('open("/nowhere/x")'), ": /nowhere/x cannot be used: No such file or directory"),
    ],
)
def test_what_a_command_lacks_is_named_in_one_line(tmp_path, monkeypatch, capsys, source, words):
    entry_points(monkeypatch, tmp_path, source)
    assert cli.main(["grade"]) == 1
    message = capsys.readouterr().err
    assert message.startswith("unrolled grade")
    assert words in message
    assert message.count("\n") == 1
    assert cli.main(["data", "list"]) == 0, "other commands work"


@pytest.mark.parametrize(
    ("statement", "error"), [("import nowhere", ModuleNotFoundError), ('raise OSError("a bug")', OSError)]
)
def test_a_mistake_of_our_own_is_not_hidden(tmp_path, monkeypatch, statement, error):
    entry_points(monkeypatch, tmp_path, does(statement))
    with pytest.raises(error, match=r"nowhere|a bug"):
        cli.main(["grade"])


def test_lab_says_in_one_line_what_it_needs(course, monkeypatch, capsys):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["lab"]) == 1
    message = capsys.readouterr().err
    assert 'needs jupyterlab, which the extra "lab" brings' in message
    assert message.count("\n") == 1
    assert not (course / "work").exists()


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ('{"url": "file:///c", "dir_info": {"editable": true}}', '-e ".[lab]" in the course\'s folder'),
        ('{"url": "file:///d/unrolled.whl", "archive_info": {}}', '"unrolled[lab] @ file:///d/unrolled.whl"'),
        (None, '"unrolled[lab]"'),
    ],
)
def test_an_extra_comes_from_where_the_course_came_from(monkeypatch, origin, words):
    monkeypatch.setattr(cli.metadata, "distribution", lambda name: mock.Mock(read_text=lambda file: origin))
    assert cli._install("lab") == f"python -m pip install {words}"


def test_outside_of_a_checkout_the_lessons_of_the_library_go_to_work_here(jupyter, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["lab", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == lab.known()
    assert not list(tmp_path.iterdir())
    assert cli.main(["lab", "00"]) == 0
    mine = tmp_path / "work" / "03_pooling.ipynb"
    assert sorted(file.stem for file in mine.parent.iterdir()) == listed
    mine.unlink()
    capsys.readouterr()
    monkeypatch.chdir(mine.parent)  # where a terminal of JupyterLab begins
    assert cli.main(["lab"]) == 0
    assert f"Copied to {mine.parent}: 03_pooling\n" in capsys.readouterr().out


def test_help_lists_every_command_once_by_what_it_is_for(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    output = capsys.readouterr().out
    blocks = [block.splitlines() for block in output.split("\n\n")]
    listed = {block[0]: [line.split()[0] for line in block[1:]] for block in blocks if len(block) > 1}
    for title, names in cli.HELP.items():
        assert listed[f"{title}:"] == list(names)
    assert "more:" not in listed, "a new command has a place in HELP"


FILE, NEW, NOT_NEW = "expected a folder", "is not there", "is there already"
SECONDS, NAME = "expected a number of seconds from 1 to 86,400", "expected the name of a file or folder"
NO_SECONDS = ("inf", "nan", "1e-9", "0", "-1", "1e300", "x", "''")
LONG = "x" * 300
READ = ("check", "submit 02 --notebook", "progress --journal")
WRONG = [
    *((f"check mine.ipynb --timeout {word}", SECONDS) for word in NO_SECONDS),
    *((f"submit 02 --timeout {word}", SECONDS) for word in ("inf", "nan", "0")),
    *((f"{word} absent.ipynb", NEW) for word in READ),
    *((f"{word} work", "is a folder; expected a file") for word in READ),
    *((f"{word} ''", NAME) for word in ("check", "submit 02 --to", "lab --work", "upgrade 02 --work")),
    *((f"{word} mine.ipynb", FILE) for word in ("submit 02 --to", "lab --work", "upgrade all --work")),
    *((f"{word} mine.ipynb/new", FILE) for word in ("submit 02 --to", "progress --record")),
    ("progress --record mine.ipynb", NOT_NEW),
    *((f"{word} {LONG}", "File name too long") for word in ("check", "lab --work", "progress --record")),
    *((f"{word} {lesson}", "there is no lesson") for word in ("lab", "submit", "upgrade") for lesson in ("99", "''")),
    ("check text.ipynb", "is not readable"),
    ("check list.ipynb", "is not readable: it holds no object"),
    ("submit 02 --notebook list.ipynb", "cannot be handed in: the notebook is not readable"),
    ("submit 02 --notebook mine.ipynb", "this is the notebook of 03_pooling, not of 02_convolution"),
    ("submit 02 --notebook two.ipynb --student ../x", "cannot be a student's id"),
    ("submit 02 --notebook two.ipynb --student ''", "cannot be a student's id"),
    ("data fetch ''", "expected one of: digits"),
    ("data fetch cats", "unrolled data: name is 'cats'; expected one of: digits, mnist, fashion_mnist, cifar10"),
    ("data nope", "invalid choice"),
    ("nope", "invalid choice"),
    ("data list -- --port", "only `unrolled lab`"),
]


@pytest.fixture
def odd_files(course):
    """A folder, two notebooks and two files that are none."""
    (course / "work").mkdir()
    for name, text in {
        "mine": '{"cells": [], "metadata": {"unrolled": {"lesson": "03_pooling"}}}',
        "two": '{"cells": [], "metadata": {"unrolled": {"lesson": "02_convolution"}}}',
        "text": "text",
        "list": "[]",
    }.items():
        (course / f"{name}.ipynb").write_text(text, encoding="utf-8")


PROGRAM = """
import contextlib, io, json, shlex, sys
from unrolled import cli
from unrolled.cli import lab
lab.importlib.util.find_spec = lambda name: object()  # JupyterLab is there
heavy = {"numpy", "matplotlib", "nbclient", "nbformat", "nbgrader", "jupytext", "sklearn", "traitlets", "IPython"}
for words in sys.stdin.read().splitlines():
    with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(io.StringIO()):
        try:
            code = cli.main(shlex.split(words))
        except SystemExit as stop:  # argparse, with its line of usage
            code = stop.code
    print(json.dumps([code, error.getvalue().splitlines()[-1], sorted(heavy & sys.modules.keys())]))
"""


def test_a_wrong_argument_is_named_in_one_line_before_anything_heavy_loads(course, odd_files):
    """What is no notebook, journal or data set is said at once."""
    before = sorted(course.rglob("*"))
    table = [*WRONG, ("progress --journal text.ipynb", "")]
    command, words = [sys.executable, "-c", PROGRAM], "\n".join(words for words, _ in table)
    done = subprocess.run(command, input=words, capture_output=True, text=True, check=True, timeout=300)
    for (words, message), line in zip(table, done.stdout.splitlines(), strict=True):
        code, error, loaded = json.loads(line)
        assert code in (1, 2), words
        assert message in error, words
        assert loaded == [], words
    assert sorted(course.rglob("*")) == before


def cell(report=None, grade_id=None, **metadata):
    outputs = [new_output("display_data", {MIME: report.to_dict()})] if report else []
    meta = {"nbgrader": {"grade": True, "solution": False, "grade_id": grade_id, **metadata}} if grade_id else {}
    return new_code_cell("", metadata=meta, outputs=outputs)


def executed(*cells, errors=()):
    nb = new_notebook(cells=list(cells))
    return run.Executed(nb, run.reports(nb), tuple(errors), None, 1.0)


PASSED = cell(report("im2col", "pass", ("a line",)), "check_im2col")
ERROR = run.CellError(0, None, "ZeroDivisionError", "division by zero")
ONE_OF_TWO = "1 of 2 checks passed"


CASES = [
    ([cell(), PASSED], [ERROR], True, [f"errors\n  {ERROR}", "1 of 1 checks passed"]),
    ([PASSED, cell(report("conv2d", "fail"), "check_conv2d")], [], False, ["conv2d\n  ✗ a case   fail", ONE_OF_TWO]),
    ([PASSED, cell(None, "check_conv2d")], [], False, ["check_conv2d\n  ✗ displayed no verdict", ONE_OF_TWO]),
]


@pytest.mark.parametrize(("cells", "errors", "passes", "found"), CASES)
def test_findings_are_those_of_the_checks_and_only_they_decide(cells, errors, passes, found):
    text, passed = handing_in.findings(executed(*cells, errors=errors))
    assert (passed, text.split("\n\n")) == (passes, ["im2col\n  ✓ a case\n      a line", *found])


def test_answers_in_words_are_no_checks():
    answer = cell(None, "explain", solution=True)
    assert handing_in.findings(executed(answer)) == ("this notebook has no checks", True)


def test_a_malformed_verdict_has_not_passed():
    malformed = new_code_cell("", outputs=[new_output("display_data", {MIME: {"check": "conv2d"}})])
    text, passed = handing_in.findings(executed(PASSED, malformed))
    assert not passed
    assert "malformed verdict" in text
    assert text.endswith(ONE_OF_TWO)


def checked(tmp_path, *sources):
    """The exit code of `unrolled check` for a notebook of these cells."""
    cells = [new_code_cell(source) for source in sources]
    (tmp_path / "mine.ipynb").write_text(writes(new_notebook(cells=cells)), encoding="utf-8")
    return cli.main(["check", str(tmp_path / "mine.ipynb")])


def test_check_runs_a_notebook_where_it_lies_and_fails_with_it(tmp_path, capsys):
    shows = f"from IPython.display import display\ndisplay({ {MIME: report('conv2d', 'fail').to_dict()}!r}, raw=True)"
    assert checked(tmp_path, shows, "open('here', 'w')") == 1
    assert "conv2d\n  ✗ a case" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "mine.ipynb"], "no journal is left"
    assert '"outputs": []' in (tmp_path / "mine.ipynb").read_text(encoding="utf-8"), "the notebook is as it was"


def test_check_says_of_a_cell_that_asks_that_nobody_answers(tmp_path, capsys):
    """What ipykernel raises there is a NotImplementedError, and is no sign of an exercise that is not written."""
    asks = "from unrolled import check\ncheck.ink(lambda images: input())"
    assert checked(tmp_path, "input('Your name? ')", asks) == 1
    output = capsys.readouterr().out
    assert "cell 0: StdinNotImplementedError: it waits for somebody to type" in output
    assert "it asks with input(), and nobody answers here" in output
    assert "not written yet" not in output


def test_no_hint_names_a_package_of_the_index_that_is_not_ours():
    """Anybody may take the name there; the notebooks' `unrolled @ ADDRESS` names where it comes from."""
    root = checkout.find(Path(__file__).parent)
    folders = ("benchmarks", "docs", "grader", "lessons", "lib", "site", "tests")
    texts = [file for name in folders for kind in ("py", "md") for file in (root / name).rglob(f"*.{kind}")]
    index = re.compile(r"""\binstall\b[^\n`]*[\s'"]unrolled(?:\[\w+\])?(?!\w|[ ]@|[ ]lab)['"]""")
    assert [file.name for file in texts if index.search(file.read_text(encoding="utf-8"))] == []


def test_a_reader_who_has_had_enough_is_no_error():
    """As in `unrolled progress --all | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        found = subprocess.run(
            [sys.executable, "-m", "unrolled.cli", "progress", "--all"], stdout=out, stderr=subprocess.PIPE, text=True
        )
    assert (found.returncode, found.stderr) == (0, "")
