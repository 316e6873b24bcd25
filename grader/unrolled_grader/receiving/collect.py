"""Taking in what students handed in: whose it is, which lesson, when; kept as it came; the newest placed for grading.

`take` reads what was given (uploads), finds out whose each upload is (lms, roster), keeps it (received), and places
the newest notebook of each student and lesson where nbgrader looks for it. What is not certain is set aside with the
reason.
Nothing is deleted, and nothing that a person put or changed in grader/submitted is overwritten.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

import unrolled
from unrolled_grader.classroom.roster import Person, Roster
from unrolled_grader.judge import intake, opening
from unrolled_grader.judge.opening import RefusedError
from unrolled_grader.receiving import lms, uploads
from unrolled_grader.receiving.lms import UnmatchedError, Upload
from unrolled_grader.receiving.received import Received, ReceivedEntry, put, without_empty
from unrolled_grader.receiving.uploads import UploadedFile, UploadedNotebook

JOURNAL = "journal.json"
NOISE = "it was left by the system or by Jupyter, not by a person"
"""Why a file is set aside that is no hand-in anyway: that comes before whose it is."""

TAKEN_BACK = "the roster that named its student was taken back: collect it again"

Looked = tuple[ReceivedEntry, UploadedNotebook]


@dataclass(frozen=True)
class CollectedRow:
    """What came of one upload."""

    entry: ReceivedEntry
    outcome: str  # "newest", "earlier", "the same again", or "set aside"
    new: bool  # whether this run found out something that was not known


@dataclass(frozen=True)
class Collected:
    """What came of a run: a row an upload, what is wrong with the roster, what could not be placed or read."""

    rows: tuple[CollectedRow, ...]
    problems: tuple[str, ...]

    @property
    def new(self) -> int:
        return sum(row.new for row in self.rows)


@dataclass(frozen=True)
class Classroom:
    """What uploads are compared with."""

    roster: Roster
    lessons: Mapping[str, Collection[str]]  # the lessons of this course, with the names of their checks
    lesson: str = ""  # the only lesson that is taken; empty: all
    versions: Collection[str] = ()  # other versions whose notebooks can be judged here
    due: Callable[[str, str], datetime | None] = lambda student, lesson: None
    """When a student's lesson is due, as far as course.toml says."""


def take(submitted: Path, files: Sequence[Path], room: Classroom) -> Collected:
    """Take in these files and folders for the course with submissions in `submitted`; return what came of each."""
    received = Received(home(submitted))
    former = {entry.id: (entry.student, entry.lesson) for entry in received.entries.values() if not entry.problem}
    problems = [f"roster: {problem}" for problem in room.roster.problems]
    seen: dict[str, bool] = {}
    for file in files:
        try:
            seen.update(_take_one(received, file, room, problems))
        except OSError as error:
            problems.append(f"{file}: it cannot be read: {error.strerror or error}")
    found = [received.entries[one] for one in seen]
    theirs = {(entry.student, entry.lesson) for entry in found if not entry.problem}
    for entry, (student, lesson) in [(entry, former[entry.id]) for entry in found if entry.id in former]:
        moved = student != entry.student and not entry.problem  # a mended roster says that it is somebody else's
        if moved and displace(received, submitted, student, lesson, [entry.notebook]):
            problems.append(f"{student}, {lesson}: what lay there is {entry.student}'s: out of {submitted}")
            theirs |= {(student, lesson)} if received.attempts(student, lesson) else set()
    for student, lesson in sorted(theirs):
        try:
            place(received, submitted, student, lesson)
        except OSError as error:
            problems.append(f"{student}, {lesson}: not placed: {error}")
    rows = [CollectedRow(entry, received.outcome(entry), seen[entry.id]) for entry in found]
    return Collected(tuple(rows), tuple(problems))


def home(submitted: Path) -> Path:
    """Return where what was received lies: beside what is graded."""
    return submitted.parent / "received"


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


def take_back(submitted: Path, student: str) -> Iterator[str]:
    """Set aside all that was received as a student's, whom no roster names any more; yield it in words."""
    received = Received(home(submitted))
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


