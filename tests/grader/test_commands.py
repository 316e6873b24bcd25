"""The commands as an instructor types them, in a checkout of its own with the real lesson 00."""

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import nbformat
import pytest
from small_course import command, table

from unrolled_grader.authoring import sample
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import queue, record

ROOT = Path(__file__).resolve().parents[2]
LESSON = "00_start_here"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration and lesson 00 of this repository, and two students, one with a broken file."""
    root = tmp_path_factory.mktemp("commands")
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        (root / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, root / file)
    for folder in ("solutions", "notebooks"):
        shutil.copytree(ROOT / folder / LESSON, root / folder / LESSON)
    (root / "lessons").mkdir()
    shutil.copy(ROOT / "lessons" / f"{LESSON}.py", root / "lessons")
    right, broken = (root / "grader/submitted" / name / LESSON / f"{LESSON}.ipynb" for name in ("right", "broken"))
    right.parent.mkdir(parents=True)
    nbformat.write(sample.notebook(ROOT, "perfect", LESSON), right)
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"\0\0")
    return root


def python(root: Path, *words: str, path: str = "/usr/bin:/bin", given: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python with these words in `root`, without the environment's scripts on PATH."""
    command, environment = [sys.executable, *words], {**os.environ, "PATH": path}
    return subprocess.run(command, cwd=root, env=environment, input=given, capture_output=True, text=True, timeout=300)


