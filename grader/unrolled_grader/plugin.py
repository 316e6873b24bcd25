"""nbgrader's door to the judge, for `nbgrader autograde`, formgrader's Autograde button and `unrolled grade` alike.

grader/nbgrader_config.py puts `Judge` where nbgrader has Execute and SaveAutoGrades. nbgrader's own rule (no exception:
full marks; a trailing number: the grade; text on stderr: zero) decides nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor, OverwriteCells
from nbgrader.utils import is_grade, is_solution
from traitlets import Unicode

from unrolled import checks
from unrolled_grader import authoring, evidence, gradebook, intake, judge, record
from unrolled_grader.record import Record

STAMP = "unrolled_grading"
"""In an autograded notebook's metadata: the date of the record that belongs to it. Written last, so it means done."""


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
        verdicts = self._judge(judge.Submission(student, lesson, nb, specs))
        points: dict[str, float] = {}
        for score in verdicts.scores:
            cell = evidence.CELL + score.check
            points[cell] = points.get(cell, 0.0) + score.points
        gradebook.save(directory, student, lesson, verdicts.notebook, points)
        kept = self._keep(directory, student, lesson, verdicts)
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

    def _keep(self, directory: CourseDirectory, student: str, lesson: str, verdicts: judge.Verdicts) -> Record:
        handed_in = Path(directory.format_path(directory.submitted_directory, student, lesson), f"{lesson}.ipynb")
        kept = Record(
            student,
            lesson,
            intake.digest(handed_in),
            verdicts.scores,
            seconds=verdicts.seconds,
            seeds=verdicts.seeds,
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


class RestoreCells(OverwriteCells):  # type: ignore[misc]
    """nbgrader's OverwriteCells, which also puts back missing cells where their neighbours are missing too."""

    def add_missing_grade_cells(self, nb: NotebookNode, resources: ResourcesDict) -> tuple[NotebookNode, ResourcesDict]:
        """Insert each missing cell after the nearest one before it, in the order of the lesson, that is there."""
        source = self.gradebook.find_notebook(self.notebook_id, self.assignment_id)
        points = {cell.name: cell.max_score for cell in source.grade_cells}
        answers = {cell.name for cell in source.solution_cells}
        at = 0
        for cell in source.source_cells:
            places = [index for index, there in enumerate(nb.cells) if _name(there) == cell.name]
            if not places and cell.name in points:
                self.log.warning("Missing grade cell %s put back", cell.name)
                added = self.missing_cell_transform(cell, points[cell.name], is_solution=cell.name in answers)
                if cell.name in answers:
                    added.source = cell.source  # as handed out, so that it counts as unanswered
                nb.cells.insert(at, added)
                places = [at]
            at = places[-1] + 1 if places else at
        return nb, resources


def _name(cell: NotebookNode) -> str | None:
    mark = cell.metadata.get("nbgrader")
    return mark.get("grade_id") if isinstance(mark, dict) else None


def know_lesson(assignment: str, student: str, notebooks: Sequence[str]) -> None:
    """nbgrader's hook before it grades, in the course's root: make sure that the gradebook knows the lesson's cells.

    So `nbgrader autograde` and formgrader work on a fresh checkout, without nbgrader's generate_assignment before.
    """
    config = authoring.nbgrader_config(Path.cwd())
    gradebook.fill(CourseDirectory(config=config), config, assignment)
