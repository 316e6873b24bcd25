"""nbgrader's gradebook: filled from solutions/ on first use, written with the judge's scores.

A score that a person gave is never touched: nbgrader keeps it beside ours and lets it count.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import nbgrader.api
import sqlalchemy
from nbformat import NotebookNode
from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    MissingEntry,
    SolutionCell,
    SourceCell,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.utils import capture_log, compute_checksum, is_grade, is_solution

from unrolled.notebook import cells
from unrolled.notebook.cells import grade_id
from unrolled_grader.classroom import roster
from unrolled_grader.classroom.roster import Person


class GradebookError(Exception):
    """The gradebook cannot be filled: which lesson, and what nbgrader says about it."""


def file(directory: CourseDirectory) -> Path:
    """Return where the gradebook lies."""
    return Path(directory.db_url.removeprefix("sqlite:///").partition("?")[0])


@contextmanager
def opened(directory: CourseDirectory) -> Iterator[Gradebook]:
    """Open the course's gradebook for the block; create it if it is not there."""
    if directory.db_url.startswith("sqlite:") and not file(directory).exists():
        _create(directory)
    with Gradebook(directory.db_url, directory.course_id) as gradebook:
        yield gradebook


@contextmanager
def one_engine() -> Iterator[None]:
    """Let whatever opens a gradebook in the block share one engine of SQLAlchemy, which looks for missing tables once.

    nbgrader opens it a dozen times a submission, each time with a new engine, which compiles every statement anew.
    """
    tables = nbgrader.api.Base.metadata
    made, filled = nbgrader.api.create_engine, tables.create_all
    nbgrader.api.create_engine, tables.create_all = functools.cache(made), functools.cache(filled)
    try:
        yield
    finally:
        nbgrader.api.create_engine, tables.create_all = made, filled


def _create(directory: CourseDirectory) -> None:
    """Make an empty gradebook beside its place, then let it take it: this may be killed.

    As nbgrader makes one, which starts another process to ask Alembic for the newest version: over two seconds.
    """
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    target = file(directory)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".gradebook-") as folder:
        made = Path(folder, target.name)
        engine = sqlalchemy.create_engine(f"sqlite:///{made}")
        with engine.begin() as connection:
            connection.exec_driver_sql("BEGIN")  # else each table is a transaction of its own, and waits for the disk
            nbgrader.api.Base.metadata.create_all(connection)
            MigrationContext.configure(connection).stamp(ScriptDirectory(ALEMBIC_DIR), "heads")
        engine.dispose()
        if not target.exists():
            os.replace(made, target)


def fill(directory: CourseDirectory, config: Any, lesson: str) -> None:
    """Make sure that the gradebook knows the lesson's cells as they are now.

    Exercises that are gone go with their points, those that are new have none yet: the lesson is to be graded again.
    nbgrader's own GenerateAssignment does it, from solutions/; what it would release goes to a temporary folder, so
    notebooks/ stays as it is. Raises GradebookError.
    """
    with opened(directory) as gradebook:
        known, now = _known(gradebook, lesson), _released(directory, lesson)
        if known == now:
            return
        if known is not None and known.keys() != now.keys():
            _exchange(gradebook, lesson, released(directory, lesson))
    with tempfile.TemporaryDirectory(prefix="unrolled-release-") as folder:
        into = CourseDirectory(config=config, assignment_id=lesson, release_directory=folder)
        into.db_url = directory.db_url
        converter = GenerateAssignment(coursedir=into, config=config, force=True)
        result = capture_log(converter)
    if not result["success"]:
        raise GradebookError(
            f"nbgrader cannot put {lesson} into the gradebook ({last_error(result)}). If its exercises changed after "
            f"submissions were graded, move {file(directory)} aside and grade again."
        )


