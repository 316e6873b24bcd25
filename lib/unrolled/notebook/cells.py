"""Reading notebooks and their cells, whether nbformat opened them or they are plain JSON from anywhere.

A cell's metadata may hold anything, and its text may be stored as a list of lines: nothing here raises for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode

SHARED_MAGICS = ("%%time", "%%capture")  # cell magics that run the cell's body in the notebook's own namespace


def read(path: str | Path) -> NotebookNode:
    """Read the notebook in a file, in the current format. Raises ValueError, naming the file, if it holds none."""
    import nbformat

    try:
        nb: NotebookNode = nbformat.read(path, as_version=4)
    except OSError:
        raise
    except Exception as error:  # nbformat lets through whatever its conversions of a foreign JSON document raise
        raise ValueError(f"{path} is not a notebook: {type(error).__name__}: {error}") from error
    return nb


def json_object(data: bytes, name: str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError, in this name, if `data` holds none."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not readable: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not readable: it holds no object")
    return value


def parse(data: bytes) -> dict[str, Any]:
    """Parse an .ipynb as plain JSON. Raises ValueError if it holds no list of cells."""
    nb = json_object(data, "the notebook")
    cells = nb.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("the notebook holds no list of cells")
    if not isinstance(nb.get("metadata", {}), dict):
        raise ValueError("the notebook's metadata is not readable")
    return nb


def source(cell: Mapping[str, Any]) -> str:
    """Return a cell's text in one piece."""
    text = cell.get("source", "")
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def mark(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what nbgrader keeps in a cell's metadata; an empty dictionary if it keeps nothing."""
    return _kept(cell, "nbgrader")


def grade_id(cell: Mapping[str, Any]) -> str | None:
    """Return the cell's nbgrader id, if it has one."""
    name = mark(cell).get("grade_id")
    return name if isinstance(name, str) else None


def claimed(nb: Mapping[str, Any]) -> tuple[str, str]:
    """Return the lesson and the version of the course that a notebook says it is of; "" for what it does not say."""
    about = _kept(nb, "unrolled")
    lesson, version = about.get("lesson"), about.get("version")
    return lesson if isinstance(lesson, str) else "", version if isinstance(version, str) else ""


def _kept(part: Mapping[str, Any], key: str) -> dict[str, Any]:
    metadata = part.get("metadata")
    found = metadata.get(key) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}
