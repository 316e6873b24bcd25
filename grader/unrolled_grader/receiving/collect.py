"""Taking in what students handed in: whose it is, which lesson, when; kept as it came; what counts placed for grading.

`take` reads what was given (uploads), finds out whose each upload is (lms, roster), keeps it (received), and places
what counts of each student and lesson (attempts) where nbgrader looks for it (placing). What is not certain is set
aside with the reason. Nothing is deleted.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timezone
from pathlib import Path

import unrolled
from unrolled_grader.classroom import late
from unrolled_grader.classroom.roster import Person, Roster
from unrolled_grader.classroom.settings import Settings
from unrolled_grader.jobs import record
from unrolled_grader.judge import intake, opening
from unrolled_grader.judge.opening import RefusedError
from unrolled_grader.receiving import attempts, layouts, lms, rivals, uploads
from unrolled_grader.receiving.attempts import Settled
from unrolled_grader.receiving.layouts import Download, Upload
from unrolled_grader.receiving.lms import Groups, UnmatchedError
from unrolled_grader.receiving.placing import displace
from unrolled_grader.receiving.received import JOURNAL, SAME, Received, ReceivedEntry
from unrolled_grader.receiving.rivals import Looked
from unrolled_grader.receiving.uploads import UploadedFile, UploadedNotebook

TABLE = "collected.csv"
NOISE = "it was left by the system or by Jupyter, not by a person"
"""Why a file is set aside that is no hand-in anyway: that comes before whose it is."""
CLOCKS = {"file": "the file's own time", "hand-in": "the hand-in's time", "platform": "the platform's time"}
"""Whose word it is that something came after it was due; the platform says LATE."""


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
    before: frozenset[tuple[str, str]] = frozenset()  # the students and lessons of which there was a notebook already
    settled: tuple[Settled, ...] = ()  # what counts of those students and lessons

    @property
    def new(self) -> int:
        return sum(row.new for row in self.rows)


@dataclass(frozen=True)
class Classroom:
    """What uploads are compared with."""

    roster: Roster
    lessons: Mapping[str, Collection[str]]  # the lessons of this course, with the names of their checks
    lesson: str = ""  # the only lesson that is taken; empty: all
    groups: Groups = field(default_factory=dict)
    pattern: re.Pattern[str] | None = None  # how names are made, where no platform's layout is meant
    versions: Collection[str] = ()  # other versions whose notebooks can be judged here
    settings: Settings = field(default_factory=Settings)  # when a student's lesson is due, which attempt counts


def take(submitted: Path, files: Sequence[Path], room: Classroom) -> Collected:
    """Take in these files and folders for the course with submissions in `submitted`; return what came of each."""
    received = Received(home(submitted))
    former = {entry.id: (entry.student, entry.lesson) for entry in received.entries.values() if not entry.problem}
    problems = [f"roster: {problem}" for problem in room.roster.problems]
    seen: dict[str, bool] = {}
    for one, news in _kept(received, look(received, files, room, problems), problems):
        seen[one] = seen.get(one, False) or news
    found = [received.entries[one] for one in seen]
    theirs = {(entry.student, entry.lesson) for entry in found if not entry.problem}
    for entry, (student, lesson) in [(entry, former[entry.id]) for entry in found if entry.id in former]:
        moved = student != entry.student and not entry.problem  # a mended roster says that it is somebody else's
        if moved and displace(received, submitted, student, lesson, [entry.notebook]):
            problems.append(f"{student}, {lesson}: what lay there is {entry.student}'s: out of {submitted}")
            theirs |= {(student, lesson)} if received.attempts(student, lesson) else set()
    settled = []
    fresh = {one for one, news in seen.items() if news}
    for student, lesson in sorted(theirs):
        try:
            settled.append(attempts.settle(received, submitted, student, lesson, room.settings, fresh))
        except OSError as error:
            problems.append(f"{student}, {lesson}: not placed: {error}")
    rows = [CollectedRow(entry, received.outcome(entry), seen[entry.id]) for entry in found]
    return Collected(tuple(rows), tuple(problems), frozenset(former.values()), tuple(filter(None, settled)))


def look(received: Received, files: Sequence[Path], room: Classroom, problems: list[str]) -> list[Looked]:
    """Return what these files and folders hold, and whose it is; write nothing. Adds to `problems`."""
    looked: list[Looked] = []
    for file in files:
        try:
            looked += _found_in(file, room)
        except OSError as error:
            problems.append(f"{file}: it cannot be read: {error.strerror or error}")
    return rivals.settled(looked, received.entries)


def write_table(grades: Path, received: Received) -> Path:
    """Write what is known of every upload to collected.csv, with a mark at those that count; return the file."""
    pairs = {(entry.student, entry.lesson) for entry in received.entries.values() if not entry.problem}
    kept = (attempts.read(received, *pair) for pair in pairs)
    file = grades / TABLE
    record.replace_file(file, received.table({counts.placed[-1] for counts in kept if counts and counts.placed}))
    return file


def home(submitted: Path) -> Path:
    """Return where what was received lies: beside what is graded."""
    return submitted.parent / "received"


def _found_in(file: Path, room: Classroom) -> Iterator[Looked]:
    """What one file or folder holds. Only a file that cannot be read at all raises (OSError)."""
    items = list(uploads.items(file))
    download = Download(tuple(room.lessons), room.pattern, room.roster, _gradescope(items))
    found = [(item, layouts.upload(item.names, download)) for item in items]
    downloaded = max((item.when for item, upload in found if upload.platform and item.when), default=None)
    for position, (item, upload) in enumerate(found):
        for entry, piece in _looked_at(item, upload, room):
            moment = (
                downloaded
                if upload.platform not in ("", "pattern")
                else piece.handed.made
                if piece.handed
                else item.when
            )
            made = piece.handed.made.timestamp() if piece.handed else 0.0
            order = (moment.timestamp() if moment else 0.0, upload.file, made, position)
            yield Looked(replace(entry, source=file.name, order=order), piece, item, upload)


def _gradescope(items: Sequence[UploadedFile]) -> dict[str, list[tuple[str, ...]]]:
    """Who handed in what lies in each folder, by Gradescope's list beside all of them: a student may hand one in."""
    lists = [item for item in items if item.name.endswith(f"/{layouts.GRADESCOPE}")]
    top = min(lists, key=lambda item: item.name.count("/"), default=None)
    above = top.name.removesuffix(layouts.GRADESCOPE) if top else ""
    if top is None or not all(one.name.startswith(above) or layouts.NOISE.search(one.name) for one in items):
        return {}
    return {f"{above}{folder}/": people for folder, people in layouts.gradescope(top.data).items()}


