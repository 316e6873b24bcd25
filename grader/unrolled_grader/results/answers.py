"""Which answers in words are still those that a person has read: then a regrade need not ask that person again."""

from __future__ import annotations

from pathlib import Path

from nbformat import NotebookNode
from nbgrader.utils import compute_checksum, is_grade, is_solution

from unrolled.notebook.cells import grade_id
from unrolled_grader.jobs import record

SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (student TEXT, lesson TEXT, cell TEXT, checksum TEXT,
    PRIMARY KEY (student, lesson, cell));
"""


def unchanged(grades: Path, student: str, lesson: str, notebook: NotebookNode) -> set[str]:
    """Return the grade_ids of answers that are as they were when this was last called for the submission."""
    cells = [cell for cell in notebook.cells if is_grade(cell) and is_solution(cell)]
    now = {str(grade_id(cell)): str(compute_checksum(cell)) for cell in cells}
    who = (student, lesson)
    with record.opened(grades) as table, table:
        table.executescript(SCHEMA)
        before = dict(table.execute("SELECT cell, checksum FROM answers WHERE student = ? AND lesson = ?", who))
        table.execute("DELETE FROM answers WHERE student = ? AND lesson = ?", who)
        table.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", [(*who, *item) for item in now.items()])
    return {name for name, checksum in now.items() if before.get(name) == checksum}
