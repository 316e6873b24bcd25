"""By what a student can be known: id, name, e-mail, number on the platform; and whom a text names."""

from __future__ import annotations

import builtins
import contextlib
import keyword
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unrolled.cli import CommandError
from unrolled_grader.classroom import gradebook, roster
from unrolled_grader.classroom.course import Course
from unrolled_grader.classroom.gradebook import GradebookError
from unrolled_grader.classroom.roster import Person
from unrolled_grader.results import spellings
from unrolled_grader.results.spellings import Finder, is_wide

ROSTER = "roster.csv"
SHORT_NUMBER = 5  # a number with fewer digits than this tells nobody, and stands in every notebook
SHORT_NAME = 4  # with fewer letters a name may be a word; so it may with one more, if one of its words is an initial
MANY_WORDS = 10  # of a name with more of them only the whole is looked for
NOBODYS = (
    "al and bin da de del della den der di do dos dr du el frau herr ibn ii iii jr la le mr mrs ms of prof sr ten ter "
    "the van von zu zur"
)
"""Words in many names, which tell nobody by themselves."""


@dataclass(frozen=True)
class Forms:
    """The texts that name a person; each stands for all its spellings."""

    sure: frozenset[str]  # this person, unless somebody else has the same name
    loose: frozenset[str]  # perhaps others, or nobody: the words of the name, what is short, the e-mail's beginning
    short: frozenset[str]  # an id or a number like "a", "01" or "7", which stands in every text

    @property
    def all(self) -> frozenset[str]:
        return self.sure | self.loose | self.short


class Names:
    """The people of a class, as texts name them. A word that the course itself uses names nobody for sure."""

    def __init__(self, known: Mapping[str, Person], words: Collection[str] = ()) -> None:
        self.known, self.words = known, frozenset(words)
        self.forms = {student: forms(person) for student, person in known.items()}
        self._sure: dict[str, set[str]] = {}
        self._loose: dict[str, set[str]] = {}
        self._finders: dict[str, Finder] = {}
        for student, found in self.forms.items():
            for texts, index in ((found.sure, self._sure), (found.loose | found.short, self._loose)):
                for text in texts:
                    for key in (roster.squeezed(text), f"~{spellings.key(text)}"):
                        index.setdefault(key, set()).add(student)

    def finder(self, student: str) -> Finder:
        """Return what finds all that may name this student."""
        if student not in self._finders:
            self._finders[student] = Finder(self.forms[student].sure | self.forms[student].loose)
        return self._finders[student]

    def meant(self, text: str) -> set[str]:
        """Return whom a text that was found may mean."""
        return {text} if text in self.known else self._told(self._sure, text) | self._told(self._loose, text)

    def is_sure(self, text: str, student: str) -> bool:
        """Return whether a text that was found names this student and can mean nobody else, and no word."""
        if text in self.known:
            return text == student and text not in self.forms[student].short
        return self.meant(text) == self._told(self._sure, text) == {student} and not self.is_word(text)

    def is_word(self, text: str) -> bool:
        """Return whether the course uses a text as a word, or, but for an initial, all its words, as in "I will"."""
        parts = re.findall(r"[^\W\d_]+", text.casefold())
        long = {part for part in parts if len(part) > 1}
        return text.casefold() in self.words or (0 < len(long) < len(parts) and long <= self.words)

    def without(self, text: str, student: str, instead: str) -> str:
        """Return a text in which something else stands for all that surely names this student."""
        return self.finder(student).replaced(text, lambda hit: instead if self.is_sure(hit, student) else hit)

    def _told(self, index: Mapping[str, set[str]], text: str) -> set[str]:
        """Whom an index has for a text as it is written; where nobody is, for its other spellings."""
        written = roster.squeezed(text)
        exact = self._sure.get(written, set()) | self._loose.get(written, set())
        return index.get(written if exact else f"~{spellings.key(text)}", set())


