"""What is recorded of a submission that cannot be graded: 0 for each part, with the reason."""

from __future__ import annotations

import shutil
from pathlib import Path

from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory

from unrolled import checks
from unrolled_grader.classroom import gradebook
from unrolled_grader.jobs import job, record, versions
from unrolled_grader.jobs.record import Key, Record
from unrolled_grader.judge import evidence
from unrolled_grader.judge.intake import Handed


def need_release(directory: CourseDirectory, nb: NotebookNode, lesson: str) -> None:
    """Raise RefusedError for an opened notebook of a version of the course that is not here."""
    versions.release_for(versions.version_of(nb), gradebook.released_file(directory, lesson))


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
