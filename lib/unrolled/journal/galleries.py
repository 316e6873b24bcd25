"""A gallery: ladders that learners gave by choice, under names that they chose, in one JSON file to compare.

A ladder goes in only by `journal.give`, and nothing goes with it but its rungs: what was measured, how long it took, in
which batches and precision, and on which hardware. No ids, dates or answers. Files are merged by naming several.

    {"format": "unrolled-gallery", "version": 1, "ladders": [{"name", "key", "rungs": [{"label", "what", …}, …]}, …]}

The key is drawn once for each journal. It tells whose ladder it is when one is given again, and says nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unrolled.journal.file import checked, is_positive

FORMAT = "unrolled-gallery"
VERSION = 1
KEPT = ("label", "what", "seconds", "batch", "precision", "hardware", "code")  # what of a rung is given
NAME = 40  # characters that a name may have

Ladder = dict[str, Any]


def pseudonym(name: str) -> str:
    """Return a name for a ladder, trimmed. Raises ValueError unless it is 1 to 40 printable characters."""
    trimmed = name.strip()
    if not 1 <= len(trimmed) <= NAME or not trimmed.isprintable():
        raise ValueError(f"name must be 1 to {NAME} printable characters, got {name!r}")
    return trimmed


def ladder(name: str, key: str, rungs: Iterable[Ladder]) -> Ladder:
    """Return a ladder as it is given: the rungs without anything that is not about the measurement."""
    return {"name": name, "key": key, "rungs": [{part: rung[part] for part in KEPT if part in rung} for rung in rungs]}


def added(ladders: list[Ladder], mine: Ladder) -> list[Ladder]:
    """Return the ladders with `mine`, not one from its journal before. ValueError if somebody else has the name."""
    others = [one for one in ladders if one["key"] != mine["key"]]
    if any(one["name"] == mine["name"] for one in others):
        raise ValueError(f"somebody gave a ladder as {mine['name']!r} already; choose another name")
    return [*others, mine]


def merged(galleries: Iterable[list[Ladder]]) -> list[Ladder]:
    """Return all files' ladders: of one journal's that with more rungs, else the later. A second A becomes "A (2)"."""
    newest: dict[str, Ladder] = {}
    for one in itertools.chain.from_iterable(galleries):
        if len(one["rungs"]) >= len(newest.get(one["key"], one)["rungs"]):
            newest[one["key"]] = one
    names = distinct(one["name"] for one in newest.values())
    return [{**one, "name": name} for one, name in zip(newest.values(), names, strict=True)]


def distinct(names: Iterable[str]) -> list[str]:
    """Return the names with a number after each that came before: "A", "A (2)"."""
    used: dict[str, None] = {}
    for name in names:
        forms = itertools.chain([name], (f"{name} ({number})" for number in itertools.count(2)))
        used[next(form for form in forms if form not in used)] = None
    return list(used)


def read(file: Path) -> list[Ladder]:
    """Return the ladders in a file. Raises FileNotFoundError, or ValueError, naming the file, if it is no gallery."""
    ladders = checked(file, FORMAT, VERSION).get("ladders")
    if not isinstance(ladders, list) or not all(map(_is_ladder, ladders)):
        raise ValueError(f"{file} is a damaged gallery: its ladders are not readable")
    return ladders


def document(ladders: list[Ladder]) -> dict[str, Any]:
    """Return what a gallery's file holds."""
    return {"format": FORMAT, "version": VERSION, "ladders": ladders}


def _is_ladder(one: Any) -> bool:
    try:
        pseudonym(one["name"])
        words = [one["key"], *(rung[key] for rung in one["rungs"] for key in ("label", "what"))]
        timed = all(is_positive(rung["seconds"]) for rung in one["rungs"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return timed and isinstance(one["rungs"], list) and all(isinstance(word, str) for word in words)