def _take_one(received: Received, file: Path, room: Classroom, problems: list[str]) -> Iterator[tuple[str, bool]]:
    """Take in one file or folder. Gives each upload's id, and whether it brought anything new; adds to `problems`."""
    found = [(item, lms.upload(item.names, room.lessons)) for item in uploads.items(file)]
    downloaded = max((item.when for item, upload in found if upload.platform and item.when), default=None)
    for position, (item, upload) in enumerate(found):
        for entry, piece in _looked_at(item, upload, room):
            moment = downloaded if upload.platform else piece.handed.made if piece.handed else item.when
            made = piece.handed.made.timestamp() if piece.handed else 0.0
            order = (moment.timestamp() if moment else 0.0, upload.file, made, position)
            entry = _compared(received, replace(entry, source=file.name, order=order))
            known = received.entries.get(entry.id)
            news = known is None or _fact(known) != _fact(entry)
            try:
                if news:
                    received.keep(entry, item, _extras(entry, item, piece))
            except OSError as error:
                problems.append(f"{item.name}: not taken in, as it cannot be kept: {error}")
            else:
                yield entry.id, news


def _fact(entry: ReceivedEntry) -> tuple[str, ...]:
    """What must change for an upload to be news."""
    return entry.student, entry.lesson, entry.problem, entry.notebook


