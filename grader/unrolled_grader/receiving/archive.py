"""Reading a zip that strangers made: member by member, into memory, within limits; nothing is unpacked to disk.

nbgrader's zip_collect unpacks to disk first, without limits, follows what names say, and stops at the first bad file.
Here a bad member gets a reason in place of its bytes, and the members around it are read. The format itself is read by
the standard library's zipfile.
"""

from __future__ import annotations

import lzma
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import BinaryIO

from unrolled_grader.classroom.roster import MIXED

ENCODINGS = ("cp932", "cp437", "cp1252")
"""What zips without the UTF-8 flag name their members in: Japanese Windows, DOS, Western tools that ignore the rule."""
OTHERS = {b"Rar!": "a RAR archive", b"7z\xbc\xaf": "a 7-Zip archive", b"\x1f\x8b": "a gzip archive", b"<": "a web page"}
END, END_BYTES = b"PK\5\6", 22
UTF8_FLAG, ENCRYPTED_FLAG = 0x800, 0x1
UTC_TIMES = 0x5455  # the extra field that holds a member's time in UTC
WHAT_READING_RAISES = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,  # NotImplementedError too: a way of packing that zipfile does not know
    ValueError,  # UnicodeError too
    struct.error,
)


class ArchiveError(ValueError):
    """A file cannot be read as a zip: the reason."""


@dataclass(frozen=True)
class ZipLimits:
    """What is taken of one zip at most. What is larger than `small` must not be packed more than `ratio` times."""

    members: int = 10_000
    member: int = 50_000_000
    total: int = 1_000_000_000
    small: int = 10_000_000
    ratio: int = 100


@dataclass(frozen=True)
class Member:
    """A file in a zip. `names`: all readings of its name, the likeliest first. `problem`: why it cannot be taken."""

    names: tuple[str, ...]
    data: bytes  # empty where it could not be read; a link's target
    when: datetime | None
    """With a time zone; None if the zip gives no real time. Without a zone in the zip it is this machine's."""
    problem: str = ""
    twice: bool = False  # another member has the same name


def members(file: BinaryIO, limits: ZipLimits | None = None) -> Iterator[Member]:
    """Yield the files in a zip, in its order. Raises ArchiveError if it cannot be read as a whole."""
    limits = limits or ZipLimits()
    with _opened(file, limits) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        names, left = list(map(readings, entries)), limits.total
        for entry, found in zip(entries, names, strict=True):
            data, problem = b"", _unreadable(entry, limits, left)
            if not problem:
                data, problem = _content(archive, entry, limits)
            left -= len(data)
            problem = problem or _unwanted(entry, found)
            yield Member(found, data, time_of(entry), problem, names.count(found) > 1)


def readings(entry: zipfile.ZipInfo) -> tuple[str, ...]:
    """Return a member's path, parts joined by "/": one if its encoding is sure, else one for each that it could be in.

    Canvas's zips hold UTF-8 without saying so; Windows in Japan writes Shift-JIS. Whoever compares names tries them
    all.
    """
    if entry.flag_bits & UTF8_FLAG or entry.orig_filename.isascii():
        return (entry.orig_filename.replace("\\", "/"),)
    raw = entry.orig_filename.encode("cp437")  # as zipfile read it; each byte is a character there
    found = [text for encoding in ENCODINGS if (text := _decoded(raw, encoding))]
    if sure := _decoded(raw, "utf-8"):
        found = [sure]  # that other text is valid UTF-8 does not happen
    elif MIXED.search(found[0]):
        found = [*found[1:], found[0]]
    return tuple(dict.fromkeys(text.replace("\\", "/") for text in found))


def time_of(entry: zipfile.ZipInfo) -> datetime | None:
    """Return when a member was last changed, as the zip says; None if it gives no real time."""
    try:
        extra = entry.extra
        while len(extra) >= 4:
            kind, size = struct.unpack("<HH", extra[:4])
            if kind == UTC_TIMES and size >= 5 and extra[4] & 1:
                return datetime.fromtimestamp(struct.unpack("<I", extra[5:9])[0], timezone.utc)
            extra = extra[4 + size :]
        return datetime(*entry.date_time).astimezone() if entry.date_time[0] > 1980 else None
    except (ValueError, OverflowError, OSError, struct.error):
        return None


@contextmanager
def _opened(file: BinaryIO, limits: ZipLimits) -> Iterator[zipfile.ZipFile]:
    refuse_no_zip(file, limits)
    try:
        archive = zipfile.ZipFile(file)
    except WHAT_READING_RAISES as error:
        raise ArchiveError(f"the zip is damaged: {error}") from None
    with archive:
        if len(archive.infolist()) > limits.members:
            raise ArchiveError(_too_many(len(archive.infolist()), limits))
        yield archive


def refuse_no_zip(file: BinaryIO, limits: ZipLimits) -> None:
    """Raise ArchiveError for what is no zip, and for a table of contents too long to be read at all."""
    file.seek(0)
    start = file.read(4)
    size = file.seek(0, 2)
    file.seek(max(0, size - END_BYTES - 0xFFFF))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) - at < END_BYTES:
        if start.startswith(b"PK"):
            raise ArchiveError("the zip is cut off: its end is missing")
        what = next((name for magic, name in OTHERS.items() if start.startswith(magic)), "")
        raise ArchiveError(f"it is not a zip, but {what}" if what else "it is not a zip" if size else "it is empty")
    count, table = struct.unpack("<HI", tail[at + 10 : at + 16])
    if count > limits.members or table > limits.members * 500:
        raise ArchiveError(_too_many(count, limits))


def _too_many(count: int, limits: ZipLimits) -> str:
    return f"the zip holds {count:,} files or more, at most {limits.members:,} are taken"


def _unreadable(entry: zipfile.ZipInfo, limits: ZipLimits, left: int) -> str:
    """Why a member is not even opened, or an empty string."""
    if entry.flag_bits & ENCRYPTED_FLAG:
        return "it is encrypted"
    if entry.file_size > limits.member:
        return f"it unpacks to {entry.file_size / 1e6:,.0f} MB, at most {limits.member / 1e6:.0f} MB are taken"
    if entry.file_size > limits.small and entry.file_size > limits.ratio * entry.compress_size:
        times = entry.file_size / max(entry.compress_size, 1)
        return f"it unpacks to {times:,.0f} times its size, as a zip bomb does"
    if entry.file_size > left:
        return f"the zip unpacks to more than {limits.total / 1e6:,.0f} MB"
    return ""


def _unwanted(entry: zipfile.ZipInfo, names: tuple[str, ...]) -> str:
    """Why a member that can be read is no upload, or an empty string."""
    if any(re.match(r"/|[A-Za-z]:", name) or ".." in name.split("/") for name in names):
        return "its name leads out of the folder"
    mode = entry.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "it is a link, not a file"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "it is a device or pipe, not a file"
    return ""


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: ZipLimits) -> tuple[bytes, str]:
    """A member's bytes, or why they cannot be had. What its header says of its size is not believed."""
    try:
        with archive.open(entry) as stream:
            data = stream.read(limits.member + 1)
    except WHAT_READING_RAISES as error:
        return b"", f"it is damaged: {str(error) or type(error).__name__}"
    if len(data) > limits.member:
        return b"", f"it unpacks to more than {limits.member / 1e6:.0f} MB"
    return data, ""


def _decoded(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return ""
