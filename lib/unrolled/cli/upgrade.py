"""`unrolled upgrade`: move your answers from an older copy of a lesson into the newer release of it."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import checkout, lab, plan
from .common import CommandError, Subparsers, folder, why

if TYPE_CHECKING:
    from unrolled.notebook.upgrade import Upgrade

OLDER = "older"
VERSION = re.compile(r"[0-9A-Za-z.+-]{0,40}")
"""What a version may look like: it becomes part of a file's name."""


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "upgrade",
        help="move your answers from an older copy of a lesson into the newer one",
        description="Move your answers and your predictions from work/LESSON.ipynb into the newer release of the "
        "lesson. Your copy is kept as work/older/LESSON.VERSION.ipynb, with cells of your own.",
    )
    parser.add_argument("lesson", metavar="LESSON", help="its name, its number such as 02, or all")
    parser.add_argument("--work", type=folder, metavar="DIR", help="the folder with your copies (default: work/)")
    parser.add_argument("--dry-run", action="store_true", help="say what would change, and change nothing")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    work = (arguments.work or checkout.work()).absolute()
    lessons = lab.available()
    if arguments.lesson == "all":
        chosen = [name for name in lessons if (work / f"{name}.ipynb").is_file()]
    else:
        chosen = [lab.choose(arguments.lesson, [*lessons])]
        if not (work / f"{chosen[0]}.ipynb").is_file():
            raise CommandError(f"{work / chosen[0]}.ipynb is not there: there is nothing to upgrade")
    if not chosen:
        raise CommandError(f"{work} holds no copy of a lesson: nothing to upgrade")
    failed = False
    for name in chosen:
        try:
            print(one(work / f"{name}.ipynb", lessons[name], write=not arguments.dry_run))
        except (OSError, ValueError, RecursionError) as error:
            failed = True
            print(f"{name}: not upgraded, and left as it is: {why(error)}")
    return 1 if failed else 0


def one(mine: Path, released: Path, *, write: bool = True) -> str:
    """Upgrade one copy and return in words what came of it; if `write` is false, what would come of it.

    Raises OSError, and ValueError for what is no older copy.
    """
    from unrolled.notebook import cells, upgrade

    name = released.stem
    older, newer = (cells.json_object(file.read_bytes(), str(file)) for file in (mine, released))
    lesson, before = cells.claimed(older)
    after = cells.claimed(newer)[1]
    if not VERSION.fullmatch(before):
        raise ValueError(f"it says that it is of version {before[:40]!r}, which is none")
    if lesson not in ("", name):
        raise ValueError(f"{mine} is a notebook of {lesson}")
    if before == after:
        return f"{name}: is of version {after} already"
    if numbers(before) > numbers(after):
        raise ValueError(f"it is of version {before}, newer than this course ({after}): update the course first")
    found = upgrade.merged(older, newer)
    kept = _free(mine.parent / OLDER, f"{name}.{before or 'unknown'}")
    if write:
        _put(mine, kept, found.notebook)
    summary = report(name, found, kept, _passed(mine.parent / "journal.json"))
    return summary if write else f"This is what would be done; nothing is changed.\n{summary}"


def _put(mine: Path, kept: Path, notebook: dict[str, Any]) -> None:
    """Keep the older copy under its new name, then let the newer notebook take its place."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    half = mine.with_name(f".{mine.name}.part")
    half.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
    with kept.open("xb") as stream, mine.open("rb") as source:  # "x": never over what is there
        shutil.copyfileobj(source, stream)
    os.replace(half, mine)


def _free(folder: Path, stem: str) -> Path:
    """A name that nothing has: STEM.ipynb, STEM-2.ipynb, …"""
    ends = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    return next(file for end in ends if not os.path.lexists(file := folder / f"{stem}{end}.ipynb"))


def _passed(journal: Path) -> set[str]:
    """The checks that the journal notes as passed; none where there is no journal that can be read."""
    try:
        return plan.passed(json.loads(journal.read_text(encoding="utf-8"))["checks"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdecimal() else 0 for part in version.split("."))


def report(name: str, found: Upgrade, kept: Path, passed: set[str]) -> str:
    """Return what an upgrade did, in words for its learner."""
    lines = [f"{name}: from version {found.before or 'unknown'} to {found.after}; your older copy is {kept}"]
    counts = (
        ("answers moved", found.moved),
        ("predictions moved", found.guesses),
        ("new exercises", found.fresh),
        ("no longer asked; your answer is in the older copy", found.gone),
    )
    lines += [f"  {what}: {', '.join(names)}" for what, names in counts if names]
    lines.append("  cells of your own, and cells of the course that you changed, are in the older copy")
    for exercise, difference in found.changed.items():
        lines.append(f"  {exercise} asks something else now. Your answer is in its cell; look it over:")
        lines += [f"    {line}" for line in difference]
        if exercise in passed:
            lines.append(f"    The journal says that {exercise} passed: that was the earlier check. Run it again.")
    lines.append("  Run All, and every check again: checks may ask more than before.")
    return "\n".join(lines)
