"""The file that a learner hands in: a small zip with the notebook, the journal, and who, what and when.

`make` builds it, `read` opens one from anywhere, sizes capped and nothing written, and says what is wrong. It holds:

    LESSON.ipynb   the notebook, without outputs over 1 MB; if it is still over 10 MB, without outputs and widget state
    journal.json   predictions, findings and rungs
    handin.json    {"format": "unrolled-handin", "version": 1, "course", "lesson", "student", "made", "nonce", "digest",
                    "dropped"}

The digest is the SHA-256 of the notebook's bytes. The nonce is drawn anew each time: a file with a nonce seen before is
the same file again, one with a digest seen before holds the same notebook again. Neither proves who made it.
"""

from __future__ import annotations

import datetime
import hashlib
import io
import itertools
import json
import re
import secrets
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import unrolled
from unrolled.notebook import cells

FORMAT = "unrolled-handin"
VERSION = 1
ABOUT, JOURNAL = "handin.json", "journal.json"

OUTPUT_BYTES = 1_000_000  # a cell's output above this is left out
NOTEBOOK_BYTES = 10_000_000  # what the grader takes of a notebook
JOURNAL_BYTES = 5_000_000
ABOUT_BYTES = 100_000
FILE_BYTES = 20_000_000
DEPTH = 50  # lists and objects in one another: a journal needs six, and many more break whoever writes or shows them
YEARS = range(1970, 2101)  # when it may say it was made: others cannot be told in every time zone, nor believed

FORMS = dict.fromkeys(("course", "lesson", "student", "made"), ".{0,200}")
FORMS |= {"nonce": "[0-9a-f]{32}", "digest": "[0-9a-f]{64}"}
LESSON = re.compile(r"\w{1,80}")
STUDENT = re.compile(r"\w(?:[\w.@-]{0,62}[\w-])?")
RESERVED = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[\d¹²³])(?:\..*)?", re.IGNORECASE)  # Windows' devices

Record = dict[str, Any]


@dataclass(frozen=True)
class HandIn:
    """What a hand-in holds. All of it was written by the learner's machine: it says who, but does not prove it."""

    lesson: str
    student: str
    course: str  # the version of the course
    made: datetime.datetime  # with its time zone, by the learner's clock
    nonce: str
    digest: str
    notebook: bytes
    journal: Record
    dropped: tuple[str, ...]  # outputs that were too large to take along, in words


def student_id(text: str) -> str:
    """Return `text` as a student's id, in Unicode's composed form. It becomes the name of a folder.

    Raises ValueError unless it is 1 to 64 letters, digits, and . @ - _ between them, or if Windows reserves the name.
    """
    name = unicodedata.normalize("NFC", text).strip()
    if not STUDENT.fullmatch(name) or RESERVED.fullmatch(name):
        raise ValueError(
            f"{text!r} cannot be a student's id: it must be 1 to 64 letters, digits, or . @ - _ between them, "
            "such as s12345 or ada.lovelace"
        )
    return name


def identified(known: str, how: str) -> str:
    """Return a student's id that is known. Raises ValueError if it cannot be one; `how` to give it is said for ""."""
    if not known:
        raise ValueError(f"say once who you are, by the id that your course gave you: {how}")
    return student_id(known)


