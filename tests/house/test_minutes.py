"""The minutes that a lesson states are about those that its parts add up to."""

import json
from pathlib import Path

import pytest

from unrolled_grader.authoring import minutes

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*/*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_lesson_and_its_notes_state_the_minutes_of_its_parts(file):
    found = minutes.of(json.loads(file.read_text(encoding="utf-8"))["cells"])
    assert found.agree, str(found)
    notes = (file.parents[2] / "site/notes" / f"{file.stem}.md").read_text(encoding="utf-8")
    assert f"About {found.stated:.0f} minutes" in notes


def test_minutes_are_those_of_words_exercises_and_cells():
    cell = {"metadata": {}, "cell_type": "markdown"}
    graded = {"metadata": {"nbgrader": {"solution": True}}}
    cells = [
        {**cell, "source": "# Title\n\nLesson 02, about 90 minutes.\n"},
        {**cell, "source": ["**Core**, about 8 minutes.\n", "word " * 360]},
        {**graded, "cell_type": "code", "source": "def f():\n    raise NotImplementedError"},
        {**graded, "cell_type": "markdown", "source": "YOUR ANSWER HERE"},
        {"metadata": {}, "cell_type": "code", "source": "check.f(f)"},
    ]
    found = minutes.of(cells)
    assert (found.stated, found.exercises, found.cells) == (90, 8, minutes.CELL + minutes.ANSWER)
    assert found.prose == pytest.approx(2, abs=0.1)
    assert str(found) == "90 minutes stated, 16 computed (prose 2, exercises 8, cells 6)"
