"""Grading a class: our judge against `nbgrader autograde` with nbgrader's own rule, on the same notebooks, in one run.

    python benchmarks/grading.py [--quick] [--json benchmarks/results/grading.json] [--students 8 60]
                                 [--lessons 00_start_here 02_convolution] [--only correctness speed start-up]
                                 [--before FOLDER]

Both sides are started as an instructor starts them, one command for the whole class, with two submissions at a time on
our side (nbgrader takes one after the other). Each student hands in the lesson's solution with a word of their own.
"correctness": no speed is measured on either side, by `unrolled grade --no-timing`, and checks that skip it in
nbgrader's kernel. "speed": ours is measured as it always is; in nbgrader's kernel each side of a timed check is timed
once. --before names a checkout of an earlier version, with an environment in its .venv: that grades the same class,
with its own notebooks, in turn with this one. Ours writes feedback pages and the report besides. It exits with 1 if a
score is not what it should be.

"start-up" is what a command costs however small the class is: one student with the exercises of one lesson, and then
what that is made of, each part timed in a process of its own. Python keeps compiled modules on both sides.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

import common
import verdicts
from unrolled import checks
from unrolled_grader.authoring import sample
from unrolled_grader.jobs import record

NBGRADER = "c = get_config()\nc.ExecutePreprocessor.timeout = 120\n"
"""nbgrader as it comes. Its folders are `source`, `release`, `submitted` and `autograded`."""
NO_TIMING, ONE_SHOT, TIMED, PARTS = common.table("grading").values()
CLASS = 60  # students of a class that a row does not name
TURNS = 3
SCRIPTS = Path(sys.executable).parent


def main() -> int:
    parser = common.parser(__doc__)
    parser.add_argument("--students", nargs="+", type=int, default=[8, CLASS], help="sizes of the classes")
    parser.add_argument("--lessons", nargs="+", default=["00_start_here", "02_convolution"])
    parser.add_argument("--only", nargs="+", choices=("correctness", "speed", "start-up"), default=["correctness"])
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="a checkout of an earlier version")
    options = parser.parse_args()
    os.environ["PATH"] = os.pathsep.join([str(SCRIPTS), os.environ.get("PATH", "")])  # nbgrader calls `alembic` by name
    rows: list[dict[str, Any]] = []
    for students, lesson in product([4] if options.quick else options.students, options.lessons):
        for what in ("correctness", "speed"):
            if what in options.only and (
                what == "correctness" or any(s.speed for s in checks.lessons()[lesson].values())
            ):
                rows.append(compared(lesson, students, options.threads, what, options.before))
                common.print_table(rows[-1:])
    if "start-up" in options.only:
        rows += started_up(options.lessons[0], options.threads)
    common.finish(options, rows, ["ipykernel", "ipython"])
    return int(any(row.get("wrong") for row in rows))


def compared(
    lesson: str, students: int, jobs: int, what: str = "correctness", before: Path | None = None, small: bool = False
) -> dict[str, Any]:
    """Grade a class with both sides, each in a course of its own; return one row, whose name is stable."""
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        root, plain, earlier = (Path(folder, name) for name in ("ours", "nbgrader", "before"))
        make_course(root, lesson, students, small)
        peer = nbgrader(root, plain, lesson, what)
        ours = unrolled(root, lesson, jobs, what)
        wrong = students - right_scores(root, lesson, what)
        graded = graded_by_nbgrader(plain, lesson)
        if before is not None:
            make_course(earlier, lesson, students, source=before)
            earlier_s = unrolled(earlier, lesson, jobs, what, before / ".venv" / "bin" / "unrolled")
    name = f"grading, {what}, {lesson}{'' if students == CLASS else f', class of {students}'}"
    row = {"name": name, "ours_s": ours, "peer": "nbgrader autograde", "peer_s": peer, "ratio": ours / peer}
    row |= {"times_faster": peer / ours, "students": students, "ours_s_each": ours / students}
    row |= {"peer_s_each": peer / students, "jobs": jobs, "wrong": wrong + students - graded}
    return row | ({} if before is None else {"before_s": earlier_s, "ratio_to_before": ours / earlier_s})


def started_up(lesson: str, jobs: int) -> list[dict[str, Any]]:
    """Return a row for a class of one with next to nothing to run, and a row for each of the parts."""
    whole = compared(lesson, 1, jobs, small=True) | {"name": "grading, start-up"}
    with tempfile.TemporaryDirectory(prefix="grading-") as folder:
        root = Path(folder, "ours")
        make_course(root, lesson, 1, small=True)
        unrolled(root, lesson, jobs)
        rows = [whole]
        for name, code in PARTS.items():
            seconds, cpu = map(
                statistics.median, zip(*(part(root, lesson, name, code) for _ in range(TURNS)), strict=True)
            )
            rows.append({"name": f"grading, start-up, {name}", "ours_s": seconds, "ours_cpu_s": cpu})
    return rows


def part(root: Path, lesson: str, name: str, code: str) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor that one of the parts takes, in a process of its own."""
    if name == "a new gradebook":
        (root / "grader" / "gradebook.db").unlink(missing_ok=True)
    wall, cpu = map(float, run([sys.executable, "-c", TIMED + code, lesson], root)[1].split()[-2:])
    return wall, cpu


