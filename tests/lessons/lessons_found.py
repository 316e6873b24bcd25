"""Every lesson of the repository, found by its file, and every exercise and variant, with answers that prove them."""

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jupytext
import nbformat
from nbformat import NotebookNode

from unrolled import checks
from unrolled_grader.authoring import sample

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Lesson:
    """One lesson: `02_convolution`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @property
    def source(self) -> Path:
        return ROOT / "lessons" / f"{self.name}.py"

    @property
    def solution(self) -> Path:
        return ROOT / "solutions" / self.name / f"{self.name}.ipynb"

    @property
    def notebook(self) -> Path:
        return ROOT / "notebooks" / self.name / f"{self.name}.ipynb"

    @property
    def specs(self) -> MappingProxyType[str, checks.Spec]:
        return {**checks.declared(), **checks.lessons()}[self.name]  # a class may not have chosen it


@dataclass(frozen=True)
class Exercise:
    """An exercise of a lesson, or a variant of one."""

    lesson: str
    name: str
    spec: checks.Spec
    module: str

    def __str__(self) -> str:
        return self.name

    @property
    def is_variant(self) -> bool:
        return self.module == "variants"

    @property
    def mutants(self) -> list[Any]:
        """Wrong answers that are written out, as far as there are any."""
        return self._answers("MUTANTS").get(self.name, [])

    @property
    def honest(self) -> list[Any]:
        """Right and imperfect answers that are fast enough."""
        return self._answers("HONEST").get(self.name, [])

    @property
    def loop(self) -> Any:
        """A right answer that is too slow: by default the baseline."""
        return self._answers("LOOP").get(self.name, self.spec.speed and self.spec.speed.baseline)

    @property
    def right(self) -> list[Any]:
        """Right answers in other styles, whatever their speed."""
        return self._answers("RIGHT").get(self.name, [])

    @property
    def another_way(self) -> bool:
        """Whether a student of the sample class has a right answer of their own."""
        return self.name in sample.changed(ROOT, "another_way", self.lesson)

    def _answers(self, kind: str) -> dict[str, Any]:
        written = importlib.util.find_spec(f"answers.{self.module}")
        return getattr(importlib.import_module(f"answers.{self.module}"), kind, {}) if written else {}

    def cells(self, folder: str) -> list[NotebookNode]:
        """The cells of its lesson's notebook in solutions/ or notebooks/, with a variant's own behind them."""
        cells = nbformat.read(ROOT / folder / self.lesson / f"{self.lesson}.ipynb", as_version=4).cells
        variant = ROOT / "lessons" / "variants" / f"{self.lesson[:2]}_{self.name}.py"
        return cells + jupytext.read(variant, fmt="py:percent").cells if variant.exists() else cells


def exercises(lesson: Lesson) -> Iterator[Exercise]:
    """Yield the exercises of a lesson and their variants."""
    for name, spec in lesson.specs.items():
        yield Exercise(lesson.name, name, spec, f"lesson{lesson.name[:2]}")
        for suffix, variant in checks.variants().get(name, {}).items():
            yield Exercise(lesson.name, f"{name}_{suffix}", variant, "variants")


LESSONS = [Lesson(path.stem) for path in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.py"))]
EXERCISES = [exercise for lesson in LESSONS for exercise in exercises(lesson)]
TIMED = [exercise for exercise in EXERCISES if exercise.spec.speed is not None]
