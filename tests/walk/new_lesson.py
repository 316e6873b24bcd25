"""The files that somebody writes who adds a lesson: `99_doubling`, with two exercises."""

LESSON = "99_doubling"

SCRIPT = '''\
# %% [markdown]
# # Doubling
#
# Lesson 99, about 10 minutes.
#
# **Afterwards you can** double a number, and the numbers of an array.

# %%
import numpy as np

from unrolled import check

check.start("99_doubling")

# %% [markdown]
# ### Exercise: double
#
# **Core**, about 3 minutes.

# %% nbgrader={"grade": false, "grade_id": "double", "locked": false, "schema_version": 3, "solution": true, "task": false}
def double(number):
    """Return twice the number. About 1 line."""
    ### BEGIN SOLUTION
    return number + number
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_double", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.double(double)

# %% [markdown]
# ### Exercise: double_all
#
# **Core**, about 3 minutes.

# %% nbgrader={"grade": false, "grade_id": "double_all", "locked": false, "schema_version": 3, "solution": true, "task": false}
def double_all(x):
    """Return twice each number of x (N,), float32. About 1 line."""
    ### BEGIN SOLUTION
    return np.multiply(x, np.float32(2))
    ### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "check_double_all", "locked": true, "schema_version": 3, "solution": false, "task": false}
check.double_all(double_all)

# %% [markdown]
# Why is one call enough?

# %% [markdown] nbgrader={"grade": true, "grade_id": "explain_doubling", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# One call doubles all numbers.
#
# **Rubric.** 2 points: all numbers in one call.
# ### END SOLUTION
'''

SPECS = '''\
"""Doubling: a number, and the numbers of an array."""

from unrolled.checks.mistakes import given, result
from unrolled.checks.spec import Mistake, Spec, case, normal
from unrolled.device import Array

HINTS = (
    "Twice a number is the number and the number once more: which operator puts two numbers together?",
    "One number goes in and one comes out, of the same kind; for an array, as many as it has.",
    "return the number and the number once more",
)


def twice(x: Array) -> Array:
    """Return twice the numbers of x."""
    return x * 2


double = Spec(
    reference=lambda number: 2 * number,
    cases=[case("three", number=3), case("a fraction", number=0.5)],
    points=1,
    hints=HINTS,
    mistakes=[Mistake("you squared the number: add it to itself", lambda number: number**2)],
)

double_all = Spec(
    reference=twice,
    cases=[case("four numbers", x=normal(4))],
    points=2,
    hints=HINTS,
    mistakes=[given("the first number is doubled alone", x=lambda x: x[:1]), result("you halved the numbers: double them", lambda y: y / 4)],
)
'''

ANSWERS = '''\
"""Wrong and imperfect answers to the exercises of lesson 99."""

import numpy as np

from . import Mutant

MUTANTS = {
    "double": [
        Mutant(lambda number: number**2, "you squared the number"),
        Mutant(lambda number: 4 * number, "expected"),
        Mutant(lambda number: number, "expected"),
    ],
    "double_all": [
        Mutant(lambda x: x / 2, "you halved the numbers"),
        Mutant(lambda x: 2 * x[:1], "the first number is doubled alone"),
        Mutant(lambda x: np.float64(2) * x.astype(float), "float64"),
    ],
}
RIGHT = {
    "double": [
        *(lambda number: number * 2, lambda number: number + number),
        *(lambda number: sum([number] * 2), lambda number: number - -number),
    ],
    "double_all": [
        *(lambda x: x * 2, lambda x: x + x, lambda x: np.add(x, x, out=np.empty_like(x))),
        *(lambda x: np.array([one + one for one in x]), lambda x: np.sum([x, x], axis=0)),
    ],
}
'''

SAMPLE = '''\
"""Lesson 99: the functions in which students of the sample class differ from the solution."""


class off_by_one:
    """One less than the double."""

    def double(number):
        return number + number - 1


class another_way:
    """Right, by other ways: a sum."""

    def double(number):
        return sum([number, number])
'''

NOTES = """\
# Notes: 99 Doubling

About 10 minutes. [The lesson](../lessons/99_doubling.ipynb)
"""

FILES = {
    "lessons/99_doubling.py": SCRIPT,
    "lib/unrolled/checks/exercises/l99_doubling/__init__.py": '"""Double a number, and all numbers of an array."""\n',
    "lib/unrolled/checks/exercises/l99_doubling/exercises.py": SPECS,
    "tests/lessons/answers/lesson99.py": ANSWERS,
    "grader/sample_class/lesson99.py": SAMPLE,
    "site/notes/99_doubling.md": NOTES,
}
"""By path. docs/authoring.md names these, and up to four more that a lesson may need."""
