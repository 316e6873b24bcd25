"""The first of the four facts: each solution notebook runs top to bottom and earns everything.

What it measures for showing takes one call here; the site runs the same notebooks in full.
"""

from __future__ import annotations

import pytest
from facts import QUICKLY
from lessons_found import LESSONS

from unrolled.notebook import run


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_the_solution_earns_everything(lesson, tmp_path):
    result = run.execute(lesson.solution, cwd=tmp_path, env=QUICKLY, cell_timeout=600)
    assert result.stopped is None
    assert [str(error) for error in result.errors] == []
    assert set(result.reports) == set(lesson.specs)
    for report in (found.report() for found in result.reports.values()):
        assert report.passed, str(report)  # a busy machine may leave a speed open
        speed = lesson.specs[report.check].speed
        assert not report.deferred or (speed and (speed.gpu or speed.ranks > 1)), "only these can wait"