def _kept(received: Received, found: Sequence[Looked], problems: list[str]) -> Iterator[tuple[str, bool]]:
    """Keep what was found. Gives each upload's id, and whether it brought anything new; adds to `problems`."""
    for one in found:
        entry = _compared(received, one.entry)
        known = received.entries.get(entry.id)
        entry = replace(entry, id=known.id) if known else entry
        news = known is None or _fact(known) != _fact(entry)
        try:
            if news:
                received.keep(entry, one.item, _extras(entry, one.item, one.piece))
        except OSError as error:
            problems.append(f"{one.item.name}: not taken in, as it cannot be kept: {error}")
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


def _looked_at(item: UploadedFile, upload: Upload, room: Classroom) -> list[tuple[ReceivedEntry, UploadedNotebook]]:
    """What is known of an upload. One that is damaged in a way that nobody thought of stops no other."""
    try:
        return _entries(item, upload, room)
    except Exception as error:
        piece = UploadedNotebook(problem=f"it cannot be read ({type(error).__name__}: {error})")
        entry = ReceivedEntry(_id(item, piece), "", item.name, problem=piece.problem, note=item.note, whole=item.whole)
        return [(entry, piece)]


def _entries(item: UploadedFile, upload: Upload, room: Classroom) -> list[tuple[ReceivedEntry, UploadedNotebook]]:
    """What is known of an upload from itself and the roster: an entry for each notebook in it."""
    found = []
    for piece in uploads.pieces(item):
        entry = ReceivedEntry(_id(item, piece), "", item.name, late=upload.late, note=item.note, whole=item.whole)
        problem = NOISE if layouts.NOISE.search(item.name) else piece.problem
        entry = replace(entry, problem=problem)
        try:
            members, group = lms.together(upload, room.roster, room.groups)
            claimed = room.roster.with_id(piece.handed.student) if piece.handed and members else set()
            if claimed and not claimed.intersection(members):
                raise UnmatchedError(f"{group} handed in what says it is {next(iter(claimed)).id}'s")
            entries = [_of_a_member(entry, one, group) for one in members]
            if not members:
                person = _student(upload, piece, room)
                entries = [replace(entry, student=person.id, note=_doubt(upload, person, room) or entry.note)]
        except UnmatchedError as reason:
            entries = [replace(entry, problem=problem or str(reason))]
        found += [(_timed(_of_a_lesson(one, piece, room), item, upload, piece, room), piece) for one in entries]
    return found


