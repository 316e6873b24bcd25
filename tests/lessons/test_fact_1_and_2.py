"""Facts 1 and 2 of whole notebooks: the learner's runs top to bottom and earns nothing, the solution earns everything.

Both run in one kernel, which forgets its names in between, since its start takes as long as a small lesson. The site
and the run with Colab's versions give each solution a kernel of its own. What is measured for showing takes one call
here; the site runs the same notebooks in full.
"""

from __future__ import annotations

import nbformat
import pytest
from facts import QUICKLY
from lessons_found import LESSONS
from nbformat.v4 import new_code_cell, new_notebook

from unrolled.notebook import run


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_the_learners_notebook_earns_nothing_and_the_solution_everything(lesson, tmp_path):
    learners, solved = (nbformat.read(path, as_version=4).cells for path in (lesson.notebook, lesson.solution))
    for number, cell in enumerate(solved):
        cell.id = f"solved-{number}"  # in one notebook no two may have the same
    both = new_notebook(cells=[*learners, new_code_cell("%reset -f"), *solved])
    result = run.execute(both, cwd=tmp_path, env=QUICKLY, cell_timeout=600)
    assert result.stopped is None
    assert [str(error) for error in result.errors] == [], "Run All must work before anything is written, and after"
    nothing, everything = (
        {name: found.report() for name, found in run.reports(new_notebook(cells=cells)).items()}
        for cells in (result.notebook.cells[: len(learners)], result.notebook.cells[len(learners) :])
    )
    assert set(nothing) == set(everything) == set(lesson.specs)
    assert {report.points for report in nothing.values()} == {0}
    for name, report in everything.items():
        assert report.passed, str(report)  # a busy machine may leave a speed open
        speed = lesson.specs[name].speed
        assert not report.deferred or (speed and (speed.gpu or speed.ranks > 1)), "only these can wait"
