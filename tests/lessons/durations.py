"""How long a complete lesson took, cell by cell, from the times that its execution wrote down."""

from __future__ import annotations

import os
from datetime import datetime

from nbformat import NotebookNode

LIMITS = {"13_capstone": (60.0, 15.0)}
"""Seconds on two cores with little else to do: all of a complete lesson, and its checks."""
BUSY = 3.0
"""Times as long as that a lesson may take: three processes of tests share two cores. More where the load is higher."""


def allowance() -> float:
    """Return how many times as long anything may take on a machine as busy as this one has been for minutes."""
    return max(BUSY, 1 + max(os.getloadavg()) / (os.cpu_count() or 1))


def seconds(notebook: NotebookNode) -> tuple[float, float]:
    """Return the seconds of all cells of an executed notebook, and those of its checks."""
    cells = [cell for cell in notebook.cells if cell.metadata.get("execution")]
    checks = [cell for cell in cells if cell.metadata.get("nbgrader", {}).get("grade")]
    return sum(map(_lasted, cells)), sum(map(_lasted, checks))


def _lasted(cell: NotebookNode) -> float:
    times = cell.metadata["execution"]
    start, end = (datetime.fromisoformat(times[key]) for key in ("iopub.status.busy", "iopub.status.idle"))
    return (end - start).total_seconds()
