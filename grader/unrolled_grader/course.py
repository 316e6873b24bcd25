"""A course as the grader sees it: where its files lie, and nbgrader set up for them."""

from __future__ import annotations

import copy
import logging
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from sqlalchemy.exc import SQLAlchemyError

from unrolled import checks
from unrolled_grader import authoring, gradebook, jobs, record, refusal, sandbox
from unrolled_grader.classroom import seeds, settings
from unrolled_grader.intake import Handed
from unrolled_grader.judge import Options
from unrolled_grader.lease import lease
from unrolled_grader.plugin import STAMP, Judge
from unrolled_grader.record import Key, Record
from unrolled_grader.running import late, standing

OUR_FAULT = ("OperationalError", "OSError: ", "RecordError", "ReleaseError", "SandboxError", "SeedError", "ZygoteError")
"""How errors begin that are the gradebook's, the disk's or the machine's, not a submission's."""


class CourseError(Exception):
    """A course cannot be graded as it is set up."""


@dataclass(frozen=True)
class Course:
    """The configuration that nbgrader's commands read, and the folders that it names."""

    config: Any

    @classmethod
    def at(cls, root: Path, submitted: Path | None = None) -> Course:
        """The course in a checkout; `submitted` in place of the folder that the configuration names."""
        config = _patient(authoring.nbgrader_config(root))
        if submitted is not None:
            config.CourseDirectory.submitted_directory = str(_plain(submitted.absolute(), root))
        return cls(config)

    @classmethod
    def beside(cls, root: Path, folder: Path) -> Course:
        """A course with the checkout's lessons that keeps all else, gradebook and grades too, in `folder`."""
        config = copy.deepcopy(authoring.nbgrader_config(root))
        for step in ("source", "release"):
            name = f"{step}_directory"
            config.CourseDirectory[name] = str(root / config.CourseDirectory[name])
        for step in ("submitted", "autograded", "feedback"):
            config.CourseDirectory[f"{step}_directory"] = step
        config.CourseDirectory.root = str(folder)
        config.CourseDirectory.db_url = f"sqlite:///{folder / 'gradebook.db'}"
        config.Judge.grades_directory = "grades"
        return cls(_patient(config))

    @property
    def directory(self) -> CourseDirectory:
        """nbgrader's own view of the folders."""
        return CourseDirectory(config=self.config)

    @property
    def submitted(self) -> Path:
        return Path(self.directory.root, self.directory.submitted_directory)

    @property
    def feedback(self) -> Path:
        return Path(self.directory.root, self.directory.feedback_directory)

    @property
    def grades(self) -> Path:
        return self._judge.grades(self.directory)

    def lessons(self) -> list[str]:
        """The lessons that can be graded: those with a complete notebook."""
        source = Path(self.directory.root, self.directory.source_directory)
        return sorted(file.stem for file in source.glob("*/*.ipynb") if file.parent.name == file.stem)

    def choose(self, names: Sequence[str]) -> list[str]:
        """The lessons with these names, or beginnings of names; all if there are none. Raises CourseError."""
        known = [lesson for lesson in self.lessons() if lesson in checks.lessons()]
        if not names:
            return known
        chosen = []
        for name in names:
            fitting = [lesson for lesson in known if lesson == name] or [
                lesson for lesson in known if lesson.startswith(name)
            ]
            if len(fitting) != 1:
                several = f"{name!r} names {len(fitting)} lessons" if fitting else f"there is no lesson {name!r}"
                raise CourseError(f"{several}; there are {', '.join(known) or 'none'}")
            chosen += fitting
        return sorted(set(chosen))

    def fill_gradebook(self, lesson: str) -> None:
        """Make sure that the gradebook knows the lesson, and when it is due. Raises CourseError."""
        try:
            with _quiet():
                gradebook.fill(self.directory, self.config, lesson)
                with gradebook.opened(self.directory) as book:
                    late.settle(book, settings.read(Path(self.directory.root)), lesson)
        except gradebook.GradebookError as error:
            raise CourseError(str(error)) from error

    def judge_with(self, *, timing: bool = True, sandbox: bool = True, gpu: bool = False) -> None:
        """Do without timing or sandbox, or count on a cluster's GPUs, whatever the configuration says."""
        self.config.Judge.timing = self.options.timing and timing
        self.config.Judge.unsafe_no_sandbox = not (self.options.sandbox and sandbox)
        self.config.Judge.gpu = self.options.gpu or gpu

    @property
    def options(self) -> Options:
        """How submissions are judged."""
        return self._judge.options()

    def need_sandbox(self) -> None:
        """Raise CourseError, with the one line that helps, where code must be held and this machine cannot."""
        if self.options.sandbox and (problem := sandbox.problem()):
            raise CourseError(problem)

    def done(self, handed: Handed) -> Record | None:
        """The record of this very submission, if it was graded to the end; None if something is left to do."""
        kept = self.judged(handed)
        if kept is None or not gradebook.has_scores(self.directory, handed.student, handed.lesson):
            return None
        applied = record.is_applied(self.grades, kept) and self._stamp(handed) == kept.date
        applied = applied and kept.digest == handed.digest  # the same notebook may have come at another time
        return kept if kept.problem or applied else None

    def judged(self, handed: Handed) -> Record | None:
        """The record of this very submission, if it need not be judged again; None if it must be."""
        kept = record.finished(self.grades, handed.student, handed.lesson)
        released = self._released(handed.lesson)
        if kept is None or kept.key.specs != jobs.judging_hash(kept.version, released):
            return None
        if kept.problem or handed.problem:  # a problem that only repair or nbgrader had is perhaps gone
            return kept if kept.problem and handed.problem and kept.digest == handed.digest else None
        same = kept.key.submission if kept.digest == handed.digest else jobs.hash_of(handed, released)
        key = Key(same, kept.key.specs, jobs.environment(self.options))
        return kept if jobs.holds(kept, key, self.options) else None

    def order(self, handed: Handed) -> dict[str, Any]:
        """The order for `jobs.perform` to judge a submission."""
        seed = seeds.seed_for(Path(self.directory.root), handed.student, handed.lesson, handed.digest)
        return jobs.order_for(handed, self._released(handed.lesson), self.grades / "jobs", self.options, seed)

    def take(self, answer: Mapping[str, Any]) -> str:
        """Keep what came of an order. Returns why the submission could not be judged; empty if it was.

        Raises CourseError if the result cannot be read, as where a cluster's machines share no folder.
        """
        try:
            found, notebook = jobs.result_of(answer)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CourseError(f"its result cannot be read: {type(error).__name__}: {error}") from error
        if not found.problem:
            record.save(self.grades, found, notebook)
        Path(answer["result"]).unlink(missing_ok=True)
        return found.problem

    def apply(self, handed: Handed, problem: str = "") -> Record:
        """Bring what was judged into gradebook and feedback by nbgrader's converters; 0 where there is a problem.

        A submission that was not judged is judged on the way. Raises CourseError for what is not the submission's
        fault, such as a gradebook that cannot be written.
        """
        if handed.problem or problem:
            return self._refuse(handed, handed.problem or problem)
        with lease.working():
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

    def write_scores(self, graded: Collection[Handed], reason: str = "", *, forced: bool = False) -> Path:
        """Make scores.csv, log what changed, and bring it to the feedback of those who were not `graded` just now."""
        who = {(item.student, item.lesson) for item in graded}
        with _quiet():
            changed = standing.write_scores(self.directory, self.grades, reason, who if forced else ())
        for student, lesson in changed - who:
            if Path(self.directory.format_path(self.directory.feedback_directory, student, lesson)).is_dir():
                self._renew_feedback(student, lesson)
        return self.grades / "scores.csv"

    def standing(self) -> list[Record]:
        """Every record with what a person gave and what lateness took, by student and lesson."""
        with _quiet():
            return list(standing.records(self.directory, self.grades))

    @property
    def _judge(self) -> Judge:
        return Judge(config=self.config)

    def _released(self, lesson: str) -> Path:
        return gradebook.released_file(self.directory, lesson)

    def _convert(self, converter: type, handed: Handed) -> dict[str, Any]:
        """Run one of nbgrader's converters on a submission: what NbGraderAPI does, but without an exchange."""
        directory = CourseDirectory(config=self.config, assignment_id=handed.lesson, student_id=handed.student)
        with _quiet():
            result: dict[str, Any] = capture_log(converter(coursedir=directory, config=self.config, force=True))
        if result.get("error", "").rstrip().endswith("KeyboardInterrupt"):
            raise KeyboardInterrupt  # nbgrader takes Ctrl-C for a failed notebook
        return result

    def _renew_feedback(self, student: str, lesson: str) -> None:
        """Make a page anew. nbgrader deletes the old one first: killed there, the next run must see what is missing."""
        kept = record.load(self.grades, student, lesson)
        if kept is not None:
            record.note_reopened(self.grades, kept)
        if self._convert(GenerateFeedback, Handed(student, lesson, Path(), ""))["success"] and kept is not None:
            record.note_applied(self.grades, kept)

    def _refuse(self, handed: Handed, problem: str) -> Record:
        """Record a submission that cannot be graded: 0 for each part, with the reason."""
        try:
            with _quiet():
                return refusal.refuse(self.directory, self.grades, handed, problem)
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


def _patient(config: Any) -> Any:
    """Let a process wait up to a minute while another writes to the gradebook (SQLite's own default is 5 s).

    What nbgrader's commands do for each submission, know the lesson and make scores.csv, is done once for all of them.
    """
    if "?" not in config.CourseDirectory.db_url:
        config.CourseDirectory.db_url += "?timeout=60"
    config.Scores.enabled = False
    config.Autograde.pre_convert_hook = None
    return config


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep nbgrader's log and its database's warnings off the terminal; what goes wrong is in its results."""
    log = logging.getLogger("traitlets")
    before, log.propagate = log.propagate, False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.propagate = before


def _plain(folder: Path, root: Path) -> Path:
    """The folder as nbgrader can take it: it reads names as patterns. Raises CourseError for one it cannot take."""
    if folder.is_relative_to(root):
        folder = folder.relative_to(root)
    if found := re.search(r"[*?\[\](){}+^$|\\]", str(folder)):
        raise CourseError(f"nbgrader cannot read {folder}: {found[0]!r} in a folder's name means something else to it")
    if not (root / folder).is_dir():
        raise CourseError(f"there is no folder {folder}: expected one that holds STUDENT/LESSON/LESSON.ipynb")
    return folder
