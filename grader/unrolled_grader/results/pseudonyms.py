"""A class without names, to show to others: scores, records and notebooks under pseudonyms.

A pseudonym is a keyed hash of the student's id. The key lies in grades/pseudonyms.key and stays with the instructor:
with it two exports agree, without it nobody can go back from a pseudonym to an id, not even by trying all ids.
"""

from __future__ import annotations

import base64
import csv
import hmac
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbformat import NotebookNode

from unrolled.cli import CommandError
from unrolled.notebook import cells
from unrolled_grader.classroom import seeds
from unrolled_grader.classroom.course import Course
from unrolled_grader.classroom.roster import Person
from unrolled_grader.jobs import record
from unrolled_grader.jobs.record import Record
from unrolled_grader.judge import intake
from unrolled_grader.results import leaderboard, people, readings, regrades, spellings, standing
from unrolled_grader.results.people import Names
from unrolled_grader.results.spellings import Finder, Hit

KEY = "pseudonyms.key"
LETTERS = 10
SOMEONE = "someone"  # in place of a name that several students have
TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:UTC|Z)\b| ?[+-]\d\d:?\d\d)?", re.IGNORECASE
)
ADDRESS = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[^\W\d_]{2,}")
README = """\
Scores, records and notebooks of a class under pseudonyms, made by `unrolled pseudonymous`.

Removed: ids, names, e-mail addresses and platform numbers of everyone in the roster, wherever a text holds them;
outputs, attachments, cell ids and every metadata but the exercises' marks; times of day (dates stay); secret seeds, and
hashes by which a notebook could be found again; names on the leaderboard.

Not removed, because no program can: a name that the roster does not know, such as a friend's, a nickname or a misspelt
one; an e-mail address that the roster does not know (`unrolled pseudonymous` lists what looks like one); what somebody
tells about themselves; the way somebody writes prose and code. Words that the course itself uses
stay, even where a student is called so. Whoever has the original notebooks can tell whose these are by their code. Read
before you publish.
"""


@dataclass(frozen=True)
class Scrubber:
    """Puts pseudonyms in the place of names."""

    names: Names
    pseudonyms: Mapping[str, str]  # by id
    finder: Finder

    @property
    def left(self) -> tuple[str, ...]:
        """The words that name a student and stay, because the course uses them."""
        texts = {text for forms in self.names.forms.values() for text in forms.all if " " not in text}
        return tuple(sorted(filter(self.names.is_word, texts), key=lambda text: (text.casefold(), text)))

    def text(self, text: str) -> str:
        """Return a text without names, and without times of day."""
        text = text.encode("utf-8", "replace").decode()  # half a character could not be written
        text = TIME.sub(lambda found: found["day"], text)
        while (shown := self._shown(text)) != text:  # as in M&uuml;ller
            text = shown
        return self.finder.replaced(text, self._instead)

    def _shown(self, text: str) -> str:
        """The reading of a text with the most names, the text itself where none has more."""
        found = [*readings.of_text(text)]
        return max(found, key=lambda one: len(self._hits(one))) if len(found) > 1 else text

    def _hits(self, text: str) -> list[Hit]:
        return [*self.finder.hits(spellings.composed(text))]

    def _instead(self, hit: str) -> str:
        """What stands in a name's place."""
        whose = self.names.meant(hit)
        return hit if self.names.is_word(hit) else self.pseudonyms[min(whose)] if len(whose) == 1 else SOMEONE

    def data(self, data: Any) -> Any:
        """Return plain data with names and times of day taken out of every text in it, keys too."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, int | float) and self.text(str(data)) != str(data):
            return self.text(str(data))
        if isinstance(data, list | tuple):
            return [self.data(item) for item in data]
        return {self.text(key): self.data(item) for key, item in data.items()} if isinstance(data, dict) else data


class Exported(NamedTuple):
    """What an export holds, and what stays in it."""

    students: int
    words: tuple[str, ...]  # names that the course uses as words
    addresses: tuple[str, ...]  # "FILE: ADDRESS", e-mail addresses of nobody whose address is known


def export(course: Course, known: Mapping[str, Person], folder: Path) -> Exported:
    """Write the class to `folder`, which must not be there or be empty.

    Raises CommandError, and writes nothing, if `folder` holds something or names would be left.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"{folder} is there already: name a new folder")
    pseudonyms = of(key(course.grades), known)
    names = Names(known, people.vocabulary(course))
    scrub = scrubber(names, pseudonyms)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".pseudonymous-") as made:
        into = Path(made, "class")
        into.mkdir()
        _write_tables(course, pseudonyms, scrub, into)
        _write_notebooks(course, pseudonyms, scrub, into)
        (into / "README.txt").write_text(README, encoding="utf-8")
        if found := remaining(into, names):
            raise CommandError(f"nothing was written, because names would have been left: {'; '.join(found)}")
        addresses = addresses_in(into)
        if folder.exists():
            folder.rmdir()
        shutil.move(into, folder)
    return Exported(len(pseudonyms), scrub.left, addresses)


