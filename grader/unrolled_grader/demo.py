"""`unrolled demo` grades the sample class, to show how it goes."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence

from unrolled.cli import CommandError, Subparsers, checkout
from unrolled_grader import commands
from unrolled_grader.classroom.folders import Folders

SHORT, ALL = ("01", "02"), "all"
"""What is graded unless other lessons are named: enough to see every kind of verdict, in a minute or so."""


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled demo` command: the entry point through which `unrolled` finds the sample class."""
    demo = subparsers.add_parser("demo", help="grade a sample class of eight in grades/demo")
    demo.add_argument(
        "--lessons", nargs="+", metavar="LESSON", help=f"such as 03 05, or {ALL} (default: {' '.join(SHORT)})"
    )
    commands.add_jobs(demo)
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    folders = Folders.at(root)
    folders.choose(_named(arguments.lessons, folders.lessons()))
    jobs = commands.at_a_time(arguments.jobs)
    commands.warm_up(jobs)
    from unrolled_grader.box import sandbox
    from unrolled_grader.build import sample
    from unrolled_grader.grading import Grading
    from unrolled_grader.jobs.record import RecordError

    folder = root / "grades" / "demo"
    try:
        course = Grading.beside(root, folder)
        lessons = course.choose(_named(arguments.lessons, course.lessons()))
        problem = sandbox.problem()
        print(f"Grading {len(sample.STUDENTS)} made-up students in {', '.join(lessons)}.")
        print("What each of them does: grader/sample_class/README.md")
        if problem:
            print(f"Without a sandbox, since all of it is the course's own code; `unrolled grade` refuses: {problem}")
        course.judge_with(sandbox=not problem)
        shutil.rmtree(folder, ignore_errors=True)
        sample.hand_in(root, lessons, course.submitted)
        return commands.grade_class(course, lessons, jobs=jobs, first=sample.LONGEST)
    except RecordError as error:
        raise CommandError(str(error)) from error


def _named(asked: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    """The lessons to grade, by names or beginnings; none for all. A class may do without some of `SHORT`."""
    if asked is None:
        return [number for number in SHORT if any(lesson.startswith(number) for lesson in known)]
    return () if ALL in asked else asked
