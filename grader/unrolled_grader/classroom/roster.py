"""The roster: who takes the course. A CSV with a header and the columns id, name, email, lms_id, in any order.

Only `id` must be there. What learning platforms export is taken as it comes (columns). What is wrong with a line is
said; the other lines count. No person is ever guessed: a lookup gives everyone who fits.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

from unrolled.notebook import handin
from unrolled_grader.classroom import columns
from unrolled_grader.classroom.columns import FIELDS, MOODLE_EXPORT, Columns

DELIMITERS = ",;\t|"
FROM_A_SPREADSHEET = re.compile(r"^(\d+)[.,]0{1,2}$")  # a number of a person that a spreadsheet took for a measured one
TABLES = {b"PK\3\4": "an Excel or OpenDocument file", b"\xd0\xcf\x11\xe0": "an old Excel file"}
EXPECTED = (
    "expected id,name,email,lms_id, Canvas's gradebook export, or Moodle's participants or grades in English or "
    "German; in another language, rename the columns to First name, Last name, ID number, Email address"
)
GUESSED = {"cp932": "Shift-JIS", "cp1252": "Windows-1252"}
MIXED = re.compile(r"[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][A-Za-z]")
"""Latin letters and others in one word: Shift-JIS was the wrong guess for accented letters."""


@dataclass(frozen=True)
class Person:
    """One line of the roster. Every text is in Unicode's composed form; what the line does not say is empty."""

    id: str
    name: str = ""
    email: str = ""
    lms_id: str = ""


@dataclass(frozen=True)
class Roster:
    """The people of a course, and what is wrong with the file, in words."""

    people: tuple[Person, ...] = ()
    problems: tuple[str, ...] = ()
    doubtful: frozenset[str] = frozenset()  # ids, folded, that more than one person has
    form: str = ""  # what kind of export it is, in words; empty for a roster of our own
    heads: tuple[tuple[str, str], ...] = ()  # each field with the head of its column, as it stands there
    passed: tuple[str, ...] = ()  # the beginnings of an export's rows that are nobody's

    def with_id(self, text: str) -> set[Person]:
        """Return everyone with this id or email."""
        wanted = folded(text)
        return {one for one in self.people if wanted and wanted in (folded(one.id), folded(one.email))}

    def with_lms_id(self, text: str) -> set[Person]:
        """Return everyone with this number in the LMS."""
        return {one for one in self.people if text and one.lms_id == text}

    def with_name(self, names: Iterable[str]) -> set[Person]:
        """Return everyone with one of these names, in any order and spacing: "Lovelace, Ada" and "lovelaceada", too."""
        wanted = {key for name in names if (key := squeezed(name))}
        return {one for one in self.people if wanted & turned(one.name)}

    @property
    def has_participants(self) -> bool:
        """Whether a number may be that of a participant, as Moodle's downloads have it; its exports hold others."""
        return self.form != MOODLE_EXPORT

    def describe(self) -> str:
        """Return in words which columns were taken."""
        heads = dict(self.heads)
        sources = (f'{field} from "{heads[field]}"' if field in heads else f"no {field}" for field in FIELDS)
        passed = "; passed over: " + ", ".join(f'"{one}"' for one in self.passed) if self.passed else ""
        count = "1 person" if len(self.people) == 1 else f"{len(self.people)} people"
        return f"{self.form or 'a roster'}, {count}: {', '.join(sources)}{passed}"

    def is_sure(self, person: Person) -> bool:
        """Return whether nobody else has this person's id."""
        return folded(person.id) not in self.doubtful


