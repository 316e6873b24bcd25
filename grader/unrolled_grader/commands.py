"""`unrolled grade` grades a class; `unrolled demo` grades the sample class, to show how it goes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout

if TYPE_CHECKING:
    from unrolled_grader.course import Course
    from unrolled_grader.intake import Handed
    from unrolled_grader.record import Record

MOST_JOBS = 4
"""More would mostly wait for each other: what is timed runs alone."""
DEMO_LESSONS = ("01_matrix_parallelism", "02_convolution", "03_pooling", "04_backprop", "05_train_a_cnn")


def add(subparsers: Subparsers) -> None:
    """The entry point through which the `unrolled` command finds its grading."""
    grade = subparsers.add_parser("grade", help="grade what students handed in")
    grade.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02_convolution or 02 (default: all)")
    grade.add_argument(
        "--submitted", type=Path, metavar="DIR", help="holds STUDENT/LESSON/LESSON.ipynb (default: grader/submitted)"
    )
    grade.add_argument("--student", metavar="ID", help="only this student")
    grade.add_argument("--force", action="store_true", help="grade again what is graded and unchanged")
    _add_jobs(grade)
    grade.set_defaults(run=_grade)
    demo = subparsers.add_parser("demo", help="grade a sample class of eight in grades/demo")
    _add_jobs(demo)
    demo.set_defaults(run=_demo)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=int, metavar="N", help="submissions at a time (default: a core each, at most 4)")


def _grade(arguments: argparse.Namespace) -> int:
    from unrolled_grader.course import Course, CourseError

    try:
        course = Course.at(checkout.find(), arguments.submitted)
        return grade_class(
            course, arguments.lessons, arguments.student, force=arguments.force, jobs=_jobs(arguments.jobs)
        )
    except CourseError as error:
        raise CommandError(str(error)) from error


def _demo(arguments: argparse.Namespace) -> int:
    from unrolled_grader import sample
    from unrolled_grader.course import Course, CourseError

    root = checkout.find()
    folder = root / "grades" / "demo"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        course = Course.beside(root, folder)
        sample.hand_in(root, DEMO_LESSONS, course.submitted)
        return grade_class(course, DEMO_LESSONS, jobs=_jobs(arguments.jobs))
    except CourseError as error:
        raise CommandError(str(error)) from error


def grade_class(
    course: Course, lessons: Sequence[str] = (), student: str | None = None, *, force: bool = False, jobs: int = 1
) -> int:
    """Grade what was handed in and is not graded yet; print the table; write scores.csv and the report.

    Returns 1 if a submission could not be graded for a reason that is not its own. Raises CourseError if none can.
    """
    from unrolled import checks
    from unrolled_grader import intake, record, report

    chosen = course.choose(lessons)
    handed = intake.find(course.submitted, {lesson: list(checks.lessons()[lesson]) for lesson in chosen}, student)
    for stranger in intake.strangers(course.submitted, course.lessons()):
        print(f"passed over: {record.one_line(stranger)}")
    for lesson in sorted({item.lesson for item in handed}):
        course.fill_gradebook(lesson)
    kept = {} if force else {item: found for item in handed if (found := course.done(item))}
    if kept:
        print(f"{len(kept)} of {len(handed)} are graded already")
    todo = [item for item in handed if item not in kept]
    for number, (item, outcome) in enumerate(_graded(course, todo, jobs), 1):
        line = f"{item.student}, {item.lesson}: {_outcome(outcome)}"
        print(f"[{number}/{len(todo)}] {record.one_line(line)}", flush=True)
        if not isinstance(outcome, Exception):
            kept[item] = outcome
    scores, page = record.write_scores(course.grades), report.write(course.grades)
    print(f"\n{table(kept[item] for item in handed if item in kept)}\n")
    print(f"scores: {scores}\nreport: {page}\nfeedback: {course.feedback}")
    return 0 if len(kept) == len(handed) else 1


def _jobs(asked: int | None) -> int:
    """How many submissions to grade at a time."""
    from unrolled_grader.lease import AVAILABLE

    if asked is not None and asked < 1:
        raise CommandError(f"--jobs must be at least 1, got {asked}")
    return 1 if not AVAILABLE else asked or min(os.cpu_count() or 1, MOST_JOBS)


def _graded(course: Course, todo: Sequence[Handed], jobs: int) -> Iterator[tuple[Handed, Record | Exception]]:
    """Each submission with its record, or with the CourseError that kept it from being graded; as they come."""
    from unrolled_grader.course import CourseError

    jobs = min(jobs, len(todo))
    if jobs < 2:
        for item in todo:
            try:
                yield item, course.grade(item)
            except CourseError as fault:
                yield item, fault
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
        futures = {pool.submit(course.grade, item): item for item in todo}
        for future in as_completed(futures):
            error = future.exception()
            if error is not None and not isinstance(error, CourseError):
                raise error
            yield futures[future], error or future.result()


def _end_with_parent() -> None:
    """Let this worker end when the process that started it does, even by force."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _outcome(outcome: Record | Exception) -> str:
    """What came of one submission, in words."""
    if isinstance(outcome, Exception):
        return str(outcome)
    points = f"{outcome.points:g} of {outcome.max_points:g} points"
    return f"{points}: {outcome.problem}" if outcome.problem else f"{points} in {outcome.seconds:.0f} s"


def table(records: Iterable[Record]) -> str:
    """The class: a line a student, with the points of each lesson and the parts that cost points."""
    from unrolled_grader.record import one_line

    records = list(records)
    if not records:
        return "Nothing was graded."
    lessons = sorted({kept.lesson for kept in records})
    by_student: dict[str, dict[str, Record]] = {}
    for kept in records:
        by_student.setdefault(kept.student, {})[kept.lesson] = kept
    lines = [["student", *lessons, "lost points in"]]
    for student, kept_of in by_student.items():
        cells = [_points(kept_of.get(lesson)) for lesson in lessons]
        lost = [_lost(kept_of[lesson]) for lesson in lessons if lesson in kept_of]
        lines.append([one_line(student), *cells, ", ".join(text for text in lost if text)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _points(kept: Record | None) -> str:
    return "–" if kept is None else f"{kept.points:g} / {kept.max_points:g}"


def _lost(kept: Record) -> str:
    """The parts that cost points, with why; "everything" if all of them did."""
    lost = [score for score in kept.scores if score.points < score.max_points]
    if len(lost) > 1 and len(lost) == sum(score.max_points > 0 for score in kept.scores):
        return f"all of {kept.lesson} ({'not graded' if kept.problem else lost[0].verdict})"
    return ", ".join(f"{score.part} ({score.verdict})" for score in lost)
