"""`unrolled check` and `unrolled progress`: what a notebook's checks find, and how far the learner has come."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import checkout
from .common import CommandError, Subparsers

if TYPE_CHECKING:
    from unrolled.notebooks import Executed


def add(subparsers: Subparsers) -> None:
    check = subparsers.add_parser("check", help="run a notebook and print the findings of all its checks")
    check.add_argument("notebook", type=Path)
    check.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="per cell (default: 120)")
    check.set_defaults(run=_check)
    progress = subparsers.add_parser("progress", help="what you have passed, and what comes next")
    progress.add_argument(
        "--journal", type=Path, metavar="FILE", help="default: ./journal.json, else work/journal.json"
    )
    progress.set_defaults(run=_progress)


def _check(arguments: argparse.Namespace) -> int:
    text, passed = findings(execute(arguments.notebook, arguments.timeout))
    print(text)
    return 0 if passed else 1


def execute(file: Path, timeout: float) -> Executed:
    """Run a notebook where it lies, in a fresh kernel, with a bar. Raises CommandError if it is none."""
    from tqdm import tqdm

    from unrolled import notebooks, submission

    try:
        nb = notebooks.read(file)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error
    cells = sum(cell.cell_type == "code" for cell in nb.cells)
    with tqdm(total=cells, desc=file.name, unit="cell", leave=False) as bar:
        return notebooks.run(
            nb,
            cwd=file.absolute().parent,
            env={submission.REHEARSAL: "1"},
            cell_timeout=timeout,
            on_cell=lambda index, cell: bar.update(),
        )


def findings(executed: Executed) -> tuple[str, bool]:
    """What the checks of a notebook found, as text, and whether all of them passed.

    A check cell that displayed no verdict has not passed. Errors in other cells are told, but decide nothing.
    """
    blocks, names, failed = [], [], []
    for name, found in executed.reports.items():
        try:
            report = found.report()
        except ValueError as error:
            blocks.append(f"{name}\n  ✗ {error}")
        else:
            blocks.append(str(report))
            names.append(name)
            if report.passed:
                continue
        failed.append(name)
    silent = _silent_checks(executed)
    blocks += [f"{grade_id}\n  ✗ displayed no verdict" for grade_id in silent]
    if executed.errors:
        blocks.append("errors\n" + "\n".join(f"  {error}" for error in executed.errors))
    total = len(executed.reports) + len(silent)
    bad = len(failed) + len(silent)
    blocks.append(f"{total - bad} of {total} checks passed" if total else "this notebook has no checks")
    return "\n\n".join(blocks), not bad


def _silent_checks(executed: Executed) -> list[str]:
    """The grade_ids of the check cells (graded code that is not the learner's) without a verdict."""
    spoken = {report.cell_index for report in executed.reports.values()}
    silent = []
    for index, cell in enumerate(executed.notebook.cells):
        meta = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and meta.get("grade") and not meta.get("solution") and index not in spoken:
            silent.append(str(meta.get("grade_id")))
    return silent


def _progress(arguments: argparse.Namespace) -> int:
    from unrolled import checks, journal

    file = _journal(arguments.journal)
    if file is not None:
        os.environ["UNROLLED_JOURNAL"] = str(file)
    print(f"journal: {journal.path()}")
    print(progress({lesson: list(specs) for lesson, specs in checks.lessons().items()}, journal.read()["checks"]))
    return 0


def _journal(chosen: Path | None) -> Path | None:
    """The journal to read; None leaves it to `journal.path()`."""
    if chosen is not None and not chosen.is_file():
        raise CommandError(f"{chosen} is not there")
    if chosen is not None or "UNROLLED_JOURNAL" in os.environ or Path("journal.json").is_file():
        return chosen
    try:
        return checkout.find() / "work" / "journal.json"
    except checkout.NotACheckoutError:
        return None


def progress(lessons: dict[str, list[str]], passed: dict[str, dict[str, Any]]) -> str:
    """One line a lesson, one an exercise, and the first that is not passed yet."""
    lines, following = [], None
    for lesson, names in lessons.items():
        done = [name for name in names if passed.get(name, {}).get("ever_passed")]
        lines.append(f"{lesson}   {len(done)} of {len(names)} passed")
        for name in names:
            entry = passed.get(name)
            mark = "✓" if name in done else "✗" if entry else "–"
            points = f"   {entry['points']:g} of {entry['max_points']:g} points" if entry else ""
            lines.append(f"  {mark} {name}{points}")
            if following is None and name not in done:
                following = f"next: {name} in {lesson}"
    return "\n".join([*lines, following or "nothing is left: every exercise passed"])
