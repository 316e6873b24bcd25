"""A throwaway course: the configuration of this repository around one small lesson."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]

LESSON = '''\
# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # Doubling
#
# Ten minutes. You will double a number.

# %%
from unrolled import check
check.start("07_doubling")

# %%
x = 1

# %%
x = 1


# %% A title nbgrader={"grade": false, "grade_id": "double", "locked": false, "schema_version": 3, "solution": true, "task": false}
def double(number):
    """Return twice the number. About 1 line."""
    ### BEGIN SOLUTION
    return 2 * number  # the secret
    ### END SOLUTION
# %% nbgrader={"grade": true, "grade_id": "check_double", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
assert double(2) == 4

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# Adding is the secret of doubling.
'''


def make_course(root: Path, lesson: str = LESSON, name: str = "07_doubling") -> Path:
    """A course of one lesson under `root`, with this repository's configuration."""
    (root / "grader").mkdir(parents=True)
    (root / "lessons").mkdir()
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        shutil.copy(ROOT / file, root / file)
    (root / "lessons" / f"{name}.py").write_text(lesson, encoding="utf-8")
    return root
