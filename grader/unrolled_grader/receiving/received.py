"""Everything that was taken in, as it came, and an index of it.

    grader/received/students/STUDENT/LESSON/ID/   the upload; where that is not the notebook itself, LESSON.ipynb and
                                                  journal.json out of it
    grader/received/set_aside/ID/                 what has no place yet
    grader/received/index.jsonl                   a line for each upload and for each change of what is known of it

Nothing here is overwritten or deleted, but by `forget`. What is set aside moves to its student once that is known.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from unrolled.notebook import handin
from unrolled_grader.jobs.record import one_line
from unrolled_grader.receiving.uploads import UploadedFile

INDEX, STUDENTS, SET_ASIDE = "index.jsonl", "students", "set_aside"
COUNTS = "counts.json"  # of a student's lesson: which attempt counts
JOURNAL = "journal.json"  # of a hand-in, beside its notebook
COLUMNS = (
    *("outcome", "counts", "student", "lesson", "group", "when", "clock", "late", "version"),
    *("note", "problem", "source", "path", "kept"),
)
"""Of collected.csv."""
SAME = "the same notebook as "  # in a note; then ids, with commas between them


@dataclass(frozen=True)
class ReceivedEntry:
    """A notebook that was taken in, or an upload without a usable one: then `problem` says why it was set aside."""

    id: str  # made from what came and from its name: the same upload in another zip has the same
    source: str  # the file given to `unrolled collect`
    path: str  # the upload's path in it
    student: str = ""
    lesson: str = ""
    group: str = ""  # the name of the group that handed it in together
    problem: str = ""
    note: str = ""
    when: str = ""  # ISO 8601 in UTC; empty if unknown
    clock: str = ""
    """Whose time that is: "hand-in" (the learner's), "file" (the zip's or the disk's), "download" (the platform's)."""
    late: bool = False  # whether the platform marks it late
    version: str = ""
    notebook: str = ""  # the SHA-256 of the notebook's bytes
    nonce: str = ""
    order: tuple[float, ...] = ()  # of a student's notebooks of one lesson, the one with the highest is the newest
    whole: str = ""
    """The SHA-256 of the file that holds it, where that was kept whole because this could not be taken out of it."""
    kept: str = ""  # the folder it lies in, within grader/received


class Received:
    """The folder of everything received. `entries` has the last word on each, by id."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries = {entry.id: entry for entry in map(_entry, _lines(root / INDEX))}

    def attempts(self, student: str, lesson: str) -> list[ReceivedEntry]:
        """Return a student's notebooks of a lesson, oldest first; one that came twice in a row is the earlier one."""
        mine = [entry for entry in self.entries.values() if (entry.student, entry.lesson) == (student, lesson)]
        found: list[ReceivedEntry] = []
        for entry in sorted((entry for entry in mine if not entry.problem), key=lambda entry: entry.order):
            if not found or entry.notebook != found[-1].notebook:
                found.append(entry)
        return found

    def groups(self) -> dict[tuple[str, str, str], str]:
        """Return the group of each student, lesson and digest of a notebook that several handed in together."""
        known = (entry for entry in self.entries.values() if entry.group and not entry.problem)
        return {(entry.student, entry.lesson, entry.notebook): entry.group for entry in known}

    def outcome(self, entry: ReceivedEntry) -> str:
        """Return what an upload is to its student and lesson: newest, earlier, the same again, or set aside."""
        if entry.problem:
            return "set aside"
        *earlier, newest = self.attempts(entry.student, entry.lesson)
        return "newest" if entry == newest else "earlier" if entry in earlier else "the same again"

    def table(self, counting: Collection[str]) -> str:
        """Return the content of collected.csv, a row an upload, by student, lesson and age; `counting` are ids."""
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for entry in sorted(self.entries.values(), key=lambda one: (one.student, one.lesson, one.order, one.path)):
            computed = {"outcome": self.outcome(entry), "counts": "counts" if entry.id in counting else ""}
            cells = vars(entry) | computed | {"late": "late" if entry.late else ""}
            writer.writerow({name: one_line(str(text)) for name, text in cells.items()})
        return buffer.getvalue()

    def keep(self, entry: ReceivedEntry, item: UploadedFile, more: dict[str, bytes]) -> None:
        """Keep an upload under a safe form of its name, and files made from it beside it; note it in the index."""
        entry = self._moved(entry)
        folder = self.folder(entry)
        folder.mkdir(parents=True, exist_ok=True)
        put(folder / safe_name(item.outer.name if item.outer else item.name), item.outer or item.data)
        for extra, data in more.items():
            put(folder / extra, data)
        self.note(entry)

    def set_aside(self, entry: ReceivedEntry, problem: str) -> None:
        """Set aside what had a place."""
        self.note(self._moved(replace(entry, student="", lesson="", problem=problem)))

    def _moved(self, entry: ReceivedEntry) -> ReceivedEntry:
        """The entry with the folder that it belongs in; what is kept of it elsewhere moves there."""
        place = f"{STUDENTS}/{entry.student}/{entry.lesson}" if not entry.problem else SET_ASIDE
        kept = f"{place}/{(entry.whole or entry.id)[:16]}"
        folder, before = self.root / kept, self.entries.get(entry.id)
        if link := next((path for path in (folder, *folder.parents[:2]) if path.is_symlink()), None):
            raise OSError(f"a link lies in the way: {link}")
        if before is not None and before.kept != kept and self.folder(before).is_dir() and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            self.folder(before).rename(folder)
            if [file.name for file in self.folder(before).parent.iterdir()] == [COUNTS]:
                (self.folder(before).parent / COUNTS).unlink()
            without_empty(self.folder(before).parent, self.root / before.kept.partition("/")[0])
        return replace(entry, kept=kept)

    def note(self, entry: ReceivedEntry) -> None:
        """Append an entry to the index."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / INDEX).open("a+b") as stream:
            whole = stream.seek(0, os.SEEK_END) == 0 or (stream.seek(-1, os.SEEK_END) and stream.read() == b"\n")
            line = json.dumps(asdict(entry), ensure_ascii=False) + "\n"
            stream.write(("" if whole else "\n").encode() + line.encode("utf-8", "replace"))
        self.entries[entry.id] = entry

    def folder(self, entry: ReceivedEntry) -> Path:
        return self.root / entry.kept


def _rewrite(index: Path, lines: list[dict[str, object]]) -> None:
    put(index, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode(), replacing=True)


def forget(root: Path, student: str) -> list[Path]:
    """Delete all that is known to be a student's, and its lines in the index. Return the folders that were deleted.

    What the index says of other people's uploads loses the remark that theirs is the same. A zip that was kept
    whole goes too if the student had anything in it, since it holds that as well. Raises ValueError for what is no
    student's id.
    """
    if student in ("", ".", "..") or re.search(r"[\\/]", student):
        raise ValueError(f"student is {student!r}; expected an id")
    entries = Received(root).entries.values()
    mine = {entry.id for entry in entries if entry.student == student}
    sources = {entry.source for entry in entries if entry.id in mine}
    of_theirs = (entry for entry in entries if entry.id in mine or (entry.whole and entry.source in sources))
    kept = {entry.kept for entry in of_theirs if entry.kept}  # an entry without a file names the whole folder
    folders = (root / STUDENTS / student, *(root / one for one in sorted(kept)))
    inside = (one for one in folders if one.is_symlink() or one.resolve().is_relative_to(root.resolve()))
    gone = [folder for folder in inside if take_away(folder)]
    lines = _lines(root / INDEX)
    others = [line for line in lines if line["id"] not in mine and line.get("student") != student]
    left = [
        line | {"note": _alone(note, student)} if isinstance(note := line.get("note"), str) else line for line in others
    ]
    if left != lines:
        _rewrite(root / INDEX, left)
    return gone


def _alone(note: str, student: str) -> str:
    """A note without saying that this student has the same notebook."""
    parts = note.split("; ")
    for at, part in enumerate(parts):
        if part.startswith(SAME):
            others = [one for one in part.removeprefix(SAME).split(", ") if one != student]
            parts[at] = f"{SAME}{', '.join(others)}" if others else ""
    return "; ".join(filter(None, parts))


def take_away(folder: Path) -> bool:
    """Delete a folder, also what nbgrader made read-only in it, or the link in its place; return if there was one."""
    if folder.is_symlink():
        folder.unlink()
    elif folder.is_dir():
        for path in [folder, *folder.rglob("*")]:
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700 if path.is_dir() else 0o600)
        shutil.rmtree(folder)
    else:
        return False
    return True


def without_empty(folder: Path, root: Path) -> None:
    """Remove a folder and those around it as far as they are empty and lie in `root`."""
    while folder != root and folder.is_relative_to(root) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def safe_name(name: str) -> str:
    """Return a name for a file on any system, made from the last part of any path."""
    plain = re.sub(r"[^\w.@ ()-]", "_", name.replace("\\", "/").split("/")[-1]).strip(" .")
    plain = plain if len(plain.encode()) <= 120 else "_" + plain[-40:]
    return f"_{plain}" if not plain or handin.RESERVED.fullmatch(plain) else plain


def put(file: Path, content: bytes | Path, *, replacing: bool = False) -> None:
    """Write bytes, or copy a file, whole or not at all; what is there stays, unless `replacing`. OSError for a link."""
    if file.exists() and not replacing:
        return
    part = file.with_name(f".{file.name[:60]}.part")
    if part.is_symlink():
        raise OSError(f"a link lies in the way: {part}")
    if isinstance(content, Path):
        shutil.copyfile(content, part)
    else:
        part.write_bytes(content)
    os.replace(part, file)


def _lines(file: Path) -> list[dict[str, object]]:
    """The readable lines of the index; a line that was cut off when the machine stopped is passed over."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("id", "source", "path")):
                found.append(value)
    return found


def _entry(line: dict[str, object]) -> ReceivedEntry:
    """What a line says; a value of another kind than it should be, or a folder elsewhere, counts as not said."""
    blank = ReceivedEntry("", "", "")
    kinds = {field.name: type(getattr(blank, field.name)) for field in fields(ReceivedEntry) if field.name != "order"}
    values = {name: line[name] for name, kind in kinds.items() if isinstance(line.get(name), kind)}
    order = line.get("order")
    if isinstance(order, list) and all(isinstance(number, int | float) for number in order):
        values["order"] = tuple(order)
    if str(values.get("kept", "")).split("/")[0] not in (STUDENTS, SET_ASIDE) or ".." in str(values["kept"]).split("/"):
        values["kept"] = ""
    return ReceivedEntry(**values)  # type: ignore[arg-type]
