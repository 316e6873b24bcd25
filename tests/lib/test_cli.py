"""The `unrolled` command: its own commands, those from the entry point, and what it says in one line."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from unrolled import cli, data
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
    """What JupyterLab would have been started with."""
    calls = []

    class Process:
        """Ends at the second Ctrl-C, as JupyterLab does."""

        def __init__(self, command):
            calls.append(command)
            self.waits = [KeyboardInterrupt, KeyboardInterrupt, 0]

        def wait(self):
            answer = self.waits.pop(0)
            if answer:
                raise answer
            return answer

    monkeypatch.setattr(lab.subprocess, "Popen", Process)
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
def test_lab_opens_the_lesson_that_is_asked_for(course, jupyter, lesson):
    assert cli.main(["lab", lesson, "--no-open", "--", "--port", "9999"]) == 0
    (command,) = jupyter
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={course / 'work'}" in command
    assert "--LabApp.default_url=/lab/tree/02_second.ipynb" in command
    assert "--no-browser" in command
    assert command[-2:] == ["--port", "9999"]


def test_lab_works_in_another_folder(course, jupyter, tmp_path):
    assert cli.main(["lab", "--work", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine" / "01_first.ipynb").exists()
    assert not (course / "work").exists()
    assert not any("default_url" in word or word == "--no-browser" for word in jupyter[0])


def entry_points(monkeypatch, tmp_path, **modules):
    """Let these modules be the grader's: {name of the command: source of the module that has its `add`}."""
    entries = []
    for name, source in modules.items():
        (tmp_path / f"fake_{name}.py").write_text(source, encoding="utf-8")
        monkeypatch.delitem(sys.modules, f"fake_{name}", raising=False)
        entries.append(metadata.EntryPoint(name, f"fake_{name}:add", cli.GROUP))
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


