"""What a check's cell is worth: what its spec says, or what a class chose in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from unrolled_grader.authoring.variants import LessonError

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from unrolled.checks.choices import Choices

CELL = "check_"


class Worth(NamedTuple):
    """The points of a check by its spec, for being right and for speed; and of both together as the class chose."""

    right: int
    fast: int
    asked: int


def by_lesson(chosen: Choices, lessons: Iterable[str]) -> dict[str, dict[str, Worth]]:
    """Return what the checks of each lesson are worth. Raises LessonError for a choice that is not there."""
    from unrolled import checks

    if found := checks.problems(chosen, lessons):
        raise LessonError("; ".join(found))
    asked = checks.specs_for(replace(chosen, lessons=None))
    declared = checks.specs_for(replace(chosen, lessons=None, thresholds={}, points={}, without_speed=()))
    return {
        lesson: {
            name: Worth(spec.points, spec.speed.points if spec.speed else 0, asked[lesson][name].total_points)
            for name, spec in specs.items()
        }
        for lesson, specs in declared.items()
    }


def write(lesson: str, cell: NotebookNode, worth: Mapping[str, Worth]) -> None:
    """Give a check's cell the points that the class chose. Raises LessonError where it says others than its spec."""
    mark = cell.metadata.get("nbgrader", {})
    check = mark.get("grade_id", "").removeprefix(CELL)
    if not mark.get("grade") or mark.get("solution") or check not in worth:
        return
    right, fast, asked = worth[check]
    if mark["points"] != right + fast:
        parts = f" ({right}, and {fast} for speed)" if fast else ""
        raise LessonError(
            f"{lesson}: the cell {CELL}{check} says {mark['points']} points, its spec {right + fast}{parts}: "
            "make them the same"
        )
    mark["points"] = asked


def total(notebook: Mapping[str, Any]) -> float:
    """Return what a notebook is worth: the points of all its graded cells."""
    marks = (cell["metadata"].get("nbgrader", {}) for cell in notebook["cells"])
    return float(sum(mark["points"] for mark in marks if mark.get("grade")))
