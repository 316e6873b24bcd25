"""docs/authoring.md, typed: other points, one more exercise and a colleague's lesson come to a class's learners."""

import json
from pathlib import Path

import pytest
from course import AUTHORING, fork_of_one_lesson
from page import Walk, same


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    """The walk at its end."""
    walk = fork_of_one_lesson(tmp_path_factory.mktemp("home"))
    for shown, printed in walk.run(AUTHORING.read_text(encoding="utf-8")):
        assert same(printed) == same(shown), "it is old: `python tests/walk/write.py docs/authoring.md` makes it anew"
    return walk


def test_every_command_succeeds(walk: Walk) -> None:
    assert walk.failed == []


def test_the_learners_have_what_was_added(walk: Walk) -> None:
    theirs = walk.home / "spring" / "learners"
    worth = {}
    for file in sorted(theirs.glob("notebooks/*/*.ipynb")):
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            mark = cell["metadata"].get("nbgrader", {})
            worth |= {mark["grade_id"]: mark["points"]} if mark.get("grade") else {}
    checks = {"check_ink": 3, "check_most_ink": 2, "check_double": 1, "check_double_all": 2}
    assert worth == {**checks, "explain_ratio": 1, "explain_doubling": 2}
    readme = (theirs / "README.md").read_text(encoding="utf-8")
    assert "[99 Doubling](notebooks/99_doubling/99_doubling.ipynb)" in readme
    assert walk.command(f"diff -rq lib/unrolled {theirs}/lib/unrolled | grep -v __pycache__") == ""


def test_the_learners_library_knows_the_added_checks(walk: Walk) -> None:
    asked = "from unrolled import checks; print({name: list(specs) for name, specs in checks.lessons().items()})"
    walk.folder = Path(walk.home / "spring" / "learners")
    assert walk.command(f'python -c "{asked}"') == (
        "{'00_start_here': ['ink', 'most_ink'], '99_doubling': ['double', 'double_all']}\n"
    )
