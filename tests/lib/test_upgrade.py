"""`unrolled upgrade`: a learner's answers of an older copy stand in the newer notebook, and nothing is lost."""

import copy
import hashlib
import json
from pathlib import Path

import nbformat
import pytest

from unrolled import cli
from unrolled.notebook import cells, upgrade

ROOT = Path(__file__).resolve().parents[2]
LESSON = "02_convolution"
ANSWER = "def im2col(x, kernel_size, stride=1, padding=0):\n    return 'mine'"
CHANGED = "### Exercise: im2col\n\nThe question as it was before."


def released() -> dict:
    return json.loads((ROOT / "notebooks" / LESSON / f"{LESSON}.ipynb").read_text(encoding="utf-8"))


def name_of(cell: dict) -> str:
    return cells.grade_id(cell) or ""


def cell_of(notebook: dict, name: str) -> dict:
    (found,) = (cell for cell in notebook["cells"] if name_of(cell) == name)
    return found


def place_of(notebook: dict, name: str) -> int:
    return notebook["cells"].index(cell_of(notebook, name))


def source(cell: dict) -> str:
    return "".join(cell["source"])


@pytest.fixture
def older() -> dict:
    """An untouched copy of an older release: the text above im2col was another one."""
    notebook = released()
    notebook["metadata"]["unrolled"]["version"] = "0.0.9"
    before = notebook["cells"][: place_of(notebook, "im2col")]
    question = next(cell for cell in reversed(before) if source(cell).startswith("### Exercise"))
    number = hashlib.sha256(f"markdown\n{CHANGED}\n1".encode()).hexdigest()[:12]  # as the course makes them
    question.update(source=CHANGED, id=number)
    return notebook


@pytest.fixture
def worked(older: dict) -> dict:
    """The same after a learner's work: an answer, words, a guess and a note of their own."""
    cell_of(older, "im2col")["source"] = ANSWER.splitlines(keepends=True)
    words = next(c for c in older["cells"] if c["cell_type"] == "markdown" and upgrade._is_answer(c))
    words["source"] = "Because memory."
    for cell in older["cells"]:
        cell["source"] = source(cell).replace('predict("conv2d_gemm", ...)', 'predict("conv2d_gemm", 40)')
    note = {"cell_type": "markdown", "id": "1a2b3c4d", "metadata": {}, "source": "My note."}
    older["cells"].insert(place_of(older, "im2col"), note)
    return older


def test_an_untouched_copy_becomes_the_newer_notebook(older: dict) -> None:
    found = upgrade.merged(older, released())
    assert [source(cell) for cell in found.notebook["cells"]] == [source(cell) for cell in released()["cells"]]
    assert (found.moved, found.guesses, found.changed, found.gone) == ([], [], {}, [])


def test_answers_and_guesses_come_along(worked: dict) -> None:
    before = copy.deepcopy(worked)
    found = upgrade.merged(worked, released())
    assert worked == before
    nb = found.notebook
    nbformat.validate(nbformat.from_dict(nb))
    assert_all_is_there(nb)
    texts = [cell["source"] for cell in nb["cells"]]
    assert sum('journal.predict("conv2d_gemm", 40)' in text for text in texts) == 1
    assert found.guesses == ["conv2d_gemm"]
    assert len(texts) == len(released()["cells"])
    assert CHANGED not in texts


def assert_all_is_there(notebook: dict) -> None:
    """The answer and the words; and no two cells have one id."""
    assert cell_of(notebook, "im2col")["source"] == ANSWER
    assert "Because memory." in {cell["source"] for cell in notebook["cells"]}
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])


def test_what_is_asked_differently_is_named_with_the_lines(worked: dict) -> None:
    found = upgrade.merged(worked, released())
    assert list(found.changed) == ["im2col"]
    assert "-The question as it was before." in found.changed["im2col"]
    assert "-My note." not in found.changed["im2col"]
    assert not any("def im2col" in line for line in found.changed["im2col"] if line[0] in "+-")
    answer = 'def im2col(x, size):\n    """As it was."""\n    return \'mine\''
    cell_of(worked, "im2col")["source"] = answer
    changed = upgrade.merged(worked, released()).changed["im2col"]
    assert "-def im2col(x, size):" in changed
    assert '-    """As it was."""' in changed


