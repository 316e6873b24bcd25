"""The complete lessons, executed once and kept under build/executed for as long as nothing they depend on changes.

The site shows their outputs.
"""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import numpy as np

import unrolled
from unrolled.journal.file import replace_file
from unrolled.notebook import cells, run
from unrolled_grader.authoring.notebooks import SOLUTIONS

FOLDER = Path("build", "executed")


def lessons(root: Path, names: Iterable[str], at_once: int = 2) -> dict[str, run.Executed]:
    """Return several complete lessons, executed, by name; `at_once` of them run side by side."""
    names = list(names)
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(names, pool.map(lambda name: lesson(root, name), names), strict=True))


def lesson(root: Path, name: str) -> run.Executed:
    """Return a complete lesson, executed now or, if that was clean, by the same library before (then seconds are 0)."""
    source = root / SOLUTIONS / name / f"{name}.ipynb"
    kept = root / FOLDER / f"{name}.{digest(source)}.ipynb"
    if kept.is_file():
        notebook = cells.read(kept)
        return run.Executed(notebook, run.reports(notebook), (), None, 0.0)
    with tempfile.TemporaryDirectory(prefix="unrolled-executed-") as scratch:
        result = run.execute(source, cwd=scratch, cell_timeout=600.0)
    found = [report.report() for report in result.reports.values()]
    complete = all(report.points + report.deferred == report.max_points for report in found)  # on this machine
    if complete and not result.errors and result.stopped is None:
        for older in kept.parent.glob(f"{name}.*.ipynb"):  # all are made, none is anyone's work
            older.unlink(missing_ok=True)
        replace_file(kept, f"{nbformat.writes(result.notebook)}\n")
    return result


def digest(source: Path) -> str:
    """Return a hash of what an execution depends on: the notebook, the library, the versions of Python and NumPy."""
    hashed = hashlib.sha256(f"{platform.python_version()} {np.__version__}".encode())
    hashed.update(source.read_bytes())
    library = Path(unrolled.__file__).parent
    for file in sorted(library.rglob("*")):
        if file.is_file() and file.suffix in (".py", ".json", ".cu"):
            hashed.update(file.relative_to(library).as_posix().encode() + b"\0" + file.read_bytes())
    return hashed.hexdigest()[:20]
