"""`unrolled lab`: give the learner copies of the lessons and open JupyterLab on them."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import unrolled

from . import checkout, plan
from .common import CommandError, Subparsers, folder


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "lab",
        help="copy the lessons to work/ if they are not there, and open JupyterLab",
        description="Copy the lessons to work/ if they are not there, and open JupyterLab. Your copies are yours: "
        "nothing overwrites them. What follows -- goes to JupyterLab.",
    )
    parser.add_argument("lesson", nargs="?", metavar="LESSON", help="open this one: its name or its number, such as 02")
    parser.add_argument("--work", type=folder, metavar="DIR", help="the folder for your copies (default: work/)")
    parser.add_argument("--list", action="store_true", help="list the lessons, with their minutes, and do nothing else")
    parser.add_argument("--no-open", action="store_true", help="start the server, but no browser")
    parser.set_defaults(run=_run, hands_on=True)


def released(root: Path) -> dict[str, Path]:
    """Return the notebooks of the course in `root` by lesson, in order: notebooks/NAME/NAME.ipynb."""
    files = sorted((root / "notebooks").glob("*/*.ipynb"))
    return {file.stem: file for file in files if file.stem == file.parent.name}


def available() -> dict[str, Path]:
    """Return the learner's notebooks by lesson: those of the checkout here, else those that came with the library."""
    root, names = checkout.course(), known()
    found = released(root)
    return found if root == checkout.home() else {name: found[name] for name in names if name in found}


def known() -> list[str]:
    """Return the names of the lessons that the library has checks of; does not load them for it."""
    if checks := sys.modules.get("unrolled.checks"):
        return list(checks.lessons())
    folder = Path(unrolled.__file__).parent / "checks"
    names = sorted(file.parent.name.removeprefix("l") for file in folder.glob("exercises/l*/exercises.py"))
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # no course.json that chooses lessons
        chosen = json.loads((folder / "course.json").read_text(encoding="utf-8"))["lessons"]
        return [name for name in names if name in chosen]
    return names


def copy_lessons(lessons: dict[str, Path], work: Path) -> list[str]:
    """Copy notebooks to work/NAME.ipynb where that is not there; return the names that were copied."""
    copied = []
    for name, source in lessons.items():
        target = work / f"{name}.ipynb"
        if not os.path.lexists(target):
            work.mkdir(parents=True, exist_ok=True)
            half = target.with_name(f".{target.name}.part")
            shutil.copyfile(source, half)
            half.replace(target)
            copied.append(name)
    return copied


def choose(lesson: str, names: list[str]) -> str:
    """Return the one of `names` that `lesson` means, by name or number. Raises CommandError if there is none."""
    for name in names:
        number = name.partition("_")[0]
        if lesson == name or (lesson.isdigit() and number.isdigit() and int(lesson) == int(number)):
            return name
    raise CommandError(f"there is no lesson {lesson!r}; there are {', '.join(names)}")


def listed(lessons: dict[str, Path]) -> str:
    """Return a line for each lesson: its name, its minutes and its title."""
    parsed = [plan.parse(name, (), plan.text(file)) for name, file in lessons.items()]
    width = max(len(lesson.name) for lesson in parsed)
    return "\n".join(f"{one.name:<{width}}  {one.minutes:>4} min  {one.title}" for one in parsed)


def _run(arguments: argparse.Namespace) -> int:
    lessons, work = available(), (arguments.work or checkout.work()).absolute()
    if not lessons:
        raise CommandError(f"{checkout.course() / 'notebooks'} holds no lessons; run `make build`")
    opened = choose(arguments.lesson, [*lessons]) if arguments.lesson is not None else None
    if arguments.list:
        print(listed(lessons))
        return 0
    if importlib.util.find_spec("jupyterlab") is None:
        raise ModuleNotFoundError("jupyterlab is not installed", name="jupyterlab")
    copied = copy_lessons(lessons, work)
    if copied:
        print(f"Copied to {work}: {', '.join(copied)}")
    print(f"Your lessons and your journal are in {work}; nothing but you changes them.", flush=True)
    command = _jupyter(work, opened, arguments)
    if sys.platform != "win32":
        os.execv(command[0], command)  # whatever ends this process ends JupyterLab, which is this process now
    process = subprocess.Popen(command)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # it reaches JupyterLab as well, which asks and ends its kernels
            return process.wait()


def _jupyter(work: Path, opened: str | None, arguments: argparse.Namespace) -> list[str]:
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={work}"]
    if opened:
        command.append(f"--LabApp.default_url=/lab/tree/{opened}.ipynb")
    if arguments.no_open:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")  # in a container everybody is root, and JupyterLab would refuse
    return command + list(arguments.rest)
