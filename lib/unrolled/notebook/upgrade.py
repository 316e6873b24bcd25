"""Moving a learner's answers from a copy of an older lesson into the newer release of it.

`merged` is the whole of it: two notebooks as plain JSON go in, the newer one with the learner's work comes out, with
what a person should know. Exercises and answers in words are found by their grade_id, else by the function's name;
predictions by their name. Cells of the learner's own stay in the older copy. `unrolled upgrade` reads and writes the
files.
"""

from __future__ import annotations

import copy
import difflib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from unrolled.notebook.cells import claimed, grade_id, mark

Cell = dict[str, Any]
Notebook = dict[str, Any]

DEFINED = re.compile(r"^(?:async +)?(?:def|class) +(\w+)", re.MULTILINE)
SIGNATURE = re.compile(  # a function's first lines, and its docstring if it has one
    r"^((?:async +)?def +\w+\((?:[^()]|\([^()]*\))*\)[^:\n]*:)(?:\s*(\"{3}.*?\"{3}))?", re.MULTILINE | re.DOTALL
)
PREDICTION = re.compile(r"""(journal\.predict\(\s*["'](\w+)["']\s*,\s*)([^)\n]*?)(\s*\))""")
NO_GUESS = "..."
COURSES_ID = re.compile(r"[0-9a-f]{12}")  # what the build calls a cell without a grade_id: a hash of its source


@dataclass
class Upgrade:
    """The newer notebook with the learner's work in it, and what a person should know. Names are exercises'."""

    notebook: Notebook
    before: str  # the older version
    after: str  # the newer version
    moved: list[str] = field(default_factory=list)
    guesses: list[str] = field(default_factory=list)
    changed: dict[str, list[str]] = field(default_factory=dict)  # exercises that ask something else: where they differ
    fresh: list[str] = field(default_factory=list)  # exercises that the older notebook did not have
    gone: list[str] = field(default_factory=list)  # exercises that it has no more


def merged(older: Notebook, newer: Notebook) -> Upgrade:
    """Return `newer` with what the learner did in `older`. Neither is changed. ValueError for what is no notebook."""
    old, nb = _cells(older), copy.deepcopy(newer)
    new = _cells(nb)
    upgrade = Upgrade(nb, claimed(older)[1], claimed(newer)[1])
    for cell in new:
        if _is_answer(cell):
            _answer(cell, old, new, upgrade)
    _guesses(old, new, upgrade)
    nb["cells"] = new
    asked = {grade_id(cell) for cell in new}
    names = (grade_id(cell) for cell in old if _is_answer(cell) and not _untouched(cell))
    upgrade.gone += [name for name in dict.fromkeys(names) if name and name not in asked]
    return upgrade


def _answer(cell: Cell, old: Sequence[Cell], new: Sequence[Cell], upgrade: Upgrade) -> None:
    """Put the learner's answer into its cell of the newer notebook, and note what became of the question."""
    name = grade_id(cell) or ""
    index = _found(cell, old)
    if index is None:
        upgrade.fresh.append(name)
        return
    theirs = old[index]
    if not _untouched(theirs):
        documented = any(found[2] for found in SIGNATURE.finditer(theirs["source"]))  # else it was taken out
        before = _question(old, index, theirs["source"], documented)
        after = _question(new, new.index(cell), cell["source"], documented)
        if before != after:
            names = (f"{name}, {upgrade.before or 'before'}", f"{name}, {upgrade.after}")
            upgrade.changed[name] = list(difflib.unified_diff(before, after, *names, lineterm="", n=1))
        cell["source"] = theirs["source"]
        if "attachments" in theirs:
            cell["attachments"] = theirs["attachments"]
        upgrade.moved.append(name)


def _found(cell: Cell, old: Sequence[Cell]) -> int | None:
    """The last cell with this grade_id and the function, else with the id, else (Colab drops ids) with the function."""
    functions = set(DEFINED.findall(cell["source"])) if cell["cell_type"] == "code" else set()
    defining = [index for index, other in enumerate(old) if functions & set(DEFINED.findall(_code(other)))]
    carriers = [index for index, other in enumerate(old) if grade_id(other) == grade_id(cell)]
    strays = [index for index in defining if not grade_id(old[index])]
    choices = [index for index in carriers if index in defining] or carriers or strays
    touched = [index for index in choices if not _untouched(old[index])]
    best = touched or choices
    return best[-1] if best else None


def _question(cells: Sequence[Cell], index: int, source: str, documented: bool) -> list[str]:
    """What an exercise asks, in lines: the text above its cell, its signature, and its docstring if `documented`."""
    text: list[str] = []
    for cell in reversed(cells[:index]):
        if cell["cell_type"] != "markdown" or grade_id(cell):
            break
        if _id(cell) and not COURSES_ID.fullmatch(_id(cell)):
            continue  # a note of the learner's
        text = cell["source"].splitlines() + text
        if cell["source"].startswith("#"):
            break
    found = SIGNATURE.search(source)
    head = "" if found is None else found[0] if documented else found[1]
    return [line.rstrip() for line in [*text, *head.splitlines()]]


def _guesses(old: Sequence[Cell], new: Sequence[Cell], upgrade: Upgrade) -> None:
    """Put the learner's predictions where the newer notebook asks for them."""
    guessed = {
        name: value for cell in old for _, name, value, _ in PREDICTION.findall(_code(cell)) if value != NO_GUESS
    }

    def put(match: re.Match[str]) -> str:
        if match[2] not in guessed or match[3] != NO_GUESS:
            return match[0]
        upgrade.guesses.append(match[2])
        return f"{match[1]}{guessed[match[2]]}{match[4]}"

    for cell in new:
        if cell["cell_type"] == "code" and not _is_answer(cell):
            cell["source"] = PREDICTION.sub(put, cell["source"])


def _untouched(cell: Cell) -> bool:
    """Whether an answer's cell is as it was handed out, by nbgrader's checksum."""
    kept = mark(cell)
    if "checksum" not in kept:
        return False
    graded, solution = bool(kept.get("grade")), bool(kept.get("solution"))
    locked = not solution and (graded or bool(kept.get("locked")))
    parts = [cell["source"], cell["cell_type"], str(graded), str(solution), str(locked), str(kept.get("grade_id"))]
    if graded:
        parts.append(str(float(kept.get("points", 0))))
    return bool(kept["checksum"] == hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest())


def _is_answer(cell: Cell) -> bool:
    return bool(mark(cell).get("solution"))


def _id(cell: Cell) -> str:
    """A cell's id; Colab keeps it in the metadata."""
    identity = cell.get("id") or cell["metadata"].get("id")
    return identity if isinstance(identity, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", identity) else ""


def _code(cell: Cell) -> str:
    return str(cell["source"]) if cell["cell_type"] == "code" else ""


def _cells(notebook: Notebook) -> list[Cell]:
    if not isinstance(notebook.get("cells"), list) or notebook.get("nbformat") != 4:
        raise ValueError("it is no notebook of format 4: open it in Jupyter and save it again")
    return [_checked(cell) for cell in notebook["cells"]]


def _checked(cell: Any) -> Cell:
    """A cell as it came, with its source in one piece. Raises ValueError."""
    source = cell.get("source") if isinstance(cell, dict) else None
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str) or cell.get("cell_type") not in ("code", "markdown", "raw"):
        raise ValueError("it is no notebook: a cell has no text or no type")
    metadata = cell.get("metadata")
    return {**cell, "source": source, "metadata": metadata if isinstance(metadata, dict) else {}}
