"""A lesson is added by the files that docs/authoring.md names, ten at most; all lists of lessons follow from them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from new_lesson import FILES, LESSON

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    *("grader", "lessons/00_start_here.py", "lib", "site", "tests/lessons"),
    *("README.md", "nbgrader_config.py", "pyproject.toml"),
)
TESTED = ("tests/lessons/test_four_facts.py", "tests/lessons/test_hints.py")
HANDED_IN = f"""
from pathlib import Path
from unrolled_grader.authoring import sample
for student in sample.STUDENTS:
    print(*(cell.source for cell in sample.notebook(Path(), student, "{LESSON}").cells))
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course with lesson 00 and the new one, built."""
    root = tmp_path_factory.mktemp("course")
    unwanted = shutil.ignore_patterns("__pycache__", "submitted", "autograded", "feedback", "gradebook.db", "versions")
    for path in NEEDED:
        copy = shutil.copy if (ROOT / path).is_file() else shutil.copytree
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / path, root / path, **({} if copy is shutil.copy else {"ignore": unwanted}))
    for path, text in FILES.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    run(root, "-c", "from unrolled import cli; raise SystemExit(cli.main(['build']))")
    return root


def run(root: Path, *command: str) -> str:
    """What Python says in the copy, which has its own library and grader."""
    path = os.pathsep.join(str(root / folder) for folder in ("lib", "grader"))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, *command], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_guide_names_every_file_and_no_more_than_ten() -> None:
    guide = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
    table = guide.split("## The files of a lesson")[1].split("\n## ")[0]
    named = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert len(named) <= 10
    written = {path.replace(LESSON, "NN_topic").replace("lesson99", "lessonNN") for path in FILES}
    assert written <= set(named)


def test_every_list_has_the_new_lesson(course: Path) -> None:
    for page, line in (
        ("README.md", "| [99 Doubling](notebooks/99_doubling/99_doubling.ipynb) | 10 | double a number"),
        ("site/index.md", "| [99 Doubling](lessons/99_doubling.ipynb) | 10 |"),
        ("site/index.md", "\n99 Doubling <lessons/99_doubling>\n"),
        ("site/notes/index.md", "\n99 Doubling <99_doubling>\n"),
    ):
        assert line in (course / page).read_text(encoding="utf-8")


def test_the_facts_hold_for_it(course: Path) -> None:
    """Facts 1 and 2 among them; fact 4 is for exercises with a speed."""
    output = run(course, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTED, "-k", "doubling or double")
    assert int(re.findall(r"(\d+) passed", output)[-1]) > 20


def test_the_sample_class_hands_it_in(course: Path) -> None:
    output = run(course, "-c", HANDED_IN)
    assert output.count("return number + number") == 5
    assert "return number + number - 1" in output
    assert "answer = in_no_cell" in output
