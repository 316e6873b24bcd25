"""What a lesson has from the library: the points of its checks, the numbers that its text quotes, and functions.

In a cell of text `{T}` stands for how many times as fast as its baseline an exercise has to be, `{points}` for what its
check is worth, `{launches}` and the like for the `numbers` of its spec, and `{allows}` for what it may call of the
library. The exercise is the one whose heading is the last above. Where its speed is not measured, a sentence with
`{T}` is left out.

In a cell of code the line `# body of unrolled.MODULE.FUNCTION` stands for what that function does, below its docstring.
So an exercise's solution can be the reference of its spec, and a function that a lesson shows a speed's baseline.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unrolled_grader.authoring.variants import HEADING, LessonError

if TYPE_CHECKING:
    from nbformat import NotebookNode

    from unrolled.checks import Spec
    from unrolled.checks.choices import Choices

CELL = "check_"
NUMBER = re.compile(r"(?P<code>```.*?```|`[^`]*`)|\{(?P<name>\w+)\}", re.DOTALL)
BODY = re.compile(r"^(?P<indent> *)# body of (?P<module>unrolled[\w.]*)\.(?P<name>\w+)$", re.MULTILINE)
GAP = re.compile(r"((?<=[.?!)])\s+)")  # between sentences


def by_name(chosen: Choices, lessons: Iterable[str]) -> dict[str, Spec]:
    """Return the specs of all exercises as a class asks them. Raises LessonError for a choice that is not there."""
    from unrolled import checks

    if found := checks.problems(chosen, lessons):
        raise LessonError("; ".join(found))
    return {
        name: spec for specs in checks.specs_for(replace(chosen, lessons=None)).values() for name, spec in specs.items()
    }


def write(lesson: str, cells: Iterable[NotebookNode], specs: Mapping[str, Spec]) -> None:
    """Put the points of checks and the numbers of the text into a lesson's cells.

    Raises LessonError for a check with points in the cell and in a spec, or in neither, and for an unknown number.
    """
    exercise = ""
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source, exercise = _with_numbers(lesson, cell.source, exercise, specs)
        else:
            _put_points(lesson, cell, specs)


def _put_points(lesson: str, cell: NotebookNode, specs: Mapping[str, Spec]) -> None:
    mark = cell.metadata.get("nbgrader", {})
    if not mark.get("grade"):
        return
    spec = specs.get(mark["grade_id"].removeprefix(CELL))
    if (spec is None) != ("points" in mark):
        reason = "there is no spec for it" if spec is None else "take its points out, they stand in its spec"
        raise LessonError(f"{lesson}: the cell {mark['grade_id']}: {reason}")
    if spec is not None:
        mark["points"] = spec.total_points


def _with_numbers(lesson: str, text: str, exercise: str, specs: Mapping[str, Spec]) -> tuple[str, str]:
    """The text with numbers in place of their names, and the exercise whose heading is the last so far."""
    parts, start = [], 0
    for heading in HEADING.finditer(text):
        parts.append(_quoting(lesson, text[start : heading.start()], exercise, specs))
        exercise, start = heading["name"], heading.start()
    parts.append(_quoting(lesson, text[start:], exercise, specs))
    return "".join(parts), exercise


def _quoting(lesson: str, text: str, exercise: str, specs: Mapping[str, Spec]) -> str:
    known, spec = dict[str, str](), specs.get(exercise)
    if spec is not None:
        speed = {"T": spec.speed.at_least} if spec.speed is not None else {}
        numbers = {**speed, "points": spec.total_points, **spec.numbers}
        known = {name: f"{number:,g}" for name, number in numbers.items()}
        known |= {"allows": _listed(spec)} if spec.allows else {}
        if "T" not in known:
            parts = [*GAP.split(text), ""]
            text = "".join(
                words + gap for words, gap in zip(parts[::2], parts[1::2], strict=True) if "{T}" not in words
            )

    def number(found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        if found["name"] not in known:
            has = ", ".join(f"{{{name}}}" for name in known) or "none"
            raise LessonError(f"{lesson}: {exercise or 'text without an exercise'} quotes {found[0]}; there is {has}")
        return known[found["name"]]

    return NUMBER.sub(number, text)


def _listed(spec: Spec) -> str:
    """What an exercise allows, as in "`ops.im2col` and `ops.col2im`"."""
    from unrolled.checks.answers import known_as

    *most, last = (f"`{known_as(each)}`" for each in spec.allows)
    return f"{', '.join(most)} and {last}" if most else last


def total(notebook: Mapping[str, Any]) -> float:
    """Return what a notebook is worth: the points of all its graded cells."""
    marks = (cell["metadata"].get("nbgrader", {}) for cell in notebook["cells"])
    return float(sum(mark["points"] for mark in marks if mark.get("grade")))


def with_bodies(lesson: str, source: str) -> str:
    """Return a cell's source with bodies in place of the lines that name them. LessonError for unknown ones."""

    def body(found: re.Match[str]) -> str:
        try:
            function = getattr(importlib.import_module(found["module"]), found["name"])
        except (ImportError, AttributeError) as error:
            raise LessonError(f"{lesson}: {found[0].strip()!r}: {error}") from error
        return textwrap.indent(_body(function), found["indent"])

    return BODY.sub(body, source)


def _body(function: Callable[..., Any]) -> str:
    """What stands below a function's signature and docstring, without indentation."""
    source = textwrap.dedent(inspect.getsource(function))
    definition = ast.parse(source).body[0]
    assert isinstance(definition, ast.FunctionDef)
    first = definition.body[1] if ast.get_docstring(definition) is not None else definition.body[0]
    lines = source.splitlines()[first.lineno - 1 :]
    return textwrap.dedent("\n".join(lines))
