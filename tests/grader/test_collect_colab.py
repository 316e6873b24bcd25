"""A notebook that Colab saved goes from Canvas's zip to the right points, whatever Colab did to its cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import colab_saves
import pytest
from lms_exports import CLASS, Upload, canvas_zip, roster_csv
from nbformat import NotebookNode
from small_course import GOOD, LESSON, SPECS, answered, released, rows

from unrolled.notebook.cells import grade_id
from unrolled_grader.classroom import gradebook, roster
from unrolled_grader.grading import Grading
from unrolled_grader.jobs import job
from unrolled_grader.judge import intake, opening, repair
from unrolled_grader.judge.verdicts import Options
from unrolled_grader.receiving import collect

ADA = CLASS[0]
WRONG = "def double(number):\n    return number"


def placed(folder: Path, data: bytes) -> Path:
    """Where a notebook lies after it was taken in from Canvas."""
    file = folder / "export.zip"
    file.write_bytes(canvas_zip([Upload(ADA, data, f"Copy of {LESSON}.ipynb")]))
    room = collect.Classroom(roster.read(roster_csv().encode()), {LESSON: tuple(SPECS)})
    (row,) = collect.take(folder / "submitted", [file], room).rows
    assert (row.outcome, row.entry.problem) == ("newest", "")
    return folder / "submitted" / ADA.id / LESSON / f"{LESSON}.ipynb"


def right(notebook: NotebookNode) -> dict[str, bool]:
    """Whether each exercise is right where its check stands: the cells above it run in order, in this process."""
    asked = {"double": (3, 6), "total": (Numbers([1, 2, 3]), 6)}
    namespace: dict[str, Any] = {}
    found = {}
    for cell in notebook.cells:
        check = (grade_id(cell) or "").partition("check_")[2]
        if check:
            given, wanted = asked[check]
            found[check] = namespace[check](given) == wanted
        elif cell.cell_type == "code" and "small_course" not in cell.source:
            exec(cell.source, namespace)
    return found


class Numbers(list[int]):
    """What `total` is asked for the sum of."""

    def sum(self) -> int:
        return sum(self)


@pytest.mark.parametrize("minor", [0, 5])
@pytest.mark.parametrize("name", colab_saves.SAMPLES)
def test_each_sample_is_placed_opened_and_repaired(name: str, minor: int, root: Path, tmp_path: Path) -> None:
    given = released(root)
    for answer, is_right in ((GOOD["double"], True), (WRONG, False)):
        solved = answered(root, {**GOOD, "double": answer, "explain_total": "One call."})
        folder = tmp_path / str(is_right)
        folder.mkdir()
        data = placed(folder, colab_saves.saved(solved, colab_saves.SAMPLES[name], minor=minor)).read_bytes()
        notebook, _ = repair.repaired(opening.opened(data, LESSON, list(SPECS)), given)
        assert right(notebook) == {"double": is_right, "total": True}
        words = next(cell.source for cell in notebook.cells if grade_id(cell) == "explain_total")
        assert words == "One call."


def test_the_most_damaged_ones_earn_what_they_should(root: Path, tmp_path: Path) -> None:
    damaged = colab_saves.SAMPLES["split, without marks"]
    solved = answered(root, {**GOOD, "double": WRONG})
    file = placed(tmp_path, colab_saves.saved(solved, damaged))
    course = Grading.at(root)
    handed = intake.handed(file.parent, list(SPECS))
    assert handed.problem == ""
    options = Options(timing=False)
    (tmp_path / "jobs").mkdir()
    order = job.order_for(handed, gradebook.released_file(course.directory, LESSON), tmp_path / "jobs", options)
    found, _ = job.perform_here(order)
    assert rows(found.scores) == {
        "double": ("fail", 0.0),
        "total": ("pass", 1.0),
        "total/speed": ("deferred", 0.0),
    }
