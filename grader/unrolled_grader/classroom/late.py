"""What lateness costs: the policy of course.toml, through nbgrader's own plugin for late penalties.

Due dates and extensions go into nbgrader's gradebook, so that formgrader shows them and nbgrader's AssignLatePenalties
compares them with the time stamp of what was handed in. All of it is UTC there. A changed date, time
stamp or policy changes penalties without judging anything again.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin as NbgradersPlugin

from unrolled_grader.classroom import settings
from unrolled_grader.classroom.settings import Late, Settings

DAY = 86_400.0


class LateSubmissionPlugin(NbgradersPlugin):  # type: ignore[misc]
    """What nbgrader asks for each late submission; grader/nbgrader_config.py names it."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points that lateness takes from `score`; None if it takes nothing."""
        policy = settings.read(Path(CourseDirectory(parent=self).root)).late
        return penalty(score, total_seconds_late, policy) or None


def settle(gradebook: Gradebook, chosen: Settings, lesson: str | None = None, student: str | None = None) -> None:
    """Bring due dates, extensions and penalties in the gradebook up to date, of all or of one lesson or student.

    A class without due dates in course.toml keeps those that a person set in formgrader.
    """
    if not chosen.due:
        return
    for assignment in gradebook.assignments:
        if lesson not in (None, assignment.name):
            continue
        due = _moment(chosen.due.get(assignment.name))
        _set(assignment, "duedate", due)
        for submission in assignment.submissions:
            if student in (None, submission.student_id):
                own = _moment(chosen.due_for(submission.student_id, assignment.name))
                _set(submission, "extension", own - due if own and due and own != due else None)
                for notebook in submission.notebooks:  # as nbgrader's AssignLatePenalties does when it autogrades
                    taken = penalty(notebook.score, submission.total_seconds_late, chosen.late) or None
                    _set(notebook, "late_submission_penalty", taken)
    gradebook.db.commit()


def penalty(points: float, seconds: float, policy: Late) -> float:
    """Return the points that are taken from `points` when something comes this many seconds after its due date."""
    return round(max(0.0, points) * share(seconds, policy), 2)


def share(seconds: float, policy: Late) -> float:
    """Return the part of the points taken, 0 to 1: none within the grace, then for every day begun since it was due."""
    if seconds <= 60 * policy.grace_minutes:
        return 0.0
    return min(policy.at_most, policy.per_day * math.ceil(seconds / DAY))


def in_words(seconds: float) -> str:
    """Return how late in words: "3 minutes late", "5 hours late", "2 days late"; always the last full unit."""
    for unit, length in (("day", DAY), ("hour", 3600.0), ("minute", 60.0)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count > 1 else ''} late"
    return "less than a minute late"


def _set(row: Any, name: str, value: datetime | timedelta | float | None) -> None:
    """Write only what changes: a row that is not dirty locks no gradebook."""
    if getattr(row, name) != value:
        setattr(row, name, value)


def _moment(date: datetime | None) -> datetime | None:
    """A date as the gradebook keeps it: in UTC, and without saying so."""
    return None if date is None else date.astimezone(timezone.utc).replace(tzinfo=None)
