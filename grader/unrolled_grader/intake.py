"""Intake: what students handed in, and why some of it cannot be graded.

The layout is STUDENT/LESSON/LESSON.ipynb. A file that is no notebook of its lesson gets a reason instead of a grade;
nothing about one student's file stops the class.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled_grader.evidence import CELL

MAX_BYTES = 10_000_000


@dataclass(frozen=True)
class Handed:
    """One student's notebook of one lesson. `problem` is empty if nothing stands against grading it."""

    student: str
    lesson: str
    path: Path
    digest: str
    """Changes whenever the notebook or its time stamp does."""
    problem: str = ""


def find(submitted: Path, lessons: Mapping[str, Collection[str]], student: str | None = None) -> list[Handed]:
    """What lies in `submitted` of these lessons (name -> names of its checks), by student and lesson."""
    found = []
    for folder in sorted(folder for folder in _folders(submitted) if student in (None, folder.name)):
        present = {entry.name for entry in _folders(folder)}
        found += [handed(folder / lesson, checks) for lesson, checks in lessons.items() if lesson in present]
    return found


def strangers(submitted: Path, lessons: Collection[str]) -> list[str]:
    """Folders that are no lesson of this course, as STUDENT/FOLDER, and students' folders that cannot be read."""
    found = []
    for folder in _folders(submitted):
        if not os.access(folder, os.R_OK | os.X_OK):
            found.append(f"{folder.name} (cannot be read)")
        found += [f"{folder.name}/{entry.name}" for entry in _folders(folder) if entry.name not in lessons]
    return sorted(found)


def handed(folder: Path, checks: Collection[str]) -> Handed:
    """The notebook in STUDENT/LESSON, with what stands against grading it."""
    lesson, path = folder.name, folder / f"{folder.name}.ipynb"
    problem = _file_problem(path)
    data = b"" if problem else _read(path)
    if data is None:
        problem = "the file cannot be read"
    elif not problem:
        problem = content_problem(data, lesson, checks)
    return Handed(folder.parent.name, lesson, path, digest(path), problem)


def digest(path: Path) -> str:
    """A hash of the notebook's content and of the time stamp beside it (the start of a file that is too large)."""
    seen = hashlib.sha256()
    for file in (path, path.with_name("timestamp.txt")):
        seen.update((_read(file) or b"") + b"\0")
    return seen.hexdigest()


def content_problem(data: bytes, lesson: str, checks: Collection[str]) -> str:
    """Why this is no notebook of `lesson`, or an empty string."""
    if b"\0" in data:
        return "the file holds null bytes: it is no notebook, or it was damaged on the way"
    try:
        content = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"the file is not UTF-8 text: {error.reason} at byte {error.start}"
    except json.JSONDecodeError as error:
        return f"the file is not valid JSON: {error}"
    except RecursionError:
        return "the file is not a notebook: it is nested too deeply"
    if not _is_notebook(content):
        return "the file is not a notebook: expected a list of cells with type, source and metadata"
    return _wrong_lesson(content, lesson, checks)


def _is_notebook(content: Any) -> bool:
    if not isinstance(content, dict) or content.get("nbformat") != 4 or not isinstance(content.get("metadata"), dict):
        return False
    cells = content.get("cells")
    return isinstance(cells, list) and all(
        isinstance(cell, dict)
        and isinstance(cell.get("cell_type"), str)
        and isinstance(cell.get("metadata"), dict)
        and isinstance(cell.get("source"), (str, list))
        for cell in cells
    )


def _wrong_lesson(content: dict[str, Any], lesson: str, checks: Collection[str]) -> str:
    """By the lesson that the build wrote into the notebook, else by the exercises it holds."""
    about = content["metadata"].get("unrolled")
    claimed = about.get("lesson") if isinstance(about, dict) else None
    if claimed == lesson:
        return ""
    if isinstance(claimed, str):
        return f"the notebook is of another lesson: {claimed[:60]}"
    known = {*checks, *(CELL + check for check in checks)}
    marks = [cell["metadata"].get("nbgrader") for cell in content["cells"]]
    if any(isinstance(mark, dict) and mark.get("grade_id") in known for mark in marks):
        return ""
    return f"the notebook holds none of the exercises of {lesson}"


def _file_problem(path: Path) -> str:
    try:
        status = path.lstat()
    except FileNotFoundError:
        others = sorted(entry.name for entry in path.parent.iterdir())[:5]
        return f"{path.name} is missing; the folder holds {', '.join(others) or 'nothing'}"
    except OSError as error:
        return f"the file cannot be read: {error.strerror}"
    if not stat.S_ISREG(status.st_mode):
        return "expected a file, not a link or folder"
    if status.st_size > MAX_BYTES:
        return f"the file has {status.st_size / 1e6:.0f} MB, at most {MAX_BYTES / 1e6:.0f} MB are taken"
    return ""


def _read(path: Path) -> bytes | None:
    """The content, as far as it is taken; None if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_BYTES + 1)
    except OSError:
        return None


def _folders(parent: Path) -> list[Path]:
    if not os.access(parent, os.R_OK | os.X_OK):
        return []
    return [entry for entry in parent.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
