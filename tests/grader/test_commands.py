"""The commands as an instructor types them, in a checkout of its own with the real lesson 00."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from unrolled_grader.build import sample
from unrolled_grader.jobs import record

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
    right, broken = (root / "grader/submitted" / name / LESSON / f"{LESSON}.ipynb" for name in ("right", "broken"))
    right.parent.mkdir(parents=True)
    nbformat.write(sample.notebook(ROOT, "perfect", LESSON), right)
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"\0\0")
    return root


def run(root: Path, *command: str, code: int = 0) -> str:
    """Run a command of the environment in `root`, without the environment's scripts on PATH; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=root,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def rows(root: Path) -> list[dict[str, str]]:
    """The rows of scores.csv; what was measured differs from run to run, so it is left out."""
    with (root / "grades" / "scores.csv").open(newline="", encoding="utf-8") as stream:
        found = list(csv.DictReader(stream))
    return [row | {"verdict": "", "detail": ""} if row["check"].endswith("/speed") else row for row in found]


def test_both_commands_give_the_same_rows(checkout: Path) -> None:
    said = run(checkout, "unrolled.cli", "grade", "00")
    assert re.search(r"^broken +0! +not graded: all of 00$", said, re.MULTILINE)
    assert re.search(r"^right +1\+$", said, re.MULTILINE)
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
    assert "2 of 2 are graded already" in run(checkout, "unrolled.cli", "grade")
    assert "Replayed from the record" in run(checkout, "unrolled.cli", "grade", "--explain", "right", "00", "ink")
    (checkout / "grades" / "scores.csv").unlink()
    run(checkout, "nbgrader", "autograde", LESSON, "--force", code=1)  # it names the one that it cannot open
    assert rows(checkout) == first


def test_what_cannot_be_done_is_said_in_one_line(checkout: Path) -> None:
    grade = (sys.executable, "-m", "unrolled.cli", "grade")
    for words, said in (
        (("--explain", "right", "00", "none"), "has ink, not none"),
        (("--explain", "nobody\x1b[2J", "00", "ink"), "nothing is recorded of nobody [2J, 00_start_here"),
        (("--force", "--scheduler", "tcp://127.0.0.1:1"), "127.0.0.1:1"),
    ):
        done = subprocess.run([*grade, *words], cwd=checkout, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    with record.alone(checkout / "grades"):
        done = subprocess.run(grade, cwd=checkout, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "another run grades into" in done.stderr


def test_without_bubblewrap_the_sample_class_is_graded_and_no_other(checkout: Path, tmp_path: Path) -> None:
    """Every score says so, and one line says how to get what is missing."""
    (tmp_path / "two.py").write_text(
        "import sys\n"
        "if __name__ == '__main__':\n"
        "    from unrolled.cli import main\n"
        "    from unrolled_grader.build import sample\n"
        "    sample.STUDENTS = ('another_way', 'untouched')\n"
        "    sys.exit(main(['demo', '--lessons', 'all']))\n"
    )
    (checkout / "grader" / "sample_class").mkdir()
    said = subprocess.run(
        [sys.executable, tmp_path / "two.py"],
        cwd=checkout,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    ).stdout
    (line,) = [line for line in said.split("\n") if "bubblewrap" in line]
    assert line.startswith("Without a sandbox")
    assert "`sudo apt-get install bubblewrap`" in line
    assert max(map(len, said.partition("\n\n")[2].partition("\n\n")[0].split("\n"))) <= 100
    grades = checkout / "grades" / "demo" / "grades"
    with (grades / "scores.csv").open(newline="", encoding="utf-8") as stream:
        judged = [row for row in csv.DictReader(stream) if row["check"] != "explain_ratio"]
    assert {row["student"]: row["points"] for row in judged if row["check"] == "ink"} == {
        "another_way": "1",
        "untouched": "0",
    }
    assert all(row["detail"].startswith("(graded without a sandbox)") for row in judged)
    assert "NO SANDBOX: 2 of 2" in (grades / "report.html").read_text(encoding="utf-8")

    refused = subprocess.run(
        [sys.executable, "-m", "unrolled.cli", "grade", "--force"],
        cwd=checkout,
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert refused.returncode == 1
    assert "`sudo apt-get install bubblewrap`" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_an_unknown_lesson_of_the_demo_is_named_and_nothing_is_deleted(checkout: Path) -> None:
    kept = checkout / "grades" / "demo" / "mine.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.touch()
    run(checkout, "unrolled.cli", "demo", "--lessons", "99", code=1)
    assert kept.exists()
