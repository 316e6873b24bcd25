"""The notebook that counts of a student and lesson, where nbgrader looks for it: placed, and taken out again.

Nothing that a person put or changed in grader/submitted is overwritten, and what is taken out is kept in
grader/received.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from nbgrader.utils import parse_utc

from unrolled_grader.judge import intake
from unrolled_grader.receiving.received import JOURNAL, Received, ReceivedEntry, put, without_empty

ROSTER_UNDONE = "the roster that named its student was taken back: collect it again"


def place(received: Received, submitted: Path, wanted: ReceivedEntry, last: str = "", *, stale: bool = False) -> None:
    """Place a notebook in `submitted`; what lay there, such as the entry `last`, stays in `received`.

    With `last`, what is half done is ended; if `stale`, the time that lies there is its. Raises OSError if something
    lies in the way. What lies there must have been received.
    """
    folder = submitted / wanted.student / wanted.lesson
    target = folder / f"{wanted.lesson}.ipynb"
    if any(path.is_symlink() for path in (folder.parent, folder, target)):
        raise OSError(f"a link lies in the way in {folder}")
    digest = hashlib.sha256(target.read_bytes()).hexdigest() if target.exists() else ""
    lies, kept = digest == wanted.notebook, [entry for entry in received.entries.values() if entry.kept]
    if lies and not last:
        return
    before = [entry for entry in kept if (entry.id == last if stale else entry.notebook == digest != wanted.notebook)]
    # theirs, or what a roster no longer says is theirs
    before.sort(key=lambda entry: (entry.id != last, entry.student != wanted.student))
    for name in (intake.TIME_STAMP, JOURNAL) if before else ():
        _retire(folder / name, received.folder(before[0]))
    folder.mkdir(parents=True, exist_ok=True)
    home = received.folder(wanted)
    put(target, _notebook(home, wanted.notebook), replacing=True)
    if (home / JOURNAL).is_file():
        put(folder / JOURNAL, (home / JOURNAL).read_bytes())
    if written := _retired_stamp(home) or _stamp(wanted).encode():
        put(folder / intake.TIME_STAMP, written)


def timed(received: Received, submitted: Path, entry: ReceivedEntry, *, lies: bool) -> ReceivedEntry:
    """Return an entry with its time as a person corrected it, in `submitted` if it lies there, or before."""
    stamp = intake.time_stamp(submitted / entry.student / entry.lesson) if lies else ""
    with suppress(ValueError, OverflowError):
        when = parse_utc(stamp or _retired_stamp(received.folder(entry)).decode()).replace(tzinfo=timezone.utc)
        return replace(entry, when=when.isoformat(timespec="seconds"))
    return entry


def refuse_unknown(received: Received, submitted: Path, student: str, lesson: str) -> None:
    """Raise OSError for a notebook in `submitted` that was never received: nobody but a person has it."""
    digest = lying(submitted, student, lesson)
    if digest and not any(entry.notebook == digest and entry.kept for entry in received.entries.values()):
        file = submitted / student / lesson / f"{lesson}.ipynb"
        raise OSError(f"{file} was put there or changed by hand; move it away first")


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
        received.set_aside(entry, entry.problem or ROSTER_UNDONE)


def _stamp(entry: ReceivedEntry) -> str:
    """What timestamp.txt says of it, as nbgrader reads it; empty if its time is not known."""
    return datetime.fromisoformat(entry.when).strftime("%Y-%m-%d %H:%M:%S UTC") if entry.when else ""


def _retire(file: Path, folder: Path) -> None:
    """Move what goes with an earlier notebook to where that is kept; a person may have changed it."""
    if file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        os.replace(file, _free(folder, file.name))


def keep_stamp(received: Received, entry: ReceivedEntry, text: str) -> None:
    """Keep the time of an entry that was placed, where a person wrote that of another over it."""
    if text:
        put(_free(received.folder(entry), intake.TIME_STAMP), text.encode())


def _free(folder: Path, name: str) -> Path:
    return next(place for place in _places(folder, name) if not place.exists())


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
