"""`unrolled demo` grades the sample class, to show how it goes."""

from __future__ import annotations

import argparse
import shutil

from unrolled.cli import Subparsers, checkout
from unrolled_grader import commands
from unrolled_grader.classroom.folders import Folders

SHORT, ALL = ("01", "02"), "all"
"""What is graded unless other lessons are named: enough to see every kind of verdict, in a minute or so."""


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled demo` command: the entry point through which `unrolled` finds the sample class."""
    demo = subparsers.add_parser("demo", help="grade a sample class of eight in grades/demo")
    told = f"such as 03 05, or {ALL} (default: {' '.join(SHORT)})"
    demo.add_argument("--lessons", nargs="+", metavar="LESSON", help=told)
    commands.add_jobs(demo)
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    folders, asked = Folders.at(root), arguments.lessons
    if asked is None:  # a class may do without some of them
        asked = [number for number in SHORT if any(lesson.startswith(number) for lesson in folders.lessons())]
    lessons = folders.choose([] if ALL in asked else asked)
    jobs = commands.at_a_time(arguments.jobs)
    commands.warm_up(jobs)
    from unrolled_grader.authoring import sample
    from unrolled_grader.box import sandbox
    from unrolled_grader.grading import Grading

    folder = root / "grades" / "demo"
    course = Grading.beside(root, folder)
    problem = sandbox.problem()
    print(f"Grading {len(sample.STUDENTS)} made-up students in {', '.join(lessons)}.")
    print("What each of them does: grader/sample_class/README.md")
    if problem:
        print(f"Without a sandbox, since all of it is the course's own code; `unrolled grade` refuses: {problem}")
    course.judge_with(sandbox=not problem)
    shutil.rmtree(folder, ignore_errors=True)
    sample.hand_in(root, lessons, course.submitted)
    return commands.grade_class(course, lessons, jobs=jobs, first=sample.LONGEST)
