"""Answers in words: what a marker sees beside them, and which are still those that a person has read.

grader/nbgrader_config.py adds `Rubric`, model answer and rubric, to the exporter that formgrader shows submissions
with, and to nothing else. Nothing is written: the text is read from solutions/ each time the page is made, and the
graded notebook and the feedback never hold it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import compute_checksum, is_grade, is_solution

from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.jobs import record

FORMGRADERS = "submission_id"
"""Among an exporter's resources when formgrader asks it for a submission's page, and never else."""
HEAD = "**For the marker only: a model answer, and the rubric ({word}).** The feedback does not hold it.\n\n"
TOP = (
    "**For the marker:** below stand {count} rubrics of the course, each headed with the word **{word}**, drawn for "
    "this view alone. Whatever else speaks to you was written by the student."
)
"""A student may write a rubric of their own; they cannot know the word, nor write above the first cell."""
MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")
SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (student TEXT, lesson TEXT, cell TEXT, checksum TEXT,
    PRIMARY KEY (student, lesson, cell));
"""


class Rubric(Preprocessor):
    """Puts model answer and rubric below each answer in words."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return `nb` with the added cells, if formgrader asks; else as it is."""
        if FORMGRADERS not in resources:
            return nb, resources
        directory, lesson = CourseDirectory(parent=self), resources["assignment_id"]
        folder = directory.format_path(str(Path(directory.root, directory.source_directory)), ".", lesson)
        texts = rubrics(Path(folder, f"{resources['notebook_id']}.ipynb"))
        cells, word = [], secrets.token_hex(3)
        for cell in nb.cells:
            cells.append(cell)
            if (text := texts.get(grade_id(cell) or "")) is not None:
                cells.append(new_markdown_cell(HEAD.format(word=word) + text))
        top = TOP.format(word=word, count=len(cells) - len(nb.cells))
        nb.cells = [new_markdown_cell(top), *cells]
        return nb, resources


def rubrics(solution: Path) -> dict[str, str]:
    """Return model answer and rubric of each answer in words, by grade_id; empty if there is no solution."""
    if not solution.is_file():
        return {}
    texts = {name: cell.source.splitlines() for name, cell in _in_words(cells.read(solution))}
    return {name: "\n".join(one for one in text if one.strip() not in MARKERS).strip() for name, text in texts.items()}


def _in_words(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    return ((str(grade_id(cell)), cell) for cell in notebook.cells if is_grade(cell) and is_solution(cell))


def unchanged(grades: Path, student: str, lesson: str, notebook: NotebookNode) -> set[str]:
    """Return the grade_ids of answers that are as at the last call for the submission: nobody need read them again."""
    now = {name: str(compute_checksum(cell)) for name, cell in _in_words(notebook)}
    who = (student, lesson)
    with record.opened(grades) as table, table:
        table.executescript(SCHEMA)
        before = dict(table.execute("SELECT cell, checksum FROM answers WHERE student = ? AND lesson = ?", who))
        table.execute("DELETE FROM answers WHERE student = ? AND lesson = ?", who)
        table.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", [(*who, *item) for item in now.items()])
    return {name for name, checksum in now.items() if before.get(name) == checksum}
