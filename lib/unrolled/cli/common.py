"""What all commands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TypeAlias

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What an `add(subparsers)` function adds its parsers to."""


class CommandError(Exception):
    """A command cannot do its work. The message is one line: what is wrong, and what to do about it."""


def why(error: Exception) -> str:
    """Return an error in words: an OSError without its number and its file, which the message itself names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


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
