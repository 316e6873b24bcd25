"""How long a lesson takes: what it says of itself beside what its parts add up to.

Prose is read at 180 words a minute, an exercise takes the minutes that stand below its heading, and each cell of code
half a minute to read, run and look at; so does a guess. The question to be answered in words takes five minutes. What
readers needed (lesson 00: 22 minutes, 03: 95 to 100, 06: 115 to 120) was within a tenth of these sums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORDS_A_MINUTE = 180
CELL, ANSWER = 0.5, 5.0  # minutes
STATED = re.compile(r"^Lesson \d+, about (\d+) minutes", re.MULTILINE)
EXERCISE = re.compile(r"\*\*(?:Core|More)\*\*, about (\d+)\s+minutes")
WORD = re.compile(r"\w[\w'-]*")


@dataclass(frozen=True)
class Minutes:
    """The minutes that a lesson states, and those of its parts."""

    stated: float
    prose: float
    exercises: float
    cells: float

    @property
    def computed(self) -> float:
        return self.prose + self.exercises + self.cells

    @property
    def agree(self) -> bool:
        """Whether the stated minutes lie within a quarter of those computed."""
        return abs(self.stated - self.computed) <= self.computed / 4

    def __str__(self) -> str:
        parts = f"prose {self.prose:.0f}, exercises {self.exercises:.0f}, cells {self.cells:.0f}"
        return f"{self.stated:.0f} minutes stated, {self.computed:.0f} computed ({parts})"


def of_lesson(root: Path, lesson: str) -> Minutes:
    """Return the minutes of the learner's notebook of a lesson as it is in this checkout."""
    file = root / "notebooks" / lesson / f"{lesson}.ipynb"
    return of(json.loads(file.read_text(encoding="utf-8"))["cells"])


def of(cells: Iterable[Mapping[str, Any]]) -> Minutes:
    """Return the minutes of a learner's notebook from its cells, as nbformat has them."""
    texts, others = [], 0.0
    for cell in cells:
        graded = cell["metadata"].get("nbgrader", {})
        if graded.get("solution"):  # to be written: its minutes are stated, but for an answer in words
            others += ANSWER if cell["cell_type"] == "markdown" else 0
        elif cell["cell_type"] == "markdown":
            texts.append("".join(cell["source"]))
        else:
            others += CELL
    prose = "\n".join(texts)
    stated = STATED.search(prose)
    words, exercises = len(WORD.findall(prose)), sum(map(int, EXERCISE.findall(prose)))
    return Minutes(float(stated[1]) if stated else 0.0, words / WORDS_A_MINUTE, exercises, others)
