"""Right answers to every lesson, judged as when graded: cells of the lesson that nothing uses do not run."""

from pathlib import Path

import pytest

from unrolled import checks
from unrolled.notebook import cells
from unrolled_grader.authoring import sample
from unrolled_grader.jobs import job
from unrolled_grader.judge.verdicts import Options, Submission, judge

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("lesson", checks.lessons())
def test_right_answers_lose_nothing_by_what_is_not_run(lesson: str) -> None:
    released = cells.read(ROOT / "notebooks" / lesson / f"{lesson}.ipynb")
    notebook = job.sanitized(sample.notebook(ROOT, "another_way", lesson), released)
    own = frozenset(cell.source for cell in released.cells)
    found = judge(Submission("ada", lesson, notebook, checks.judged(lesson), None, own), Options(timing=False))
    assert {score.check for score in found.scores} == set(checks.judged(lesson))
    assert [score for score in found.scores if score.verdict not in ("pass", "deferred")] == []
