"""Facts 1 and 2 of whole notebooks: the learner's runs top to bottom and earns nothing, the solution earns everything.

One kernel runs all lessons, and forgets the one before: of each the learner's notebook, and then the solution's answers
and checks, with the cells that these need. No speed is measured, so nothing here depends on how busy the machine is.
The site and the run with Colab's versions give each solution its own kernel, run it in full, and fail with a speed.
"""

import nbformat
import pytest
from facts import QUICKLY, SMALL, names
from lessons_found import LESSONS
from nbformat.v4 import new_code_cell, new_notebook

from unrolled.notebook import cells, run

UNTIMED = new_code_cell("""
import gc
from unrolled.checks.exercises.l13_capstone import against_the_clock, own
from unrolled.checks.run import HERE
object.__setattr__(HERE, "race", None)
against_the_clock.RUNS, own.TURNS = 2, 3
gc.set_threshold(20_000, 20, 50)  # as in tests/conftest.py
""")


def asked(solved, learners):
    """The solution's cells that differ from the learner's, those that check an answer, and what these need of others.

    The others differ by an answer that they read; a cell that reads none has run.
    """
    before, changed, found = {cell.source for cell in learners}, set(), []
    for cell in (cell for cell in solved if cell.cell_type == "code"):
        made, read = names(cell.source)
        differs = cell.source not in before
        if differs or "journal.mine(" in cell.source or (read - made) & changed:
            changed |= made
            found.append((cell, made, read, differs or cells.grade_id(cell)))
    needed, chosen = set(), []
    for cell, made, read, wanted in reversed(found):
        if wanted or made & needed:
            needed |= read
            chosen.append(cell)
    return chosen[::-1]


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
""")


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """All lessons, executed."""
    notebook = new_notebook(cells=[SMALL, UNTIMED])
    for lesson in LESSONS:
        learners, solved = (nbformat.read(path, as_version=4).cells for path in (lesson.notebook, lesson.solution))
        parts = {"begun": [forgetting(lesson)], "untouched": learners, "solved": asked(solved, learners)}
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
