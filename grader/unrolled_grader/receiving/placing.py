"""The notebook that counts of a student and lesson, where nbgrader looks for it: placed, and taken out again.

Nothing that a person put or changed in grader/submitted is overwritten, and what is taken out is kept in
grader/received.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path

from unrolled_grader.judge import intake
from unrolled_grader.receiving.received import JOURNAL, Received, ReceivedEntry, put, without_empty

TAKEN_BACK = "the roster that named its student was taken back: collect it again"


def place(received: Received, submitted: Path, wanted: ReceivedEntry, last: str = "") -> None:
    """Place a notebook in `submitted`; what lay there, such as the entry `last`, stays in `received`.

    Raises OSError if something lies in the way.
    """
    folder = submitted / wanted.student / wanted.lesson
    target = folder / f"{wanted.lesson}.ipynb"
    if any(path.is_symlink() for path in (folder.parent, folder, target)):
        raise OSError(f"a link lies in the way in {folder}")
    if target.exists():
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        before = [entry for entry in received.entries.values() if entry.notebook == digest and entry.kept]
        others = {_stamp(entry) for entry in before if entry.student == wanted.student} - {_stamp(wanted)}
        if digest == wanted.notebook and intake.time_stamp(folder) not in others:
            return  # it lies there; if a person corrected its time, that stays
        if not before:
            raise OSError(f"{target} was put there or changed by hand; move it away first")
        # theirs, or what a roster no longer says is theirs
        before.sort(key=lambda entry: (entry.id != last, entry.student != wanted.student))
        for name in (intake.TIME_STAMP, JOURNAL):
            _retire(folder / name, received.folder(before[0]))
    folder.mkdir(parents=True, exist_ok=True)
    kept = received.folder(wanted)
    if (kept / JOURNAL).is_file():
        put(folder / JOURNAL, (kept / JOURNAL).read_bytes())
    if stamp := _retired_stamp(kept) or _stamp(wanted).encode():
        put(folder / intake.TIME_STAMP, stamp)
    put(target, _notebook(kept, wanted.notebook), replacing=True)


def lying(submitted: Path, student: str, lesson: str) -> str:
    """Return the SHA-256 of the notebook that lies in `submitted`; empty if there is none, or a link."""
    target = submitted / student / lesson / f"{lesson}.ipynb"
    if any(path.is_symlink() for path in (target, *target.parents[:2])) or not target.is_file():
        return ""
    return hashlib.sha256(target.read_bytes()).hexdigest()


def displace(received: Received, submitted: Path, student: str, lesson: str, notebooks: Collection[str]) -> bool:
    """Take a notebook with one of these digests out of `submitted`; return whether it lay there."""
    folder, digest = submitted / student / lesson, lying(submitted, student, lesson)
    kept = [received.folder(entry) for entry in received.entries.values() if entry.notebook == digest and entry.kept]
    if digest not in notebooks or not kept:
        return False
    for name in (intake.TIME_STAMP, JOURNAL):
        _retire(folder / name, kept[0])
    (folder / f"{lesson}.ipynb").unlink()
    without_empty(folder, submitted)
    return True


def take_back(received: Received, submitted: Path, student: str) -> Iterator[str]:
    """Set aside all that was received as a student's, whom no roster names any more; yield it in words."""
    mine = [entry for entry in received.entries.values() if entry.student == student and entry.kept]
    for lesson in sorted({entry.lesson for entry in mine if not entry.problem}):
        if displace(received, submitted, student, lesson, {entry.notebook for entry in mine}):
            yield f"{student}, {lesson}: out of {submitted}; collect it again"
        elif (submitted / student / lesson).exists():
            yield f"{student}, {lesson}: stays, as somebody put or changed it by hand"
    for entry in mine:
        received.set_aside(entry, entry.problem or TAKEN_BACK)


def _stamp(entry: ReceivedEntry) -> str:
    """What timestamp.txt says of it, as nbgrader reads it; empty if its time is not known."""
    return datetime.fromisoformat(entry.when).strftime("%Y-%m-%d %H:%M:%S UTC") if entry.when else ""


def _retire(file: Path, folder: Path) -> None:
    """Move what goes with an earlier notebook to where that is kept; a person may have changed it."""
    if file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        os.replace(file, next(place for place in _places(folder, file.name) if not place.exists()))


def _retired_stamp(folder: Path) -> bytes:
    """The time that lay beside a notebook when it was last placed, which a person may have corrected; empty if none."""
    there = list(itertools.takewhile(Path.exists, _places(folder, intake.TIME_STAMP)))
    return there[-1].read_bytes() if there else b""


def _places(folder: Path, name: str) -> Iterator[Path]:
    return (folder / f"placed{number or ''}-{name}" for number in itertools.count())


def _notebook(folder: Path, digest: str) -> bytes:
    """The notebook with this digest in a folder of `received`. Raises OSError if somebody took it away."""
    for file in sorted(folder.iterdir()):
        data = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data).hexdigest() == digest:
            return data
    raise FileNotFoundError(2, "the notebook that the index names is gone", str(folder))
