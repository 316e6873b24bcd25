"""Facts 1 and 2 of whole notebooks: the learner's runs top to bottom and earns nothing, the solution earns everything.

One kernel runs the learner's notebook, and then the cells of the solution that an answer can touch: the others ran.
No speed is measured, so nothing here depends on how busy the machine is. The site and the run with Colab's versions
give each solution a kernel of its own, run it in full, and fail with a speed.
"""

import nbformat
import pytest
from facts import QUICKLY, SMALL, names
from lessons_found import LESSONS
from nbformat.v4 import new_code_cell, new_notebook

from unrolled.notebook import run

UNTIMED = new_code_cell("""
from unrolled.checks.exercises.l13_capstone import against_the_clock, own
from unrolled.checks.run import HERE
object.__setattr__(HERE, "race", None)
against_the_clock.RUNS, own.TURNS = 2, 3
""")


def touched(solved, learners):
    """The cells that differ from the learner's, ask the journal, or read what such cells make."""
    before, changed = {cell.source for cell in learners}, set()
    for cell in (cell for cell in solved if cell.cell_type == "code"):
        made, read = names(cell.source)
        answered = cell.source not in before or "journal.mine(" in cell.source or (read - made) & changed
        changed |= made if answered else set()
        if answered or "journal.ladder(" in cell.source:
            yield cell


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_the_learners_notebook_earns_nothing_and_the_solution_everything(lesson, tmp_path):
    learners, solved = (nbformat.read(path, as_version=4).cells for path in (lesson.notebook, lesson.solution))
    again = list(touched(solved, learners))
    for number, cell in enumerate(again):
        cell.id = f"solved-{number}"  # in one notebook no two may have the same
    result = run.execute(
        new_notebook(cells=[SMALL, UNTIMED, *learners, *again]), cwd=tmp_path, env=QUICKLY, cell_timeout=600
    )
    assert result.stopped is None
    assert [str(error) for error in result.errors] == [], "Run All must work before anything is written, and after"
    nothing, everything = (
        {name: found.report() for name, found in run.reports(new_notebook(cells=cells)).items()}
        for cells in (result.notebook.cells[: -len(again)], result.notebook.cells[-len(again) :])
    )
    assert set(nothing) == set(everything) == set(lesson.specs)
    assert {report.points for report in nothing.values()} == {0}
    for name, report in everything.items():
        assert report.passed, str(report)
        assert report.points == lesson.specs[name].points, "but for its speed"
