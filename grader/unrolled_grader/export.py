"""Points for a learning platform: `nbgrader export --exporter unrolled_grader.export.Canvas --to FILE`, `.Moodle`, or
`.Brightspace`.

The points are those of nbgrader's gradebook: the judge's, or a person's where there is one, less what lateness costs.
Where submissions of a lesson still stand on another scale than the class has now, nothing is written. A lesson that
waits for a person, or for a machine with a GPU, is no final result: its cell stays empty, unless
`--Canvas.unfinished=points` (or `--Moodle.unfinished=points`) says otherwise. So does the cell of a student who handed
in nothing: whether that is 0 is for a person to say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbgrader.api import Assignment, Gradebook, Student, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExportPlugin
from traitlets import Enum

import unrolled
from unrolled import checks
from unrolled.checks import choices
from unrolled.cli import CommandError
from unrolled_grader.classroom import late, settings
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record, one_line
from unrolled_grader.judge.evidence import CELL, VERDICTS

Handed = dict[tuple[str, str], SubmittedAssignment]  # what was handed in, by lesson and student


class _Points(ExportPlugin):  # type: ignore[misc]
    """What both platforms have in common: one row a student, the lessons side by side."""

    unfinished = Enum(
        ["empty", "points"],
        default_value="empty",
        help="What stands for a lesson that is not graded to the end: nothing, or the points so far.",
    ).tag(config=True)

    @abstractmethod
    def rows(self, lessons: Sequence[Assignment], students: Sequence[Student], handed: Handed) -> Iterator[list[str]]:
        """Yield the table's rows, its head first. Every text has passed `one_line`, so that none becomes a formula."""

    def export(self, gradebook: Gradebook) -> None:
        """Write the table to the file that `--to` names, or else to canvas.csv, moodle.csv or brightspace.csv.

        Lateness is calculated anew: a person may have given points, or an extension, since the last grading.
        """
        root = Path(CourseDirectory(parent=self).root)
        try:
            late.settle(gradebook, settings.read(root))
            self._need_one_scale(root)
        except CommandError as error:
            self.log.error("nothing was written: %s", error)
            raise SystemExit(1) from error
        wanted = {str(name) for name in self.assignment}, {str(name) for name in self.student}
        lessons = [item for item in gradebook.assignments if not wanted[0] or item.name in wanted[0]]
        lessons.sort(key=lambda lesson: lesson.name)
        students = [item for item in gradebook.students if not wanted[1] or item.id in wanted[1]]
        students.sort(key=lambda student: student.id)
        items = ((lesson.name, item) for lesson in lessons for item in gradebook.assignment_submissions(lesson.name))
        handed = {(lesson, item.student_id): item for lesson, item in items}
        file = Path(self.to or f"{type(self).__name__.lower()}.csv")
        record.replace_file(file, record.csv_text(self.rows(lessons, students, handed)))
        self.log.info("%d students and %d lessons are in %s", len(students), len(lessons), file)
        chosen = {student.id for student in students}
        self._warn(students, [item for (_, student), item in handed.items() if student in chosen])

    def _need_one_scale(self, root: Path) -> None:
        """Raise CommandError if a lesson has points by what the class asks now beside others."""
        for lesson, students in _on_another_scale(root / self.config.Judge.get("grades_directory", "grades")).items():
            if not self.assignment or lesson in map(str, self.assignment):
                raise CommandError(
                    f"{len(students)} submissions of {lesson} stand on another scale than the class has now "
                    f"({one_line(', '.join(students))}): `unrolled grade {lesson[:2]}` judges them again"
                )

    def shown(self, submission: SubmittedAssignment | None) -> bool:
        """Return whether a submission's points stand in the table."""
        return submission is not None and (self.unfinished == "points" or not submission.needs_manual_grade)

    def points(self, submission: SubmittedAssignment | None) -> str:
        """Return the points of a submission as text, empty where they do not stand in the table."""
        if submission is None or not self.shown(submission):
            return ""
        return _number(max(0.0, submission.score - (submission.late_submission_penalty or 0.0)))

    def _warn(self, students: Sequence[Student], handed: Sequence[SubmittedAssignment]) -> None:
        waiting = sum(bool(item.needs_manual_grade) for item in handed)
        if waiting:
            what = "left empty" if self.unfinished == "empty" else "exported with the points so far"
            self.log.warning("%d of %d submissions are not graded to the end; they are %s", waiting, len(handed), what)
        changed = [one.id for one in students if one_line(one.id) != one.id]
        if changed:
            self.log.warning("%d student ids look like formulas and are written as text: %s", len(changed), changed)