def read(data: bytes) -> Roster:
    """Return the roster in a file's bytes. It never raises: a file that cannot be used gives nobody, and says why."""
    if kind := TABLES.get(data[:4]):
        return Roster((), (f"it is {kind}, not a table in text: save it as CSV there",))
    text, notes = _text(data)
    lines = text.splitlines(keepends=True)
    if lines and (separator := re.fullmatch(r'"?sep=(.)"?\s*', lines[0])):  # a line for Excel
        delimiter, lines = separator[1], ["\n", *lines[1:]]
    else:
        delimiter = columns.delimiter(next(filter(str.strip, lines), ""), DELIMITERS, squeezed)
    reader = csv.reader(io.StringIO("".join(lines), newline=""), delimiter=delimiter)
    try:
        rows = [(reader.line_num, [_cell(cell) for cell in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        return Roster((), (*notes, f"line {reader.line_num}: {error}"))
    header = rows[0][1] if rows else []
    keys = [squeezed(cell) for cell in header]
    found = columns.find(keys, [row for _, row in rows[1:]])
    if found is None:
        reason = f"its first line is {delimiter.join(header)[:80]!r}" if rows else "it is empty"
        return Roster(
            (), (*notes, f"it has no header that says who is who, so nobody can be matched: {reason}, {EXPECTED}")
        )
    if double := [field for field in FIELDS if not found.form and keys.count(squeezed(field)) > 1]:
        return Roster((), (*notes, f"its header names {double[0]} twice, so nobody can be matched"))
    people, problems = _people(found, header, [one for one in rows[1:] if found.is_person(one[1])])
    heads = tuple((field, '" and "'.join(header[at] for at in places)) for field, places in found.places.items())
    passed = tuple(next(filter(None, row)) for _, row in rows[1:] if not found.is_person(row))
    if not people and not problems:
        problems = ["it names nobody"]
    return replace(_settled(people, (*notes, *problems)), form=found.form, heads=heads, passed=passed)


def folded(text: str) -> str:
    """Return a text for comparison: composed, full width as half, small letters."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


def squeezed(name: str) -> str:
    """Return a name for comparison: its letters, marks and digits alone, in order."""
    return re.sub(r"[\W_\u02bb\u02bc]", "", folded(name))


def turned(name: str) -> set[str]:
    """Return a name squeezed, from each of its words on in turn: a surname of several words may come first or last."""
    given, family = parted(name)
    words = [*filter(None, map(squeezed, (*given, *family)))]
    return {"".join(words[at:] + words[:at]) for at in range(len(words))}


def parted(name: str) -> tuple[list[str], list[str]]:
    """Return the words of the given names and of the family name, of "Last, First", or else of "First Last"."""
    first, second = ([*part.replace(",", " ").split()] for part in name.partition(",")[::2])
    return (second, first) if "," in name else (first[:-1], first[-1:])


def _cell(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _people(
    found: Columns, header: list[str], rows: list[tuple[int, list[str]]]
) -> tuple[list[tuple[int, Person]], list[str]]:
    """Each usable line with its number, and what is wrong with the others."""
    people, problems = [], []
    for line, row in rows:
        texts = {field: found.text(row, field) for field in FIELDS}
        if found.form == columns.BRIGHTSPACE_EXPORT:
            texts["id"] = texts["id"].removeprefix("#")
        texts |= {field: FROM_A_SPREADSHEET.sub(r"\1", texts[field]) for field in ("id", "lms_id")}
        try:
            person = Person(**texts | {"id": handin.student_id(texts["id"])})
        except ValueError as error:
            empty = f'{texts["name"] or texts["email"]} has nothing in "{header[found.places["id"][0]]}"'
            problems.append(f"line {line}: {empty if found.form and not texts['id'] else error}")
        else:
            people.append((line, person))
    return people, problems


def _settled(found: list[tuple[int, Person]], problems: tuple[str, ...]) -> Roster:
    """The roster, with what several lines share. The same line twice is one person."""
    lines: dict[Person, int] = {}
    for line, person in found:
        lines.setdefault(person, line)
    all_problems = list(problems)
    counts = Counter(folded(person.id) for person in lines)
    doubtful = frozenset(key for key, count in counts.items() if count > 1)
    for key in sorted(doubtful):
        where = " and ".join(str(line) for person, line in lines.items() if folded(person.id) == key)
        all_problems.append(f"lines {where} have one id, {key}: what they hand in is set aside until that is settled")
    return Roster(tuple(lines), tuple(all_problems), doubtful)


def decoded(data: bytes) -> tuple[str, str]:
    """Return a table's text, byte order mark included, and its encoding: Excel takes what the country's Windows has."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data.decode(encoding, "replace"), encoding
    for encoding in ("utf-8", *GUESSED):
        with suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if encoding != "cp932" or not MIXED.search(text):
                return text, encoding
    return data.decode("utf-8", "replace"), ""


def _text(data: bytes) -> tuple[str, tuple[str, ...]]:
    """The file's text without a byte order mark, and a note if its encoding had to be found out."""
    text, encoding = decoded(data)
    if not encoding:
        return text, ("it is not UTF-8: names in it may not match; save it as UTF-8",)
    note = f"it is not UTF-8 and was read as {GUESSED.get(encoding)}: look at the names, or save it as UTF-8"
    return text.removeprefix("\ufeff"), (note,) * (encoding in GUESSED)