def _of_a_member(entry: ReceivedEntry, member: Person, group: str) -> ReceivedEntry:
    one = hashlib.sha256(f"{entry.id}/{member.id}".encode()).hexdigest()
    note = "; ".join(filter(None, (entry.note, f"of the group {group}")))
    return replace(entry, id=one, student=member.id, group=group, note=note)


def _doubt(upload: Upload, person: Person, room: Classroom) -> str:
    """What to know where Canvas's number is somebody's and the name before it is nobody's."""
    if upload.platform != "canvas" or not upload.who or not person.name or room.roster.with_name(upload.who):
        return ""
    return f"{upload} is no name of theirs; if that is a group, write its members into groups.csv"


def _of_a_lesson(entry: ReceivedEntry, piece: UploadedNotebook, room: Classroom) -> ReceivedEntry:
    """The entry with its lesson and version, unless something is in the way already."""
    if entry.problem:
        return entry
    try:
        lesson, version = _lesson(piece.notebook, room)
        entry = replace(entry, lesson=lesson, version=version)
        _check_version(version, room.versions)
    except RefusedError as reason:
        entry = replace(entry, problem=str(reason))
    return entry


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
    elif upload.when:
        when, clock = upload.when.replace(tzinfo=room.settings.zone), "platform"
    elif upload.platform and upload.platform != "pattern":  # its zip has the time of the download
        when, clock = (item.when, "download") if upload.late else (None, "")
    notes = [entry.note, "the platform marks it LATE" if upload.late else ""]
    due = room.settings.due_for(entry.student, entry.lesson)
    if piece.handed and upload.late and due and piece.handed.made <= due:
        when, clock = item.when, "download"
        notes.append("the hand-in says it was made before it was due, which is the learner's clock and does not count")
    if upload.platform in ("canvas", "moodle") and not entry.problem:
        notes.append("it was handed in before that download" if clock == "download" else "")
        notes.append("Moodle tells no time" if not clock and upload.platform == "moodle" else "")
    if when and due and when > due and clock in CLOCKS and not entry.problem:
        how_late = late.in_words(due, when, due.tzinfo or timezone.utc)
        way_out = " (if it came in time, correct its timestamp.txt)" if clock == "file" else ""
        notes.append(f"{CLOCKS[clock]}, {when.astimezone(due.tzinfo):%Y-%m-%d %H:%M}, is {how_late}{way_out}")
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
    whose = {
        other.student
        for other in received.entries.values()
        if same & {other.notebook, other.nonce}
        and not (entry.group and (other.group == entry.group or other.path == entry.path))
    }
    others = sorted(whose - {"", entry.student})
    note = f"{SAME}{', '.join(others)}" if others else ""
    return replace(entry, note="; ".join(filter(None, (entry.note, note))))


def _id(item: UploadedFile, piece: UploadedNotebook) -> str:
    """Name a piece by its bytes and its name alone, in whatever zip or folder it came."""
    names = (item.name.split("/", 1)[-1], piece.inner, item.whole)
    seen = hashlib.sha256(item.data)
    seen.update("\0".join(("", *names)).encode("utf-8", "replace"))
    return seen.hexdigest()
