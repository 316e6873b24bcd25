"""Grading a class: which submissions are left to judge, and what was judged into gradebook, feedback and scores."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from sqlalchemy.exc import SQLAlchemyError

from unrolled import checks
from unrolled_grader.box import lease, sandbox
from unrolled_grader.classroom import gradebook, seeds, settings
from unrolled_grader.classroom.course import Course, CourseError
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.jobs import job, queue, record
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge import intake
from unrolled_grader.judge.intake import Handed
from unrolled_grader.judge.verdicts import Options
from unrolled_grader.plugin import STAMP, Judge, bring_time, refuse
from unrolled_grader.receiving import attempts, collect, collect_command
from unrolled_grader.receiving.attempts import Settled
from unrolled_grader.receiving.received import Received
from unrolled_grader.results import standing

OUR_FAULT = ("OperationalError", "OSError: ", "RecordError", "ReleaseError", "SandboxError", "SeedError", "ZygoteError")
"""How errors begin that are the gradebook's, the disk's or the machine's, not a submission's."""


class Grading(Course):
    """A course whose submissions are judged. What was judged is brought into gradebook, feedback and scores."""

    def judge_with(self, *, timing: bool = True, sandbox: bool = True, gpu: bool = False) -> None:
        """Switch timing or sandbox off, or count on a cluster's GPUs, whatever the configuration says."""
        self.config.Judge.timing = self.options.timing and timing
        self.config.Judge.unsafe_no_sandbox = not (self.options.sandbox and sandbox)
        self.config.Judge.gpu = self.options.gpu or gpu

    @property
    def options(self) -> Options:
        """How submissions are judged."""
        return Judge(config=self.config).options()

    def need_sandbox(self) -> None:
        """Raise CourseError, with the one line that helps, where a sandbox is asked for and does not work here."""
        if self.options.sandbox and (problem := sandbox.problem()):
            raise CourseError(problem)

    def handed_in(self, lessons: Sequence[str], student: str | None) -> list[Handed]:
        """Return what was handed in of these lessons, by all or by one student with their group; print what is not."""
        for stranger in intake.strangers(self.submitted, self.lessons()):
            print(f"passed over: {record.one_line(stranger)}")
        if waiting := collect_command.waiting(self):
            print(waiting)
        known = {lesson: list(checks.lessons()[lesson]) for lesson in lessons}
        students = [None] if student is None else sorted(self.mates(student))
        return [item for one in students for item in intake.find(self.submitted, known, one)]

    def done(self, handed: Handed) -> Record | None:
        """Return the record of this very submission if it was graded to the end; None if something is left to do."""
        kept = self.judged(handed)
        if kept is None or not gradebook.has_scores(self.directory, handed.student, handed.lesson):
            return None
        applied = record.is_applied(self.grades, kept) and self._stamp(handed) == kept.date
        applied = applied and kept.digest == handed.digest  # other bytes may hold the same answers
        return kept if kept.problem or applied else None

    def judged(self, handed: Handed) -> Record | None:
        """Return the record of this very submission if it need not be judged again; None if it must be."""
        released = gradebook.released_file(self.directory, handed.lesson)
        return job.valid_record(self.grades, handed, released, self.options)

    def together(self, handed: Collection[Handed], waiting: Collection[Handed]) -> dict[Handed, Handed]:
        """Return which of the `waiting` need not be judged, as another of their group is, with the same notebook.

        That other is the value: one that was judged already, or else the first of them.
        """
        groups = Received(collect.home(self.submitted)).groups()
        judged, found = dict[tuple[str, str, str], Handed](), dict[Handed, Handed]()
        for item in sorted(handed, key=lambda item: item in waiting):
            if group := groups.get((item.student, item.lesson, item.digest)):
                other = judged.setdefault((group, item.lesson, item.digest), item)
                if other != item and item in waiting:
                    found[item] = other
        return found

    def mates(self, student: str) -> set[str]:
        """Return this student, and all who handed anything in together with them."""
        groups = Received(collect.home(self.submitted)).groups()
        mine = {(group, lesson) for (one, lesson, _), group in groups.items() if one == student}
        return {student, *(one for (one, lesson, _), group in groups.items() if (group, lesson) in mine)}

    def shared(self, judged: Handed, other: Handed) -> Record | CourseError:
        """Apply what was judged of a group's notebook to another member: one notebook has one score."""
        kept = record.finished(self.grades, judged.student, judged.lesson)
        if kept and kept.digest == other.digest:
            notebook = record.notebook(self.grades, judged.student, judged.lesson)
            record.save(self.grades, replace(kept, student=other.student), notebook)
        return self.applied(other)

    def order(self, handed: Handed) -> dict[str, Any]:
        """Return the order for `job.perform` to judge a submission."""
        released = gradebook.released_file(self.directory, handed.lesson)
        seed = seeds.seed_for(Path(self.directory.root), handed.student, handed.lesson, handed.digest)
        return job.order_for(handed, released, self.grades / "jobs", self.options, seed)

    def take(self, answer: Mapping[str, Any]) -> str:
        """Keep what came of an order. Return why the submission could not be judged; empty if it was.

        Raises CourseError if the result cannot be read, as where a cluster's machines share no folder.
        """
        try:
            found, notebook = job.result_of(answer)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CourseError(f"its result cannot be read: {type(error).__name__}: {error}") from error
        if not found.problem:
            record.save(self.grades, found, notebook)
        Path(answer["result"]).unlink(missing_ok=True)
        return found.problem

    def apply(self, handed: Handed, problem: str = "") -> Record:
        """Bring what was judged into gradebook and feedback by nbgrader's converters, and return its record.

        Where there is a problem, that is 0 points. A submission that was not judged is judged on the way. Raises
        CourseError for what is not the submission's fault, such as a gradebook that cannot be written.
        """
        if handed.problem or problem:
            return self._refuse(handed, handed.problem or problem)
        with lease.ours.working():
            result = self._convert(Autograde, handed)
            kept = record.finished(self.grades, handed.student, handed.lesson)
            if result["success"] and kept is not None and kept.digest == handed.digest:
                if self._convert(GenerateFeedback, handed)["success"]:
                    record.note_applied(self.grades, kept)
                return kept
        reason = gradebook.last_error(result)
        if reason.startswith(OUR_FAULT):
            raise CourseError(reason)
        return self._refuse(handed, f"nbgrader cannot open it: {reason}")

    def settle_attempts(self, lessons: Collection[str], student: str | None = None) -> list[Settled]:
        """Place what counts of these lessons where several notebooks were received; return what changed."""
        received = Received(collect.home(self.submitted))
        return list(attempts.settle_class(received, self.submitted, lessons, student, self._settings()))

    def next_attempts(self, lessons: Collection[str], student: str | None = None) -> list[Settled]:
        """Place the next attempts to be graded, where the best counts; return what is left to grade now."""
        if self._settings().count != "best":
            return []
        received = Received(collect.home(self.submitted))
        for kept in record.load_all(self.grades):
            counts = attempts.read(received, kept.student, kept.lesson)
            entry = received.entries.get(counts.placed[-1]) if counts and counts.placed else None
            if entry is not None and entry.notebook == kept.digest:
                points = sum(score.points for score in kept.scores)
                attempts.note_points(received, entry, points, kept.key.specs)
        return self.settle_attempts(lessons, student)

    def _settings(self) -> Settings:
        return settings.read(Path(self.directory.root))

    def applied(self, handed: Handed, answer: Mapping[str, Any] | None = None) -> Record | CourseError:
        """Do what `apply` does for what came of an order, if any; return the error that it raises."""
        try:
            return self.apply(handed, self.take(answer) if answer is not None else "")
        except CourseError as fault:
            return fault

    @contextmanager
    def judging(
        self, items: Sequence[Handed], jobs: int, scheduler: str | None
    ) -> Iterator[Iterator[tuple[Handed, Record | Exception]]]:
        """Have these judged; the block gets each with its record, or the error that kept it from being graded.

        They come as they are ready. Judging begins with the block, which needs the gradebook only when it asks for what
        was found.
        """
        if items and scheduler is None:
            self.need_sandbox()
        waiting = {(item.student, item.lesson): item for item in items}
        record.queue(self.grades, waiting)
        with queue.run(self._orders(waiting), job.perform, jobs, scheduler) as answers:
            pairs = ((waiting[order["student"], order["lesson"]], answer) for order, answer in answers)
            yield ((item, it if isinstance(it, Exception) else self.applied(item, it)) for item, it in pairs)

    def _orders(self, waiting: Mapping[tuple[str, str], Handed]) -> Iterator[dict[str, Any]]:
        """An order for each, noted as running when it is taken."""
        for (student, lesson), item in waiting.items():
            record.start(self.grades, student, lesson)
            yield self.order(item)

    def bring_times(self, done: Collection[Handed]) -> None:
        """Enter the times that changed of what is graded: only lateness follows from them, nothing is judged again."""
        for handed in (item for item in done if not item.problem):
            into = self.directory.format_path(self.directory.autograded_directory, handed.student, handed.lesson)
            if intake.time_stamp(handed.path.parent) != intake.time_stamp(Path(into)):
                bring_time(self.directory, handed)

    def write_scores(self, graded: Collection[Handed], reason: str = "", *, forced: bool = False) -> Path:
        """Write scores.csv, log what changed, renew the feedback of those not `graded` just now; return the file."""
        who = {(item.student, item.lesson) for item in graded}
        with gradebook.quiet():
            changed = standing.write_scores(self.directory, self.grades, reason, who if forced else ())
        for student, lesson in changed - who:
            if Path(self.directory.format_path(self.directory.feedback_directory, student, lesson)).is_dir():
                self._renew_feedback(student, lesson)
        return self.grades / "scores.csv"

    def _convert(self, converter: type, handed: Handed) -> dict[str, Any]:
        """Run one of nbgrader's converters on a submission: what NbGraderAPI does, but without an exchange."""
        directory = CourseDirectory(config=self.config, assignment_id=handed.lesson, student_id=handed.student)
        with gradebook.quiet():
            result: dict[str, Any] = capture_log(converter(coursedir=directory, config=self.config, force=True))
        if result.get("error", "").rstrip().endswith("KeyboardInterrupt"):
            raise KeyboardInterrupt  # nbgrader takes Ctrl-C for a failed notebook
        return result

    def _renew_feedback(self, student: str, lesson: str) -> None:
        """Make a page anew. nbgrader deletes the old one first: killed there, the next run must see what is missing."""
        if (kept := record.load(self.grades, student, lesson)) is not None:
            record.note_applied(self.grades, kept, applied=False)
        if self._convert(GenerateFeedback, Handed(student, lesson, Path(), ""))["success"] and kept is not None:
            record.note_applied(self.grades, kept)

    def _refuse(self, handed: Handed, problem: str) -> Record:
        """Record a submission that cannot be graded: 0 for each part, with the reason."""
        try:
            with gradebook.quiet():
                return refuse(self.directory, self.grades, handed, problem)
        except SQLAlchemyError as error:
            raise CourseError(f"the gradebook cannot be written: {error}") from error

    def _stamp(self, handed: Handed) -> str | None:
        """Which record the autograded notebook belongs to; None if nbgrader did not come to its end."""
        folder = self.directory.format_path(self.directory.autograded_directory, handed.student, handed.lesson)
        try:
            notebook = nbformat.read(Path(folder, f"{handed.lesson}.ipynb"), as_version=4)
        except (OSError, ValueError, KeyError):
            return None
        stamp = notebook.metadata.get(STAMP)
        return stamp if isinstance(stamp, str) else None
