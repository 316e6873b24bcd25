"""What the path of an upload says, in the layouts that learning platforms give to their downloads.

Canvas, "Download Submissions" (canvas-lms, lib/content_zipper.rb); a group's name stands in place of a person's:

    lovelaceada_123_4567_02_convolution.ipynb        sortable name, user id, file id, the file's own name
    lovelaceada_LATE_123_4567_02_convolution-1.ipynb handed in late, and for the second time
    anon_x7Yz2_4567_02_convolution.ipynb             anonymous: an id of this assignment alone
    lovelaceada_123_text.html, ..._link.html         text or an address in place of a file

Moodle, "Download all submissions" (mod/assign/classes/downloader.php); the number is of this assignment alone, and
underscores in names become spaces:

    Ada Lovelace_123_assignsubmission_file/02_convolution.ipynb    in folders; older releases end the folder with "_"
    Ada Lovelace_123_assignsubmission_file_02_convolution.ipynb    without folders
    Ada Lovelace_123_assignsubmission_onlinetext/onlinetext.html   text written online
    Participant_123_assignsubmission_file/...                      where marking is blind
    Group 3_17_assignsubmission_file/...                           a team's, with the group's number
    Group 3-Ada Lovelace_123_assignsubmission_file/...             the same before Moodle 4.2, once a member

Blackboard Learn, "Assignment File Download" (as nbgrader's documentation of FileNameCollectorPlugin has it), with the
time of the attempt, and a text file about each:

    02_convolution_ada_attempt_2027-01-15-22-10-03_02_convolution.ipynb

Brightspace, "Download Submissions": number of the user and of the submission, name, time; files in that folder or flat:

    1234-5678 - Ada Lovelace - Jan 15, 2027 1010 PM/02_convolution.ipynb

Gradescope, "Export Submissions" (read as otter-grader's parser of it does): submission_metadata.yml says whose each is.

    assignment_12_export/submission_3456/02_convolution.ipynb

ILIAS, "Download all submissions" (Modules/Exercise, ilExerciseManagementCollectFilesJob and ilExSubmission), and Sakai,
"Download all":

    TITLE/Submissions/Lovelace_Ada_ada_4711/Late Submission - 02_convolution.ipynb
    TITLE/Lovelace, Ada(ada)/Submission attachment(s)/02_convolution.ipynb

Anything else is plain: STUDENT/LESSON/LESSON.ipynb, STUDENT/LESSON.ipynb, LESSON_STUDENT.ipynb; or as `--pattern` says.

Canvas and Moodle stamp every member with the moment of the download, so its time says "not later than".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import yaml

from unrolled.checks.limits import TimeLimitError, time_limit
from unrolled_grader.classroom.roster import Roster, folded

_UPLOADER = r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?P<number>\d{1,18}|anon_[A-Za-z0-9]+)_"
PLATFORMS = (
    ("moodle", r"(?P<name>[^_]+)_(?P<number>\d+)_assignsubmission_[a-z]+(?:_?|_(?P<rest>.+))"),
    ("brightspace", r"(?P<number>\d+)-\d+ - (?P<name>.+?) - (?P<when>\w+ \d+, \d{4} \d+ [AP]M)(?: - (?P<rest>.+))?"),
    ("canvas", _UPLOADER + r"(?P<file>\d{1,18})_(?P<rest>(?!attempt_\d{4}-).+)"),
    ("canvas", _UPLOADER + r"(?P<rest>(?:text|link)\.html)"),
    ("blackboard", r"(?P<name>.+?)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<rest>.+)|\.txt)"),
)
"""The part of a path, a folder or a file, that a platform made: by the first pattern that fits it whole. No `rest`, as
a student named the file, may look like what a pattern further up has before it."""
TIMES = ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I:%M %p", "%B %d, %Y %I:%M %p")
ILIAS = re.compile(r"([^_]+_.+)_\d+")
SAKAI = re.compile(r"(?P<name>.+)\((?P<login>[^()]+)\)")
ILIAS_LATE = re.compile(r"(?:Late Submission|Versp(?:ae|ä|a)tete Abgabe) - ")
ATTACHMENTS = "Submission attachment(s)"  # Sakai's folder, which is nobody's
GRADESCOPE = "submission_metadata.yml"
PART_LIMIT = 1000
"""Characters of a folder's or file's name that a platform may have made; systems take 255. In a zip it can have 65,000,
and to match those takes seconds."""
DEEPEST = 10  # folders that a pattern is tried on
SECONDS = 1.0  # that a pattern may take for one path: a regular expression can take hours
BLIND = "participant"  # what Moodle writes in place of a name when marking is blind
SUFFIX = re.compile(r"(?i)(?:\.(?:ipynb|zip|json|txt)|[ _]?\(\d+\))+$")
NOISE = re.compile(
    r"(?i)(?:^|/)(?:__MACOSX/|\.ipynb_checkpoints/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$"
    r"|[^/]+_attempt_\d{4}(?:-\d\d){5}\.txt$|submission_metadata\.yml$)"
)
"""What systems, Jupyter and platforms leave beside the files of people."""
FIELDS = (
    *("id", "student_id", "login", "email", "lms_id", "name", "first_name", "last_name"),
    *("file", "file_id", "timestamp"),
)
"""What a pattern can name; "student_id", "file_id" and "timestamp" as nbgrader's FileNameCollectorPlugin has them."""


