"""`unrolled similar` lists near-copies across a class."""

from __future__ import annotations

import argparse

from unrolled.cli import Subparsers, checkout, folder
from unrolled_grader.classroom.folders import Folders


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled similar` command."""
    summary = "show near-copies across the class side by side, for a person to read"
    parser = subparsers.add_parser("similar", help=summary)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02_convolution or 02 (default: all)")
    submitted = "holds STUDENT/LESSON/LESSON.ipynb (default: grader/submitted)"
    parser.add_argument("--submitted", type=folder, metavar="DIR", help=submitted)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    lessons = Folders.at(root, arguments.submitted).choose(arguments.lessons)
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs.record import one_line
    from unrolled_grader.results import near_copies

    course = Course.at(root, arguments.submitted)
    compared = False
    for lesson in lessons:
        found = near_copies.compare(lesson, *near_copies.works(course, lesson), near_copies.references(course, lesson))
        if not found.works and not found.passed_over:
            continue
        compared = True
        pairs, report = near_copies.write(course.grades / "similar", found)
        print(f"{lesson}: {len(found.works)} compared, {len(found.passed_over)} not")
        for who, why in found.passed_over:
            print(one_line(f"  not compared: {who}, {why}"))
        for pair in found.pairs[:3]:
            who = one_line(f"{pair.first.who}, {pair.second.who}")
            print(f"  {100 * pair.score:3.0f} %  {who} (the pair in the middle: {100 * found.median:.0f} %)")
        print(f"  every pair: {pairs}; side by side: {report}")
    if not compared:
        print(f"nothing was handed in yet of {', '.join(lessons)}")
    return 0