def known(course: Course, roster_file: Path | None = None) -> dict[str, Person]:
    """Return everyone in gradebook, folders and roster (default: roster.csv if there), by id. Raises CommandError."""
    found = {name: Person(name) for name in course.students()}
    with gradebook.opened(course.directory) as book:
        for one in book.students:
            name = ", ".join(filter(None, (one.last_name, one.first_name)))
            found[one.id] = Person(one.id, name, one.email or "", one.lms_user_id or "")
    for person in _roster(course, roster_file):
        before = found.get(person.id, person)
        texts = {part: getattr(person, part) or getattr(before, part) for part in ("name", "email", "lms_id")}
        found[person.id] = replace(person, **texts)
    return found


def vocabulary(course: Course) -> frozenset[str]:
    """Return the words of the lessons as they are handed out, and Python's own, in small letters."""
    words = {*keyword.kwlist, *dir(builtins)}
    for lesson in course.lessons():
        with contextlib.suppress(GradebookError):  # not built
            for cell in gradebook.released(course.directory, lesson).cells:
                words |= set(re.findall(r"[^\W\d_]+|\w+", cell.source))
    return frozenset(word.casefold() for word in words)


def forms(person: Person) -> Forms:
    """Return the texts by which somebody may be named."""
    name, local = spellings.composed(person.name), person.email.partition("@")[0]
    number = person.lms_id if len(person.lms_id) >= SHORT_NUMBER or not person.lms_id.isdigit() else ""
    own = {text for text in (person.id, person.email, number) if text}
    short = {text for text in own if len(text) < _shortest(text)}
    names = {text for text in _names(name) if len(spellings.key(text)) >= _shortest(text)}
    loose = {*_names(name), *_words(name), *([local] if len(local) > 2 else [])} - names - own
    return Forms(frozenset(own - short | names), frozenset(loose), frozenset(short))


def _shortest(text: str) -> int:
    """How long a text of such letters must be to name somebody: of letters like the Japanese, two are a name."""
    if text.isdigit():
        return SHORT_NUMBER
    words = text.split()
    return 2 if is_wide(text[0]) else 3 if len(words) == 1 else SHORT_NAME + (min(map(len, words)) == 1)


def _names(name: str) -> set[str]:
    """Given names and surname in either order: whole, some of their words, or initials for the given names."""
    given, family = roster.parted(name)
    words = [*given, *family]
    if len(words) < 2:  # "李明" is a whole name
        return {name} if name and is_wide(name) else set()
    if len(_pieces(words)) > MANY_WORDS:
        return {" ".join(_pieces(some)) for some in (words, [*family, *given])}
    found = {" ".join(_pieces(words[at:] + words[:at])) for at in range(len(words))}
    anywhere = [(words[:at], words[at:]) for at in range(1, len(words))] + [(words[1:], words[:1])]
    for first, last in [(given, family)] if "," in name else anywhere:
        initials = [piece[0] for piece in _pieces(first) if not is_wide(piece)]
        heads = {*_some(first), " ".join(initials), *initials[:1]} - {""}
        pairs = [pair for head in heads for tail in _some(last) for pair in ((head, tail), (tail, head))]
        found |= {f"{one} {other}" for one, other in pairs}
    return found


def _words(name: str) -> set[str]:
    """The words of a name, one by one; of one that has no blanks, what may be surname and given name."""
    words = [word for part in roster.parted(name) for word in part]
    telling = [word for word in words if word.casefold() not in NOBODYS.split()]
    if len(words) == 1 and is_wide(name):
        return {part for at in (1, 2) for part in (name[:at], name[at:]) if len(part) > 1}
    return {text for word in telling for text in _some([word])}


def _some(words: Sequence[str]) -> set[str]:
    """These words of a name together, each of them, and each part of one like "Jean-Luc"."""
    telling = [word for word in words if word.casefold() not in NOBODYS.split()] or words
    texts = {" ".join(_pieces(some)) for some in (words, *([word] for word in telling))}
    return {text for text in (*texts, *_pieces(telling)) if len(text) > 1}


def _pieces(words: Iterable[str]) -> list[str]:
    """The parts of words like "Jean-Luc" and "O'Brien"."""
    return [piece for word in words for piece in re.findall(r"[^\W_]+", word)]


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
