"""A course as the grader sees it: where its files lie, and nbgrader set up for them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbgrader.coursedir import CourseDirectory

from unrolled_grader.authoring import notebooks
from unrolled_grader.classroom import gradebook, late, settings
from unrolled_grader.classroom.folders import CourseError as CourseError
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from typing_extensions import Self


class Course(Folders):
    """The folders that the configuration names, with a gradebook."""

    @classmethod
    def at(cls, root: Path, submitted: Path | None = None) -> Self:
        """Return the course in a checkout, as `Folders.at` does."""
        return cls(_patient(super().at(root, submitted).config))

    @classmethod
    def beside(cls, root: Path, folder: Path) -> Self:
        """Return a course with the checkout's lessons that keeps all else, gradebook and grades too, in `folder`."""
        config = copy.deepcopy(notebooks.nbgrader_config(root))
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
