"""Intake: what students handed in, and why some of it cannot be graded.

The layout is STUDENT/LESSON/LESSON.ipynb. A file that is no notebook of its lesson gets a reason instead of a grade;
nothing about one student's file stops the class.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from unrolled_grader.judge import opening
from unrolled_grader.judge.opening import RefusedError

MAX_BYTES = 10_000_000
JOINERS = "\u200c\u200d"  # signs that do not show, and that names in some scripts are spelt with
TIME_STAMP, TIME_STAMP_BYTES = "timestamp.txt", 200


@dataclass(frozen=True)
class Handed:
    """One student's notebook of one lesson. `problem` is empty if nothing stands against grading it."""

    student: str
    lesson: str
    path: Path
    digest: str  # changes whenever the notebook's bytes do; its time says only how late it is
    problem: str = ""


def find(submitted: Path, lessons: Mapping[str, Collection[str]], student: str | None = None) -> list[Handed]:
    """Return what lies in `submitted` of these lessons (name -> its checks), by student; not those that are `odd`."""
    found = []
    folders = sorted(_folders(submitted))
    refused = odd(folder.name for folder in folders)
    for folder in (each for each in folders if student in (None, each.name) and each.name not in refused):
        present = {entry.name for entry in _folders(folder)}
        found += [handed(folder / lesson, checks) for lesson, checks in lessons.items() if lesson in present]
    return found


def strangers(submitted: Path, lessons: Collection[str]) -> list[str]:
    """Return what is passed over: folders that are no lesson of this course, as STUDENT/FOLDER, students' folders that
    are not read, and notebooks that lie elsewhere than in STUDENT/LESSON."""
    found = _misplaced(submitted)
    refused = odd(folder.name for folder in _folders(submitted))
    for folder in _folders(submitted):
        if folder.name in refused:
            found.append(f"{folder.name!r} ({refused[folder.name]})")
            continue
        if not os.access(folder, os.R_OK | os.X_OK):
            found.append(f"{folder.name} (cannot be read)")
        found += [f"{folder.name}/{entry.name}" for entry in _folders(folder) if entry.name not in lessons]
    return sorted(found)


def _misplaced(submitted: Path) -> list[str]:
    """The notebooks in the folder itself, in a student's folder, or deeper than a lesson's."""
    expected = "expected STUDENT/LESSON/LESSON.ipynb"
    depths = ("*.ipynb*", "*/*.ipynb*", "*/*/*/**/*.ipynb*")
    files = {file.relative_to(submitted) for depth in depths for file in submitted.glob(depth)}
    seen = (file for file in files if not any(part.startswith(".") for part in file.parts))
    return [f"{file.as_posix()} (a notebook in the wrong place; {expected})" for file in seen]


def odd(names: Iterable[str]) -> dict[str, str]:
    """Return which of these names of students' folders no student can be graded under, with the reason.

    nbgrader would take one for another name or for several, or its rows of scores.csv could be taken for another's.
    """
    problems = {name: _name_problem(name) for name in names}
    seen = Counter(_seen(name) for name, problem in problems.items() if not problem)  # " ann" costs ann nothing
    alike = {name: "another name looks the same" for name in problems if seen[_seen(name)] > 1}
    return {**alike, **{name: problem for name, problem in problems.items() if problem}}


def _name_problem(name: str) -> str:
    """What is wrong with a name by itself, or an empty string."""
    kinds = {unicodedata.category(sign): sign for sign in name if sign not in JOINERS}
    if "Cs" in kinds:
        return "its name is not UTF-8"
    if found := re.search(r"[*?\[]", name):
        return f"nbgrader reads {found[0]} in a name as a pattern"
    if unseen := kinds.keys() & {"Cc", "Cf", "Zl", "Zp"}:
        return f"its name holds {kinds[min(unseen)]!a}, which does not show"
    return "" if name == name.strip() else "its name begins or ends with a blank"


def _seen(name: str) -> str:
    """A name as far as a reader of scores.csv can tell it from another: how blanks and accents are written is not."""
    normalized = " ".join(unicodedata.normalize("NFC", name).translate(dict.fromkeys(map(ord, JOINERS))).split())
    return normalized.lstrip("'")  # stands before what a spreadsheet would take for a formula


def handed(folder: Path, checks: Collection[str]) -> Handed:
    """Return the notebook in STUDENT/LESSON, with what stands against grading it."""
    lesson, path = folder.name, folder / f"{folder.name}.ipynb"
    try:
        opening.opened(read(path), lesson, checks)
        problem = ""
    except RefusedError as reason:
        problem = str(reason)
    return Handed(folder.parent.name, lesson, path, digest(path), problem)


def read(path: Path) -> bytes:
    """Return the bytes of a notebook that may be graded. Raises RefusedError for a link, a large file, or none."""
    if path.parent.is_symlink():
        raise RefusedError(f"{path.parent.name} is a link, expected a folder")
    try:
        status = path.lstat()
    except FileNotFoundError:
        others = sorted(entry.name for entry in path.parent.iterdir())[:5]
        held = ", ".join(others) or "nothing"
        raise RefusedError(f"{path.name} is missing; the folder holds {held}") from None
    except OSError as error:
        raise RefusedError(f"the file cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise RefusedError("expected a file, not a link or folder")
    if status.st_size > MAX_BYTES:
        raise RefusedError(f"the file has {status.st_size / 1e6:.0f} MB, at most {MAX_BYTES / 1e6:.0f} MB are taken")
    data = _content(path)
    if data is None:
        raise RefusedError("the file cannot be read")
    return data


def time_stamp(folder: Path) -> str:
    """Return what timestamp.txt in a folder says; empty if it is missing, a link, or longer than 200 bytes."""
    data = _content(folder / TIME_STAMP) or b""
    return data.decode("utf-8", "replace") if len(data) <= TIME_STAMP_BYTES else ""


def digest(path: Path) -> str:
    """Return a hash of the notebook's content (of the start of a file that is too large)."""
    return hashlib.sha256(_content(path) or b"").hexdigest()


def _content(path: Path) -> bytes | None:
    """The content of a regular file, as far as it is taken, past no link and no pipe; None if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(MAX_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except OSError:
        return None


def _folders(parent: Path) -> list[Path]:
    if not os.access(parent, os.R_OK | os.X_OK):
        return []
    return [entry for entry in parent.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
