"""Facts 1 and 2 of whole notebooks: the learner's runs top to bottom and earns nothing, the solution earns everything.

One kernel runs all lessons, and forgets the one before: of each the learner's notebook, and then the solution's answers
and checks, with the cells that these need. No speed is measured, so nothing here depends on how busy the machine is.
The site and the run with Colab's versions give each solution its own kernel, run it in full, and fail with a speed.
"""

import nbformat
import pytest
from facts import QUICKLY, SMALL, cells_that_run
from lessons_found import LESSONS
from nbformat.v4 import new_code_cell, new_notebook

from unrolled.notebook import run

UNTIMED = new_code_cell("""
from unrolled.checks.exercises.l13_capstone import against_the_clock, own
from unrolled.checks.run import HERE
object.__setattr__(HERE, "race", None)
against_the_clock.RUNS, own.TURNS = 2, 3
""")


def forgetting(lesson):
    """A cell that leaves nothing of the lesson before: its names and answers, its journal, its GPU."""
    return new_code_cell(f"""
import os
from unrolled import simgpu
from unrolled.journal import own
os.environ["UNROLLED_JOURNAL"] = "journal of {lesson}.json"
own._passed.clear()
simgpu.use("T4")
%reset -f
import gc
gc.freeze()  # what has been loaded: searching it for garbage would take a third of a second the next time
del gc
""")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """All lessons, executed."""
    notebook = new_notebook(cells=[SMALL, UNTIMED])
    for lesson in LESSONS:
        untouched, solved = (nbformat.read(path, as_version=4) for path in (lesson.notebook, lesson.solution))
        needed = cells_that_run(solved, {cell.source for cell in untouched.cells})
        parts = {"begun": [forgetting(lesson)], "untouched": untouched.cells, "solved": needed}
        for part, chosen in parts.items():
            for number, cell in enumerate(chosen):
                cell.id = f"{lesson}-{part}-{number}"  # in one notebook no two may have the same
                notebook.cells.append(cell)
    return run.execute(notebook, cwd=tmp_path_factory.mktemp("lessons"), env=QUICKLY, cell_timeout=600)


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_the_learners_notebook_earns_nothing_and_the_solution_everything(lesson, executed):
    ran = executed.notebook.cells
    assert executed.stopped is None
    others = tuple(f"{other}-" for other in LESSONS if other is not lesson)
    errors = [str(error) for error in executed.errors if not ran[error.cell_index].id.startswith(others)]
    assert errors == [], "Run All must work before anything is written, and after"
    nothing, everything = (
        {name: found.report() for name, found in run.reports(new_notebook(cells=ours)).items()}
        for ours in (
            [cell for cell in ran if cell.id.startswith(f"{lesson}-{part}-")] for part in ("untouched", "solved")
        )
    )
    assert set(nothing) == set(everything) == set(lesson.specs)
    assert {report.points for report in nothing.values()} == {0}
    for name, report in everything.items():
        assert report.passed, str(report)
        assert report.points == lesson.specs[name].points, "but for its speed"
