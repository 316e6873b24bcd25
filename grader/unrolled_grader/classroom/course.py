"""A course as the grader sees it: where its files lie, and nbgrader set up for them."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.coursedir import CourseDirectory

from unrolled import checks
from unrolled_grader.build import authoring
from unrolled_grader.classroom import gradebook, late, settings

if TYPE_CHECKING:
    from typing_extensions import Self


class CourseError(Exception):
    """A course cannot be graded as it is set up."""


@dataclass(frozen=True)
class Course:
    """The configuration that nbgrader's commands read, and the folders that it names."""

    config: Any

    @classmethod
    def at(cls, root: Path, submitted: Path | None = None) -> Self:
        """Return the course in a checkout, with `submitted` in place of the folder that the configuration names.

        Raises CourseError for a folder that is not there, or whose name nbgrader cannot take.
        """
        config = _patient(authoring.nbgrader_config(root))
        if submitted is not None:
            config.CourseDirectory.submitted_directory = str(_plain(submitted.absolute(), root))
        return cls(config)

    @classmethod
    def beside(cls, root: Path, folder: Path) -> Self:
        """Return a course with the checkout's lessons that keeps all else, gradebook and grades too, in `folder`."""
        config = copy.deepcopy(authoring.nbgrader_config(root))
        for step in ("source", "release"):
            name = f"{step}_directory"
            config.CourseDirectory[name] = str(root / config.CourseDirectory[name])
        for step in ("submitted", "autograded", "feedback"):
            config.CourseDirectory[f"{step}_directory"] = step
        config.CourseDirectory.root = str(folder)
        config.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
        config.Judge.grades_directory = "grades"
        return cls(_patient(config))

    @property
    def directory(self) -> CourseDirectory:
        """nbgrader's own view of the folders."""
        return CourseDirectory(config=self.config)

    @property
    def submitted(self) -> Path:
        return Path(self.directory.root, self.directory.submitted_directory)

    @property
    def feedback(self) -> Path:
        return Path(self.directory.root, self.directory.feedback_directory)

    @property
    def grades(self) -> Path:
        """Where records and scores.csv are kept."""
        return Path(self.directory.root, self.config.Judge.grades_directory)

    def lessons(self) -> list[str]:
        """Return the lessons that can be graded: those with a complete notebook."""
        source = Path(self.directory.root, self.directory.source_directory)
        return sorted(file.stem for file in source.glob("*/*.ipynb") if file.parent.name == file.stem)

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return the lessons with these names, or beginnings of names; all if there are none. Raises CourseError."""
        known = [lesson for lesson in self.lessons() if lesson in checks.lessons()]
        if not names:
            return known
        chosen = []
        for name in names:
            fitting = [lesson for lesson in known if lesson == name] or [
                lesson for lesson in known if lesson.startswith(name)
            ]
            if len(fitting) != 1:
                several = f"{name!r} names {len(fitting)} lessons" if fitting else f"there is no lesson {name!r}"
                raise CourseError(f"{several}; there are {', '.join(known) or 'none'}")
            chosen += fitting
        return sorted(set(chosen))

    def fill_gradebook(self, lesson: str) -> None:
        """Make sure that the gradebook knows the lesson, and when it is due. Raises CourseError."""
        try:
            with gradebook.quiet():
                gradebook.fill(self.directory, self.config, lesson)
                with gradebook.opened(self.directory) as book:
                    late.settle(book, settings.read(Path(self.directory.root)), lesson)
        except gradebook.GradebookError as error:
            raise CourseError(str(error)) from error


def _patient(config: Any) -> Any:
    """Let a process wait up to a minute while another writes to the gradebook (SQLite's own default is 5 s).

    What nbgrader's commands do for each submission, know the lesson and make scores.csv, is done once for all of them.
    """
    if "?" not in config.CourseDirectory.db_url:
        config.CourseDirectory.db_url += "?timeout=60"
    config.Scores.enabled = False
    config.Autograde.pre_convert_hook = None
    return config


def _plain(folder: Path, root: Path) -> Path:
    """The folder as nbgrader can take it: it reads names as patterns. Raises CourseError for one it cannot take."""
    if folder.is_relative_to(root):
        folder = folder.relative_to(root)
    if found := re.search(r"[*?\[\](){}+^$|\\]", str(folder)):
        raise CourseError(f"nbgrader cannot read {folder}: {found[0]!r} in a folder's name means something else to it")
    if not (root / folder).is_dir():
        raise CourseError(f"there is no folder {folder}: expected one that holds STUDENT/LESSON/LESSON.ipynb")
    return folder
