"""Where a course's files lie by its configuration, and which of them a command names.

What is wrong with a command's arguments is found here, before nbgrader loads, which takes seconds.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unrolled.cli import CommandError, lab
from unrolled_grader.authoring import notebooks

if TYPE_CHECKING:
    from typing_extensions import Self


class CourseError(CommandError):
    """A course cannot be graded as it is set up."""


@dataclass(frozen=True)
class Folders:
    """The configuration that nbgrader's commands read, and the folders that it names."""

    config: Any

    @classmethod
    def at(cls, root: Path, submitted: Path | None = None) -> Self:
        """Return the course in a checkout, with `submitted` in place of the folder that the configuration names.

        Raises CourseError for a folder that is not there, or whose name nbgrader cannot take.
        """
        config = notebooks.nbgrader_config(root)
        if submitted is not None:
            config.CourseDirectory.submitted_directory = str(_plain(submitted.absolute(), root))
        return cls(config)

    def folder(self, step: str) -> Path:
        """Return the folder of a step: "source", "submitted", "autograded" or "feedback"."""
        named = self.config.CourseDirectory
        return Path(named.get("root", "."), named.get(f"{step}_directory", step))

    @property
    def submitted(self) -> Path:
        return self.folder("submitted")

    @property
    def feedback(self) -> Path:
        return self.folder("feedback")

    @property
    def grades(self) -> Path:
        """Where records and scores.csv are kept."""
        return Path(self.config.CourseDirectory.get("root", "."), self.config.Judge.grades_directory)

    def lessons(self) -> list[str]:
        """Return the lessons that can be graded: those with a complete notebook."""
        return sorted(file.stem for file in self.folder("source").glob("*/*.ipynb") if file.parent.name == file.stem)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return the lessons with these names, or beginnings of names; all if there are none. Raises CourseError."""
        checked = lab.known()
        known = [lesson for lesson in self.lessons() if lesson in checked]
        if not names:
            return known
        chosen = []
        for name in names:
            fitting = [name] if name in known else [one for one in known if name and one.startswith(name)]
            if len(fitting) != 1:
                reason = f"{name!r:.60} names {len(fitting)} lessons" if fitting else f"there is no lesson {name!r:.60}"
                raise CourseError(f"{reason}; there are {', '.join(known) or 'none'}")
            chosen += fitting
        return sorted(set(chosen))

    def students(self, steps: Sequence[str] = ("submitted", "autograded", "feedback")) -> Iterator[str]:
        """Yield the names of the folders that are kept of students in these steps."""
        for step in steps:
            if self.folder(step).is_dir():
                entries = self.folder(step).iterdir()
                yield from (entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))

    def in_gradebook(self, student: str) -> bool:
        """Return whether the gradebook knows a student, or cannot be asked without nbgrader."""
        kind, _, file = str(self.config.CourseDirectory.get("db_url", "")).partition(":///")
        return kind != "sqlite" or _holds(Path(file.partition("?")[0]), "student WHERE id = ?", student)

    def has_record(self, student: str, lesson: str) -> bool:
        """Return whether a submission was recorded, as far as can be told."""
        return _holds(self.grades / "grades.db", "jobs WHERE student = ? AND lesson = ?", student, lesson)


def _holds(file: Path, rows: str, *values: str) -> bool:
    """Whether a database has such rows. What it is asked wrongly, or while it is locked, a later look will tell."""
    if not file.is_file():
        return False
    name = f"{file.absolute().as_uri()}?mode=ro"
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(name, uri=True)) as book:
        return book.execute(f"SELECT 1 FROM {rows}", values).fetchone() is not None
    return True


def _plain(folder: Path, root: Path) -> Path:
    """The folder as nbgrader can take it: it reads names as patterns. Raises CourseError for one it cannot take."""
    if folder.is_relative_to(root):
        folder = folder.relative_to(root)
    if found := re.search(r"[*?\[\](){}+^$|\\]", str(folder)):
        raise CourseError(f"nbgrader cannot read {folder}: {found[0]!r} in a folder's name means something else to it")
    if not (root / folder).is_dir():
        raise CourseError(f"there is no folder {folder}: expected one that holds STUDENT/LESSON/LESSON.ipynb")
    return folder
