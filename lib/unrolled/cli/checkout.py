"""Where the course's own files are: lessons, notebooks, the learner's work."""

from __future__ import annotations

from pathlib import Path

from .common import CommandError


class NotACheckoutError(CommandError):
    """The command needs the course's folder and was started outside it."""


def find(start: Path | None = None) -> Path:
    """Return the course's folder: the nearest at or above `start` (default: here) whose pyproject.toml says so.

    Raises NotACheckoutError with what to do about it.
    """
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        project = folder / "pyproject.toml"
        if project.is_file() and "[tool.unrolled]" in project.read_text(encoding="utf-8"):
            return folder
    raise NotACheckoutError(
        f"this needs the course's folder (the one with pyproject.toml, lessons/ and notebooks/), and {start} is not "
        "in it: clone or unpack the course, and start the command there"
    )