def _extras(entry: ReceivedEntry, item: UploadedFile, piece: UploadedNotebook) -> dict[str, bytes]:
    """The files to keep beside an upload that is not the notebook itself."""
    more = {}
    if not entry.problem and piece.notebook != item.data:
        more[f"{entry.lesson}.ipynb"] = piece.notebook
    if not entry.problem and piece.handed:
        more[JOURNAL] = json.dumps(piece.handed.journal, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    return more


def _looked_at(item: UploadedFile, upload: Upload, room: Classroom) -> list[Looked]:
    """What is known of an upload. One that is damaged in a way that nobody thought of stops no other."""
    try:
        return _entries(item, upload, room)
    except Exception as error:
        piece = UploadedNotebook(problem=f"it cannot be read ({type(error).__name__}: {error})")
        entry = ReceivedEntry(_id(item, piece), "", item.name, problem=piece.problem, note=item.note, whole=item.whole)
        return [(entry, piece)]


def _entries(item: UploadedFile, upload: Upload, room: Classroom) -> list[Looked]:
    """What is known of an upload from itself and the roster: an entry for each notebook in it."""
    found = []
    for piece in uploads.pieces(item):
        entry = ReceivedEntry(_id(item, piece), "", item.name, late=upload.late, note=item.note, whole=item.whole)
        problem = NOISE if lms.NOISE.search(item.name) else piece.problem
        try:
            entry = replace(entry, student=_student(upload, piece, room).id, problem=problem)
            if not problem:
                lesson, version = _lesson(piece.notebook, room)
                entry = replace(entry, lesson=lesson, version=version)
                _check_version(version, room.versions)
        except (UnmatchedError, RefusedError) as reason:
            entry = replace(entry, problem=problem or str(reason))
        found.append((_timed(entry, item, upload, piece, room), piece))
    return _without_rivals(found)


def _without_rivals(found: list[Looked]) -> list[Looked]:
    """Set aside what one upload holds two different notebooks of: nobody knows which is meant."""
    notebooks = {(entry.lesson, entry.notebook) for entry, _ in found if not entry.problem}
    counts = Counter(lesson for lesson, _ in notebooks)
    for at, (entry, piece) in enumerate(found):
        if not entry.problem and counts[entry.lesson] > 1:
            found[at] = (replace(entry, problem=f"the upload holds several notebooks of {entry.lesson}"), piece)
    return found


def _student(upload: Upload, piece: UploadedNotebook, room: Classroom) -> Person:
    """Whose an upload is: the platform's word, else the path's, else the hand-in's own. Raises UnmatchedError.

    A hand-in says what its maker typed. It is enough where nobody else says anything, and never against the others.
    """
    if piece.handed is None:
        return lms.uploader(upload, room.roster)
    claimed = room.roster.with_id(piece.handed.student)
    silent = upload.anonymous or (not upload.platform and not lms.named(upload, room.roster))
    if silent:
        return lms.certain(claimed, room.roster, f"the hand-in's {piece.handed.student}")
    try:
        person = lms.uploader(upload, room.roster)
    except UnmatchedError as reason:
        if not upload.platform and claimed & lms.named(upload, room.roster):
            return lms.certain(claimed, room.roster, f"the hand-in's {piece.handed.student}")
        raise UnmatchedError(f"{reason} (the hand-in says {piece.handed.student})") from None
    if claimed and person not in claimed:
        raise UnmatchedError(f"{person.id} handed in what says it is {piece.handed.student}'s")
    return person


def _lesson(notebook: bytes, room: Classroom) -> tuple[str, str]:
    """The lesson and version of a notebook. Raises RefusedError if it is none, of another lesson, or does not say."""
    if (size := len(notebook)) > (most := intake.MAX_BYTES):
        raise RefusedError(f"the notebook has {size / 1e6:.0f} MB, at most {most / 1e6:.0f} MB are taken")
    lesson, version = opening.claimed(notebook)
    if not lesson and not room.lesson:
        raise RefusedError("the notebook does not say which lesson it is: if it is certain, add --lesson LESSON")
    lesson = lesson or room.lesson
    if lesson not in room.lessons:
        raise RefusedError(f"the notebook is of {lesson}, which is no lesson of this course")
    if room.lesson and lesson != room.lesson:
        raise RefusedError(f"the notebook is of another lesson: {lesson}")
    opening.opened(notebook, lesson, room.lessons[lesson])
    return lesson, version


def _check_version(version: str, known: Collection[str]) -> None:
    """Raise RefusedError for a notebook newer than this course, unless that version is here too. Older ones pass."""
    ours = unrolled.__version__
    if version and version not in known and _numbers(version) > _numbers(ours):
        raise RefusedError(f"the notebook is of version {version}, newer than this course, {ours}: update the course")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d{1,9}", version)[:4])


def _timed(
    entry: ReceivedEntry, item: UploadedFile, upload: Upload, piece: UploadedNotebook, room: Classroom
) -> ReceivedEntry:
    """The entry with its time, as far as anything tells it, its digest, and what an instructor should know of both."""
    when, clock = item.when, "file"
    if piece.handed:
        when, clock = piece.handed.made, "hand-in"
    elif upload.platform:  # its zip has the time of the download
        when, clock = (item.when, "download") if upload.late else (None, "")
    notes = [entry.note, "the platform marks it LATE" if upload.late else ""]
    due = room.due(entry.student, entry.lesson)
    if piece.handed and upload.late and due and piece.handed.made <= due:
        when, clock = item.when, "download"
        notes.append("the hand-in says it was made before it was due, which is the learner's clock and does not count")
    if upload.platform and not entry.problem:
        notes.append("it was handed in before that download" if clock == "download" else "")
        notes.append("Moodle tells no time" if not clock and upload.platform == "moodle" else "")
    if not entry.problem and entry.version not in ("", unrolled.__version__):
        notes.append(f"made with version {entry.version}")
    return replace(
        entry,
        when=when.astimezone(timezone.utc).isoformat(timespec="seconds") if when else "",
        clock=clock,
        note="; ".join(filter(None, notes)),
        notebook=hashlib.sha256(piece.notebook).hexdigest() if piece.notebook else "",
        nonce=piece.handed.nonce if piece.handed else "",
    )


def _compared(received: Received, entry: ReceivedEntry) -> ReceivedEntry:
    """The entry, with a note if it is what somebody else handed in: the same notebook or the same hand-in."""
    same = {*filter(None, (entry.notebook, entry.nonce))} if entry.student else set()
    whose = {other.student for other in received.entries.values() if same & {other.notebook, other.nonce}}
    others = sorted(whose - {"", entry.student})
    note = f"the same notebook as {', '.join(others)}" if others else ""
    return replace(entry, note="; ".join(filter(None, (entry.note, note))))


def _id(item: UploadedFile, piece: UploadedNotebook) -> str:
    """Name a piece by its bytes and its name alone, in whatever zip or folder it came."""
    names = (item.name.split("/", 1)[-1], piece.inner, item.whole)
    seen = hashlib.sha256(item.data)
    seen.update("\0".join(("", *names)).encode("utf-8", "replace"))
    return seen.hexdigest()
