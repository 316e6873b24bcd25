"""Where each student stands: what the judge found, what a person gave, what lateness took; into scores.csv.

The judge's parts come from the record, everything else from nbgrader's gradebook, as rows of the same kind. So the
points of a lesson's rows add up to what feedback, report, gradebook and learning platform show.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Grade, GradeCell, SubmittedAssignment, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory

from unrolled_grader.classroom import gradebook, late, settings
from unrolled_grader.classroom.course import Course
from unrolled_grader.jobs import record
from unrolled_grader.judge.evidence import CELL, Score
from unrolled_grader.results import regrades

WAITS, MARKED, UNANSWERED, LATE = "waits", "marked", "unanswered", "late"
"""Verdicts of rows that are not the judge's: a person has not read it, has given points, had nothing to read; lateness
took points."""
BY_A_PERSON = "by a person"
"""The part of a check that holds what a person's score adds to the judge's, or takes from it."""


@dataclass
class _Submission:
    """What the gradebook knows of a submission."""

    grades: list[Any] = field(default_factory=list)
    late: str = ""  # in words
    penalty: float = 0.0


def records(directory: CourseDirectory, grades: Path) -> Iterator[record.Record]:
    """Yield each record by student and lesson, without measured pairs, with the gradebook's rows after the judge's."""
    known = _submissions(directory)
    for kept in record.load_all(grades):
        found = known.get((kept.student, kept.lesson))
        yield replace(kept, scores=(*kept.scores, *_beside(kept, found))) if found else kept


def of_class(course: Course) -> list[record.Record]:
    """Return every record with what a person gave and what lateness took, by student and lesson."""
    with gradebook.quiet():
        return list(records(course.directory, course.grades))


def write_scores(
    directory: CourseDirectory, grades: Path, reason: str = "", forced: Collection[tuple[str, str]] = ()
) -> set[tuple[str, str]]:
    """Bring lateness up to date, write scores.csv, and log the points that changed, for this reason where one is given.

    `forced` are the submissions (student, lesson) that were graded again although nothing about them had changed.
    Returns the submissions that stand otherwise than before.
    """
    with gradebook.opened(directory) as book:
        late.settle(book, settings.read(Path(directory.root)))
    known = list(records(directory, grades))
    changed = regrades.note(grades, known, reason, forced)
    record.write_scores(grades, known)
    return changed


def _beside(kept: record.Record, found: _Submission) -> Iterator[Score]:
    """The gradebook's rows: answers in words, what a person changed, lateness."""
    for grade in found.grades:
        if not grade.name.startswith(CELL):
            yield _answer(grade)
        elif grade.manual_score is not None or grade.extra_credit:
            check = grade.name.removeprefix(CELL)
            judged, given = kept.points_of(check), _points(grade)
            detail = f"{given:g} of {grade.max_score:g} points, in place of the judge's {judged:g}"
            yield Score(f"{check}/{BY_A_PERSON}", MARKED, given - judged, 0.0, detail)
    if found.late:
        deduction = f"{found.penalty:g} points less" if found.penalty else "no points less"
        yield Score(LATE, LATE, -found.penalty, 0.0, f"{found.late}: {deduction}")


def _answer(grade: Any) -> Score:
    verdict, detail = UNANSWERED, "no answer"
    if grade.manual_score is not None:
        verdict, detail = MARKED, "to be read again: the answer changed" if grade.needs_manual_grade else "by a person"
    elif grade.needs_manual_grade:
        verdict, detail = WAITS, "a person has not read it yet"
    return Score(grade.name, verdict, _points(grade), float(grade.max_score), detail)


def _points(grade: Any) -> float:
    """As nbgrader counts them."""
    given = grade.auto_score if grade.manual_score is None else grade.manual_score
    return float(given or 0.0) + float(grade.extra_credit or 0.0)


def _submissions(directory: CourseDirectory) -> dict[tuple[str, str], _Submission]:
    """All submissions of the gradebook by student and lesson, in two queries."""
    found: dict[tuple[str, str], _Submission] = {}
    if not gradebook.file(directory).exists():
        return found
    zone = settings.read(Path(directory.root), agreeing=False).zone
    with gradebook.opened(directory) as book:
        for item in book.db.query(SubmittedAssignment).all():
            about = found.setdefault((item.student_id, item.assignment.name), _Submission())
            if span := late.span(item):
                about.late = late.in_words(*span, zone)
            about.penalty = float(item.late_submission_penalty or 0.0)
        columns = (SubmittedAssignment.student_id, Assignment.name.label("lesson"), GradeCell.name, GradeCell.max_score)
        scores = (Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade)
        query = (
            book.db.query(*columns, *scores)
            .select_from(Grade)
            .join(GradeCell, Grade.cell_id == GradeCell.id)
            .join(SubmittedNotebook, Grade.notebook_id == SubmittedNotebook.id)
            .join(SubmittedAssignment, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
            .join(Assignment, SubmittedAssignment.assignment_id == Assignment.id)
        )
        for row in query.all():
            found[row.student_id, row.lesson].grades.append(row)
    return found
