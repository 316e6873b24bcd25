"""A class of 30, its roster, and what Canvas and Moodle give an instructor to download: made by code.

The forms of names are those of canvas-lms, lib/content_zipper.rb, and of Moodle, mod/assign/classes/downloader.php.
Both stamp every member with the moment of the download. Canvas's zips hold UTF-8 names without saying so.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

DOWNLOADED = (2027, 1, 20, 9, 30, 0)


class Student(NamedTuple):
    """A line of the roster, in its order; `name` is "First Last"."""

    id: str
    name: str
    email: str
    lms_id: str

    @property
    def sortable(self) -> str:
        """As Canvas sorts it: "Last, First"."""
        first, _, last = self.name.partition(" ")
        return f"{last}, {first}"


NAMES = (
    *("Ada Lovelace", "Alan Turing", "Grace Hopper", "Seán O'Brien", "Zoë Müller-Weiß", "Juan García Márquez"),
    *("太郎 山田", "花子 佐藤", "Nguyễn Văn An", "Łukasz Żółć", "Kim Lee", "Emmy Noether", "Kurt Gödel"),
    *("Sofia Kovalevskaya", "Srinivasa Ramanujan", "Mary Ellen Rudin", "John von Neumann", "Ingrid Daubechies"),
    *("Terence Tao", "Maryam Mirzakhani", "Katherine Johnson", "Barbara Liskov", "Donald Knuth", "Edsger Dijkstra"),
    *("Margaret Hamilton", "Dennis Ritchie", "Radia Perlman", "Tim Berners-Lee", "Anita Borg", "Leslie Lamport"),
)
CLASS = tuple(
    Student(f"s{number:03}", name, f"s{number:03}@example.org", str(70000 + 37 * number))
    for number, name in enumerate(NAMES, 1)
)


@dataclass(frozen=True)
class Upload:
    """What one student handed in. `name` is the file's name as the student had it."""

    student: Student
    data: bytes
    name: str
    late: bool = False
    file: int = 0
    """Canvas's number of the file; 0: made from the student's."""


def roster_csv(students: Iterable[Student] = CLASS, delimiter: str = ",") -> str:
    """The roster, as it is asked for."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\n")
    writer.writerow(Student._fields)
    writer.writerows(students)
    return buffer.getvalue()


def canvas_name(upload: Upload, *, anonymous: bool = False) -> str:
    """The member's name in Canvas's "Download Submissions"."""
    student = upload.student
    late = "LATE_" if upload.late else ""
    who = f"{late}anon_{student.lms_id}x" if anonymous else f"{student.sortable.lower()}_{late}{student.lms_id}"
    file = upload.file or 900_000 + int(student.lms_id)
    return re.sub(r"\W", "", who) + f"_{file}_{upload.name}"


def canvas_zip(uploads: Sequence[Upload], *, anonymous: bool = False, more: Mapping[str, bytes] | None = None) -> bytes:
    """Canvas's download, with `more` members as they are."""
    named = [(canvas_name(upload, anonymous=anonymous), upload.data) for upload in uploads]
    return zipped([*named, *(more or {}).items()], flag=False)


def moodle_name(upload: Upload, *, folders: bool = True, old: bool = False, blind: bool = False) -> str:
    """The member's name in Moodle's "Download all submissions"; the number is of the assignment, not of the person."""
    name = "Participant" if blind else upload.student.name
    prefix = re.sub(r"[\\/:*?\"<>|]", "", f"{name}_{int(upload.student.lms_id) - 65000}_assignsubmission_file")
    return f"{prefix}{'_' if old else ''}/{upload.name}" if folders else f"{prefix}_{upload.name}"


def moodle_zip(
    uploads: Sequence[Upload],
    *,
    folders: bool = True,
    old: bool = False,
    more: Mapping[str, bytes] | None = None,
    texts: bool = True,
    when: tuple[int, ...] = DOWNLOADED,
) -> bytes:
    """Moodle's download, in folders or flat, with the text that the first wrote online."""
    named = [(moodle_name(upload, folders=folders, old=old), upload.data) for upload in uploads]
    first = named[0][0].replace("assignsubmission_file", "assignsubmission_onlinetext").removesuffix(uploads[0].name)
    online = [(f"{first}onlinetext.html", b"<p>Hello</p>")] if texts else []
    return zipped([*named, *online, *(more or {}).items()], flag=True, when=when)


def zipped(
    files: Iterable[tuple[str | bytes, bytes]], *, flag: bool = True, when: tuple[int, ...] = DOWNLOADED
) -> bytes:
    """A zip of these files. Without `flag` it does not say that its names are UTF-8; a name in bytes is as it is."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            raw = name.encode() if isinstance(name, str) else name
            entry = RawName(raw, when, utf8=flag and isinstance(name, str))
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


class RawName(zipfile.ZipInfo):
    """A member whose name is written as these bytes."""

    def __init__(self, raw: bytes, when: tuple[int, ...] = DOWNLOADED, *, utf8: bool = False) -> None:
        super().__init__(raw.decode("latin-1").replace("\0", " "), when)  # type: ignore[arg-type]
        self.external_attr = 0o100644 << 16
        self.raw, self.utf8 = raw, utf8

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        flags = self.flag_bits & ~0x800
        return self.raw, flags | 0x800 if self.utf8 else flags
