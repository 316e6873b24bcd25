"""The newest notebook of each student and lesson, where nbgrader looks for it: placed, and taken out again.

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


def place(received: Received, submitted: Path, student: str, lesson: str) -> None:
    """Place a student's newest notebook in `submitted`; what lay there stays in `received`. Raises OSError if not."""
    attempts, folder = received.attempts(student, lesson), submitted / student / lesson
    newest, target = attempts[-1], folder / f"{lesson}.ipynb"
    if any(path.is_symlink() for path in (folder.parent, folder, target)):
        raise OSError(f"a link lies in the way in {folder}")
    if target.exists():
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        again = [entry for entry in attempts if entry.notebook == newest.notebook]  # with another in between
        earlier = {_stamp(entry) for entry in again} - {_stamp(newest)}
        if digest == newest.notebook and intake.time_stamp(folder) not in earlier:
            return  # it lies there; if a person corrected its time, that stays
        before = [entry for entry in received.entries.values() if entry.notebook == digest and entry.kept]
        before.sort(key=lambda entry: entry.student != student)  # theirs, or what a roster no longer says is theirs
        if not before:
            raise OSError(f"{target} was put there or changed by hand; move it away first")
        for name in (intake.TIME_STAMP, JOURNAL):
            _retire(folder / name, received.folder(before[0]))
    folder.mkdir(parents=True, exist_ok=True)
    kept = received.folder(newest)
    if (kept / JOURNAL).is_file():
        put(folder / JOURNAL, (kept / JOURNAL).read_bytes())
    if newest.when:
        put(folder / intake.TIME_STAMP, _stamp(newest).encode())
    put(target, _notebook(kept, newest.notebook), replacing=True)


def displace(received: Received, submitted: Path, student: str, lesson: str, notebooks: Collection[str]) -> bool:
    """Take a notebook with one of these digests out of `submitted`; return whether it lay there."""
    folder = submitted / student / lesson
    target = folder / f"{lesson}.ipynb"
    if any(path.is_symlink() for path in (folder.parent, folder, target)) or not target.is_file():
        return False
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    kept = [received.folder(entry) for entry in received.entries.values() if entry.notebook == digest and entry.kept]
    if digest not in notebooks or not kept:
        return False
    for name in (intake.TIME_STAMP, JOURNAL):
        _retire(folder / name, kept[0])
    target.unlink()
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
        kept = (folder / f"placed{number or ''}-{file.name}" for number in itertools.count())
        os.replace(file, next(place for place in kept if not place.exists()))


def _notebook(folder: Path, digest: str) -> bytes:
    """The notebook with this digest in a folder of `received`. Raises OSError if somebody took it away."""
    for file in sorted(folder.iterdir()):
        data = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(data).hexdigest() == digest:
            return data
    raise FileNotFoundError(2, "the notebook that the index names is gone", str(folder))
