"""`unrolled prove EXERCISE`: what `make test` asks of one exercise, in seconds.

It builds the lesson, compares its minutes, and runs the exercise's part of `tests/lessons`: its solution earns
everything and its stub nothing, each usual mistake is recognized, a speed has room on both sides, and hints have their
form. Notebooks are not run as a whole.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import subprocess
import sys

from unrolled.cli import CommandError, Subparsers, checkout
from unrolled_grader.authoring import minutes, notebooks, variants

TESTS = [f"tests/lessons/test_{name}.py" for name in ("four_facts", "mistakes", "hints")]


def add(subparsers: Subparsers) -> None:
    """Add the `unrolled prove` command."""
    parser = subparsers.add_parser("prove", help="try what the tests ask of one exercise or variant")
    parser.add_argument("exercise", metavar="EXERCISE", help="the name of its check: conv2d_gemm")
    parser.set_defaults(run=_command)


def _command(arguments: argparse.Namespace) -> int:
    root, name = checkout.find(), arguments.exercise
    lessons = variants.checks(root)
    if name not in lessons:
        close = " or ".join(difflib.get_close_matches(name, lessons))
        raise CommandError(f"there is no exercise {name!r}" + (f"; did you mean {close}?" if close else ""))
    if importlib.util.find_spec("pytest") is None or importlib.util.find_spec("hypothesis") is None:
        raise CommandError("this runs tests, and pytest is not installed: make .venv/.dev")
    lesson = lessons[name]
    for change in notebooks.build(root, [lesson]):
        print(f"made {change.path}")
    found = minutes.of_lesson(root, lesson)
    print(f"{lesson}: {found}" + ("" if found.agree else "; state what they add up to, within a quarter"), flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--exercise", name]
    tests = subprocess.run([*command, *TESTS], cwd=root, check=False)
    return tests.returncode or int(not found.agree)