def make_course(root: Path, lesson: str, students: int, small: bool = False, source: Path = common.ROOT) -> None:
    """Make a course of one lesson, and what the class handed in; with `small`, of the exercises and what they need."""
    (root / "grader").mkdir(parents=True)
    for folder in ("solutions", "notebooks"):
        shutil.copytree(source / folder / lesson, root / folder / lesson)
    for file in ("pyproject.toml", "nbgrader_config.py", "grader/nbgrader_config.py"):
        shutil.copy(source / file, root / file)
    (root / "lessons").mkdir()
    notebook = sample.notebook(source, "perfect", lesson)
    if small:
        kept = {cell.id for cell in verdicts.small(lesson).cells}
        for folder in ("solutions", "notebooks"):
            file = root / folder / lesson / f"{lesson}.ipynb"
            nbformat.write(reduced(nbformat.read(file, as_version=4), kept), file)
        notebook = reduced(notebook, kept)
    code = next(cell for cell in notebook.cells if cell.cell_type == "code")
    before = code.source
    for number in range(students):
        file = root / "grader" / "submitted" / f"student{number:03}" / lesson / f"{lesson}.ipynb"
        file.parent.mkdir(parents=True)
        code.source = f"{before}\n# student {number}"
        nbformat.write(notebook, file)


def reduced(notebook: NotebookNode, kept: set[str]) -> NotebookNode:
    """Return the notebook with the cells that have these ids, and no others."""
    notebook.cells = [cell for cell in notebook.cells if cell.id in kept]
    return notebook


def nbgrader(root: Path, plain: Path, lesson: str, what: str) -> float:
    """Return the seconds of nbgrader's own command on the same submissions, in a course that knows the lesson."""
    shutil.copytree(root / "solutions", plain / "source")
    shutil.copytree(root / "grader" / "submitted", plain / "submitted")
    (plain / "nbgrader_config.py").write_text(NBGRADER, encoding="utf-8")
    startup = plain / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "timing.py").write_text(ONE_SHOT if what == "speed" else NO_TIMING, encoding="utf-8")
    own = {"IPYTHONDIR": str(plain / "ipython")}
    run(["nbgrader", "generate_assignment", lesson, "--force"], plain, **own)
    return run(["nbgrader", "autograde", lesson], plain, **own)[0]


def unrolled(root: Path, lesson: str, jobs: int, what: str = "correctness", command: Path = Path("unrolled")) -> float:
    """Return the seconds of our command on a new gradebook."""
    options = ["--jobs", str(jobs), *(["--no-timing"] if what == "correctness" else [])]
    return run([str(command), "grade", lesson, *options], root)[0]


def run(command: Sequence[str], folder: Path, **more: str) -> tuple[float, str]:
    """Return the seconds of a command and what it said. Raises CalledProcessError, after printing that, if it fails.

    Python keeps compiled modules, as it does by default.
    """
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], file=sys.stderr)
        done.check_returncode()
    return time.perf_counter() - started, done.stdout


def right_scores(root: Path, lesson: str, what: str) -> int:
    """Return the number of students who have all points that could be had."""
    specs = checks.lessons()[lesson].values()
    most = sum(spec.points + (spec.speed.points if spec.speed and what == "speed" else 0) for spec in specs)
    return sum(kept.points == most for kept in record.load_all(root / "grades"))


def graded_by_nbgrader(plain: Path, lesson: str) -> int:
    """Return the number of students whose notebook nbgrader has run and scored, whatever it gave."""
    with Gradebook(f"sqlite:///{plain}/gradebook.db") as gradebook:
        notebooks = [submission.notebooks for submission in gradebook.assignment_submissions(lesson)]
        return sum(any(grade.auto_score is not None for nb in each for grade in nb.grades) for each in notebooks)


if __name__ == "__main__":
    sys.exit(main())