class PatternError(ValueError):
    """A pattern for names cannot be used: what is wrong with it."""


@dataclass(frozen=True)
class Upload:
    """What the path of a file says. A path whose encoding is not sure has several readings of `who`."""

    platform: str  # such as "canvas"; "" for a plain path, "pattern" for one that a given pattern fits
    who: tuple[str, ...]
    """The uploader's name on a platform; for a plain path what may name someone: its file and the folder around it."""
    number: str = ""
    late: bool = False
    file: int = 0  # what grows with time: Canvas's number, the time of Blackboard and Brightspace, ILIAS's lateness
    anonymous: bool = False
    when: datetime | None = None  # by the platform's clock, without its time zone
    others: tuple[tuple[str, ...], ...] = ()  # those who handed it in together with them

    def __str__(self) -> str:
        if self.platform:
            return self.who[0] if self.who else self.number
        return " or ".join(self.who) or "named in its path"


@dataclass(frozen=True)
class Download:
    """What is known of a whole download before its paths are read."""

    lessons: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    roster: Roster = field(default_factory=Roster)
    gradescope: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)  # by folder


def upload(names: Sequence[str], download: Download) -> Upload:
    """Return what the readings of one path say."""
    names = [unicodedata.normalize("NFC", name) for name in names]
    if download.pattern:
        found = [one for name in names if (one := _by_pattern(name, download.pattern))]
        return found[0] if found else _unnamed("named as the pattern has it")
    for folder, people in download.gradescope.items():
        if people and names[0].startswith(folder):
            return Upload("gradescope", people[0], others=tuple(people[1:]))
    if known := [one for name in names if (one := _platform(name, download.roster))]:
        return replace(known[0], who=tuple(dict.fromkeys(name for one in known for name in one.who)))
    who = tuple(dict.fromkeys(part for name in names for part in _plain(name, download.lessons)))
    late = any(ILIAS_LATE.match(name.rpartition("/")[2]) for name in names)
    return Upload("", who, late=late, file=int(late))


def gradescope(data: bytes) -> dict[str, list[tuple[str, ...]]]:
    """Return by folder what Gradescope's metadata says of those who handed it in: id, e-mail and name of each."""
    found = {}
    with suppress(yaml.YAMLError, UnicodeError, AttributeError, TypeError, RecursionError):
        for folder, about in yaml.safe_load(data).items():
            people = [[str(one.get(key) or "") for key in (":sid", ":email", ":name")] for one in about[":submitters"]]
            found[str(folder)] = [tuple(filter(None, one)) for one in people]
    return found


def pattern(text: str) -> re.Pattern[str]:
    """Return a pattern for the end of a path: "{name}_{id}_{file}", or a regular expression with named groups.

    Raises PatternError for a field that is not in FIELDS, none that says who, and what is no regular expression.
    """
    if "(?P<" not in text:
        pieces = re.split(r"\{(\w+)\}", text)
        parts = [re.escape(piece) if at % 2 == 0 else f"(?P<{piece}>[^/]+?)" for at, piece in enumerate(pieces)]
        text = "".join(parts)
    try:
        found = re.compile(unicodedata.normalize("NFC", text))
    except re.error as error:
        raise PatternError(f"{text!r:.80} is no regular expression: {error}") from None
    if unknown := sorted(found.groupindex.keys() - {*FIELDS}):
        raise PatternError(f"{unknown[0]!r} is unknown; there are {', '.join(FIELDS)}")
    if not {"id", "student_id", "login", "lms_id", "name", "last_name", "email"} & found.groupindex.keys():
        raise PatternError("nothing in it says whose a file is; expected one of {id}, {name}, {email}, {lms_id}")
    return found