def make(notebook: bytes | Record, journal: Record, student: str, lesson: str) -> bytes:
    """Return the bytes of the file to hand in.

    `notebook` is an .ipynb's bytes or its JSON; bytes without large outputs stay as they are. Raises ValueError for an
    impossible id or lesson, for a notebook that is none or is too large, and for a journal that `read` would refuse.
    """
    student = student_id(student)
    if not LESSON.fullmatch(lesson):
        raise ValueError(f"lesson must be a name such as 02_convolution, got {lesson!r}")
    nb = cells.parse(notebook) if isinstance(notebook, bytes) else notebook
    large = large_outputs(nb)
    dropped = [f"an output of cell {index + 1}, {size / 1e6:.1f} MB" for index, _, size in large]
    data = notebook if isinstance(notebook, bytes) and not large else _json(without(nb, large))
    if (size := len(data)) > NOTEBOOK_BYTES:
        data = _json(bare(nb))
        dropped = [f"all outputs and the state of widgets, {(size - len(data)) / 1e6:.1f} MB"]
    if len(data) > NOTEBOOK_BYTES:
        raise ValueError(
            f"the notebook has {len(data) / 1e6:.1f} MB without its outputs; at most {NOTEBOOK_BYTES / 1e6:.0f} "
            "MB can be handed in: keep data out of its cells"
        )
    kept = _json(_shallow(journal, JOURNAL))
    if len(kept) > JOURNAL_BYTES:
        raise ValueError(
            f"the journal has {len(kept) / 1e6:.1f} MB; at most {JOURNAL_BYTES / 1e6:.0f} MB can be handed in: move "
            "journal.json to another folder, and run the notebook again"
        )
    about = {
        "format": FORMAT,
        "version": VERSION,
        "course": unrolled.__version__,
        "lesson": lesson,
        "student": student,
        "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "nonce": secrets.token_hex(16),
        "digest": hashlib.sha256(data).hexdigest(),
        "dropped": dropped,
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((f"{lesson}.ipynb", data), (JOURNAL, kept), (ABOUT, _json(about))):
            archive.writestr(name, content)
    return stream.getvalue()


def read(data: bytes) -> HandIn:
    """Return what a hand-in holds. Raises ValueError, saying why, if `data` is none, damaged, changed, or too large."""
    files = _unzip(data)
    if ABOUT not in files:
        raise ValueError(f"it is no hand-in of this course: {ABOUT} is missing")
    about = _shallow(cells.json_object(files[ABOUT], ABOUT), ABOUT)
    _check(about)
    name = f"{about['lesson']}.ipynb"
    if set(files) != {ABOUT, JOURNAL, name}:
        raise ValueError(f"it must hold {name}, {JOURNAL} and {ABOUT}, and holds {', '.join(sorted(files))}")
    if hashlib.sha256(files[name]).hexdigest() != about["digest"]:
        raise ValueError(f"{name} was changed after the hand-in was made")
    return HandIn(
        **{key: about[key] for key in ("lesson", "course", "nonce", "digest")},
        student=student_id(about["student"]),
        made=datetime.datetime.fromisoformat(about["made"]),
        notebook=files[name],
        journal=_shallow(cells.json_object(files[JOURNAL], JOURNAL), JOURNAL),
        dropped=tuple(map(str, about.get("dropped", ()))),
    )


def large_outputs(nb: Record) -> list[tuple[int, int, int]]:
    """Return (cell, output, bytes) of every output over 1 MB: two indices and the size."""
    return [
        (index, number, size)
        for index, cell in enumerate(nb["cells"])
        if isinstance(cell.get("outputs"), list)
        for number, output in enumerate(cell["outputs"])
        if (size := len(_json(output))) > OUTPUT_BYTES
    ]


def without(nb: Record, dropped: list[tuple[int, int, int]]) -> Record:
    """Return the notebook with a line of text in place of each of these outputs."""
    cells = list(nb["cells"])
    for index, number, size in dropped:
        note = {"output_type": "stream", "name": "stdout", "text": f"[an output of {size / 1e6:.1f} MB was left out]\n"}
        before = cells[index]["outputs"]
        cells[index] = {**cells[index], "outputs": [*before[:number], note, *before[number + 1 :]]}
    return {**nb, "cells": cells}


def bare(nb: Record) -> Record:
    """Return the notebook without outputs and without the state of its widgets."""
    metadata = {name: value for name, value in (nb.get("metadata") or {}).items() if name != "widgets"}
    cells = [{**cell, "outputs": []} if "outputs" in cell else cell for cell in nb["cells"]]
    return {**nb, "cells": cells, "metadata": metadata}


def _check(about: Record) -> None:
    """Raise ValueError unless everything in handin.json is what `make` writes."""
    if about.get("format") != FORMAT:
        raise ValueError(f"it is no hand-in of this course: {ABOUT} says format {about.get('format')!r}")
    if about.get("version") != VERSION:
        raise ValueError(f"it is a hand-in of version {about.get('version')!r}, expected {VERSION}")
    for key, form in FORMS.items():
        if not isinstance(about.get(key), str) or not re.fullmatch(form, about[key], re.DOTALL):
            raise ValueError(f"{ABOUT} gives no readable {key}")
    if not LESSON.fullmatch(about["lesson"]):
        raise ValueError(f"{ABOUT} names the lesson {about['lesson']!r}, which cannot be one")
    try:
        made = datetime.datetime.fromisoformat(about["made"])
    except ValueError:
        raise ValueError(f"{ABOUT} says it was made {about['made']!r}, which is no time") from None
    if made.tzinfo is None:
        raise ValueError(f"{ABOUT} says it was made {about['made']!r}, without a time zone")
    if made.year not in YEARS:
        raise ValueError(f"{ABOUT} says it was made in the year {made.year}, which cannot be")
    if not isinstance(about.get("dropped", []), list):
        raise ValueError(f"{ABOUT} gives no readable dropped")


def _shallow(value: Record, name: str) -> Record:
    """The value as it is. Raises ValueError if it is nested deeper than anything the course writes."""
    level: list[Any] = [value]
    for _ in range(DEPTH):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        if not (level := list(itertools.chain.from_iterable(inner))):
            return value
    raise ValueError(f"{name} is nested more than {DEPTH} levels deep")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")


def _unzip(data: bytes) -> dict[str, bytes]:
    """The files of a small zip, by name. What a header claims about a size is not believed."""
    if len(data) > FILE_BYTES:
        raise ValueError(f"it has {len(data) / 1e6:.1f} MB; a hand-in has at most {FILE_BYTES / 1e6:.0f}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = [entry.filename for entry in entries]
            if len(entries) > 3 or len(set(names)) < len(names):
                raise ValueError(f"a hand-in holds three files, and this holds {len(entries)}")
            return {entry.filename: _entry(archive, entry) for entry in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, UnicodeError) as error:
        raise ValueError(f"it is no readable zip file: {error}") from None


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    limit = {ABOUT: ABOUT_BYTES, JOURNAL: JOURNAL_BYTES}.get(entry.filename, NOTEBOOK_BYTES)
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{entry.filename!r} is packed in a way that a hand-in never is")
    with archive.open(entry) as stream:
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{entry.filename!r} unpacks to more than {limit / 1e6:g} MB")
    return content
