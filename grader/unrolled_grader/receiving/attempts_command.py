"""`unrolled attempts` lists what was received of a student's lesson, and says which one counts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from unrolled.cli import CommandError, Subparsers, checkout
from unrolled_grader.classroom import settings
from unrolled_grader.classroom.folders import Folders

if TYPE_CHECKING:
    from unrolled_grader.classroom.settings import Settings
    from unrolled_grader.receiving.attempts import Settled
    from unrolled_grader.receiving.received import Received, ReceivedEntry

POLICY = "policy"


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled attempts` command."""
    parser = subparsers.add_parser("attempts", help="list what a student handed in of a lesson, and choose what counts")
    parser.add_argument("student", metavar="STUDENT", help="an id of the roster")
    parser.add_argument("lesson", metavar="LESSON", help="such as 02_convolution or 02")
    chosen = f"let this attempt count, whatever comes; {POLICY}: what course.toml says again"
    parser.add_argument("--count", type=_number, metavar="N", help=chosen)
    parser.set_defaults(run=_attempts)


def _number(text: str) -> int:
    """A number from 1; 0 for the policy."""
    if text == POLICY or (text.isdecimal() and int(text) > 0):
        return 0 if text == POLICY else int(text)
    raise argparse.ArgumentTypeError(f"{text!r:.40}; expected a number of the list, or {POLICY}")


def _attempts(arguments: argparse.Namespace) -> int:
    root = checkout.find()
    folders = Folders.at(root)
    student, (lesson,) = arguments.student, folders.choose([arguments.lesson])
    chosen = settings.read(root)
    from unrolled_grader.jobs import record
    from unrolled_grader.receiving import attempts, collect
    from unrolled_grader.receiving.received import Received

    received = Received(collect.home(folders.submitted))
    there = attempts.listed(received, folders.submitted, student, lesson)
    if not there:
        raise CommandError(f"nothing was received of {student!r:.60}, {lesson}: {received.root} has what was collected")
    if arguments.count is not None and arguments.count > len(there):
        raise CommandError(f"--count is {arguments.count}; {student} has {len(there)} attempts at {lesson}")
    try:
        with record.alone(folders.grades):
            if arguments.count is not None:
                attempts.choose(received, student, lesson, arguments.count)
            settled = attempts.settle(received, folders.submitted, student, lesson, chosen)
            collect.write_table(folders.grades, received)
    except OSError as error:
        raise CommandError(str(error)) from error
    if settled:
        print("\n".join(map(record.one_line, [str(settled), *_rows(received, there, settled, chosen)])))
        if settled.changed:
            print(f"It lies in {folders.submitted} now: `unrolled grade {lesson[:2]} --student {student}` grades it.")
    return 0


def _rows(received: Received, there: list[ReceivedEntry], settled: Settled, chosen: Settings) -> Iterator[str]:
    from unrolled_grader.classroom import late
    from unrolled_grader.receiving import attempts

    counts = attempts.read(received, settled.entry.student, settled.entry.lesson) or attempts.Counts()
    for number, entry in enumerate(there, 1):
        due, when = chosen.due_for(entry.student, entry.lesson), entry.when and datetime.fromisoformat(entry.when)
        lateness = "in time" if attempts.is_in_time(entry, chosen) else "LATE on the platform"
        if due and when and late.passed(due, when).total_seconds() > 0:
            lateness = late.in_words(due, when, chosen.zone)
        parts = [
            f"{when.astimezone(chosen.zone):%Y-%m-%d %H:%M %Z}" if when else "at a time that nothing tells",
            *([lateness] if due or entry.late else []),
            *(
                [f"{attempts.earned(entry, counts.points[entry.id], chosen):g} points"]
                if entry.id in counts.points
                else []
            ),
            entry.path,
        ]
        yield f"{number}{', which counts' if entry.id == settled.entry.id else ''}: {', '.join(parts)}"
