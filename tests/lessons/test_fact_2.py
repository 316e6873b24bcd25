"""The second of the four facts: each learner's notebook runs top to bottom and earns nothing."""

from __future__ import annotations

import pytest
from facts import QUICKLY
from lessons_found import LESSONS

from unrolled.notebook import run


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_the_learners_notebook_earns_nothing_and_runs_through(lesson, tmp_path):
    result = run.execute(lesson.notebook, cwd=tmp_path, env=QUICKLY, cell_timeout=600)
    assert result.stopped is None
    assert [str(error) for error in result.errors] == [], "Run All must work before anything is written"
    assert set(result.reports) == set(lesson.specs)
    assert {report.report().points for report in result.reports.values()} == {0}
