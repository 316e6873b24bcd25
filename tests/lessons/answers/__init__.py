"""Wrong and imperfect answers to every exercise, one file a lesson: what facts 3 and 4 are tested with.

MUTANTS: wrong functions a learner might write, each with a phrase that the check must say.
HONEST:  two correct, imperfect but fast enough functions for each check with a speed part (1.5 T or more).
RIGHT:   correct functions of other styles, so that with these two and LOOP each check meets five.
LOOP:    a correct function that the speed part must not pass (0.67 T or less), where it is not the baseline.
"""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from unrolled import checks, device

LESSONS = Path(__file__).resolve().parents[3] / "lessons"
HEAD = """\
import numpy as np
from unrolled import device, ops, simgpu as cp
from unrolled.simgpu import jit
TILE, WIDTH, THREADS = 32, 33, 256
"""
"""What the cells of exercises have from those above them."""


class Mutant(NamedTuple):
    """A wrong answer, and a phrase of the report that would help its author."""

    function: Callable[..., Any]
    says: str


def result_of(exercise: str, change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the reference of an exercise with its result changed."""
    reference = checks.all_specs()[exercise].reference
    return lambda *given, **named: change(reference(*given, **named))


def on_the_host(exercise: str) -> Callable[..., Any]:
    """Return the reference of an exercise, computed on the host: its arrays go there, and the results come back."""

    def function(x: Any, **given: Any) -> Any:
        there = {name: device.to_host(y) if hasattr(y, "dtype") else y for name, y in given.items()}
        results = checks.all_specs()[exercise].reference(x=device.to_host(x), **there)
        back = device.array_module(x).asarray
        return tuple(map(back, results)) if isinstance(results, tuple) else back(results)

    return function


def solution(lesson: str, exercise: str, *changes: tuple[str, str]) -> Any:
    """Return the lesson's solution of an exercise, with these words in place of others."""
    import kernel_specs  # which a lesson without kernels does not need

    source = HEAD + _cells(lesson)[exercise]
    for old, new in changes:
        assert old in source, old
        source = source.replace(old, new)
    return kernel_specs.answer(f"{source}\nanswer = {exercise}\n")


CELL = re.compile(r'^# %%[^\n]*"grade_id": "(\w+)"[^\n]*\n(.*?)(?=^# %%|\Z)', re.MULTILINE | re.DOTALL)


@cache
def _cells(lesson: str) -> dict[str, str]:
    """Return the sources of a lesson's cells by grade_id; without Jupytext, which a run with Colab's versions lacks."""
    return dict(CELL.findall((LESSONS / f"{lesson}.py").read_text(encoding="utf-8")))


def in_other_words(lesson: str, exercise: str, *changes: tuple[str, str]) -> list[Any]:
    """Return the lesson's solution once for each of these changes."""
    return [solution(lesson, exercise, change) for change in changes]


def in_place(exercise: str, *changes: tuple[str, str]) -> list[Any]:
    """Return the same for a solution that needs names of the cells above it, or that the build fills in."""
    from unrolled_grader.authoring import one_cell, prove

    cells = prove.cells_of(LESSONS.parent, exercise)
    source = one_cell.read(cells, exercise)[0]
    assert all(old in source for old, _ in changes), changes
    words = (source.replace(old, new) for old, new in changes)
    return [one_cell.define(*one_cell.read(cells, exercise, each))[exercise] for each in words]