class Canvas(_Points):
    """The CSV that Canvas' Gradebook imports.

    Canvas finds a student by ID (its own number: nbgrader's lms_user_id), then by SIS Login ID (nbgrader's id), then by
    name. A column's head is an assignment's title, or "title (number)"; for a title that it does not know, Canvas asks
    whether to make an assignment, worth what stands in the row "Points Possible". Before it changes anything it shows
    what would change.

    Sources: https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807 and
    what reads the file, https://github.com/instructure/canvas-lms/blob/master/lib/gradebook_importer.rb.
    """

    HEAD = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")

    def rows(self, lessons: Sequence[Assignment], students: Sequence[Student], handed: Handed) -> Iterator[list[str]]:
        """Yield a head, the points possible, then the students."""
        yield [*self.HEAD, *(one_line(lesson.name) for lesson in lessons)]
        yield ["    Points Possible", "", "", "", "", *(_number(lesson.max_score) for lesson in lessons)]
        for student in students:
            name = ", ".join(filter(None, (student.last_name, student.first_name))) or student.id
            who = [one_line(text or "") for text in (name, student.lms_user_id, "", student.id, "")]
            yield [*who, *(self.points(handed.get((lesson.name, student.id))) for lesson in lessons)]


class Moodle(_Points):
    """The CSV that Moodle's gradebook imports, to be mapped by username.

    Username is nbgrader's id, ID number its lms_user_id. A lesson has two columns, its points and what they are made
    of, because Moodle takes grades away where feedback comes without them.

    Sources: https://docs.moodle.org/en/Grade_import and what reads the file,
    https://github.com/moodle/moodle/blob/main/grade/import/csv/classes/load_data.php.
    """

    HEAD = ("First name", "Last name", "Username", "ID number", "Email address")

    def rows(self, lessons: Sequence[Assignment], students: Sequence[Student], handed: Handed) -> Iterator[list[str]]:
        """Yield a head, then the students."""
        yield [*self.HEAD, *(text for lesson in lessons for text in (lesson.name, f"{lesson.name} (feedback)"))]
        for student in students:
            texts = (student.first_name, student.last_name, student.id, student.lms_user_id, student.email)
            row = [one_line(text or "") for text in texts]
            for lesson in lessons:
                submission = handed.get((lesson.name, student.id))
                row += [self.points(submission), _reasons(submission) if self.shown(submission) else ""]
            yield row


class Brightspace(_Points):
    """The CSV that Brightspace's gradebook imports: it makes an item of each "NAME Points Grade" that it does not have.

    OrgDefinedId is nbgrader's id, with the "#" before it that Brightspace's own export has.

    Sources: https://community.d2l.com/brightspace/kb/articles/3538-importing-grades and an export of Brightspace.
    """

    def rows(self, lessons: Sequence[Assignment], students: Sequence[Student], handed: Handed) -> Iterator[list[str]]:
        """Yield a head, then the students."""
        yield [
            "OrgDefinedId",
            *(f"{one_line(lesson.name)} Points Grade" for lesson in lessons),
            "End-of-Line Indicator",
        ]
        for student in students:
            points = [self.points(handed.get((lesson.name, student.id))) for lesson in lessons]
            yield [f"#{one_line(student.id)}", *points, "#"]


def _on_another_scale(grades: Path) -> dict[str, list[str]]:
    """The students whose submissions have other points or thresholds than the class asks now, by lesson.

    What another version of the course judged has a scale of its own, and is brought to this one's.
    """
    found: dict[str, list[str]] = {}
    for kept in record.load_all(grades):
        specs = checks.judged(kept.lesson)
        if specs and kept.version == unrolled.__version__ and not _fits(kept, choices.parts(specs)):
            found.setdefault(kept.lesson, []).append(kept.student)
    return found


def _fits(kept: Record, required: dict[str, tuple[float, float | None]]) -> bool:
    """Whether a submission was judged by these points and thresholds."""
    judged = [score for score in kept.scores if score.verdict in VERDICTS]
    if {score.part: score.max_points for score in judged} != {part: points for part, (points, _) in required.items()}:
        return False
    return all(score.timings[-1]["at_least"] == required[score.part][1] for score in judged if score.timings)


def _reasons(submission: SubmittedAssignment | None) -> str:
    """What a submission's points are made of, in one line: "im2col 2 of 3, explain_gemm 1 of 2; late -0.5"."""
    if submission is None:
        return ""
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    parts = [f"{one.name.removeprefix(CELL)} {_number(one.score)} of {_number(one.max_score)}" for one in grades]
    late = submission.late_submission_penalty or 0.0
    return one_line(", ".join(parts) + (f"; late -{_number(late)}" if late else ""))


def _number(value: float | None) -> str:
    return f"{round(float(value or 0), 2):.10g}"
