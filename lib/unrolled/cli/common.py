"""What all commands share."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What an `add(subparsers)` function adds its parsers to."""


class CommandError(Exception):
    """A command cannot do its work. The message is one line: what is wrong, and what to do about it."""


DAY = 86_400
DATA_SETS = ("mnist", "fashion_mnist", "cifar10")
"""Those to fetch, as `data.fetching` has them, which NumPy comes with."""


def path(text: str) -> Path:
    """Return an argument as a path. For argparse, as the functions below; they raise CommandError for what is wrong."""
    if not text.strip() or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected the name of a file or folder, got {text!r}")
    found = Path(text)
    try:
        found.exists()
    except OSError as error:
        raise CommandError(f"{text:.60}… cannot be used: {why(error)}") from None
    return found


def present(text: str) -> Path:
    """Return the path of a file or folder that is there."""
    found = path(text)
    if not found.exists():
        raise CommandError(f"{found} is not there")
    return found


def present_file(text: str) -> Path:
    """Return the path of a file that is there."""
    found = present(text)
    if found.is_dir():
        raise CommandError(f"{found} is a folder; expected a file")
    return found


def new_file(text: str) -> Path:
    """Return the path of a file to be written: nothing is there yet."""
    found = path(text)
    if found.exists():
        raise CommandError(f"{found} is there already; nothing is overwritten. Name another file")
    folder(str(found.absolute().parent))
    return found


def folder(text: str) -> Path:
    """Return the path of a folder, of one that is there or of one that can be made."""
    found = path(text)
    above = next(one for one in (found.absolute(), *found.absolute().parents) if one.exists())
    if not above.is_dir():
        raise CommandError(f"{above} is a file; expected a folder")
    return found


def present_folder(text: str) -> Path:
    """Return the path of a folder that is there."""
    present(text)
    return folder(text)


def count(text: str) -> int:
    """Return a whole number from 1 to 1,000."""
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 1,000, got {text!r:.40}")
    return int(text)


def seconds(text: str) -> float:
    """Return a number of seconds, from one to a day."""
    with contextlib.suppress(ValueError):
        if 1 <= float(text) <= DAY:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number of seconds from 1 to {DAY:,}, got {text!r:.40}")


def why(error: Exception) -> str:
    """Return an error in words: an OSError without its number and its file, which the message itself names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@contextlib.contextmanager
def reading(file: Path) -> Iterator[None]:
    """Let what goes wrong while this file is read end the command: it cannot be read, or holds something else."""
    try:
        yield
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {why(error)}") from error
    except ValueError as error:
        raise CommandError(str(error)) from error


def write_new(file: Path, content: bytes) -> None:
    """Write a file that is not there yet. Raises CommandError where there is one, or it cannot be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as stream:
            stream.write(content)
    except OSError as error:
        if isinstance(error, FileExistsError) and file.exists():
            raise CommandError(f"{file} is there already; nothing is overwritten. Name another file") from None
        raise CommandError(f"{file} cannot be written: {why(error)}") from error
