"""Every lesson of the repository, found by its file, and every exercise and variant, with answers that prove them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType

from unrolled import checks

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Lesson:
    """One lesson: `02_convolution`."""

    name: str

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
    def answers(self) -> ModuleType:
        return importlib.import_module(f"answers.{self.module}")


def exercises(lesson: Lesson) -> Iterator[Exercise]:
    """Yield the exercises of a lesson and their variants."""
    for name, spec in lesson.specs.items():
        yield Exercise(lesson.name, name, spec, f"lesson{lesson.name[:2]}")
        for suffix, variant in checks.variants().get(name, {}).items():
            yield Exercise(lesson.name, f"{name}_{suffix}", variant, "variants")


LESSONS = [Lesson(path.stem) for path in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.py"))]
EXERCISES = [exercise for lesson in LESSONS for exercise in exercises(lesson)]
TIMED = [exercise for exercise in EXERCISES if exercise.spec.speed is not None]
