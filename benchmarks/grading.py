"""Grading a class: our judge against `nbgrader autograde` with nbgrader's own rule, on the same notebooks, in one run.

    python benchmarks/grading.py [--quick] [--json benchmarks/results/grading.json] [--students 60]
                                 [--lessons 00_start_here 02_convolution] [--exercises-only] [--only correctness timing]

Both sides are started as an instructor starts them, one command for the whole class, with two submissions at a time on
our side (nbgrader takes one after the other). Each student hands in the lesson's solution with a word of their own.
"correctness" measures no speed on either side: `unrolled grade --no-timing`, and checks that skip it in nbgrader's
kernel. Ours writes feedback pages and the report besides. With --exercises-only the lesson's own demonstrations are
left out on both sides: they take as long wherever they run. It exits with 1 if a score is not what it should be.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

import common
import verdicts
from unrolled import checks
from unrolled_grader import record, sample

NBGRADER = "c = get_config()\nc.ExecutePreprocessor.timeout = 120\n"
"""nbgrader as it comes. Its folders are `source`, `release`, `submitted` and `autograded`."""
NO_TIMING = """\
import dataclasses
from unrolled.checks import run
run.__kwdefaults__["place"] = dataclasses.replace(run.__kwdefaults__["place"], race=None)
"""
"""Run at the start of each of nbgrader's kernels, where speed is not to be measured."""
SCRIPTS = Path(sys.executable).parent


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--lessons", nargs="+", default=["00_start_here", "02_convolution"])
    parser.add_argument("--exercises-only", action="store_true")
    parser.add_argument("--only", nargs="+", choices=("correctness", "timing"), default=["correctness", "timing"])
    options = parser.parse_args()
    students = 4 if options.quick else options.students
    os.environ["PATH"] = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])  # nbgrader calls `alembic` by name
    rows = []
    for lesson in options.lessons:
        for what in options.only:
            rows.append(compared(lesson, students, what == "timing", options.threads, options.exercises_only))
            common.print_table(rows[-1:])
    common.finish(options, rows, ["numpy", "nbgrader", "nbconvert", "ipykernel", "ipython"])
    return int(any(row["wrong"] for row in rows))


def compared(lesson: str, students: int, timing: bool, jobs: int, small: bool) -> dict[str, Any]:
    """One row: both sides on a class of their own."""
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        root, plain = Path(folder, "ours"), Path(folder, "nbgrader")
        make_course(root, lesson, students, small)
        peer = nbgrader(root, plain, lesson, timing)
        ours = unrolled(root, lesson, timing, jobs)
        wrong = students - right_scores(root, lesson, timing)
        graded = graded_by_nbgrader(plain, lesson)
    return {
        "name": f"grading, {'with timing' if timing else 'correctness'}, {lesson}{', exercises only' if small else ''}",
        "ours_s": ours,
        "peer": "nbgrader autograde",
        "peer_s": peer,
        "ratio": ours / peer,
        "times_faster": peer / ours,
        "students": students,
        "ours_s_each": ours / students,
        "peer_s_each": peer / students,
        "jobs": jobs,
        "wrong": wrong + students - graded,
    }


def make_course(root: Path, lesson: str, students: int, small: bool = False) -> None:
    """A course of one lesson, and what the class handed in; with `small`, of the exercises and what they need."""
    (root / "grader").mkdir(parents=True)
    for folder in ("solutions", "notebooks"):
        shutil.copytree(common.ROOT / folder / lesson, root / folder / lesson)
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        shutil.copy(common.ROOT / file, root / file)
    (root / "lessons").mkdir()
    notebook = sample.notebook(common.ROOT, "perfect", lesson)
    if small:
        kept = {cell.id for cell in verdicts.small(lesson).cells}
        for folder in ("solutions", "notebooks"):
            file = root / folder / lesson / f"{lesson}.ipynb"
            nbformat.write(reduced(nbformat.read(file, as_version=4), kept), file)
        notebook = reduced(notebook, kept)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    for number in range(students):
        file = root / "grader" / "submitted" / f"student{number:03}" / lesson / f"{lesson}.ipynb"
        file.parent.mkdir(parents=True)
        before, code.source = code.source, f"{code.source}\n# student {number}"
        nbformat.write(notebook, file)
        code.source = before


def reduced(notebook: NotebookNode, kept: set[str]) -> NotebookNode:
    """The notebook with the cells that have these ids."""
    notebook.cells = [cell for cell in notebook.cells if cell.id in kept]
    return notebook


def nbgrader(root: Path, plain: Path, lesson: str, timing: bool) -> float:
    """Seconds of nbgrader's own command on the same submissions, in a course of its own that knows the lesson."""
    shutil.copytree(root / "solutions", plain / "source")
    shutil.copytree(root / "grader" / "submitted", plain / "submitted")
    (plain / "nbgrader_config.py").write_text(NBGRADER, encoding="utf-8")
    startup = plain / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    if not timing:
        (startup / "no_timing.py").write_text(NO_TIMING, encoding="utf-8")
    environment = {"IPYTHONDIR": str(plain / "ipython")}
    command = [str(SCRIPTS / "nbgrader")]
    run([*command, "generate_assignment", lesson, "--force"], plain, environment)
    return run([*command, "autograde", lesson], plain, environment)


def unrolled(root: Path, lesson: str, timing: bool, jobs: int) -> float:
    """Seconds of our command on a new gradebook."""
    return run(
        [str(SCRIPTS / "unrolled"), "grade", lesson, "--jobs", str(jobs), *([] if timing else ["--no-timing"])],
        root,
        {},
    )


def run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> float:
    """Seconds of a command. Raises CalledProcessError, with what it said, if it fails."""
    started = time.perf_counter()
    path = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
        done.check_returncode()
    return time.perf_counter() - started


def right_scores(root: Path, lesson: str, timing: bool) -> int:
    """Students who have all points that could be had."""
    specs = checks.lessons()[lesson].values()
    most = sum(spec.total_points if timing else spec.points for spec in specs)
    return sum(kept.points == most for kept in record.load_all(root / "grades"))


def graded_by_nbgrader(plain: Path, lesson: str) -> int:
    """Students whose notebook nbgrader has run and scored, whatever it gave."""
    with Gradebook(f"sqlite:///{plain}/gradebook.db") as gradebook:
        scored = gradebook.assignment_submissions(lesson)
        return sum(
            any(grade.auto_score is not None for notebook in s.notebooks for grade in notebook.grades) for s in scored
        )


if __name__ == "__main__":
    sys.exit(main())
