"""What nbgrader calls of ours, in `nbgrader autograde`, formgrader's Autograde button and `unrolled grade` alike.

grader/nbgrader_config.py puts `Judge` where nbgrader has Execute and SaveAutoGrades. nbgrader's own rule (no exception:
full marks; a trailing number: the grade; text on stderr: zero) decides nothing here. And it makes `Door` Autograde's
exporter. nbgrader itself would follow links, copy whatever lies beside a notebook, and end the whole class at a time
stamp that is none. What cannot be graded is recorded here: 0 for each part, with the reason.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.converters import Autograde
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution, parse_utc
from traitlets import Bool, Unicode
from traitlets.config import Config

import unrolled
from unrolled import checks
from unrolled_grader.authoring.notebooks import nbgrader_config
from unrolled_grader.box import sandbox
from unrolled_grader.classroom import gradebook, late, seeds, settings
from unrolled_grader.jobs import job, record, versions
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge import evidence, intake, opening
from unrolled_grader.judge.intake import TIME_STAMP, Handed
from unrolled_grader.judge.verdicts import Options
from unrolled_grader.results import marking, standing

STAMP = "unrolled_grading"
"""In an autograded notebook's metadata: the date of the record that belongs to it. Written last, so it means done."""


class Judge(NbGraderPreprocessor):  # type: ignore[misc]
    """Put what the judge finds, or has found, in place of a submitted notebook; keep gradebook and record."""

    grades_directory = Unicode(
        "grades", help="Where records and scores.csv are kept, relative to CourseDirectory.root."
    ).tag(config=True)
    timing = Bool(True, help="Whether speeds are measured. If not, their points are deferred.").tag(config=True)
    gpu = Bool(False, help="Whether the machines of a cluster that judge have a GPU.").tag(config=True)
    unsafe_no_sandbox = Bool(
        False, help="Run student code without a sandbox, with all the rights of your account. Every score says so."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Judge `nb`, unless its job is done; return it as it ran. Only our faults raise, nothing that `nb` does."""
        student, lesson = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        directory = CourseDirectory(parent=self)
        directory.db_url = resources["nbgrader"]["db_url"]
        released = gradebook.released(directory, lesson)
        self._warn_of_unknown(released, lesson)
        kept, executed = self._job(directory, student, lesson)
        for note in kept.repairs:
            self.log.warning("Repaired: %s", note)
        points = {evidence.CELL + score.check: kept.points_of(score.check) for score in kept.scores}
        withheld = [score for score in kept.scores if score.verdict == "deferred" and score.max_points > 0]
        deferred = {evidence.CELL + score.check for score in withheld}
        if kept.version != unrolled.__version__:
            points, absent = versions.converted_points(kept.scores, versions.worth(released))
            deferred |= absent
        same = marking.unchanged(self.grades(directory), student, lesson, executed)
        gradebook.save(directory, student, lesson, executed, points, deferred, same)
        with gradebook.opened(directory) as book:  # the submission is new, and has no extension yet
            late.settle(book, settings.read(Path(directory.root)), lesson, student)
        if kept.version != unrolled.__version__:
            executed = versions.fitted_cells(executed, released)
        executed.metadata[STAMP] = kept.date
        return executed, resources

    def options(self) -> Options:
        """Return how to judge. UNROLLED_UNSAFE_NO_SANDBOX=1 in the environment does what `unsafe_no_sandbox` does."""
        boxed = not (self.unsafe_no_sandbox or sandbox.allowed_without())
        return Options(self.timing, sandbox=boxed, gpu=self.gpu)

    def grades(self, directory: CourseDirectory) -> Path:
        """Return where records are kept."""
        return Path(directory.root, self.grades_directory)

    def _job(self, directory: CourseDirectory, student: str, lesson: str) -> tuple[Record, NotebookNode]:
        """The finished job of this very submission; performed now if there is none."""
        grades, options = self.grades(directory), self.options()
        path = Path(directory.format_path(directory.submitted_directory, student, lesson), f"{lesson}.ipynb")
        released = gradebook.released_file(directory, lesson)
        handed = Handed(student, lesson, path, intake.digest(path))
        kept = job.valid_record(grades, handed, released, options)
        executed = record.notebook(grades, student, lesson)
        if kept is None or executed is None:
            seed = seeds.seed_for(Path(directory.root), student, lesson, handed.digest)
            kept, executed = job.perform_here(job.order_for(handed, released, grades / "jobs", options, seed))
            record.save(grades, kept, executed)
        elif kept.digest != handed.digest:  # the same notebook, handed in again
            kept = replace(kept, digest=handed.digest)
            record.save(grades, kept, executed)
        return kept, executed

    def _warn_of_unknown(self, released: NotebookNode, lesson: str) -> None:
        known: Collection[str] = checks.lessons().get(lesson, {})
        for cell in released.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if is_grade(cell) and not is_solution(cell) and name.removeprefix(evidence.CELL) not in known:
                self.log.warning("%s: no check is declared for the cell %r, so it earns nothing", lesson, name)


class Scores(NbGraderPreprocessor):  # type: ignore[misc]
    """Make scores.csv and the log of regrades once everything about a submission is in the gradebook."""

    enabled = Bool(True, help="Whether to, after each submission. `unrolled grade` does it once, at its end.").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Make scores.csv and the log of regrades; return `nb` as it is."""
        directory = CourseDirectory(parent=self)
        directory.db_url = resources["nbgrader"]["db_url"]
        standing.write_scores(directory, Judge(parent=self).grades(directory))
        return nb, resources


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
    specs = checks.judged(lesson).items()
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


def know_lesson(assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Make sure that the gradebook knows the lesson's cells: nbgrader's hook before it grades, in the course's root.

    With it `nbgrader autograde` and formgrader work on a fresh checkout, without nbgrader's generate_assignment before.
    """
    config = nbgrader_config(Path.cwd())
    directory = CourseDirectory(config=config)
    gradebook.fill(directory, config, assignment)
    with gradebook.opened(directory) as book:
        late.settle(book, settings.read(Path(directory.root)), assignment)
