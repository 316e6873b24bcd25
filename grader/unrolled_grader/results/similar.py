"""`unrolled similar` shows near-copies across a class."""

from __future__ import annotations

import argparse

from unrolled.cli import Subparsers, checkout, folder
from unrolled_grader.classroom.folders import Folders


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled similar` command."""
    told = "show near-copies across the class side by side, for a person to read"
    parser = subparsers.add_parser("similar", help=told)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 02_convolution or 02 (default: all)")
    submitted = "holds STUDENT/LESSON/LESSON.ipynb (default: grader/submitted)"
    parser.add_argument("--submitted", type=folder, metavar="DIR", help=submitted)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    lessons = Folders.at(root, arguments.submitted).choose(arguments.lessons)
    from unrolled_grader.classroom.course import Course
    from unrolled_grader.jobs.record import one_line
    from unrolled_grader.results import near_copies, similar_page

    course = Course.at(root, arguments.submitted)
    compared = False
    for lesson in lessons:
        found = near_copies.of_class(course, lesson)
        if not found.works and not found.passed_over:
            continue
        compared = True
        page = similar_page.write(course.grades / "similar", found)
        print(f"{lesson}: {len(found.works)} compared, {len(found.passed_over)} not; {page}")
        for pair in found.pairs[:3]:
            who = one_line(f"{pair.first.work.who}, {pair.second.work.who}")
            print(f"  {100 * pair.score:3.0f} %  {who} (the pair in the middle: {100 * found.median:.0f} %)")
    if not compared:
        print(f"nothing was handed in yet of {', '.join(lessons)}")
    return 0