def test_without_ids_and_grade_ids_answers_are_found_by_the_functions_name(worked: dict) -> None:
    for cell in worked["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {}
    assert cell_of(upgrade.merged(worked, released()).notebook, "im2col")["source"] == ANSWER


def test_a_doubled_exercise_keeps_the_last_and_an_exercise_that_is_gone_is_named(worked: dict) -> None:
    copied = copy.deepcopy(cell_of(worked, "im2col")) | {"source": ANSWER.replace("mine", "later"), "id": "copy"}
    worked["cells"].insert(place_of(worked, "im2col") + 1, copied)
    mark = {"grade_id": "gone", "solution": True, "grade": False, "locked": False, "checksum": "x"}
    gone = {"cell_type": "code", "id": "gone", "metadata": {"nbgrader": mark}, "source": "def gone(): ..."}
    worked["cells"].append(gone | {"outputs": [], "execution_count": None})
    found = upgrade.merged(worked, released())
    assert cell_of(found.notebook, "im2col")["source"] == copied["source"]
    assert found.gone == ["gone"]


@pytest.fixture
def course(tmp_path: Path, worked: dict, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.unrolled]\n", encoding="utf-8")
    for folder in (tmp_path / "notebooks" / LESSON, tmp_path / "work"):
        folder.mkdir(parents=True)
    (tmp_path / "notebooks" / LESSON / f"{LESSON}.ipynb").write_text(json.dumps(released()), encoding="utf-8")
    (tmp_path / "work" / f"{LESSON}.ipynb").write_text(json.dumps(worked), encoding="utf-8")
    passed = {"checks": {"im2col": {"ever_passed": True}}}
    (tmp_path / "work" / "journal.json").write_text(json.dumps(passed), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(course: Path) -> dict[str, bytes]:
    return {str(f.relative_to(course)): f.read_bytes() for f in course.rglob("*") if f.is_file()}


def test_the_command_keeps_the_older_copy_and_twice_is_harmless(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(course)
    assert cli.main(["upgrade", "02", "--dry-run"]) == 0
    assert files(course) == before
    capsys.readouterr()
    assert cli.main(["upgrade", "02"]) == 0
    output = capsys.readouterr().out
    assert "answers moved: im2col" in output
    assert "-The question as it was before." in output
    assert "The journal says that im2col passed: that was the earlier check." in output
    after = files(course)
    mine, kept = f"work/{LESSON}.ipynb", f"work/older/{LESSON}.0.0.9.ipynb"
    assert after.keys() - before.keys() == {kept}
    assert after[kept] == before[mine]
    assert {name for name in before if before[name] != after[name]} == {mine}
    assert cli.main(["upgrade", "all"]) == 0
    assert "already" in capsys.readouterr().out
    assert files(course) == after
    (course / mine).write_bytes(before[mine])
    assert cli.main(["upgrade", "02"]) == 0
    assert files(course)[f"work/older/{LESSON}.0.0.9-2.ipynb"] == before[mine]
    assert files(course)[kept] == before[mine]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not readable"),
        ("[]", "it holds no object"),
        ('{"nbformat": 3, "cells": []}', "no notebook of format 4"),
        ('{"nbformat": 4, "cells": [1]}', "a cell has no text"),
        ('{"nbformat": 4, "cells": [], "metadata": {"unrolled": {"lesson": "03_pooling"}}}', "notebook of 03_pooling"),
        ('{"nbformat": 4, "cells": [], "metadata": {"unrolled": {"version": "99.0"}}}', "newer than this course"),
        ('{"nbformat": 4, "cells": [], "metadata": {"unrolled": {"version": "../../../../x"}}}', "which is none"),
        ('{"nbformat": 4, "cells": [], "metadata": {"unrolled": {"version": "\\u001b[2J"}}}', "which is none"),
        ('{"nbformat": 4, "cells": 1, "metadata": []}', "no notebook of format 4"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_what_cannot_be_upgraded_is_named_and_left_alone(
    course: Path, capsys: pytest.CaptureFixture[str], content: str, message: str
) -> None:
    (course / "work" / f"{LESSON}.ipynb").write_text(content, encoding="utf-8")
    before = files(course)
    assert cli.main(["upgrade", "all"]) == 1
    assert message in capsys.readouterr().out
    assert files(course) == before
