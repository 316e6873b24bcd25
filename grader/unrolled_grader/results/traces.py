"""What is left of a student in a course's folders: every file is read, also what lies packed in it.

Zips and gzip files are opened, also in one another; SQLite files are read row by row, with their packed cells. Free
pages, which may hold what was deleted, count as found; write-ahead logs are read as they are. What cannot be read as
text, such as a picture, is not understood.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from unrolled_grader.receiving import archive
from unrolled_grader.results import readings, spellings
from unrolled_grader.results.spellings import Finder

COURSES_OWN = (".git", ".venv", "lessons", "solutions", "notebooks", "lib", "docs", "tests", "benchmarks", "build")
"""At a course's root: what everybody gets, and what holds no student's work."""
ALSO_OWN = (Path("grader", "unrolled_grader"), Path("grader", "sample_class"))
LARGEST = 200_000_000  # bytes that are unpacked of one file
DEPTH = 4
SQLITE = b"SQLite format 3\0"
UNKNOWN = ""  # was found where nobody could look
ZEROS = re.compile("\0\0+")
"""What fills archives, images of disks and zips made to be large; to search 60 MB of it would take half a minute."""


class NameTrace(NamedTuple):
    """Where something was found: the file, the place in it, and what."""

    file: str
    place: str
    found: str


def find(root: Path, wanted: Finder) -> list[NameTrace]:
    """Return every place under `root` where something is found, in names and in contents."""
    return [trace for file in files(root) for trace in of_file(file, str(file.relative_to(root)), wanted)]


def files(root: Path) -> Iterator[Path]:
    """Yield the files that are searched: all but the course's own."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        own = {"__pycache__", *(COURSES_OWN if here == root else ())}
        own |= {other.name for other in ALSO_OWN if root / other.parent == here}
        folders[:] = sorted(set(folders) - own)
        yield from (here / name for name in sorted([*names, *(name for name in folders if (here / name).is_symlink())]))


def of_file(file: Path, name: str, wanted: Finder) -> Iterator[NameTrace]:
    """Yield the traces in a file's name and content."""
    for text in readings.of_text(name):
        yield from dict.fromkeys(NameTrace(name, "its name", hit.text) for hit in wanted.hits(_text(text)))
    try:
        if file.is_symlink():
            yield NameTrace(name, f"is a link to {os.readlink(file)}: what is there was not searched", UNKNOWN)
            return
        if not file.is_file():
            return
        data = file.read_bytes()
    except OSError as error:
        yield NameTrace(name, f"cannot be read: {error.strerror}", UNKNOWN)
        return
    yield from (NameTrace(name, place, hit) for place, hit in dict.fromkeys(_in_data(data, "", wanted, DEPTH)))


def _in_data(data: bytes, place: str, wanted: Finder, depth: int) -> Iterator[tuple[str, str]]:
    """(place, what was found) in a file's content or in a part of it."""
    if data.startswith(SQLITE):
        yield from _in_database(data, place, wanted, depth)
    elif depth and data[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        yield from _in_zip(data, place, wanted, depth)
    elif depth and (plain := _unpacked(data)) is not None:
        yield from _in_data(plain, f"{place} unpacked".strip(), wanted, depth - 1)
    else:
        for text in map(_text, readings.of_bytes(data)):
            for hit in wanted.hits(text):
                yield place or f"line {text.count(chr(10), 0, hit.start) + 1}", hit.text


def _in_zip(data: bytes, place: str, wanted: Finder, depth: int) -> Iterator[tuple[str, str]]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            for member in packed.infolist():
                within = f"{place} {member.filename}".strip()
                for text in archive.readings(member):
                    for hit in wanted.hits(_text(text)):
                        yield f"the name {within}", hit.text
                if member.file_size > LARGEST:
                    yield f"{within} is too large to look into", UNKNOWN
                elif member.flag_bits & 1:
                    yield f"{within} is encrypted", UNKNOWN
                else:
                    yield from _in_data(packed.read(member), within, wanted, depth - 1)
    except archive.WHAT_READING_RAISES:
        yield f"{place} is a damaged zip".strip(), UNKNOWN


def _in_database(data: bytes, place: str, wanted: Finder, depth: int) -> Iterator[tuple[str, str]]:
    """Every cell of every table, and whether there are free pages."""
    free = 0
    with tempfile.TemporaryDirectory(prefix="unrolled-traces-") as folder:
        copy = Path(folder, "copy.db")
        copy.write_bytes(data[:18] + b"\x01\x01" + data[20:])  # the form that needs no write-ahead log beside it
        with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(sqlite3.connect(copy)) as base:
            base.text_factory = lambda raw: raw.decode("utf-8", "replace")
            for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                name = table.replace('"', '""')
                for row in base.execute(f'SELECT * FROM "{name}"'):
                    for cell in row:
                        raw = cell if isinstance(cell, bytes) else str(cell).encode("utf-8", "replace")
                        yield from _in_data(raw, f"{place} table {table}".strip(), wanted, max(depth - 1, 1))
            free = base.execute("PRAGMA freelist_count").fetchone()[0]
    if free:
        yield f"{place} has {free} free pages, which may hold what was deleted".strip(), UNKNOWN


def _unpacked(data: bytes) -> bytes | None:
    """What gzip or zlib packed; None if neither did, or if there is no end to it."""
    with contextlib.suppress(OSError, EOFError, zlib.error):
        if data[:2] == b"\x1f\x8b":
            return gzip.open(io.BytesIO(data)).read(LARGEST)
        if data[:2] in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"):
            return zlib.decompressobj().decompress(data, LARGEST)
    return None


def _text(text: str) -> str:
    return spellings.composed(ZEROS.sub("\0", text))