def _by_pattern(name: str, wanted: re.Pattern[str]) -> Upload | None:
    """What a path says by a pattern, which must fit the end of the path, as few parts of it as can be."""
    parts = name.split("/")[1:]
    ends = ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)][:DEEPEST]
    try:
        with time_limit(SECONDS):
            match = next((fit for end in ends if len(end) <= PART_LIMIT and (fit := wanted.fullmatch(end))), None)
    except TimeLimitError:
        return _unnamed("named so that the pattern comes to an end")
    if match is None:
        return None
    fields = {key: text for key, text in match.groupdict().items() if text}
    full = fields.get("name") or " ".join(fields[key] for key in ("first_name", "last_name") if key in fields)
    ids = [fields[key] for key in ("id", "student_id", "login", "email") if key in fields]
    return Upload("pattern", tuple(filter(None, (*ids, full))), fields.get("lms_id", ""))


def _unnamed(why: str) -> Upload:
    return Upload("pattern", (why,), anonymous=True)


def _platform(name: str, people: Roster) -> Upload | None:
    """What a path in a platform's form says; None if it is plain.

    The path begins with what was given to `unrolled collect`, which is looked at last; of the others the first counts,
    or a folder around it that is somebody's, as what stands further in was named by the student.
    """
    first, *parts = name.split("/")
    for at, part in enumerate((*parts, first)):
        for platform, form in PLATFORMS if len(part) <= PART_LIMIT else ():
            if match := re.fullmatch(form, part):
                around = map(_readings, parts[:at] if at < len(parts) else ())
                theirs = (words for words in around if any(people.with_id(w) or people.with_name([w]) for w in words))
                words = next(theirs, None)
                return _made_by(platform, match.groupdict()) if words is None else Upload("", tuple(words))
    return None


def _made_by(platform: str, fields: Mapping[str, Any]) -> Upload:
    name, number, when = fields["name"] or "", fields.get("number") or "", _time(fields.get("when") or "")
    anonymous = number.startswith("anon_") or (platform == "moodle" and folded(name) == BLIND)
    file = int(fields.get("file") or 0) or (int(when.strftime("%Y%m%d%H%M%S")) if when else 0)
    who: tuple[str, ...] = (name,) if name and not number.startswith("anon_") else ()
    if platform == "blackboard":  # the title and the login, both of which may have underscores
        words = name.split("_")
        who = tuple("_".join(words[at:]) for at in range(len(words)))
    return Upload(platform, who, number.removeprefix("anon_"), bool(fields.get("late")), file, anonymous, when)


def _time(text: str) -> datetime | None:
    text = re.sub(r"(\d\d [AP]M)$", r":\1", text)  # "110 AM" is 1:10, not 11:0
    for form in TIMES:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


def _plain(name: str, lessons: Sequence[str]) -> list[str]:
    """What in a plain path may name a person: the rest of the file's name, and the nearest folder that is no lesson."""
    *folders, file = name.split("/")
    known = [word for part in folders if part != ATTACHMENTS and (word := _word(part, lessons))]
    nearest = [word for folder in known[-1:] for word in _readings(folder)]
    return [word for word in (_word(ILIAS_LATE.sub("", file), lessons), *nearest) if word]


def _readings(folder: str) -> list[str]:
    """What in a folder's name may name a person: all of it, or login and name in ILIAS's and Sakai's forms."""
    if len(folder) <= PART_LIMIT and (match := SAKAI.fullmatch(folder)):
        return [folder, match["login"], match["name"]]
    parts = match[1].split("_") if len(folder) <= PART_LIMIT and (match := ILIAS.fullmatch(folder)) else []
    halves = ((parts[:at], parts[at:]) for at in range(1, len(parts)))  # a login may have underscores
    return [folder, *("_".join(half) for both in halves for half in both)]


def _word(part: str, lessons: Iterable[str]) -> str:
    """A part of a path without its suffixes, a lesson's name, and the number that a second copy gets."""
    word = SUFFIX.sub("", part)
    for lesson in lessons:
        word = re.sub(rf"{re.escape(lesson)}(?:-\d+$)?", "", word)
    return word.strip(" ._-")