PROGRAM = """\
import contextlib, io, json, shlex, sys
from unrolled.cli import main
for words in json.load(sys.stdin):
    output, why = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(why):
        try: code = main(shlex.split(words))
        except SystemExit as stop: code = stop.code
    print(json.dumps([code, output.getvalue(), why.getvalue()]))
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def in_one_process(root: Path, *commands: str, first: str = "", path: str = "/usr/bin:/bin") -> tuple[list[Any], Any]:
    """Code and both outputs of each command of ours, and the modules that are loaded at the end: one start for all."""
    done = python(root, "-c", f"{first}\n{PROGRAM}", given=json.dumps(commands), path=path)
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], json.loads(done.stderr.splitlines()[-1])


def rows(root: Path) -> list[dict[str, str]]:
    """The rows of scores.csv; what was measured differs from run to run, so it is left out."""
    found = table(root / "grades" / "scores.csv")
    return [row | {"verdict": "", "detail": ""} if row["check"].endswith("/speed") else row for row in found]


@pytest.fixture(scope="module")
def graded(checkout: Path) -> list[Any]:
    """What the commands said that graded the class, and looked at it."""
    return in_one_process(checkout, "grade 00", "grade", "grade --explain right 00 ink")[0]


def test_both_commands_give_the_same_rows(checkout: Path, graded: list[Any]) -> None:
    codes, (shown, again, why), _ = zip(*graded, strict=True)
    assert codes == (0, 0, 0)
    assert re.search(r"^broken +0! +not graded: all of 00$", shown, re.MULTILINE)
    assert re.search(r"^right +1\+$", shown, re.MULTILINE)
    first = rows(checkout)
    points = {(row["student"], row["check"]): (row["points"], row["max_points"]) for row in first}
    assert points == {
        ("broken", "ink"): ("0", "1"),
        ("broken", "ink/speed"): ("0", "0"),
        ("broken", "explain_ratio"): ("0", "1"),
        ("right", "ink"): ("1", "1"),
        ("right", "ink/speed"): ("0", "0"),
        ("right", "explain_ratio"): ("0", "1"),
    }
    assert "2 of 2 are graded already" in again
    assert "ink: 1 of 1 points, pass" in why
    (checkout / "grades" / "scores.csv").unlink()
    done = python(checkout, "-m", "nbgrader", "autograde", LESSON, "--force")
    assert done.returncode == 1, done.stderr  # it names the one that it cannot open
    assert rows(checkout) == first


@pytest.mark.usefixtures("graded")
def test_what_cannot_be_done_is_said_in_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {
        ("--explain", "right", "00", "none"): "has ink, not none",
        ("--explain", "nobody\x1b[2J", "00", "ink"): "nothing is recorded of 'nobody\\x1b[2J', 00_start_here",
        ("--force", "--scheduler", "tcp://127.0.0.1:1"): "127.0.0.1:1",
        (): "another run grades into",
    }
    monkeypatch.setattr(queue, "CONNECT", 0.5)
    for words, expected in refused.items():
        with nullcontext() if words else record.alone(checkout / "grades"):
            assert command(Grading.at(checkout), monkeypatch, "grade", *words) == 1
        message = capsys.readouterr().err
        assert expected in message
        assert message.count("\n") == 1


COUNT, NO_FOLDER = "expected a whole number from 1 to 1,000", "expected a folder"
WRONG = [
    *(
        (f"{word} {n}", COUNT)
        for word in ("grade --jobs", "demo --jobs", "site --at-once")
        for n in ("0", "-1", "x", "1e9")
    ),
    *(
        (f"{word} {lesson}", "there is no lesson")
        for word in ("grade", "demo --lessons", "similar")
        for lesson in ("99", "''")
    ),
    *((f"{word} pyproject.toml", NO_FOLDER) for word in ("grade --submitted", "similar --submitted", "pseudonymous")),
    *(
        (f"{word} pyproject.toml", NO_FOLDER)
        for word in ("class new", "site --out", "wheel --into", "wheelhouse --into")
    ),
    *((f"{word} absent", "there is no folder absent") for word in ("grade --submitted", "similar --submitted")),
    *((f"grade --student {name}", "there is nothing to grade of") for name in ("nobody", "''", "..", "right/x")),
    *((f"{word} absent", "absent is not there") for word in ("collect", "collect . --roster", "forget right --roster")),
    *((f"grade --scheduler {word}", "expected an address such as") for word in ("x", "''", "tcp://host", "host:x")),
    *((f"forget {name}", "is no id in gradebook, folders or roster") for name in ("nobody", "''")),
    ("grade --gpu", "--gpu goes with --scheduler"),
    ("grade --explain right 99 ink", "there is no lesson '99'"),
    ("grade --explain nobody 00 ink", "nothing is recorded of 'nobody'"),
    ("collect .", "there is no roster"),
    ("collect . --roster grader", "is a folder; expected a file"),
    ("collect . --roster pyproject.toml --lesson 99", "there is no lesson '99'"),
    ("pseudonymous grader", "is there already: name a new folder"),
    ("version add absent", "is no folder and no tag here"),
    ("class new grader", "lies in the course's own folder"),
    ("class new ../new --lessons ''", "--lessons names none"),
    ("class new ../new --variant ink=nope", "'ink' has no variant 'nope': it has none"),
    ("class new ../new --variant nosuch=x", "there is no exercise 'nosuch'; there are variants of none"),
    ("class new ../new --threshold ink=x", "expected CHECK=T, with a number above 0"),
    ("class change", "is no tree for learners"),
    *((f"class change --learners . --threshold ink={t}", "a number above 0") for t in ("0", "-1", "nan", "inf")),
    ("class change --learners . --threshold nope=2", "there is no check 'nope'"),
    ("class change --learners . --points nope/speed=2", "there is no check 'nope'"),
    ("class change --learners . --points ink=1.5", "a whole number from 0 to 1000"),
    ("class change --learners . --lessons 99", "there is no lesson '99'"),
    ("class change --learners . --without-speed 99", "there is no lesson '99'"),
    ("site --out grader", "holds something that is no site"),
    ("wheelhouse --into grader", "holds something that is no wheelhouse"),
    ("wheelhouse --data nope", "there is no data set 'nope'"),
    ("wheelhouse --python 2.7", "invalid choice"),
]
HEAVY = {
    *("IPython", "jupytext", "matplotlib", "nbclient", "nbconvert", "nbformat", "nbgrader", "numpy", "sphinx"),
    "sqlalchemy",
}


def files(root: Path) -> set[Path]:
    """All files but what SQLite lays beside a table that it reads."""
    return {file for file in root.rglob("*") if file.is_file() and not file.name.endswith(("-shm", "-wal"))}


def test_a_wrong_argument_is_named_before_anything_heavy_loads_and_nothing_is_deleted(checkout: Path) -> None:
    """A table in one process: what is heavy takes seconds to load, and none of it is there at the end."""
    mine = checkout / "grades" / "demo" / "mine.txt"  # the demo would delete it
    mine.parent.mkdir(parents=True)
    mine.touch()
    before = files(checkout)
    found, modules = in_one_process(checkout, *(words for words, _ in WRONG))
    for (words, expected), (code, _, errors) in zip(WRONG, found, strict=True):
        assert code in (1, 2), words
        assert expected in errors.splitlines()[-1], words
    assert HEAVY & set(modules) == set()
    assert files(checkout) == before


def test_without_bubblewrap_the_sample_class_is_graded_and_no_other(checkout: Path, tmp_path: Path) -> None:
    """Every score says so, and one line says how to get what is missing."""
    two = "from unrolled_grader.authoring import sample; sample.STUDENTS = ('another_way', 'untouched')"
    (checkout / "grader" / "sample_class").mkdir()
    found, _ = in_one_process(checkout, "demo --lessons all", "grade --force", first=two, path=str(tmp_path))
    (code, output, _), (refused, _, why) = found
    assert (code, refused) == (0, 1)
    assert "`sudo apt-get install bubblewrap`" in why
    assert why.count("\n") == 1
    (line,) = [line for line in output.split("\n") if "bubblewrap" in line]
    assert line.startswith("Without a sandbox")
    assert "`sudo apt-get install bubblewrap`" in line
    assert max(map(len, output.partition("\n\n")[2].partition("\n\n")[0].split("\n"))) <= 100
    grades = checkout / "grades" / "demo" / "grades"
    judged = [row for row in table(grades / "scores.csv") if row["check"] != "explain_ratio"]
    points = {row["student"]: row["points"] for row in judged if row["check"] == "ink"}
    assert points == {"another_way": "1", "untouched": "0"}
    assert all(row["detail"].startswith("(graded without a sandbox)") for row in judged)
    assert "NO SANDBOX: 2 of 2" in (grades / "report.html").read_text(encoding="utf-8")
