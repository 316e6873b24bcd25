"""Which columns of a table say who somebody is: in a roster of our own, and in what learning platforms export.

Canvas's gradebook (canvas-lms, lib/gradebook_exporter.rb), in English whatever the language of the page:

    Student,ID,SIS User ID,SIS Login ID,Section,...     or LastName,FirstName in place of Student
    ,,,,,Manual Posting                                 only where an assignment is hidden
        Points Possible,,,,,10
    "Lovelace, Ada",70037,,ada,Spring,9
    "Student, Test",70999,,0f3c...,Spring,              the student that the teacher's preview made

Moodle's participants and its grades (user/action_redir.php, grade/export), in the language of the page, with the
columns that the site chose; "Surname" is "Last name" in newer releases:

    First name,Surname,ID number,Email address,"Assignment: Convolution (Real)",Last downloaded from this course

Brightspace's grades (Grades, Enter Grades, Export), where each id and login begins with "#":

    OrgDefinedId,Username,Last Name,First Name,Email,a Points Grade <Numeric MaxPoints:15>,End-of-Line Indicator
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

FIELDS = ("id", "name", "email", "lms_id")
FIRST = ("firstname", "vorname")
LAST = ("lastname", "surname", "nachname")
WHOLE = ("fullname", "vollständigername")
EMAIL = ("email", "emailaddress", "emailadresse", "mail")
BRIGHTSPACE = "orgdefinedid"
LOGIN = ("username", "anmeldename")
NUMBER = ("idnumber", "idnummer")
SIS = ("sisloginid", "sisuserid", "sisid")
OURS = ("id", "name", "lmsid", "lmsuserid")
KNOWN = frozenset((*OURS, "student", "section", *FIRST, *LAST, *WHOLE, *EMAIL, *LOGIN, *NUMBER, *SIS, BRIGHTSPACE))
"""Every name of a column that tells something of a person: letters and digits alone, all small."""
TEST_NAMES, TEST_LOGIN = ("student, test", "test student"), re.compile("[0-9a-f]{40}")
CANVAS_EXPORT, MOODLE_EXPORT, OTHER = "Canvas's gradebook export", "Moodle's list of people", "a list of people"
BRIGHTSPACE_EXPORT = "Brightspace's grades export"


@dataclass(frozen=True)
class Columns:
    """The places of a table's columns that are taken, by field; a name may be in two, surname first."""

    form: str  # what the table is, in words; empty for a roster of our own
    places: dict[str, tuple[int, ...]]

    def text(self, row: Sequence[str], field: str) -> str:
        """Return what a row says of a field: "Lovelace, Ada" where surname and first name have columns of their own."""
        cells = (row[place] for place in self.places.get(field, ()) if place < len(row))
        return ", ".join(cell for cell in cells if cell)

    def is_person(self, row: Sequence[str]) -> bool:
        """Return whether a row is a person's: Canvas's export has rows of its own, without a number, and a test."""
        if self.form != CANVAS_EXPORT:
            return True
        is_test = self.text(row, "name").casefold() in TEST_NAMES or TEST_LOGIN.fullmatch(self.text(row, "id"))
        return bool(self.text(row, "lms_id")) and not is_test


def find(keys: Sequence[str], rows: Sequence[Sequence[str]]) -> Columns | None:
    """Return the columns to take of a table, None if they do not say who is who.

    `keys` are the names in its head, letters and digits alone, all small. Where several columns can be the id, the
    first with anything in it is.
    """

    def column(*names: str) -> tuple[int, ...]:
        return tuple([keys.index(name) for name in names if name in keys][:1])

    def filled(people: Sequence[Sequence[str]], *names: tuple[str, ...]) -> tuple[int, ...]:
        found = [place for one in names if (place := column(*one))]
        return next((place for place in found if any("".join(row[place[0] : place[0] + 1]) for row in people)), ())

    parted = column(*LAST) + column(*FIRST)
    named = parted if len(parted) == 2 else column(*WHOLE)
    if "id" in keys and ({*SIS} & {*keys} or ("section" in keys and {"student", *LAST} & {*keys})):
        whose = column("student", "name") or named
        people = list(filter(_columns(CANVAS_EXPORT, (), whose, (), column("id")).is_person, rows))
        ids = filled(people, *((name,) for name in (*SIS, "id")))
        return _columns(CANVAS_EXPORT, ids, whose, column(*EMAIL), column("id"))
    if {BRIGHTSPACE, "endoflineindicator"} & {*keys}:  # its export can have the usernames alone
        ids = filled(rows, (BRIGHTSPACE,), LOGIN)
        return _columns(BRIGHTSPACE_EXPORT, ids, named or column("name"), column(*EMAIL), ())
    if "id" in keys:
        is_ours = not {"student", *FIRST, *LAST, *WHOLE, *NUMBER} & {*keys}
        name, number = column("name") or named or column("student"), column("lmsid", "lmsuserid", *NUMBER)
        return _columns("" if is_ours else OTHER, column("id"), name, column(*EMAIL), number)
    if named and (ids := filled(rows, LOGIN, NUMBER, EMAIL)):
        return _columns(MOODLE_EXPORT, ids, named, column(*EMAIL), column(*NUMBER))
    return None


def _columns(form: str, *places: tuple[int, ...]) -> Columns:
    return Columns(form, {field: place for field, place in zip(FIELDS, places, strict=True) if place})


def delimiter(header: str, candidates: str, key: Callable[[str], str]) -> str:
    """Return what separates the columns of a table: what parts its head into most names that are known."""

    def known(candidate: str) -> tuple[int, int]:
        cells = next(csv.reader([header], delimiter=candidate), [])
        return sum(key(cell) in KNOWN for cell in cells), len(cells)

    return max(candidates, key=known)