def test_commands_come_in_through_the_entry_point(tmp_path, monkeypatch, capsys):
    entry_points(monkeypatch, tmp_path, grade=GRADE)
    assert cli.main(["grade", "01", "02"]) == 3
    assert capsys.readouterr().out == "graded 01 02\n"


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
    entry_points(monkeypatch, tmp_path, grade=source)
    assert cli.main(["grade"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("unrolled grade")
    assert words in said
    assert said.count("\n") == 1
    assert cli.main(["data", "list"]) == 0, "other commands work"


@pytest.mark.parametrize(
    ("statement", "error"), [("import nowhere", ModuleNotFoundError), ('raise OSError("a bug")', OSError)]
)
def test_a_mistake_of_our_own_is_not_hidden(tmp_path, monkeypatch, statement, error):
    entry_points(monkeypatch, tmp_path, grade=does(statement))
    with pytest.raises(error, match=r"nowhere|a bug"):
        cli.main(["grade"])


def test_lab_says_in_one_line_what_it_needs(course, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    for folder, words in (
        (course, 'needs jupyterlab, which the extra "lab" brings'),
        (tmp_path, "the course's folder"),
    ):
        monkeypatch.chdir(folder)
        assert cli.main(["lab"]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1
    assert not (course / "work").exists()


def test_only_lab_hands_on_arguments(capsys):
    with pytest.raises(SystemExit):
        cli.main(["data", "list", "--", "--port"])
    assert "only `unrolled lab`" in capsys.readouterr().err


def test_starting_the_command_loads_nothing_heavy():
    code = "import sys; from unrolled import cli; cli._parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "matplotlib", "nbclient", "nbformat", "nbgrader", "jupytext", "sklearn", "traitlets", "IPython"}
    assert heavy & set(loaded) == set()


def test_help_lists_every_command_once_by_what_it_is_for(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    said = capsys.readouterr().out
    blocks = [block.splitlines() for block in said.split("\n\n")]
    listed = {block[0]: [line.split()[0] for line in block[1:]] for block in blocks if len(block) > 1}
    for title, names in cli.HELP.items():
        assert listed[f"{title}:"] == list(names)
    assert "more:" not in listed, "a new command has a place in HELP"


def test_a_command_that_says_no_more_describes_itself_by_its_line_in_the_list(tmp_path, monkeypatch, capsys):
    entry_points(monkeypatch, tmp_path, grade=GRADE.replace('"grade"', '"grade", help="grade what is there"'))
    with pytest.raises(SystemExit):
        cli.main(["grade", "--help"])
    assert "\nGrade what is there.\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "  grade     grade what is there\n" in capsys.readouterr().out


def test_data_is_listed_and_fetched(capsys):
    assert cli.main(["data", "list"]) == 0
    assert capsys.readouterr().out.startswith("digits ")
    assert cli.main(["data", "fetch", "digits"]) == 0
    assert "1,797 images of 1 x 28 x 28" in capsys.readouterr().out
    assert cli.main(["data", "fetch", "cats"]) == 1
    assert (
        capsys.readouterr().err
        == "unrolled data: name is 'cats'; expected one of: digits, mnist, fashion_mnist, cifar10\n"
    )


FILE, NEW, NOT_NEW = "expected a folder", "is not there", "is there already"
SECONDS, NAME = "expected a number of seconds from 1 to 86,400", "expected the name of a file or folder"
WRONG = [
    *(
        (f"check mine.ipynb --timeout {word}", SECONDS)
        for word in ("inf", "nan", "1e-9", "0", "-1", "1e300", "x", "''")
    ),
    *((f"submit 02 --timeout {word}", SECONDS) for word in ("inf", "nan", "0")),
    *((f"{word} absent.ipynb", NEW) for word in ("check", "submit 02 --notebook", "progress --journal")),
    *(
        (f"{word} work", "is a folder; expected a file")
        for word in ("check", "submit 02 --notebook", "progress --journal")
    ),
    *((f"{word} ''", NAME) for word in ("check", "submit 02 --to", "lab --work", "gallery", "upgrade 02 --work")),
    *((f"{word} mine.ipynb", FILE) for word in ("submit 02 --to", "lab --work", "upgrade all --work")),
    *((f"{word} mine.ipynb/new", FILE) for word in ("submit 02 --to", "progress --record", "gallery x --to")),
    *((f"{word} mine.ipynb", NOT_NEW) for word in ("progress --record", "gallery x --to", "gallery x --picture")),
    *(
        (f"{word} {'x' * 300}", "File name too long")
        for word in ("check", "gallery", "lab --work", "progress --record")
    ),
    *((f"{word} {lesson}", "there is no lesson") for word in ("lab", "submit", "upgrade") for lesson in ("99", "''")),
    ("check text.ipynb", "is not readable"),
    ("check list.ipynb", "is not readable: it holds no object"),
    ("submit 02 --notebook list.ipynb", "cannot be handed in: the notebook is not readable"),
    ("submit 02 --notebook mine.ipynb", "this is the notebook of 03_pooling, not of 02_convolution"),
    ("submit 02 --notebook two.ipynb --student ../x", "cannot be a student's id"),
    ("submit 02 --notebook two.ipynb --student ''", "cannot be a student's id"),
    ("gallery x --to y --picture y", "--to and --picture both name y"),
    ("gallery x work", "there is no ladder in what you named"),
    ("data fetch ''", "expected one of: digits"),
    ("data nope", "invalid choice"),
    ("nope", "invalid choice"),
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


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[words[:40] for words, _ in WRONG])
def test_a_wrong_argument_is_named_without_a_traceback(course, odd_files, jupyter, capsys, words, said):
    before = sorted(course.rglob("*"))
    try:
        code = cli.main(shlex.split(words))
    except SystemExit as stop:  # argparse, with its line of usage
        code = stop.code
    assert code in (1, 2)
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert sorted(course.rglob("*")) == before


def test_a_wrong_argument_is_named_before_numpy_loads(course, odd_files):
    """The same table in one process. What is no notebook, journal, gallery or data set is said at once."""
    program = """
import shlex, sys
from unrolled import cli
for words in sys.stdin.read().splitlines():
    try:
        code = cli.main(shlex.split(words))
    except SystemExit as stop:
        code = stop.code
    if code not in (1, 2) or "numpy" in sys.modules:
        sys.exit(f"after: {words}")
"""
    table = [*dict(WRONG), "gallery text.ipynb", "progress --journal text.ipynb"]
    done = subprocess.run(
        [sys.executable, "-c", program], input="\n".join(table), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr.splitlines()[-1]


def test_the_data_sets_that_commands_know_are_those_there_are():
    assert [entry.name for entry in data.available()] == ["digits", *cli.DATA_SETS]
    assert [source.name for source in data.fetching.SOURCES] == [*cli.DATA_SETS]


def test_check_says_of_a_cell_that_asks_that_nobody_answers(tmp_path, capsys):
    """What ipykernel raises there is a NotImplementedError, and is no sign of an exercise that is not written."""
    cells = [
        new_code_cell("input('Your name? ')"),
        new_code_cell("from unrolled import check\ncheck.ink(lambda images: input())"),
    ]
    (tmp_path / "mine.ipynb").write_text(writes(new_notebook(cells=cells)), encoding="utf-8")
    assert cli.main(["check", str(tmp_path / "mine.ipynb")]) == 1
    said = capsys.readouterr().out
    assert "cell 0: StdinNotImplementedError: it waits for somebody to type" in said
    assert "it asks with input(), and nobody answers here" in said
    assert "not written yet" not in said


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_cell_has_a_positive_number_of_seconds(tmp_path, seconds):
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        run.execute(new_notebook(), cwd=tmp_path, cell_timeout=seconds)


def cell(report=None, grade_id=None, **metadata):
    outputs = [new_output("display_data", {MIME: report.to_dict()})] if report else []
    meta = {"nbgrader": {"grade": True, "solution": False, "grade_id": grade_id, **metadata}} if grade_id else {}
    return new_code_cell("", metadata=meta, outputs=outputs)


def executed(*cells, errors=()):
    nb = new_notebook(cells=list(cells))
    return run.Executed(nb, run.reports(nb), tuple(errors), None, 1.0)


def test_findings_are_those_of_the_checks_and_only_they_decide():
    error = run.CellError(0, None, "ZeroDivisionError", "division by zero")
    text, passed = handing_in.findings(
        executed(cell(), cell(report("im2col", "pass", ("a line",)), "check_im2col"), errors=[error])
    )
    assert passed
    assert text.split("\n\n") == [
        "im2col\n  ✓ a case\n      a line",
        "errors\n  cell 0: ZeroDivisionError: division by zero",
        "1 of 1 checks passed",
    ]


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (cell(report("conv2d", "fail", ("a line",)), "check_conv2d"), "conv2d\n  ✗ a case"),
        (cell(None, "check_conv2d"), "check_conv2d\n  ✗ displayed no verdict"),
        (new_code_cell("", outputs=[new_output("display_data", {MIME: {"check": "conv2d"}})]), "malformed verdict"),
    ],
)
def test_a_check_that_fails_is_silent_or_malformed_has_not_passed(last, words):
    text, passed = handing_in.findings(executed(cell(report("im2col", "pass", ("a line",)), "check_im2col"), last))
    assert not passed
    assert words in text
    assert text.endswith("1 of 2 checks passed")


def test_answers_in_words_are_no_checks():
    text, passed = handing_in.findings(executed(cell(None, "explain", solution=True)))
    assert (text, passed) == ("this notebook has no checks", True)


def test_check_runs_a_notebook_where_it_lies_and_fails_with_it(tmp_path, capsys):
    file = tmp_path / "mine.ipynb"
    shows = f"from IPython.display import display\ndisplay({ {MIME: report('conv2d', 'fail').to_dict()}!r}, raw=True)"
    file.write_text(
        writes(new_notebook(cells=[new_code_cell(shows), new_code_cell("open('here', 'w')")])), encoding="utf-8"
    )
    before = file.read_bytes()
    assert cli.main(["check", str(file)]) == 1
    assert "conv2d\n  ✗ a case" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "mine.ipynb"], "no journal is left"
    assert file.read_bytes() == before


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
