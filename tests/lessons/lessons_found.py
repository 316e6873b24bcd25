"""Every lesson of the repository, found by its file, with its specs, and answers that prove them."""

from __future__ import annotations

import importlib
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

    @property
    def answers(self) -> ModuleType:
        return importlib.import_module(f"answers.lesson{self.name[:2]}")


LESSONS = [Lesson(path.stem) for path in sorted((ROOT / "lessons").glob("[0-9][0-9]_*.py"))]
EXERCISES = [(lesson, name) for lesson in LESSONS for name in lesson.specs]
TIMED = [(lesson, name) for lesson, name in EXERCISES if lesson.specs[name].speed is not None]
