"""Files that change together: written beside first, then put in place one by one; killed anywhere, it can go on.

Before `READY` stands, nothing is changed and a new attempt begins anew. From then on the change is decided: `put` may
be repeated until every file is in its place. `DONE` keeps only why, for the log of what was graded again for it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PART, READY, DONE = ".class-change-part", ".class-change", ".class-changed"
PLAN = "plan.json"


@dataclass(frozen=True)
class Plan:
    """What a change is."""

    files: Mapping[str, str | None]  # in the order in which they change: the staged file of each target; None: it goes
    reasons: Mapping[str, str]  # what changed, in words, by the hash of what judges a lesson from then on


def stage(root: Path, files: Mapping[Path, bytes | None], reasons: Mapping[str, str]) -> None:
    """Decide on a change: of these files, in `root` or elsewhere, to these contents (None: deleted)."""
    part = root / PART
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    names: dict[str, str | None] = {}
    for number, (target, content) in enumerate(files.items()):
        if content is not None:
            (part / str(number)).write_bytes(content)
        names[os.path.relpath(target, root)] = None if content is None else str(number)
    (part / PLAN).write_text(json.dumps({"files": names, "reasons": dict(reasons)}), encoding="utf-8")
    part.rename(root / READY)


def is_ready(root: Path) -> bool:
    """Return whether a change is decided of which some files may not be in place."""
    return (root / READY).exists()


def put(root: Path) -> None:
    """Put every file of the change that was decided in its place, if there is one."""
    ready, done = root / READY, root / DONE
    if not ready.exists():
        return
    for name, staged in _plan(ready).files.items():
        target = root / name
        if staged is None:
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.part")
        shutil.copyfile(ready / staged, beside)
        os.replace(beside, target)
    shutil.rmtree(done, ignore_errors=True)
    ready.rename(done)
    tidy(root)


def tidy(root: Path) -> bool:
    """Delete the copies that a change left that was killed before it was decided, or after all was in its place.

    They hold a course.toml, and with it the extensions of people whom `unrolled forget` deletes. Returns whether there
    were any; the copies of a change that waits to go on stay.
    """
    part, done = root / PART, root / DONE
    copies = [file for file in done.iterdir() if file.name != PLAN] if done.is_dir() else []
    for file in copies:
        file.unlink()
    there = part.exists()
    shutil.rmtree(part, ignore_errors=True)
    return there or bool(copies)


def reasons(root: Path) -> Mapping[str, str]:
    """Return what the last change was, in words, by the hash of what judges a lesson since."""
    return _plan(root / DONE).reasons if (root / DONE / PLAN).exists() else {}


def _plan(folder: Path) -> Plan:
    return Plan(**json.loads((folder / PLAN).read_text(encoding="utf-8")))
