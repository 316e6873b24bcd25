"""A small course to grade: one lesson with two exercises, its specs, and what students make of it.

The lesson's notebook imports this very file, so that its checks know specs which no lesson of the course declares.
"""

import csv
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import nbformat
import numpy as np
from nbformat import NotebookNode

import unrolled.check
from unrolled import checks
from unrolled.checks.spec import case, normal

ROOT = Path(__file__).resolve().parents[2]
LESSON = "07_doubling"


def slow_total(x: Any) -> Any:
    """The baseline: a sum, number by number."""
    total = 0.0
    for number in x:
        total += float(number)
    return np.float32(total)


SPECS = MappingProxyType(
    {
        "double": checks.Spec(
            reference=lambda number: 2 * number,
            cases=[case("two", number=2), case("a fraction", number=0.5)],
            points=2,
            hints=("idea", "shape", "code"),
        ),
        "total": checks.Spec(
            reference=lambda x: x.sum(),
            cases=[case("four numbers", x=normal(4))],
            points=1,
            hints=("idea", "shape", "code"),
            tolerance=1e-3,
            speed=checks.Speed(
                baseline=slow_total, inputs={"x": normal(100_000)}, at_least=5, points=1, against="a loop"
            ),
        ),
    }
)

check = SimpleNamespace(
    start=unrolled.check.start, **{name: unrolled.check.Check(name, spec) for name, spec in SPECS.items()}
)
"""What the lesson imports in place of `unrolled.check`."""

SOLUTION = '{"grade": false, "grade_id": "%s", "locked": false, "schema_version": 3, "solution": true, "task": false}'
CHECK = (
    '{"grade": true, "grade_id": "check_%s", "locked": true, "points": %d, "schema_version": 3, "solution": false, '
    '"task": false}'
)
WORDS = (
    '{"grade": true, "grade_id": "explain_total", "locked": false, "points": 2, "schema_version": 3, '
    '"solution": true, "task": false}'
)

SOURCE = f'''\
# %% [markdown]
# # Doubling

# %%
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from small_course import check
check.start("{LESSON}")

# %% nbgrader={SOLUTION % "double"}
def double(number):
    """Return twice the number."""
    ### BEGIN SOLUTION
    return 2 * number
    ### END SOLUTION

# %% nbgrader={CHECK % ("double", 2)}
check.double(double)

# %% nbgrader={SOLUTION % "total"}
def total(x):
    """Return the sum of x."""
    ### BEGIN SOLUTION
    return x.sum()
    ### END SOLUTION

# %% nbgrader={CHECK % ("total", 2)}
check.total(total)

# %% [markdown]
# Why is one faster?

# %% [markdown] nbgrader={WORDS}
# ### BEGIN SOLUTION
# One call.
# ### END SOLUTION
'''

GOOD = {"double": "def double(number):\n    return number + number", "total": "def total(x):\n    return x.sum()"}


def make(root: Path) -> Path:
    """A checkout of the small course under `root`, built."""
    from unrolled_grader.authoring import notebooks

    (root / "grader").mkdir(parents=True)
    (root / "lessons").mkdir()
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        shutil.copy(ROOT / file, root / file)
    (root / "lessons" / f"{LESSON}.py").write_text(SOURCE, encoding="utf-8")
    notebooks.build(root)
    return root


def released(root: Path) -> NotebookNode:
    """What a learner gets."""
    return nbformat.read(root / "notebooks" / LESSON / f"{LESSON}.ipynb", as_version=4)


def answered(root: Path, answers: dict[str, str]) -> NotebookNode:
    """The learner's notebook with these sources in the cells with these grade_ids."""
    return with_answers(released(root), answers)


def with_answers(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    """The notebook, with these sources in the cells with these grade_ids from now on."""
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return notebook


def hand_in(root: Path, student: str, notebook: NotebookNode) -> Path:
    """Put a notebook where submissions lie."""
    file = root / "grader" / "submitted" / student / LESSON / f"{LESSON}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)
    return file


def know() -> None:
    """Let this process know the small course's specs."""
    checks.lessons = lambda: MappingProxyType({LESSON: SPECS})  # type: ignore[assignment]


def judge_double(submission: Any, options: Any) -> Any:
    """In place of the judge: finds every `double` right that is as it should be, and no `total`."""
    from unrolled_grader.judge import evidence, verdicts

    right = any(cell.source == GOOD["double"] for cell in submission.notebook.cells)
    scores = [evidence.Score("double", "pass" if right else "fail", 2.0 * right, 2.0, "")]
    scores += evidence.without("total", SPECS["total"], "missing", "")
    return verdicts.Verdicts(submission.notebook, tuple(scores), 0.1, ())


def perform_quickly(order: dict[str, Any]) -> dict[str, Any]:
    """`job.perform` for a process of its own, with a judge that only looks whether `double` is right."""
    from unrolled_grader.jobs import job
    from unrolled_grader.judge import verdicts

    know()
    verdicts.judge = judge_double
    time.sleep(0.1)
    return job.perform(order)


@contextmanager
def perform_here(
    orders: Iterable[dict[str, Any]], perform: Any, jobs: int, scheduler: str | None = None, outfit: Any = None
) -> Iterator[Iterator[tuple[dict[str, Any], Any]]]:
    """In place of `queue.run`: one by one in this process."""

    def outcome(order: dict[str, Any]) -> Any:
        try:
            return perform(order)
        except Exception as error:
            return error

    yield ((order, outcome(order)) for order in orders)


def judged_here(patch: Any, find: Callable[[Any], Iterable[Any]]) -> None:
    """Have jobs performed in this process, by a judge that gives a submission these scores."""
    from unrolled_grader.jobs import queue
    from unrolled_grader.judge import verdicts

    def judge(submission: Any, options: Any) -> Any:
        return verdicts.Verdicts(submission.notebook, tuple(find(submission)), 0.1, ())

    patch.setattr(queue, "run", perform_here)
    patch.setattr(verdicts, "judge", judge)


def recorded(course: Any, student: str) -> Any:
    """The record of what a student handed in."""
    from unrolled_grader.jobs import record

    kept = record.load(course.grades, student, LESSON)
    assert kept is not None
    return kept


def table(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, by column."""
    with file.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def command(course: Any, patch: Any, *words: str) -> int:
    """Type `unrolled` and these words in the course's folder; the exit code."""
    from unrolled import cli

    root = Path(course.directory.root)
    patch.chdir(root)
    patch.setattr("unrolled.cli.checkout.find", lambda: root)
    return cli.main(list(words))


def rows(scores: Iterable[Any]) -> dict[str, tuple[str, float]]:
    """Verdict and points by part."""
    return {score.part: (score.verdict, score.points) for score in scores}


def autograde(root: Path, student: str, *, force: bool = True, **judge: Any) -> dict[str, Any]:
    """nbgrader's own Autograde, as its command runs it, with these settings of the judge."""
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.utils import capture_log

    from unrolled_grader.authoring import notebooks

    config = notebooks.nbgrader_config(root)
    config.Judge.update(judge)
    directory = CourseDirectory(config=config, assignment_id=LESSON, student_id=student)
    result: dict[str, Any] = capture_log(Autograde(coursedir=directory, config=config, force=force))
    return result


def grades(course: Any, student: str) -> dict[str, tuple[float | None, bool]]:
    """Points, and whether a person is to look, by cell, as the gradebook has them."""
    from unrolled_grader.classroom import gradebook

    with gradebook.opened(course.directory) as book:
        submitted = book.find_submission_notebook(LESSON, LESSON, student)
        return {grade.name: (grade.auto_score, grade.needs_manual_grade) for grade in submitted.grades}
