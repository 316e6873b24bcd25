"""Variants of exercises: other cells for one exercise of a lesson, from `lessons/variants/NN_EXERCISE_SUFFIX.py`.

The cells replace the lesson's own, from the heading of the exercise to its check. Text above the heading stays. Names
of the exercise's check elsewhere in the lesson's code, as in `journal.predict("im2col", …)`, become the variant's; not
so in `journal.mine("im2col")`, where other axes and arguments than the exercise's would not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError
from unrolled.notebook.cells import grade_id

if TYPE_CHECKING:
    from nbformat import NotebookNode

FOLDER = "variants"
HEADING = re.compile(r"^### Exercise: (?P<name>\w+)$", re.MULTILINE)
EXERCISE = re.compile(r"^# ### Exercise: (\w+)$", re.MULTILINE)
CHECK = re.compile(r'''"grade_id": "check_(\w+)"''')


class LessonError(CommandError):
    """A lesson that cannot be built: which, where, and what is wrong with it."""


def require(root: Path, wanted: Mapping[str, str]) -> None:
    """Raise LessonError unless every wanted variant, {exercise: suffix}, has a file."""
    there = {file.stem[3:] for file in (root / "lessons" / FOLDER).glob("*.py")}
    for one, suffix in wanted.items():
        if f"{one}_{suffix}" not in there:
            known = ", ".join(sorted(name for name in there if name.startswith(f"{one}_"))) or "none"
            raise LessonError(f"there is no lessons/{FOLDER}/NN_{one}_{suffix}.py; variants of {one}: {known}")


def known(root: Path) -> dict[str, list[str]]:
    """Return the suffixes of every exercise's variants by what their files are called: no check loads for it."""
    lessons = [file.read_text(encoding="utf-8") for file in (root / "lessons").glob("*.py")]
    found: dict[str, list[str]] = {name: [] for text in lessons for name in EXERCISE.findall(text)}
    for name in sorted(file.stem[3:] for file in (root / "lessons" / FOLDER).glob("*.py")):
        if exercises := [one for one in found if name.startswith(f"{one}_")]:
            exercise = max(exercises, key=len)
            found[exercise].append(name.removeprefix(f"{exercise}_"))
    return found


def checks(root: Path) -> dict[str, str]:
    """Return the lesson of each check, variants' too, by the texts of the scripts alone."""
    scripts = sorted((root / "lessons").glob("*.py"))
    numbers = {file.stem[:2]: file.stem for file in scripts}
    others = sorted((root / "lessons" / FOLDER).glob("*.py"))
    places = [(file, numbers.get(file.stem[:2], "")) for file in (*scripts, *others)]
    return {name: lesson for file, lesson in places for name in CHECK.findall(file.read_text(encoding="utf-8"))}


def chosen(lesson: Path, cells: Sequence[NotebookNode], wanted: Mapping[str, str]) -> dict[str, Path]:
    """Return the files of those wanted variants, {exercise: suffix}, whose exercise is in the lesson in this file."""
    exercises = {grade_id(cell) for cell in cells}
    return {
        exercise: lesson.parent / FOLDER / f"{lesson.stem[:2]}_{exercise}_{suffix}.py"
        for exercise, suffix in wanted.items()
        if exercise in exercises
    }


def put(lesson: str, cells: list[NotebookNode], exercise: str, file: Path) -> list[NotebookNode]:
    """Return the lesson's cells with this variant's in place of the exercise's. Raises LessonError, naming the file."""
    variant, inside = file.stem[3:], _read(file)
    first, last = _place(lesson, cells, exercise)
    _check(f"lessons/{FOLDER}/{file.name}", variant, inside)
    above = cells[:first]
    kept, _, _ = cells[first].source.partition(f"### Exercise: {exercise}\n")
    if kept.strip():
        text = cells[first].copy()
        text.source = kept.rstrip()
        above.append(text)
    for cell in (*above, *(below := cells[last + 1 :])):
        _rename(cell, exercise, variant)
    return [*above, *inside, *below]


def _read(file: Path) -> list[NotebookNode]:
    import jupytext

    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise LessonError(f"lessons/{FOLDER}/{file.name} cannot be read: {error.strerror}") from error
    cells: list[NotebookNode] = jupytext.reads(text, fmt="py:percent").cells
    return cells


def _place(lesson: str, cells: list[NotebookNode], exercise: str) -> tuple[int, int]:
    """The cell with the exercise's heading, and that of its check."""
    ids = [grade_id(cell) for cell in cells]
    at = ids.index(exercise)
    headings = [i for i in range(at) if cells[i].cell_type == "markdown" and HEADING.search(cells[i].source)]
    if not headings or HEADING.findall(cells[headings[-1]].source)[-1] != exercise:
        raise LessonError(f"{lesson}: no line '### Exercise: {exercise}' stands above the cell {exercise!r}")
    if f"check_{exercise}" not in ids[at:]:
        raise LessonError(f"{lesson}: no cell check_{exercise} follows the cell {exercise!r}")
    return headings[-1], ids.index(f"check_{exercise}")


def _check(file: str, variant: str, cells: Sequence[NotebookNode]) -> None:
    """A variant begins with its heading, and holds its exercise and a check, in this order."""
    heading = HEADING.match(cells[0].source) if cells and cells[0].cell_type == "markdown" else None
    if heading is None or heading["name"] != variant:
        raise LessonError(f"{file}: the first cell must be markdown and start with '### Exercise: {variant}'")
    marked = [name for cell in cells if (name := grade_id(cell))]
    if marked != [variant, f"check_{variant}"]:
        raise LessonError(f"{file}: the cells with a grade_id must be {variant}, check_{variant}, got {marked}")


def _rename(cell: NotebookNode, exercise: str, variant: str) -> None:
    """In code, a text that is just the exercise's name is the name of its check, and so becomes the variant's. `mine`
    goes on with the exercise's own name, and so with the library's function."""
    if cell.cell_type == "code":
        name = rf"""(journal\.mine\([^)]*\))|(["']){exercise}\2"""
        cell.source = re.sub(name, lambda found: found[1] or found[2] + variant + found[2], cell.source)
