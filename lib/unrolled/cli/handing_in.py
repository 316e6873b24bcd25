"""`unrolled check`: run a notebook's checks. `unrolled submit`: look it over, too, and make the file to hand in."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import checkout, lab
from .common import CommandError, Subparsers, folder, present_file, reading, seconds, why

if TYPE_CHECKING:
    from unrolled.notebook.run import Executed
    from unrolled.notebook.submission import Outcome

ERRORS = 5
"""Errors of other cells that are told."""


def add(subparsers: Subparsers) -> None:
    check = subparsers.add_parser("check", help="run a notebook and print the findings of all its checks")
    check.add_argument("notebook", type=present_file, metavar="FILE", help="a notebook")
    check.add_argument("--timeout", type=seconds, default=120, metavar="SECONDS", help="per cell (default: 120)")
    check.set_defaults(run=_check)
    parser = subparsers.add_parser(
        "submit",
        help="check a lesson and make the file to hand in",
        description="Look whether every exercise is there, run the notebook's checks in a fresh kernel, and make one "
        "small file to hand in. Nothing is overwritten.",
    )
    parser.add_argument("lesson", metavar="LESSON", help="its name or its number, such as 02")
    parser.add_argument("--student", metavar="ID", help="your id in the course; asked for once, kept in the journal")
    parser.add_argument(
        "--notebook", type=present_file, metavar="FILE", help="default: LESSON.ipynb here, else in work/"
    )
    parser.add_argument("--to", type=folder, metavar="DIR", help="where to put it (default: beside the notebook)")
    parser.add_argument("--no-run", action="store_true", help="do not run the notebook first")
    parser.add_argument("--anyway", action="store_true", help="even if the file is older than your last check")
    parser.add_argument("--timeout", type=seconds, default=120, metavar="SECONDS", help="per cell (default: 120)")
    parser.set_defaults(run=_run)


def _check(arguments: argparse.Namespace) -> int:
    text, passed = findings(execute(arguments.notebook, arguments.timeout))
    print(text)
    return 0 if passed else 1


def execute(file: Path, timeout: float) -> Executed:
    """Run a notebook where it lies in a fresh kernel, with a progress bar. Raises CommandError if it cannot be read."""
    from unrolled.notebook import cells

    with reading(file):
        cells.json_object(file.read_bytes(), str(file))  # what is no notebook is said before seconds go into imports
        nb = cells.read(file)
    from tqdm import tqdm

    from unrolled.notebook import run, submission

    count = sum(cell.cell_type == "code" for cell in nb.cells)
    with tqdm(total=count, desc=file.name, unit="cell", leave=False) as bar:
        return run.execute(
            nb,
            cwd=file.absolute().parent,
            env={submission.REHEARSAL: "1"},
            cell_timeout=timeout,
            on_cell=lambda index, cell: bar.update(),
        )


def findings(executed: Executed) -> tuple[str, bool]:
    """Return what the checks of a notebook found, as text, and whether all of them passed.

    A check cell (graded code that is not the learner's) that displayed no verdict has not passed. Errors in other cells
    are in the text, but decide nothing.
    """
    from unrolled.notebook.cells import mark

    blocks, passed = [], 0
    for name, found in executed.reports.items():
        try:
            report = found.report()
        except ValueError as error:
            blocks.append(f"{name}\n  ✗ {error}")
        else:
            blocks.append(str(report))
            passed += report.passed
    spoken = {report.cell_index for report in executed.reports.values()}
    cells = [cell for index, cell in enumerate(executed.notebook.cells) if index not in spoken]
    marks = [mark(cell) for cell in cells if cell.cell_type == "code"]
    silent = [str(kept.get("grade_id")) for kept in marks if kept.get("grade") and not kept.get("solution")]
    blocks += [f"{grade_id}\n  ✗ displayed no verdict" for grade_id in silent]
    if executed.errors:
        blocks.append("errors\n" + "\n".join(f"  {error}" for error in executed.errors))
    total = len(executed.reports) + len(silent)
    blocks.append(f"{passed} of {total} checks passed" if total else "this notebook has no checks")
    return "\n\n".join(blocks), passed == total


def _run(arguments: argparse.Namespace) -> int:
    """What is wrong with the arguments is said before the checks and the journal load."""
    from unrolled.notebook import cells, handin

    lesson = lab.choose(arguments.lesson, lab.known())
    file = arguments.notebook or find(lesson)
    try:
        content = file.read_bytes()
        nb = cells.parse(content)
    except (OSError, ValueError) as error:
        raise CommandError(f"{file} cannot be handed in: {why(error)}") from error
    claimed_lesson = cells.claimed(nb)[0]
    if claimed_lesson != lesson and claimed_lesson in lab.known():
        raise CommandError(f"this is the notebook of {claimed_lesson}, not of {lesson}")
    try:
        if arguments.student is not None:
            handin.student_id(arguments.student)
        return _submit(arguments, lesson, file, content, nb)
    except ValueError as error:
        raise CommandError(str(error)) from error


def _submit(arguments: argparse.Namespace, lesson: str, file: Path, content: bytes, nb: dict[str, Any]) -> int:
    """Raises ValueError for what cannot be handed in."""
    from unrolled import checks, journal
    from unrolled.notebook import handin, submission

    exercises = checks.lessons()[lesson]
    submission.lesson_of(nb, lesson)
    os.environ.setdefault("UNROLLED_JOURNAL", str(file.absolute().parent / "journal.json"))
    student = handin.identified(journal.student(arguments.student), "--student ID")
    known = journal.read()
    if not arguments.anyway:
        _stop_if_older(file, [known["checks"][name]["date"] for name in exercises if name in known["checks"]])
    print(f"{lesson}: {file}", flush=True)
    found = submission.problems(nb, exercises)
    before = submission.remembered(known, exercises, found)
    outcomes = before if arguments.no_run else rerun(file, arguments.timeout)
    print("By your journal:" if arguments.no_run else "By a run from top to bottom:")
    print(submission.table(exercises, found, outcomes))
    print("\n".join(lost(before, outcomes)), end="")
    packed = submission.pack(content, known, student, lesson, arguments.to or file.parent)
    print(submission.made(packed, nb))
    return 0


def find(lesson: str) -> Path:
    """Return the learner's notebook of a lesson: here, else in work/. Raises CommandError if absent."""
    file = Path(f"{lesson}.ipynb")
    if file.is_file():
        return file
    file = checkout.work() / file
    if not file.is_file():
        raise CommandError(f"{file} is not there; open the lesson with `unrolled lab`, or name it with --notebook FILE")
    return Path(os.path.relpath(file)) if file.is_relative_to(Path.cwd()) else file


def rerun(file: Path, timeout: float) -> dict[str, Outcome]:
    """Run a notebook in a fresh kernel, print its first errors, and return what each check says, by its name."""
    from unrolled.notebook import submission

    executed = execute(file, timeout)
    for error in executed.errors[:ERRORS]:
        print(f"  {error}")
    outcomes = {}
    for name, found in executed.reports.items():
        try:
            outcomes[name] = submission.outcome(found.report())
        except ValueError as error:
            outcomes[name] = submission.Outcome(False, 0, 0, str(error))
    return outcomes


def lost(before: Mapping[str, Outcome], now: Mapping[str, Outcome]) -> list[str]:
    """Return a line for each check that passed in the learner's notebook and does not in this run."""
    return [
        f"{name} passed in your notebook and does not here: is the file saved, and does it run from top to bottom?\n"
        for name, outcome in before.items()
        if outcome.passed and not (name in now and now[name].passed)
    ]


def _stop_if_older(file: Path, checked: list[str]) -> None:
    """Stop if a check ran after the file was saved: what it judged may not be in the file."""
    try:
        last = max(map(datetime.datetime.fromisoformat, checked), default=None)
    except ValueError:
        return  # a date that somebody else wrote
    saved = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.timezone.utc)
    if last is not None and saved < last:
        raise CommandError(
            f"{file.name} was saved at {_clock(saved)}, and your last check of it ran later, at {_clock(last)}: "
            "save the notebook first, or hand in the file as it is with --anyway"
        )


def _clock(time: datetime.datetime) -> str:
    return f"{time.astimezone():%H:%M:%S on %d %B}"
