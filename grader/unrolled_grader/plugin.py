"""The judge as nbgrader's preprocessors, for `nbgrader autograde`, formgrader's Autograde button and `unrolled grade`.

grader/nbgrader_config.py puts `Judge` where nbgrader has Execute and SaveAutoGrades. nbgrader's own rule (no exception:
full marks; a trailing number: the grade; text on stderr: zero) decides nothing here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Bool, Unicode

import unrolled
from unrolled import checks
from unrolled_grader.authoring.notebooks import nbgrader_config
from unrolled_grader.box import sandbox
from unrolled_grader.classroom import gradebook, late, seeds, settings
from unrolled_grader.jobs import job, record
from unrolled_grader.jobs.record import Record
from unrolled_grader.jobs.versions import converted_points, fitted_cells, worth
from unrolled_grader.judge import evidence, intake
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
            points, absent = converted_points(kept.scores, worth(released))
            deferred |= absent
        same = marking.unchanged(self.grades(directory), student, lesson, executed)
        gradebook.save(directory, student, lesson, executed, points, deferred, same)
        with gradebook.opened(directory) as book:  # the submission is new, and has no extension yet
            late.settle(book, settings.read(Path(directory.root)), lesson, student)
        if kept.version != unrolled.__version__:
            executed = fitted_cells(executed, released)
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
        handed = intake.Handed(student, lesson, path, intake.digest(path))
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


def know_lesson(assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """Make sure that the gradebook knows the lesson's cells: nbgrader's hook before it grades, in the course's root.

    With it `nbgrader autograde` and formgrader work on a fresh checkout, without nbgrader's generate_assignment before.
    """
    config = nbgrader_config(Path.cwd())
    directory = CourseDirectory(config=config)
    gradebook.fill(directory, config, assignment)
    with gradebook.opened(directory) as book:
        late.settle(book, settings.read(Path(directory.root)), assignment)
