"""The notebooks as Colab runs them: each solution runs to its end and passes all its checks.

Run by .ci/colab, in an environment with Colab's versions; `make test` has the four facts instead. What a notebook
measures for showing takes one call here, as when it is graded: how often a call is repeated depends on no version, and
tests/lib has the repeating. The checks measure in full.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from unrolled.notebook import run

ROOT = Path(__file__).resolve().parents[1]
SOLUTIONS = sorted(ROOT.glob("solutions/*/*.ipynb"))


def test_the_widgets_are_those_of_colab():
    assert metadata.version("ipywidgets").startswith("7.")


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_a_solution_runs_and_every_check_passes(path, tmp_path):
    env = {"UNROLLED_GRADING": "1", "UNROLLED_SEED": "0"}  # so that each run is the same
    executed = run.execute(path, cwd=tmp_path, env=env, cell_timeout=600)
    assert executed.errors == ()
    assert executed.reports
    assert [str(report) for found in executed.reports.values() if not (report := found.report()).passed] == []
