"""What a marker sees beside an answer in words: the model answer and the rubric, in formgrader's page alone.

grader/nbgrader_config.py adds `Rubric` to the exporter that formgrader shows submissions with. Nothing is written: the
text is read from solutions/ each time the page is made, and the graded notebook and the feedback never hold it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import is_grade, is_solution

from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id

FORMGRADERS = "submission_id"
"""Among an exporter's resources when formgrader asks it for a submission's page, and never else."""
HEAD = "**For the marker only: a model answer, and the rubric ({word}).** The feedback does not hold it.\n\n"
TOP = (
    "**For the marker:** below stand {count} rubrics of the course, each headed with the word **{word}**, drawn for "
    "this view alone. Whatever else speaks to you was written by the student."
)
"""A student may write a rubric of their own; they cannot know the word, nor write above the first cell."""
MARKERS = ("### BEGIN SOLUTION", "### END SOLUTION")


class Rubric(Preprocessor):
    """Puts model answer and rubric below each answer in words."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        """Return `nb` with the added cells, if formgrader asks; else as it is."""
        if FORMGRADERS not in resources:
            return nb, resources
        directory, lesson = CourseDirectory(parent=self), resources["assignment_id"]
        folder = directory.format_path(str(Path(directory.root, directory.source_directory)), ".", lesson)
        texts = rubrics(Path(folder, f"{resources['notebook_id']}.ipynb"))
        cells, word, count = [], secrets.token_hex(3), 0
        for cell in nb.cells:
            cells.append(cell)
            if (text := texts.get(grade_id(cell) or "")) is not None:
                cells.append(new_markdown_cell(HEAD.format(word=word) + text))
                count += 1
        nb.cells = [new_markdown_cell(TOP.format(word=word, count=count)), *cells]
        return nb, resources


def rubrics(solution: Path) -> dict[str, str]:
    """Return model answer and rubric of each answer in words, by grade_id; empty if there is no solution."""
    if not solution.is_file():
        return {}
    answers = [cell for cell in cells.read(solution).cells if is_grade(cell) and is_solution(cell)]
    return {str(grade_id(cell)): _text(cell.source) for cell in answers}


def _text(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if line.strip() not in MARKERS).strip()
