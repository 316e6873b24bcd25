"""Whose an uploaded file is, by the names that learning platforms give to files.

Canvas, "Download Submissions" (canvas-lms, lib/content_zipper.rb):

    lovelaceada_123_4567_02_convolution.ipynb        sortable name, user id, file id, the file's own name
    lovelaceada_LATE_123_4567_02_convolution-1.ipynb handed in late, and for the second time
    anon_x7Yz2_4567_02_convolution.ipynb             anonymous: an id of this assignment alone
    lovelaceada_123_text.html, ..._link.html         text or an address in place of a file

Moodle, "Download all submissions" (mod/assign/classes/downloader.php); the number is of this assignment alone, and
underscores in names become spaces:

    Ada Lovelace_123_assignsubmission_file/02_convolution.ipynb    in folders; older releases end the folder with "_"
    Ada Lovelace_123_assignsubmission_file_02_convolution.ipynb    without folders
    Ada Lovelace_123_assignsubmission_onlinetext/onlinetext.html   text written online

Anything else is plain: STUDENT/LESSON/LESSON.ipynb, STUDENT/LESSON.ipynb, LESSON_STUDENT.ipynb.

Both platforms stamp every member with the moment of the download, so its time says "not later than". The groups have
the names that nbgrader's FileNameCollectorPlugin asks for. The plugin itself takes one pattern of ASCII names, logs a
warning for each file that has another, and takes the id in the name for the student's; here the roster decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from unrolled_grader.classroom.roster import Person, Roster, folded

_UPLOADER = r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?P<student_id>\d{1,18}|anon_[A-Za-z0-9]+)_"
CANVAS = re.compile(_UPLOADER + r"(?P<file>\d{1,18})_(?P<file_id>.+)")
CANVAS_TEXT = re.compile(_UPLOADER + r"(?P<file_id>(?:text|link)\.html)")
MOODLE = re.compile(r"(?P<name>[^_]+)_(?P<student_id>\d+)_assignsubmission_(?P<plugin>[a-z]+)(?:_?$|_(?P<file_id>.+))")
PART_LIMIT = 1000
"""Characters of a folder's or file's name that a platform may have made; systems take 255. In a zip it can have 65,000,
and to match those takes seconds."""
BLIND = "participant"  # what Moodle writes in place of a name when marking is blind
SUFFIX = re.compile(r"(?i)(?:\.(?:ipynb|zip|json|txt)|[ _]?\(\d+\))+$")
NOISE = re.compile(r"(?i)(?:^|/)(?:__MACOSX/|\.ipynb_checkpoints/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$)")
"""What systems and Jupyter leave beside the files of people."""


class UnmatchedError(ValueError):
    """It is not certain whose a file is: the reason."""


@dataclass(frozen=True)
class Upload:
    """What the path of a file says. A path whose encoding is not sure has several readings of `who`."""

    platform: str  # "canvas", "moodle", or "" for a plain path
    who: tuple[str, ...]
    """The uploader's name on a platform; for a plain path what may name someone: its file and the folder around it."""
    number: str = ""
    late: bool = False
    file: int = 0  # Canvas's number of the file, which grows with time
    anonymous: bool = False

    def __str__(self) -> str:
        if self.platform:
            return self.who[0] if self.who else self.number
        return " or ".join(self.who) or "named in its path"


def upload(names: Sequence[str], lessons: Iterable[str]) -> Upload:
    """Return what the readings of one path say."""
    if known := [found for name in names if (found := _platform(name))]:
        return replace(known[0], who=tuple(dict.fromkeys(name for one in known for name in one.who)))
    words = tuple(lessons)
    return Upload("", tuple(dict.fromkeys(part for name in names for part in _plain(name, words))))


def uploader(found: Upload, roster: Roster) -> Person:
    """Return who uploaded a file. Raises UnmatchedError if that is nobody in the roster, or not surely one person."""
    if found.platform == "canvas":
        fitting = _by_canvas(found, roster)
    elif found.platform == "moodle":
        fitting = _by_moodle(found, roster)
    else:
        fitting = named(found, roster)
    return certain(fitting, roster, str(found))


def named(found: Upload, roster: Roster) -> set[Person]:
    """Return everyone whom a plain path names by id, email or name."""
    return {person for word in found.who for person in roster.with_id(word) or roster.with_name([word])}


def certain(fitting: set[Person], roster: Roster, called: str) -> Person:
    """Return the one person who fits. Raises UnmatchedError, with what to do, if there is none or more than one."""
    if not fitting:
        raise UnmatchedError(f"nobody in the roster is {called}")
    ids = " or ".join(sorted({person.id for person in fitting}))
    if any(not roster.is_sure(person) for person in fitting):
        raise UnmatchedError(f"{called} could be {ids}, and two people in the roster have one id")
    if len(fitting) > 1:
        raise UnmatchedError(f"{called} could be {ids}: give them their lms_id in the roster")
    return next(iter(fitting))


def _by_moodle(found: Upload, roster: Roster) -> set[Person]:
    """By name, and by the number between people of one name; where marking is blind, by the number alone."""
    numbered = roster.with_lms_id(found.number) if roster.has_participants else set()
    people = roster.with_name(found.who)
    return numbered if found.anonymous else people & numbered or people


def _by_canvas(found: Upload, roster: Roster) -> set[Person]:
    """By Canvas's id, which is a person's for ever; else by the name of those whose id is not known."""
    numbered, named = roster.with_lms_id(found.number), roster.with_name(found.who)
    if numbered and named and not numbered & named:
        ids = [next(iter(people)).id for people in (numbered, named)]
        raise UnmatchedError(f"the number {found.number} is {ids[0]}'s, but the name {found} is {ids[1]}'s")
    if numbered:
        return numbered & named or numbered
    strangers = {person for person in named if person.lms_id}
    if strangers == named and named:
        other = next(iter(strangers))
        raise UnmatchedError(f"the name {found} is {other.id}'s, but the number {found.number} is not")
    return named - strangers


def _platform(name: str) -> Upload | None:
    """What a path in Canvas's or Moodle's form says; None if it is plain.

    The path begins with what was given to `unrolled collect`, which is looked at last; of the others the first counts,
    as what stands further in was named by the student.
    """
    first, *parts = unicodedata.normalize("NFC", name).split("/")
    for part in (*parts, first):
        if len(part) > PART_LIMIT:
            continue
        if match := MOODLE.fullmatch(part):
            return Upload("moodle", (match["name"],), match["student_id"], anonymous=folded(match["name"]) == BLIND)
        if match := CANVAS.fullmatch(part) or CANVAS_TEXT.fullmatch(part):
            anonymous, number = match["student_id"].startswith("anon_"), match["student_id"].removeprefix("anon_")
            file = int(match.groupdict().get("file") or 0)
            who = () if anonymous or not match["name"] else (match["name"],)
            return Upload("canvas", who, number, bool(match["late"]), file, anonymous)
    return None


def _plain(name: str, lessons: Sequence[str]) -> list[str]:
    """What in a plain path may name a person: the rest of the file's name, and the nearest folder that is no lesson."""
    *folders, file = (_word(part, lessons) for part in unicodedata.normalize("NFC", name).split("/"))
    nearest = next((word for word in reversed(folders) if word), "")
    return [word for word in (file, nearest) if word]


def _word(part: str, lessons: Sequence[str]) -> str:
    """A part of a path without its suffixes, a lesson's name, and the number that a second copy gets."""
    word = SUFFIX.sub("", part)
    for lesson in lessons:
        word = re.sub(rf"{re.escape(lesson)}(?:-\d+$)?", "", word)
    return word.strip(" ._-")