def key(grades: Path) -> bytes:
    """Return the instructor's secret, made on first use. Raises CommandError for one that is damaged."""
    file = grades / KEY
    if not file.exists():
        seeds.draw(file)
    try:
        secret = bytes.fromhex(file.read_text(encoding="ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise CommandError(f"{file} is damaged: expected 64 hexadecimal digits")
    return secret


def of(secret: bytes, students: Iterable[str]) -> dict[str, str]:
    """Return a pseudonym for each id."""
    digests = {one: hmac.digest(secret, one.encode("utf-8", "surrogateescape"), "sha256") for one in students}
    return {one: "s-" + base64.b32encode(digest).decode().lower()[:LETTERS] for one, digest in digests.items()}


def scrubber(names: Names, pseudonyms: Mapping[str, str]) -> Scrubber:
    """Return what takes these people out of texts, but for the words that the course uses."""
    return Scrubber(names, pseudonyms, Finder(text for forms in names.forms.values() for text in forms.all))


def remaining(folder: Path, names: Names) -> list[str]:
    """Return files that still hold an id, a full name, an e-mail or a number of somebody, in name or content."""
    finder = Finder(text for forms in names.forms.values() for text in forms.sure)
    found = []
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = str(file.relative_to(folder)), file.read_text(encoding="utf-8")
        texts = (name, *readings.of_text(content))
        hits = (hit.text for text in texts for hit in finder.hits(spellings.composed(text)))
        found += [f"{name}: {hit}" for hit in hits if not names.is_word(hit)][:1]
    return found


def addresses_in(folder: Path) -> tuple[str, ...]:
    """Return "FILE: ADDRESS" for what looks like an e-mail address in a file: whose it is, a person can tell."""
    found = dict[str, None]()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        texts = readings.of_text(file.read_text(encoding="utf-8"))
        name = file.relative_to(folder)
        found |= dict.fromkeys(f"{name}: {hit[0]}" for text in texts for hit in ADDRESS.finditer(text))
    return tuple(found)


def cleaned(notebook: NotebookNode, scrub: Scrubber) -> NotebookNode:
    """Return a notebook with the texts and exercises' marks of this one, and nothing else of it."""
    cells = []
    for at, cell in enumerate(notebook.cells):
        marks = {"nbgrader": scrub.data(cell.metadata["nbgrader"])} if "nbgrader" in cell.metadata else {}
        source = scrub.text(leaderboard.without_name(cell.source))
        kept = {"id": f"cell-{at}", "cell_type": cell.cell_type, "metadata": marks, "source": source}
        cells.append(kept | ({"outputs": [], "execution_count": None} if cell.cell_type == "code" else {}))
    about = scrub.data({name: notebook.metadata[name] for name in ("unrolled",) if name in notebook.metadata})
    made: NotebookNode = nbformat.from_dict({"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5})
    return made


def anonymous(kept: Record, pseudonym: str, scrub: Scrubber) -> dict[str, Any]:
    """Return a record as plain data, without seeds and without what would let its notebook be found."""
    bare = replace(kept, student=pseudonym, digest="", seeds=(), key=replace(kept.key, submission=""))
    found: dict[str, Any] = scrub.data(record.to_dict(bare)) | {"date": TIME.sub(r"\g<day>", kept.date)}
    return found


def _write_tables(course: Course, pseudonyms: Mapping[str, str], scrub: Scrubber, into: Path) -> None:
    """scores.csv, regrades.csv, and a record a submission, in the order of the pseudonyms."""
    found = sorted(standing.of_class(course), key=lambda kept: (pseudonyms[kept.student], kept.lesson))
    _write_csv(into / "scores.csv", record.scores_csv(found), 0, pseudonyms, scrub)
    if (log := course.grades / regrades.FILE).exists():
        _write_csv(into / log.name, log.read_bytes().decode(), 1, pseudonyms, scrub)
    for kept in found:
        if (full := record.load(course.grades, kept.student, kept.lesson)) is not None:
            data = anonymous(full, pseudonyms[kept.student], scrub)
            _write_json(into / "records" / pseudonyms[kept.student] / f"{kept.lesson}.json", data)


def _write_csv(file: Path, text: str, who: int, pseudonyms: Mapping[str, str], scrub: Scrubber) -> None:
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        for row in csv.reader(io.StringIO(text, newline="")):
            rest = [scrub.text(cell) for cell in row]
            writer.writerow([*rest[:who], pseudonyms.get(row[who], rest[who]), *rest[who + 1 :]])


def _write_notebooks(course: Course, pseudonyms: Mapping[str, str], scrub: Scrubber, into: Path) -> None:
    """Each notebook that was handed in and can be read, and the journal beside it."""
    for handed in intake.find(course.submitted, {lesson: [] for lesson in course.lessons()}):
        target = into / "notebooks" / pseudonyms[handed.student] / handed.lesson
        try:
            notebook = cleaned(cells.read(handed.path), scrub)
        except (OSError, ValueError, KeyError, AttributeError, RecursionError):
            continue  # it was refused, and says why in scores.csv
        target.mkdir(parents=True)
        nbformat.write(notebook, target / f"{handed.lesson}.ipynb")
        journal = handed.path.with_name("journal.json")
        if journal.is_file():
            try:
                data = scrub.data(json.loads(journal.read_text(encoding="utf-8")))
                about = {"student": pseudonyms[handed.student]} if isinstance(data, dict) and "student" in data else {}
                _write_json(target / journal.name, data | about if about else data)
            except (OSError, ValueError, RecursionError):
                (target / journal.name).unlink(missing_ok=True)


def _write_json(file: Path, data: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
