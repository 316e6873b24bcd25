"""How nbgrader opens a submission, for `nbgrader autograde`, formgrader's Autograde button and `unrolled grade` alike.

grader/nbgrader_config.py makes `Door` Autograde's exporter. nbgrader itself would follow links, copy whatever lies
beside a notebook, and end the whole class at a time stamp that is none. What cannot be graded is recorded here: 0 for
each part, with the reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import parse_utc
from traitlets.config import Config

from unrolled import checks
from unrolled_grader.classroom import gradebook
from unrolled_grader.jobs import job, record, versions
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge import evidence, intake, opening
from unrolled_grader.judge.intake import TIME_STAMP, Handed
from unrolled_grader.plugin import Judge, Scores
from unrolled_grader.results import standing


class Door(NotebookExporter):
    """Lets a submission's notebook and time stamp in, and nothing else of its folder.

    What `intake` refuses is recorded, 0 with the reason, and then raised: nbgrader names the student and goes on.
    """

    def __init__(self, config: Config | None = None, **others: Any) -> None:
        super().__init__(config, **others)  # type: ignore[no-untyped-call]
        if isinstance(self.parent, Autograde):
            _set_aside(self.parent)
            self.parent.coursedir = _CarefulDirectory.like(self.parent.coursedir)

    def from_filename(
        self, filename: str, resources: dict[str, Any] | None = None, **others: Any
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Return the notebook in a file, converted, and nbconvert's resources. Raises RefusedError."""
        if not isinstance(self.parent, Autograde) or not self.parent._sanitizing:
            return super().from_filename(filename, resources, **others)
        path, directory = Path(filename), self.parent.coursedir
        specs: Mapping[str, checks.Spec] = checks.lessons().get(path.stem, {})
        try:
            nb = opening.opened(intake.read(path), path.stem, specs)
            versions.release_for(versions.version_of(nb), gradebook.released_file(directory, path.stem))
        except opening.RefusedError as reason:
            judge = Judge(parent=self)
            refuse(directory, judge.grades(directory), intake.handed(path.parent, specs), str(reason))
            if Scores(parent=self).enabled:
                standing.write_scores(directory, judge.grades(directory))
            raise
        student = path.parent.parent.name
        bring_time(directory, Handed(student, path.stem, path, ""))
        converted: tuple[NotebookNode, dict[str, Any]] = super().from_notebook_node(nb, resources, **others)  # type: ignore[no-untyped-call]
        return converted


def refuse(directory: CourseDirectory, grades: Path, handed: Handed, problem: str) -> Record:
    """Write zeros to gradebook and record, and take away what an earlier submission left; return the record.

    Where the submission waits for another release of the course, its points are withheld: a person's mark, or none.
    """
    student, lesson = handed.student, handed.lesson
    waits = problem.startswith(versions.SET_ASIDE)
    gradebook.save_zero(directory, student, lesson, problem, waits=waits)
    for step in (directory.autograded_directory, directory.feedback_directory):
        shutil.rmtree(directory.format_path(step, student, lesson), ignore_errors=True)
    specs = checks.lessons().get(lesson, {}).items()
    verdict = "deferred" if waits else "missing"
    parts = [evidence.without(name, spec, verdict, f"not graded: {problem}") for name, spec in specs]
    scores = tuple(score for part in parts for score in part)
    key = Key(specs=job.specs_hash(gradebook.released_file(directory, lesson)))
    kept = Record(student, lesson, handed.digest, scores, problem, key=key)
    record.save(grades, kept)
    return kept


def _set_aside(converter: Autograde) -> None:
    """Take the folders of students whose names nbgrader would misread out of what it found, and say which and why.

    Raises NbGraderException if nothing is left, or if it was such a student that was asked for.
    """
    directory = converter.coursedir
    odd = intake.odd(os.listdir(Path(directory.root, directory.submitted_directory)))
    names = {path: Path(path).parent.name for path in converter.assignments}
    asked = {directory.student_id} - {"*"}
    reasons = [f"{name!r}: {odd[name]}" for name in sorted(odd) if not asked or name in {*asked, *names.values()}]
    for reason in reasons:
        converter.log.warning("Set aside: the student's folder %s", reason)
    converter.assignments = {path: converter.assignments[path] for path, name in names.items() if name not in odd}
    if asked & odd.keys() or not converter.assignments:
        raise NbGraderException(f"Nothing was graded: the student's folder {'; '.join(reasons)}")


class _CarefulDirectory(CourseDirectory):  # type: ignore[misc]
    """A course's folders, in which of a submission's only the notebook and a plain time stamp count."""

    @classmethod
    def like(cls, other: CourseDirectory) -> _CarefulDirectory:
        """Take over the folders and settings of `other`, but for what it ignores."""
        same = {name: getattr(other, name) for name in other.trait_names(config=True)}
        return cls(config=other.config, **{**same, "ignore": ["*", ".*"]})

    def get_existing_timestamp(self, dest_path: str) -> datetime | None:
        """When a submission was handed in; None if nothing says so in a way that can be read."""
        return _moment(intake.time_stamp(Path(dest_path)))


def bring_time(directory: CourseDirectory, handed: Handed) -> None:
    """Enter in the gradebook when a submission came, and keep its time stamp, by which nbgrader knows a later one.

    The gradebook must know the submission.
    """
    text = intake.time_stamp(handed.path.parent)
    gradebook.set_time(directory, handed.student, handed.lesson, when := _moment(text))
    into = Path(directory.format_path(directory.autograded_directory, handed.student, handed.lesson))
    (into / TIME_STAMP).unlink(missing_ok=True)
    if when is not None:
        into.mkdir(parents=True, exist_ok=True)
        (into / TIME_STAMP).write_text(text, encoding="utf-8")


def _moment(text: str) -> datetime | None:
    """The time that a text names, in UTC; None if it names none."""
    try:
        return parse_utc(text.strip()) if text.strip() else None
    except (ValueError, OverflowError):
        return None