def _exchange(gradebook: Gradebook, lesson: str, notebook: NotebookNode) -> None:
    """Let the lesson have the cells of this notebook, all at once, where submissions have it and nbgrader refuses to.

    Raises GradebookError where points would go that a person gave for an answer in words.
    """
    book, session = gradebook.find_notebook(lesson, lesson), gradebook.db
    marked = {name: cell for cell in notebook.cells if (name := grade_id(cell))}
    kinds = {GradeCell: is_grade, SolutionCell: is_solution, SourceCell: lambda cell: True}
    for kind, fits in kinds.items():
        wanted = {name: cell for name, cell in marked.items() if fits(cell)}
        there = {cell.name: cell for cell in session.query(kind).filter(kind.notebook_id == book.id)}
        for cell in (there[name] for name in there.keys() - wanted.keys()):
            _let_go(session, lesson, cell)
        for name in wanted.keys() - there.keys():
            new = kind(name=name, notebook=book, **_columns(kind, wanted[name]))
            session.add(new)
            session.flush()
            for submitted in book.submissions if kind is not SourceCell else ():
                session.add((Grade if kind is GradeCell else Comment)(cell_id=new.id, notebook=submitted))
    session.commit()


def _columns(kind: type, cell: NotebookNode) -> dict[str, Any]:
    """What the gradebook keeps of a new cell; nbgrader itself fills in the rest."""
    worth = {"max_score": float(cell.metadata.nbgrader["points"])} if kind is GradeCell else {}
    return worth if kind is SolutionCell else {"cell_type": cell.cell_type, **worth}


def _let_go(session: Any, lesson: str, cell: Any) -> None:
    """Delete a cell that the lesson no longer has, with what stands for it in submissions."""
    grades = session.query(Grade).filter(Grade.cell_id == cell.id)
    in_words = isinstance(cell, GradeCell) and cell.cell_type == "markdown"
    if in_words and grades.filter(Grade.manual_score.is_not(None)).count():
        session.rollback()
        raise GradebookError(
            f"{lesson} no longer has {cell.name}, for which people gave points: put the cell back into the lesson"
        )
    grades.delete()
    session.query(Comment).filter(Comment.cell_id == cell.id).delete()
    session.delete(cell)


def enrol(directory: CourseDirectory, people: Iterable[Person]) -> None:
    """Enter these people for formgrader and the platform's CSV. What the roster does not say stays as it is."""
    with opened(directory) as gradebook:
        for person in people:
            given, family = roster.parted(person.name)
            fields = {"first_name": " ".join(given), "last_name": " ".join(family)}
            fields |= {"email": person.email, "lms_user_id": person.lms_id}
            gradebook.update_or_create_student(person.id, **{name: text for name, text in fields.items() if text})


def last_error(result: Mapping[str, Any]) -> str:
    """Return the last exception that nbgrader logged, or else raised, in one line."""
    for text in (result.get("log", "").replace("\n    ", "\n"), result.get("error", "")):  # its log indents by 4
        if raised := re.findall(r"^ .*\n(?:\w+\.)*(\w+(?::.*)?)$", text, re.MULTILINE):
            return str(raised[-1])
    return "nbgrader gives no reason"


def save(
    directory: CourseDirectory,
    student: str,
    lesson: str,
    notebook: NotebookNode,
    points: Mapping[str, float],
    deferred: Collection[str] = (),
    same: Collection[str] = (),
) -> None:
    """Write the scores (grade_id of a check's cell -> points) of a judged notebook, and comment on missing answers.

    An answer in words waits for a person; where the student changed nothing, it is 0 and waits for nobody. Cells with
    `deferred` points are marked for a person too, until a machine settles them. What a person scored is shown to a
    person again if it changed: an answer in words that is not in `same`, or other points of the judge.
    """
    cells = {name: cell for cell in notebook.cells if (name := grade_id(cell))}
    with opened(directory) as gradebook:
        submitted = gradebook.find_submission_notebook(lesson, lesson, student)
        for grade in submitted.grades:
            if isinstance(grade.cell, TaskCell):
                continue  # scored by a person alone
            answer = cells.get(grade.name)
            in_words = answer is not None and is_solution(answer) and not _unanswered(answer)
            auto = None if in_words else points.get(grade.name, 0.0)
            unchanged = grade.name in same or grade.auto_score == auto is not None
            _set(grade, auto, waits=grade.name in deferred, same=unchanged)
        for comment in submitted.comments:
            if not isinstance(comment.cell, TaskCell):
                comment.auto_comment = "No response." if _unanswered(cells.get(comment.name)) else None
        gradebook.db.commit()


