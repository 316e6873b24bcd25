"""`unrolled grade` grades a class."""

from __future__ import annotations

import argparse
import atexit
import gc
import re
import shutil
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout, count, folder
from unrolled_grader.classroom import settings
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from unrolled_grader.grading import Grading
    from unrolled_grader.judge.intake import Handed
    from unrolled_grader.receiving.attempts import Settled


ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/]+:\d{1,5}")  # of a scheduler


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled grade` command: the entry point through which `unrolled` finds its grading."""
    grade = subparsers.add_parser("grade", help="grade what students handed in")
    grade.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02_convolution or 02 (default: all)")
    submitted = "holds STUDENT/LESSON/LESSON.ipynb (default: grader/submitted)"
    grade.add_argument("--submitted", type=folder, metavar="DIR", help=submitted)
    grade.add_argument("--student", metavar="ID", help="only this student")
    grade.add_argument("--force", action="store_true", help="grade again what is graded and unchanged")
    grade.add_argument("--reason", default="", metavar="TEXT", help="why points change, for grades/regrades.csv")
    grade.add_argument("--scheduler", metavar="ADDRESS", help="judge on this Dask cluster, such as tcp://host:8786")
    grade.add_argument("--gpu", action="store_true", help="use workers of the cluster that offer a GPU")
    grade.add_argument("--no-timing", action="store_true", help="measure no speed; those points are deferred")
    explained = "grade nothing; print how this check's points came about, from the record alone"
    grade.add_argument("--explain", nargs=3, metavar=("STUDENT", "LESSON", "CHECK"), help=explained)
    unsafe = "run student code with all the rights of your account; every score says so"
    grade.add_argument("--unsafe-no-sandbox", action="store_true", help=unsafe)
    add_jobs(grade)
    grade.set_defaults(run=_run)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how many submissions a command grades at a time."""
    parser.add_argument("--jobs", type=count, metavar="N", help="submissions at a time (default: one a core)")


def _run(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    folders = Folders.at(root, arguments.submitted)
    _refuse_wrong(arguments, folders)
    if arguments.explain:
        return _explain(folders, *arguments.explain)
    settings.read(root)
    if not arguments.scheduler:
        warm_up(at_a_time(arguments.jobs))
    from unrolled_grader.grading import Grading

    course = Grading.at(root, arguments.submitted)
    course.judge_with(timing=not arguments.no_timing, sandbox=not arguments.unsafe_no_sandbox, gpu=arguments.gpu)
    options = {name: getattr(arguments, name) for name in ("lessons", "student", "force", "reason", "scheduler")}
    return grade_class(course, **options, jobs=at_a_time(arguments.jobs))


def _refuse_wrong(arguments: argparse.Namespace, folders: Folders) -> None:
    """Raise CommandError for what can be seen to be wrong before the grader loads."""
    folders.choose(arguments.lessons)
    if arguments.gpu and not arguments.scheduler:
        raise CommandError("--gpu goes with --scheduler: a GPU of this machine is used anyway")
    if arguments.scheduler is not None and not ADDRESS.fullmatch(arguments.scheduler):
        raise CommandError(f"--scheduler is {arguments.scheduler!r:.60}; expected an address such as tcp://host:8786")
    student = arguments.student
    if student is not None and student not in folders.students(["submitted"]):
        raise CommandError(f"there is nothing to grade of {student!r:.60} in {folders.submitted}")


def _explain(folders: Folders, student: str, lesson: str, check: str) -> int:
    """Print how a check's points came about."""
    (lesson,) = folders.choose([lesson])
    kept = None
    if folders.has_record(student, lesson):
        from unrolled_grader.jobs import explain, record

        kept = record.load(folders.grades, student, lesson)
    if kept is None:
        raise CommandError(f"nothing is recorded of {student!r:.60}, {lesson}, in {folders.grades}")
    try:
        print(explain.explained(kept, check))
    except explain.UnknownCheckError as error:
        raise CommandError(record.one_line(str(error))) from None
    return 0


def warm_up(jobs: int) -> None:
    """Load what this process needs, and let those that it will need load at the same time: some seconds each."""
    gc.disable()  # all of it stays: to look through it for garbage, now and then and at the end, takes a second
    from unrolled_grader.box import zygote
    from unrolled_grader.jobs import queue

    queue.warm("unrolled_grader.jobs.preload")
    zygote.warm(spare=jobs)
    from unrolled_grader import grading  # noqa: F401

    gc.freeze()
    gc.enable()
    atexit.register(gc.freeze)


def grade_class(
    course: Grading,
    lessons: Sequence[str] = (),
    student: str | None = None,
    *,
    force: bool = False,
    reason: str = "",
    jobs: int = 1,
    scheduler: str | None = None,
    first: Collection[str] = (),
) -> int:
    """Grade what was handed in and is not graded yet; print the table; write scores.csv and the report.

    The students in `first` begin, as those should who take longest. Returns 1 if a submission could not be graded for a
    reason that is not its own. Raises CourseError if none can be, RecordError if another run is at work or the record
    cannot be kept, and CommandError if `student` handed in nothing.
    """
    from unrolled_grader.classroom import gradebook
    from unrolled_grader.jobs import record

    with (
        record.alone(course.grades),
        record.opened(course.grades),  # SQLite tidies up each time that nobody has the table open any more
        gradebook.one_engine(),
    ):
        shutil.rmtree(course.grades / "jobs", ignore_errors=True)  # what a run that was killed did not take
        chosen = course.choose(lessons)
        _print_settled(course.settle_attempts(chosen, student))
        status = _grade(course, chosen, student, first, force=force, reason=reason, jobs=jobs, scheduler=scheduler)
        while another := course.next_attempts(chosen, student):
            _print_settled(another)
            status = _grade(course, chosen, student, first, reason=reason, jobs=jobs, scheduler=scheduler)
        return status


def _print_settled(attempts: Iterable[Settled]) -> None:
    from unrolled_grader.jobs.record import one_line

    for settled in attempts:
        print(one_line(str(settled)))


def _grade(
    course: Grading,
    lessons: Sequence[str],
    student: str | None,
    first: Collection[str],
    *,
    force: bool = False,
    reason: str,
    jobs: int,
    scheduler: str | None,
) -> int:
    """Grade what lies in the folder of submissions, as `grade_class` says."""
    from unrolled_grader.jobs import record
    from unrolled_grader.results import terminal

    handed = course.handed_in(lessons, student)
    if student is not None and not handed:
        raise CommandError(f"there is nothing to grade of {record.one_line(student)} in {course.submitted}")
    graded: set[Handed] = set()
    new: set[Handed] = set()
    waiting = [item for item in handed if not item.problem and (force or not course.judged(item))]
    shared = course.together(handed, waiting)
    waiting = [item for item in waiting if item not in shared]
    waiting.sort(key=lambda item: item.student not in first)
    with course.judging(waiting, jobs, scheduler) as answers:
        for lesson in sorted({item.lesson for item in handed}):
            course.fill_gradebook(lesson)
        # what draws takes half a second to load: the judges are at work by now
        from unrolled_grader.results import report, standing

        if not force:
            graded |= {item for item in set(handed) - set(waiting) - shared.keys() if course.done(item)}
            course.bring_times(graded)
        settled = graded.union(waiting, shared)
        ready = [item for item in handed if item not in settled]
        if graded:
            print(f"{len(graded)} of {len(handed)} are graded already")
        of_groups = ((item, course.shared(other, item)) for item, other in shared.items())
        outcomes = chain(((item, course.applied(item)) for item in ready), answers, of_groups)
        try:
            new.update(terminal.print_outcomes(outcomes, len(ready) + len(waiting) + len(shared)))
        finally:  # a lost scheduler or Ctrl-C takes nothing from those who are graded
            scores = course.write_scores(new, reason, forced=force)
            known = standing.of_class(course)
            page = report.write(course.grades, known)
    graded |= new
    who = {(item.student, item.lesson) for item in graded}
    print(f"\n{terminal.table(kept for kept in known if (kept.student, kept.lesson) in who)}\n")
    print(f"scores: {scores}\nreport: {page}\nfeedback: {course.feedback}")
    return 0 if len(graded) == len(handed) else 1


def at_a_time(asked: int | None) -> int:
    """Return how many submissions to grade at a time, by default one a core."""
    from unrolled import doctor
    from unrolled_grader.box.lease import AVAILABLE

    return 1 if not AVAILABLE else asked or doctor.cores()["usable"]
