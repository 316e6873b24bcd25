"""Where the course's files are, lessons and notebooks, and the learner's work."""

from __future__ import annotations

import contextlib
from pathlib import Path

import unrolled

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
        if project.is_file() and b"[tool.unrolled]" in project.read_bytes():
            return folder
    raise NotACheckoutError(
        f"this needs the course's folder (the one with pyproject.toml, lessons/ and notebooks/), and {start} is not "
        "in it: clone or unpack the course, and start the command there"
    )


def course() -> Path:
    """Return the folder that holds the learner's notebooks: the checkout here, else what came with the library.

    Of an installed wheel that is a part of the course's folder, of an editable installation its checkout.
    """
    with contextlib.suppress(NotACheckoutError):
        return find()
    library = Path(unrolled.__file__).absolute().parent
    if not (library / "course").is_dir():
        with contextlib.suppress(NotACheckoutError):
            return find(library)
    return library / "course"


def home() -> Path:
    """Return the folder that the user's files are kept in: the checkout here, else this one, or that of this work/."""
    with contextlib.suppress(NotACheckoutError):
        return find()
    here = Path.cwd()
    return here.parent if here.name == "work" and any(here.glob("*.ipynb")) else here


def work() -> Path:
    """Return the folder of the learner's copies and journal, where no option names another."""
    return home() / "work"
