"""`unrolled gallery`: compare ladders that several people gave, and merge their files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .common import CommandError, Subparsers, new_file, path, why, write_new


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "gallery",
        help="compare ladders that people gave with journal.give",
        description="Compare the ladders in one or several files that people made with journal.give.",
    )
    parser.add_argument("files", nargs="+", type=path, metavar="FILE", help="a gallery's file; several are merged")
    parser.add_argument("--to", type=new_file, metavar="FILE.json", help="write one file with all ladders")
    parser.add_argument("--picture", type=new_file, metavar="FILE.png", help="draw them side by side")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.to and arguments.to == arguments.picture:
        raise CommandError(f"--to and --picture both name {arguments.to}")
    from unrolled.journal import galleries

    given = []
    for file in arguments.files:
        try:
            given.append(galleries.read(file))
        except OSError as error:
            print(f"left out: {file}: {why(error)}")
        except ValueError as error:
            print(f"left out: {error}")
    ladders = galleries.merged(given)
    if not ladders:
        raise CommandError("there is no ladder in what you named")
    print(table(ladders))
    if arguments.to:
        _write(arguments.to, json.dumps(galleries.document(ladders), ensure_ascii=False, indent=1).encode())
    if arguments.picture:
        from unrolled import show

        _write(arguments.picture, show.gallery(ladders).png())
    return 0


def table(ladders: list[dict[str, Any]]) -> str:
    """Return a text with a line for each learner, by kind of work, the fastest first."""
    from unrolled.show.ladder import panels
    from unrolled.show.words import seconds, times

    width = max(len(one["name"]) for one in ladders)
    lines = []
    for what, rows in panels(ladders).items():
        lines.append(what)
        for name, points in rows:
            (_, slow), (label, fast) = points[0], points[-1]
            climbed = f"   {times(slow / fast)} from slowest to fastest" if len(points) > 1 else ""
            lines.append(f"  {name:<{width}}   {seconds(fast):>8}  {label}{climbed}")
    return "\n".join(lines)


def _write(file: Path, content: bytes) -> None:
    write_new(file, content)
    print(f"Made {file}.")
