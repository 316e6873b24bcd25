"""nbgrader's door to the judge, for `nbgrader autograde`, formgrader's Autograde button and `unrolled grade` alike.

grader/nbgrader_config.py puts `Judge` where nbgrader has Execute and SaveAutoGrades. nbgrader's own rule (no exception:
full marks; a trailing number: the grade; text on stderr: zero) decides nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_solution
from traitlets import Unicode

from unrolled import checks
from unrolled_grader import authoring, evidence, gradebook, intake, judge, record, repair
from unrolled_grader.record import Record

STAMP = "unrolled_grading"
"""In an autograded notebook's metadata: the date of the record that belongs to it. Written last, so it means done."""
REPAIRS = "unrolled_repairs"
"""In a sanitized notebook's metadata: what `Repair` did, as pairs of grade_id and text."""


class Judge(NbGraderPreprocessor):  # type: ignore[misc]
    """Run a sanitized notebook, score it by what the judge finds, and keep gradebook, record and scores.csv."""

    grades_directory = Unicode(
        "grades", help="Where records and scores.csv are kept, relative to CourseDirectory.root."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Judge `nb`. Nothing that a notebook does raises; a gradebook that cannot be written does."""
        student, lesson = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        directory = CourseDirectory(parent=self)
        directory.db_url = resources["nbgrader"]["db_url"]
        specs: Mapping[str, checks.Spec] = checks.lessons().get(lesson, {})
        self._warn_of_unknown(nb, lesson, set(specs))
        notes = tuple(repair.Note(*pair) for pair in nb.metadata.get(REPAIRS, ()))
        verdicts = self._judge(judge.Submission(student, lesson, nb, specs))
        verdicts = replace(verdicts, scores=tuple(_noted(score, notes) for score in verdicts.scores))
        points: dict[str, float] = {}
        for score in verdicts.scores:
            cell = evidence.CELL + score.check
            points[cell] = points.get(cell, 0.0) + score.points
        gradebook.save(directory, student, lesson, verdicts.notebook, points)
        kept = self._keep(directory, student, lesson, verdicts, notes)
        verdicts.notebook.metadata[STAMP] = kept.date
        return verdicts.notebook, resources

    def _judge(self, submission: judge.Submission) -> judge.Verdicts:
        try:
            return judge.judge(submission)
        except Exception as error:  # a fault of ours must not stop the class: 0 points, and a flag that says so
            self.log.exception("The judge failed for %s, %s", submission.student, submission.lesson)
            reason = f"the judge failed: {type(error).__name__}: {error}"
            flag = "not the student's fault: grade again"
            scores = [evidence.without(name, spec, "crashed", reason, flag) for name, spec in submission.specs.items()]
            return judge.Verdicts(submission.notebook, tuple(part for parts in scores for part in parts), 0.0, ())

    def _keep(
        self,
        directory: CourseDirectory,
        student: str,
        lesson: str,
        verdicts: judge.Verdicts,
        notes: tuple[repair.Note, ...],
    ) -> Record:
        handed_in = Path(directory.format_path(directory.submitted_directory, student, lesson), f"{lesson}.ipynb")
        kept = Record(
            student,
            lesson,
            intake.digest(handed_in),
            verdicts.scores,
            seconds=verdicts.seconds,
            seeds=verdicts.seeds,
            repairs=tuple(str(note) for note in notes),
        )
        grades = Path(directory.root, self.grades_directory)
        record.save(grades, kept)
        record.write_scores(grades)
        return kept

    def _warn_of_unknown(self, nb: NotebookNode, lesson: str, known: set[str]) -> None:
        for cell in nb.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if is_grade(cell) and not is_solution(cell) and name.removeprefix(evidence.CELL) not in known:
                self.log.warning("%s: no check is declared for the cell %r, so it earns nothing", lesson, name)


class Repair(NbGraderPreprocessor):  # type: ignore[misc]
    """Give a submitted notebook its cells and grade_ids back, by the notebook that was handed out.

    It takes the place of nbgrader's DeduplicateIds and of OverwriteCells.add_missing_cells. What it did is kept in the
    sanitized notebook's metadata, for `Judge`.
    """

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Repair `nb`. Raises GradebookError if the lesson's notebook was not built."""
        released = gradebook.released(CourseDirectory(parent=self), resources["nbgrader"]["assignment"])
        nb, notes = repair.repair(nb, released)
        for note in notes:
            self.log.warning("Repaired: %s", note)
        nb.metadata[REPAIRS] = [[note.cell, note.text] for note in notes]
        return nb, resources


def _noted(score: evidence.Score, notes: Sequence[repair.Note]) -> evidence.Score:
    """The score, with what was repaired of its exercise and its check in front of the detail."""
    texts = [note.text for note in notes if note.concerns(score.check)]
    return replace(score, detail=f"(repaired: {'; '.join(texts)}) {score.detail}".rstrip()) if texts else score


def know_lesson(assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """nbgrader's hook before it grades, in the course's root: make sure that the gradebook knows the lesson's cells.

    So `nbgrader autograde` and formgrader work on a fresh checkout, without nbgrader's generate_assignment before.
    """
    config = authoring.nbgrader_config(Path.cwd())
    gradebook.fill(CourseDirectory(config=config), config, assignment)