def save_zero(directory: CourseDirectory, student: str, lesson: str, reason: str, *, waits: bool = False) -> None:
    """Write 0 and the reason to each cell of what could not be graded; if it `waits`, marked for a person to decide."""
    with opened(directory) as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission(lesson, student)
        submitted: SubmittedNotebook = gradebook.find_submission_notebook(lesson, lesson, student)
        for grade in submitted.grades:
            _set(grade, 0.0, waits=waits)
        for comment in submitted.comments:
            comment.auto_comment = f"Not graded: {reason}."
        gradebook.db.commit()


def set_time(directory: CourseDirectory, student: str, lesson: str, when: datetime | None) -> None:
    """Enter when a submission came, in UTC; None where nothing tells, or nbgrader would keep the time of one before."""
    with opened(directory) as gradebook:
        submission = gradebook.find_submission(lesson, student)
        if submission.timestamp != when:
            submission.timestamp = when
            gradebook.db.commit()


def has_scores(directory: CourseDirectory, student: str, lesson: str) -> bool:
    """Return whether the gradebook holds a graded submission."""
    with opened(directory) as gradebook, suppress(MissingEntry):
        submitted = gradebook.find_submission_notebook(lesson, lesson, student)
        return any(grade.auto_score is not None for grade in submitted.grades)
    return False


def _set(grade: Any, auto_score: float | None, *, waits: bool = False, same: bool = False) -> None:
    """As nbgrader's SaveAutoGrades: what a person scored is kept, and shown again for review if it is not the same."""
    grade.auto_score = auto_score
    marked = grade.manual_score is not None
    to_review = grade.needs_manual_grade if same else True
    grade.needs_manual_grade = waits or (to_review if marked else auto_score is None)


def _unanswered(cell: NotebookNode | None) -> bool:
    """Whether a cell for an answer is missing or as it was handed out."""
    return cell is None or cell.metadata.nbgrader.get("checksum") == compute_checksum(cell)


def released(directory: CourseDirectory, lesson: str) -> NotebookNode:
    """Return the notebook of the lesson that learners get. Raises GradebookError if it was not built."""
    return cells.read(released_file(directory, lesson))


def released_file(directory: CourseDirectory, lesson: str) -> Path:
    """Return the file of the notebook that learners get. Raises GradebookError if there is none."""
    file = Path(directory.format_path(directory.release_directory, ".", lesson), f"{lesson}.ipynb")
    if not file.is_file():
        raise GradebookError(f"{file} is missing: `make build` makes it from the lesson")
    return file


def _known(gradebook: Gradebook, lesson: str) -> dict[str, tuple[str, float]] | None:
    """The lesson's cells in the gradebook: checksum and points by grade_id; None if it does not know the lesson."""
    with suppress(MissingEntry):
        notebook = gradebook.find_notebook(lesson, lesson)
        points = {cell.name: float(cell.max_score) for cell in notebook.grade_cells}
        return {cell.name: (cell.checksum, points.get(cell.name, 0.0)) for cell in notebook.source_cells}
    return None


def _released(directory: CourseDirectory, lesson: str) -> dict[str, tuple[str, float]]:
    """Give checksum and points of each marked cell of the notebook that learners get, by grade_id."""
    cells = released(directory, lesson).cells
    marks = [cell["metadata"]["nbgrader"] for cell in cells if "nbgrader" in cell["metadata"]]
    points = {mark["grade_id"]: float(mark["points"]) for mark in marks if mark["grade"]}
    return {mark["grade_id"]: (mark.get("checksum"), points.get(mark["grade_id"], 0.0)) for mark in marks}


@contextmanager
def quiet() -> Iterator[None]:
    """Keep nbgrader's log and its database's warnings off the terminal; what goes wrong is in its results."""
    log = logging.getLogger("traitlets")
    before, log.propagate = log.propagate, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.propagate = before
