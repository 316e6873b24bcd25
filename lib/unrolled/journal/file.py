"""The journal's file: one JSON document, read afresh before each change and replaced as a whole, one change at a time.

It is `$UNROLLED_JOURNAL`, or `journal.json` in the folder where the notebook runs. A crash never leaves half a file. A
broken or foreign file is put aside under another name, and a message says so; nothing is lost. Where the folder cannot
be written the record lives as long as the kernel.
"""

from __future__ import annotations

import itertools
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FORMAT = "unrolled-journal"
VERSION = 1
PARTS = ("predictions", "measurements", "checks", "rungs")
Record = dict[str, Any]
AGAIN = (
    "Run your notebooks again from top to bottom: your guesses and answers stand there, and the journal fills itself."
)

PATIENCE, WAIT = 5.0, 0.005  # seconds after which a lock is a leftover, and between two tries
REFUSALS = 10  # tries in a folder that refuses

_chosen: Path | None = None
_memory: Record | None = None


def path() -> Path:
    """Return where the journal is kept."""
    return _chosen or Path(os.environ.get("UNROLLED_JOURNAL", "journal.json")).expanduser().absolute()


def choose(file: Path) -> None:
    """Keep the journal in this file from now on."""
    global _chosen, _memory
    _chosen, _memory = file, None


def read() -> Record:
    """Return the whole record; an empty one if there is no file, or no journal in it: that is put aside, and said."""
    if _memory is not None:
        return _memory
    file = path()
    try:
        return load(file)
    except (FileNotFoundError, NotADirectoryError):
        return empty()
    except (OSError, ValueError) as error:
        print(f"{error}. {_put_aside(file)} A new journal is begun. {AGAIN}")
        return empty()


def load(file: Path) -> Record:
    """Return the record in a file, which stays as it is. Raises OSError, and ValueError, naming it, for no journal."""
    record = checked(file, FORMAT, VERSION)
    for part in PARTS:
        entries = record.get(part)
        if not isinstance(entries, dict) or not all(isinstance(e, dict) and "date" in e for e in entries.values()):
            raise ValueError(f"{file} is a damaged journal: its {part} are not readable")
    return record


@contextmanager
def changing() -> Iterator[Record]:
    """Yield the record to change, and save it; what another notebook notes meanwhile waits, so nothing is lost."""
    with locked(path()):
        record = read()
        yield record
        save(record)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file: another beside it, that only one process can make. Where none can be made, go on."""
    lock = file.with_name(f".{file.name}.lock")
    held = _memory is None and _acquired(lock)
    try:
        yield
    finally:
        if held:
            with suppress(OSError):
                os.unlink(lock)


def _acquired(lock: Path) -> bool:
    """Make the lock, and return whether that was possible. One that a process left behind is removed."""
    refused, deadline = 0, time.monotonic() + PATIENCE
    while refused < REFUSALS:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return True
        except OSError:
            if not lock.exists():  # a folder that cannot be written; on Windows also a lock that is being removed
                refused += 1
            elif time.monotonic() > deadline:
                refused, deadline = refused + 1, deadline + PATIENCE
                with suppress(OSError):
                    os.unlink(lock)
        time.sleep(WAIT)
    return False


def empty() -> Record:
    """Return a record without entries."""
    return {"format": FORMAT, "version": VERSION} | {part: {} for part in PARTS}


def checked(file: Path, form: str, version: int) -> Record:
    """Return a file's JSON document of this form and version. Raises OSError, and ValueError, naming it, for others."""
    kind = form.removeprefix("unrolled-")
    try:
        content = json.loads(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not a {kind}: it is not text in UTF-8 ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not a {kind}: {error}") from None
    if not isinstance(content, dict) or content.get("format") != form:
        raise ValueError(f"{file} is not a {kind} of this course")
    if content.get("version") != version:
        newer = isinstance(content.get("version"), int) and content["version"] > version
        helps = ": install the newer course to use it" if newer else ""
        raise ValueError(f"{file} is a {kind} of version {content.get('version')}, expected {version}{helps}")
    return content


def _put_aside(file: Path) -> str:
    """Rename to a name that is free: journal.broken-1.json, journal.broken-2.json, … What became of it, in words."""
    global _memory
    names = (file.with_name(f"{file.stem}.broken-{number}{file.suffix}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    try:
        file.rename(aside)
    except OSError as error:
        _memory = empty()
        return f"It stays where it is ({error}); the record is kept only as long as this kernel runs."
    return f"The file is kept as {aside}."


def is_positive(number: Any) -> bool:
    """Return whether this is a positive number, as all times are that a journal or a gallery may hold."""
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number < float("inf")


def save(record: Record) -> None:
    """Replace the journal by this record; where it cannot be written, keep the record as long as the kernel runs."""
    global _memory
    try:
        write(path(), record)
    except OSError as error:
        if _memory is None:
            print(f"The journal cannot be written ({error}). It is kept only as long as this kernel runs.")
        _memory = record


def write(file: Path, record: Record) -> None:
    """Replace the file as a whole by this record."""
    replace_file(file, json.dumps(record, indent=1, sort_keys=True))


def replace_file(file: Path, text: str, encoding: str = "utf-8") -> None:
    """Write the whole text to a new file beside this one, then put it in this one's place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding=encoding, errors="backslashreplace", newline="\n") as stream:
            stream.write(text)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
