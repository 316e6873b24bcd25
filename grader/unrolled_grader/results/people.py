"""By what a student can be known: id, name, e-mail, number on the platform; and finding those in texts."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from unrolled.cli import CommandError
from unrolled_grader.classroom import gradebook, roster
from unrolled_grader.classroom.course import Course
from unrolled_grader.classroom.roster import Person

ROSTER = "roster.csv"
SHORT_NUMBER = 5  # a number with fewer digits than this tells nobody, and stands in every notebook


def known(course: Course, roster_file: Path | None = None) -> dict[str, Person]:
    """Return everyone in gradebook, folders and roster (default: roster.csv if there), by id. Raises CommandError."""
    found = {name: Person(name) for name in course.students()}
    with gradebook.opened(course.directory) as book:
        for one in book.students:
            name = " ".join(filter(None, (one.first_name, one.last_name)))
            found[one.id] = Person(one.id, name, one.email or "", one.lms_user_id or "")
    for person in _roster(course, roster_file):
        before = found.get(person.id, person)
        texts = {part: getattr(person, part) or getattr(before, part) for part in ("name", "email", "lms_id")}
        found[person.id] = replace(person, **texts)
    return found


def whole(person: Person) -> set[str]:
    """Return the texts that name this person and nobody else: id, e-mail, long numbers, full name as lists write it."""
    words = person.name.split()
    turned = {" ".join(words[at:] + words[:at]) for at in range(len(words))} if len(words) > 1 else set()
    names = turned | {"".join(text.split()) for text in turned}
    if turned:
        names.add(f"{words[-1]}, {' '.join(words[:-1])}")
    number = {person.lms_id} if len(person.lms_id) >= SHORT_NUMBER or not person.lms_id.isdigit() else set()
    return {text for text in {person.id, person.email, *number, *names, *map(plain, names)} if text}


def telling(person: Person) -> set[str]:
    """Return those of the texts of `whole` that name a person in any text: "a", "01" or "7" stand everywhere."""
    return {text for text in whole(person) if len(text) >= _shortest(text)}


def _shortest(text: str) -> int:
    """How long a text of such letters must be to name somebody: of letters like the Japanese, two are a name."""
    is_wide = all(unicodedata.east_asian_width(letter) == "W" for letter in text)
    return SHORT_NUMBER if text.isdigit() else 2 if is_wide else 3


def parts(person: Person) -> set[str]:
    """Return the texts that may name others too, or nobody: the words of the name, and the e-mail's beginning."""
    words = {word for word in re.split(r"[\s,.]+", person.name) if len(word) > 1}
    local = person.email.partition("@")[0]
    return words | set(map(plain, words)) | ({local} if len(local) > 2 else set())


def plain(text: str) -> str:
    """Return a text without accents, as a keyboard or a file name may write it."""
    letters = unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFC", "".join(one for one in letters if not unicodedata.combining(one)))


def pattern(texts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for any of these texts where it is a word of its own, in small or capital letters.

    What must not stand before them is asked once for all texts that ask it: within words, the rest is then not tried.
    """
    groups: dict[str, list[str]] = {}
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        groups.setdefault(_edge(text[0], "<!"), []).append(f"{re.escape(text)}{_edge(text[-1], '!')}")
    words = [f"{before}(?:{'|'.join(group)})" for before, group in groups.items()]
    return re.compile("|".join(words) or r"(?!)", re.IGNORECASE)


def _edge(letter: str, look: str) -> str:
    """That a text is not part of a longer word. Japanese and the like part no words, so nothing is asked there."""
    return rf"(?{look}[0-9A-Za-z\u00c0-\u024f])" if letter.isdigit() or letter.upper() != letter.lower() else ""


def _roster(course: Course, file: Path | None) -> tuple[Person, ...]:
    there = file or Path(course.directory.root, ROSTER)
    if file is None and not there.exists():
        return ()
    try:
        found = roster.read(there.read_bytes())
    except OSError as error:
        raise CommandError(f"{there} cannot be read: {error.strerror}") from error
    for problem in found.problems:
        print(f"{there.name}: {problem}")
    return found.people


def shared(people: Mapping[str, Person]) -> set[str]:
    """Return the texts, in small letters, that stand for more than one of these people."""
    texts = ({text.casefold() for text in whole(person) | parts(person)} for person in people.values())
    return {text for text, count in Counter(itertools.chain.from_iterable(texts)).items() if count > 1}
