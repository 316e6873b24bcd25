"""What the lessons say of themselves: titles, minutes, and which exercises are core.

This stands in the text of the notebooks: "Lesson 02, about 90 minutes." at the top, "**Core**, about 8 minutes." below
the heading of an exercise. Where no notebook is found, or its text has another form, it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.notebook import cells

TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
WHOLE = re.compile(r"^Lesson \d+, about (\d+) minutes", re.MULTILINE)
EXERCISE = re.compile(r"^### Exercise: (\w+)\s+^\*\*(Core|More)\*\*, about (\d+) minutes", re.MULTILINE)


Entries = Mapping[str, Mapping[str, Any]]
"""What a journal notes of the checks, by their names."""


@dataclass(frozen=True)
class Exercise:
    """One exercise; `core` is None and `minutes` 0 where they are not known."""

    name: str
    core: bool | None = None
    minutes: int = 0


@dataclass(frozen=True)
class Lesson:
    """A lesson with its exercises, which take a part of its minutes; `minutes` is 0 where it is not known."""

    name: str
    title: str
    minutes: int
    exercises: tuple[Exercise, ...]

    def left(self, passed: Collection[str]) -> float:
        """Return about how many minutes are left if these exercises passed, each with its share of the reading."""
        todo = [exercise.minutes for exercise in self.exercises if exercise.name not in passed]
        whole = sum(exercise.minutes for exercise in self.exercises)
        if not todo:
            return 0
        return self.minutes * sum(todo) / whole if whole else self.minutes


def passed(kept: Entries) -> set[str]:
    """Return the exercises that passed at least once."""
    return {name for name, entry in kept.items() if entry.get("ever_passed")}


def read(lessons: Mapping[str, Iterable[str]], folders: Collection[Path]) -> list[Lesson]:
    """Return the lessons (name -> exercises) with what FOLDER/NAME/NAME.ipynb or FOLDER/NAME.ipynb say of them."""
    plan = []
    for name, exercises in lessons.items():
        files = (file for folder in folders for file in (folder / name / f"{name}.ipynb", folder / f"{name}.ipynb"))
        plan.append(parse(name, exercises, next(filter(None, map(text, files)), "")))
    return plan


def parse(name: str, exercises: Iterable[str], prose: str) -> Lesson:
    """Return a lesson with what the text of its notebook says of it."""
    by_name = {found[0]: Exercise(found[0], found[1] == "Core", int(found[2])) for found in EXERCISE.findall(prose)}
    title, whole = TITLE.search(prose), WHOLE.search(prose)
    return Lesson(
        name,
        title[1] if title else name.partition("_")[2].replace("_", " ").capitalize(),
        int(whole[1]) if whole else 0,
        tuple(by_name.get(exercise, Exercise(exercise)) for exercise in exercises),
    )


def text(file: Path) -> str:
    """Return the text cells of a notebook in one piece; "" if there is none that can be read."""
    try:
        found = cells.parse(file.read_bytes())["cells"]
    except (OSError, ValueError):
        return ""
    return "\n\n".join(cells.source(cell) for cell in found if cell.get("cell_type") == "markdown")
