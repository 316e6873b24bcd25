"""The marker sees model answer and rubric beside each answer in words; nobody else ever does."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from small_course import LESSON, answered
from traitlets.config import Config

from unrolled_grader.authoring import notebooks
from unrolled_grader.results import marking

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("file", sorted((ROOT / "solutions").glob("*/*.ipynb")), ids=lambda file: file.stem)
def test_every_lesson_has_a_rubric_for_its_words(file: Path) -> None:
    (text,) = marking.rubrics(file).values()
    assert "rubric" in text.lower()
    assert "SOLUTION" not in text
    released = (ROOT / "notebooks" / file.stem / file.name).read_text(encoding="utf-8")
    assert "rubric, " not in released.lower()
    assert "**rubric**" not in released.lower()


def shown(root: Path, resources: dict[str, Any]) -> list[str]:
    config: Config = notebooks.nbgrader_config(root)
    notebook = answered(root, {"explain_total": "Mine."})
    made, _ = marking.Rubric(config=config).preprocess(notebook, resources)
    nbformat.validate(made)
    return [cell.source for cell in made.cells]


def test_formgrader_alone_shows_it_below_the_answer(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)  # the folder that somebody started Jupyter in does not matter
    asked = {"assignment_id": LESSON, "notebook_id": LESSON}
    cells = shown(root, asked | {"submission_id": "1"})
    (word,) = re.findall(r"below stand 1 .* word \*\*(\w{6})\*\*", cells[0])
    assert cells[cells.index("Mine.") + 1] == f"{marking.HEAD.format(word=word)}One call."
    assert sum(word in cell for cell in cells) == 2
    assert not any("marker" in cell for cell in shown(root, asked))


def test_a_student_cannot_write_a_rubric_of_their_own(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The word that heads the course's is another in each view, and stands where no student can write."""
    monkeypatch.chdir(root)
    asked = {"assignment_id": LESSON, "notebook_id": LESSON, "submission_id": "1"}
    first, second = shown(root, asked)[0], shown(root, asked)[0]
    assert first != second
    assert "was written by the student" in first


def test_a_lesson_without_solution_shows_none(tmp_path: Path) -> None:
    assert marking.rubrics(tmp_path / "none.ipynb") == {}
