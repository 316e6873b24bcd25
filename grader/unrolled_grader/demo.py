"""`unrolled demo` grades the sample class, to show how it goes."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from unrolled.cli import CommandError, Subparsers, checkout, lab
from unrolled_grader import commands
from unrolled_grader.classroom.folders import Folders

SHORT, ALL = ("01", "02"), "all"
"""What is graded unless other lessons are named: enough to see every kind of verdict, in a minute or so."""


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled demo` command: the entry point through which `unrolled` finds the sample class."""
    demo = subparsers.add_parser("demo", help="grade a sample class of seven in grades/demo")
    help_text = f"such as 03 05, or {ALL} (default: {' '.join(SHORT)})"
    demo.add_argument("--lessons", nargs="+", metavar="LESSON", help=help_text)
    commands.add_jobs(demo)
    demo.set_defaults(run=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="unrolled-demo-") as scratch:
        return _grade(arguments, _course(Path(scratch, "course")))


def _course(scratch: Path) -> Path:
    """The course to grade. Raises CommandError where grades/demo is something else than an earlier demo's."""
    root, ours = checkout.course(), _folder()
    if ours.exists() and root != checkout.home() and not (ours / "gradebook.db").is_file():
        raise CommandError(f"{ours} is there, and no demo made it; start this in another folder")
    if (root / "solutions").is_dir():
        return root
    from unrolled_grader.authoring import sample

    if sample.PRACTICE not in lab.known():
        raise CommandError(f"this package has no lesson {sample.PRACTICE}: start it in the course's folder")
    return sample.practice(root, scratch)


def _folder() -> Path:
    return checkout.home() / "grades" / "demo"


def _grade(arguments: argparse.Namespace, root: Path) -> int:
    folders, asked = Folders.at(root), arguments.lessons
    if asked is None:  # a class may do without some of them
        asked = [number for number in SHORT if any(lesson.startswith(number) for lesson in folders.lessons())]
    lessons = folders.choose([] if ALL in asked else asked)
    jobs = commands.at_a_time(arguments.jobs)
    commands.warm_up(jobs)
    from unrolled_grader.authoring import sample
    from unrolled_grader.box import sandbox
    from unrolled_grader.grading import Grading

    folder = _folder()
    course = Grading.beside(root, folder)
    problem = sandbox.problem()
    print(f"Grading {len(sample.STUDENTS)} made-up students in {', '.join(lessons)}.")
    readme = "grader/sample_class/README.md"
    print(f"What each of them does: {readme if root == checkout.home() else checkout.course() / readme}")
    if root != checkout.course():
        print("The package holds no solutions but that of the practice lesson; the course's folder grades more.")
    if problem:
        print(f"Without a sandbox, since all of it is the course's own code; `unrolled grade` refuses: {problem}")
    course.judge_with(sandbox=not problem)
    shutil.rmtree(folder, ignore_errors=True)
    sample.hand_in(root, lessons, course.submitted)
    return commands.grade_class(course, lessons, jobs=jobs, first=sample.LONGEST)
