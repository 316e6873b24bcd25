"""`unrolled check`: what a notebook's checks find."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .common import CommandError, Subparsers, why

if TYPE_CHECKING:
    from unrolled.notebook.run import Executed


def add(subparsers: Subparsers) -> None:
    check = subparsers.add_parser("check", help="run a notebook and print the findings of all its checks")
    check.add_argument("notebook", type=Path, metavar="FILE", help="a notebook")
    check.add_argument("--timeout", type=float, default=120, metavar="SECONDS", help="per cell (default: 120)")
    check.set_defaults(run=_check)


def _check(arguments: argparse.Namespace) -> int:
    text, passed = findings(execute(arguments.notebook, arguments.timeout))
    print(text)
    return 0 if passed else 1


def execute(file: Path, timeout: float) -> Executed:
    """Run a notebook where it lies in a fresh kernel, with a progress bar. Raises CommandError if it cannot be read."""
    from tqdm import tqdm

    from unrolled.notebook import cells, run, submission

    try:
        nb = cells.read(file)
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {why(error)}") from error
    except ValueError as error:
        raise CommandError(str(error)) from error
    cells = sum(cell.cell_type == "code" for cell in nb.cells)
    with tqdm(total=cells, desc=file.name, unit="cell", leave=False) as bar:
        return run.execute(
            nb,
            cwd=file.absolute().parent,
            env={submission.REHEARSAL: "1"},
            cell_timeout=timeout,
            on_cell=lambda index, cell: bar.update(),
        )


def findings(executed: Executed) -> tuple[str, bool]:
    """Return what the checks of a notebook found, as text, and whether all of them passed.

    A check cell that displayed no verdict has not passed. Errors in other cells are in the text, but decide nothing.
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
