"""What lateness costs: the policy of course.toml, through nbgrader's own plugin for late penalties.

Due dates and extensions go into nbgrader's gradebook, so that formgrader shows them and nbgrader's AssignLatePenalties
compares them with the time stamp of what was handed in. All of it is UTC there; days are those of the calendar of the
class's time zone, of which one has 23 and one 25 hours a year. A changed date, time stamp or policy changes penalties
without judging anything again.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, SubmittedAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin as NbgradersPlugin

from unrolled_grader.classroom import settings
from unrolled_grader.classroom.settings import Settings

DAY = timedelta(days=1)


class LateSubmissionPlugin(NbgradersPlugin):  # type: ignore[misc]
    """What nbgrader asks for each late submission; grader/nbgrader_config.py names it."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points that lateness takes from `score`; None if it takes nothing."""
        chosen = settings.read(Path(CourseDirectory(parent=self).root))
        asking = self.parent  # AssignLatePenalties, with the gradebook open
        return _penalty(score, asking.gradebook.find_submission(asking.assignment_id, student_id), chosen)


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
                    _set(notebook, "late_submission_penalty", _penalty(notebook.score, submission, chosen))
    gradebook.db.commit()


def share(due: datetime, came: datetime, chosen: Settings) -> float:
    """Return the part of the points taken, 0 to 1: none within the grace, then for each day begun since it was due."""
    if passed(due, came) <= timedelta(minutes=chosen.late.grace_minutes):
        return 0.0
    return min(chosen.late.at_most, chosen.late.per_day * days_begun(due, came, chosen.zone))


def passed(due: datetime, came: datetime) -> timedelta:
    """Return the time that passed between them. Python subtracts two times of one time zone by their clocks alone."""
    return came.astimezone(timezone.utc) - due.astimezone(timezone.utc)


def days_begun(due: datetime, came: datetime, zone: tzinfo) -> int:
    """Return how many days have begun since something was due, by the clocks on the wall of that time zone."""
    by_the_clock = came.astimezone(zone).replace(tzinfo=None) - due.astimezone(zone).replace(tzinfo=None)
    return max(1, math.ceil(by_the_clock / DAY))  # clocks that go back make it negative


def in_words(due: datetime, came: datetime, zone: tzinfo) -> str:
    """Return how late in words, in full hours or minutes: "25 hours late (2 days begun)"."""
    minutes = passed(due, came) // timedelta(minutes=1)
    count, unit = (minutes // 60, "hour") if minutes >= 60 else (minutes, "minute")
    words = f"{_counted(count, unit)} late" if minutes else "less than a minute late"
    return f"{words} ({_counted(days_begun(due, came, zone), 'day')} begun)"


def span(submission: SubmittedAssignment) -> tuple[datetime, datetime] | None:
    """Return when a late submission was due and when it came, with their time zone; None if it is not late."""
    if not submission.total_seconds_late:
        return None
    return submission.duedate.replace(tzinfo=timezone.utc), submission.timestamp.replace(tzinfo=timezone.utc)


def _penalty(points: float, submission: SubmittedAssignment, chosen: Settings) -> float | None:
    """The points that lateness takes from `points`, rounded to hundredths; None if it takes nothing."""
    late = span(submission)
    return round(max(0.0, points) * share(*late, chosen), 2) or None if late else None


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _set(row: Any, name: str, value: datetime | timedelta | float | None) -> None:
    """Write only what changes: a row that is not dirty locks no gradebook."""
    if getattr(row, name) != value:
        setattr(row, name, value)


def _moment(date: datetime | None) -> datetime | None:
    """A date as the gradebook keeps it: in UTC, and without saying so."""
    return None if date is None else date.astimezone(timezone.utc).replace(tzinfo=None)
