"""What was given to `unrolled collect`, taken apart: files, folders and zips into uploads, uploads into notebooks.

One zip or folder of a platform holds many uploads. An upload is what one student sent: a notebook, a hand-in file, or
a zip of their own. What cannot be read is an upload too, with the reason.
"""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from unrolled.notebook import handin
from unrolled_grader.receiving import archive, layouts

OF_A_STUDENT = archive.ZipLimits(members=1000, total=100_000_000)  # what is taken of a zip inside a zip
LARGEST = 50_000_000  # bytes of a file in a folder that is read


@dataclass(frozen=True)
class UploadedFile:
    """One upload. `names` are the readings of its path, which begins with the name of what was given."""

    names: tuple[str, ...]
    data: bytes = b""
    when: datetime | None = None
    problem: str = ""
    outer: Path | None = None
    """The file on disk that holds it, where its bytes could not be taken out; `whole` is that file's SHA-256."""
    whole: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        return self.names[0]


@dataclass(frozen=True)
class UploadedNotebook:
    """A notebook in an upload, or why there is none. `inner` is its path in a student's own zip."""

    notebook: bytes = b""
    handed: handin.HandIn | None = None
    problem: str = ""
    inner: str = ""


def items(path: Path) -> Iterator[UploadedFile]:
    """Yield the uploads in a file or folder. Only a file that cannot be read at all raises (OSError)."""
    if path.is_dir():
        for file in sorted(file for file in path.rglob("*") if file.is_symlink() or not file.is_dir()):
            yield _in_folder(file, f"{path.resolve().name}/{file.relative_to(path).as_posix()}")
        return
    when = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
    with path.open("rb") as stream:
        start = stream.read(4)
    if _is_zip(path.name, start) and not _is_hand_in(path):
        yield from _in_zip(path, when)
    else:
        yield _read(path, _as_given(path), when)


def pieces(item: UploadedFile) -> list[UploadedNotebook]:
    """Return the notebooks in an upload; never empty, as a piece may say why there is no notebook."""
    if item.problem:
        return [UploadedNotebook(problem=item.problem)]
    if piece := _piece(item.name, item.data):
        return [piece]
    is_zip = _is_zip(item.name, item.data[:4])
    return _in_students_zip(item.data) if is_zip else [UploadedNotebook(problem="it is no notebook")]


def _in_zip(path: Path, when: datetime) -> Iterator[UploadedFile]:
    try:
        with path.open("rb") as file:
            for member in archive.members(file):
                names = tuple(f"{path.name}/{name}" for name in member.names)
                note = "its name stands twice in the zip" if member.twice else ""
                item = UploadedFile(names, member.data, member.when or when, member.problem, note=note)
                yield _kept_whole(item, path) if member.problem and not member.data else item
    except archive.ArchiveError as error:
        yield _kept_whole(UploadedFile((_as_given(path),), when=when, problem=str(error)), path)


def _kept_whole(item: UploadedFile, path: Path) -> UploadedFile:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for chunk in iter(lambda: stream.read(1 << 20), b""):
            digest.update(chunk)
    return replace(item, outer=path, whole=digest.hexdigest())


def _in_folder(file: Path, name: str) -> UploadedFile:
    if file.is_symlink():
        return UploadedFile((name,), os.fsencode(os.readlink(file)), problem="it is a link, not a file")
    if not file.is_file():
        return UploadedFile((name,), problem="it is a device or pipe, not a file")
    return _read(file, name, datetime.fromtimestamp(file.stat().st_mtime, timezone.utc))


def _read(file: Path, name: str, when: datetime) -> UploadedFile:
    if (size := file.stat().st_size) > LARGEST:
        problem = f"it has {size / 1e6:,.0f} MB, at most {LARGEST / 1e6:.0f} MB are taken"
        return _kept_whole(UploadedFile((name,), when=when, problem=problem), file)
    try:
        return UploadedFile((name,), file.read_bytes(), when)
    except OSError as error:
        return UploadedFile((name,), when=when, problem=f"it cannot be read: {error.strerror}")


def _in_students_zip(data: bytes) -> list[UploadedNotebook]:
    """The notebooks in a zip inside a zip; a zip inside that is not opened, unless it is a hand-in."""
    found = []
    try:
        for member in archive.members(io.BytesIO(data), OF_A_STUDENT):
            name = member.names[0]
            if layouts.NOISE.search(name):
                continue
            if member.problem:
                found.append(UploadedNotebook(problem=f"{name}: {member.problem}", inner=name))
            elif piece := _piece(name, member.data, name):
                found.append(piece)
            elif _is_zip(name, member.data[:4]):
                found.append(UploadedNotebook(problem=f"{name}: a zip in a zip in a zip is not opened", inner=name))
    except archive.ArchiveError as error:
        return [UploadedNotebook(problem=str(error))]
    return found or [UploadedNotebook(problem="it is a zip without a notebook")]


def _piece(name: str, data: bytes, inner: str = "") -> UploadedNotebook | None:
    """The notebook that a file is or, as a hand-in, holds; None if it is neither."""
    if not _is_hand_in(io.BytesIO(data)):
        is_notebook = name.lower().endswith(".ipynb") and not _is_zip(name, data[:4])
        return UploadedNotebook(data, inner=inner) if is_notebook or _looks_like_a_notebook(data) else None
    try:
        read = handin.read(data)
    except ValueError as error:
        return UploadedNotebook(problem=f"the hand-in is damaged: {error}", inner=inner)
    return UploadedNotebook(read.notebook, read, inner=inner)


def _looks_like_a_notebook(data: bytes) -> bool:
    """Whether this is one by its content: browsers and mailers save them as .ipynb.json, .ipynb.txt or .json."""
    return data[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and b'"nbformat"' in data and b'"cells"' in data


def _is_zip(name: str, start: bytes) -> bool:
    return start.startswith(b"PK") or name.lower().endswith(".zip")


def _is_hand_in(file: Path | io.BytesIO) -> bool:
    """Whether a file is a zip that holds what only hand-ins hold, sound or not."""
    try:
        source = file.open("rb") if isinstance(file, Path) else file
        with source as stream:
            archive.refuse_no_zip(stream, OF_A_STUDENT)
            with zipfile.ZipFile(stream) as opened:
                return handin.ABOUT in opened.namelist()
    except (archive.ArchiveError, *archive.WHAT_READING_RAISES):
        return False


def _as_given(path: Path) -> str:
    """A file's name after the one or two folders that may say whose it is: STUDENT/LESSON/LESSON.ipynb."""
    folders = [part for part in path.parent.parts[-2:] if part not in (os.sep, "..", ".")]
    return "/".join([*folders, path.name])
