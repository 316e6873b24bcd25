"""How a text may be written: composed or not, without accents, in capitals, joined, "ue" for "ü"; and finding it so.

A text of several words stands for them with anything short between: a blank, a comma, an apostrophe, or nothing.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from unrolled_grader.classroom import roster

TWO = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa", "æ": "ae", "œ": "oe", "ß": "ss", "þ": "th"}
"""Letters that are also written as two."""
ALONE = {"ł": "l", "đ": "d", "ð": "d", "\u0131": "i"}
"""Letters that are another one, but not with an accent that Unicode would take off."""
PARTS = re.compile("|".join([*sorted(set(TWO.values())), "."]))
ONE_OR_TWO = re.compile("|".join([*sorted(set(TWO.values())), *TWO]))
LETTERS = "a-z\u00df-\u024f\u0370-\u052f\u1e00-\u1fff"
WIDE = re.compile("[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f]+")
"""Latin letters as wide as Japanese ones, and Japanese ones as narrow as Latin."""
APOSTROPHES = str.maketrans(dict.fromkeys("\u02bb\u02bc", "\u2019"))
"""Apostrophes that Unicode counts among the letters, as some keyboards write them in O\u02bcBrien."""
BETWEEN = r"[\W_]{0,3}"  # two words of a name
BEFORE = f"(?:(?<=(?P<letter>[{LETTERS}]))|(?<=(?P<digit>[0-9]))|(?<![0-9{LETTERS}]))"
LONG = 8  # letters of a name of several words that is nothing else, even within a longer word


class Hit(NamedTuple):
    """A place where something was found, and what stands there."""

    start: int
    end: int
    text: str


class Finder:
    """Finds texts in others, however they are written. A part of a longer word counts for a long name alone."""

    def __init__(self, texts: Iterable[str]) -> None:
        ordered = sorted(set(texts), key=lambda text: (-len(text), text))
        firsts = {_first(folded(composed(text))) for text in ordered}
        letters = "".join(sorted(firsts | {letter for letter in TWO if _first(letter) in firsts}))
        # Nearly everywhere one look at a letter is enough. Texts that begin alike are tried together, long ones first.
        found = f"(?=[{re.escape(letters)}]){BEFORE}{_any([*map(_tokens, ordered)])}" if ordered else r"(?!)"
        self.pattern = re.compile(found)

    def hits(self, text: str) -> Iterator[Hit]:
        """Yield what is found in a text that is `composed`."""
        for found in self.pattern.finditer(folded(text)):
            yield Hit(*found.span(), text[slice(*found.span())])

    def replaced(self, text: str, by: Callable[[str], str]) -> str:
        """Return a text with what `by` gives for each hit in its place: then composed, or as it is if there is none."""
        parts, end, given, text = list[str](), 0, text, composed(text)
        for hit in self.hits(text):
            parts += [text[end : hit.start], by(hit.text)]
            end = hit.end
        return "".join([*parts, text[end:]]) if parts else given


def composed(text: str) -> str:
    """Return a text in Unicode's composed form, with letters of their usual width and one sort of apostrophe."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text).translate(APOSTROPHES)
    return WIDE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def folded(text: str) -> str:
    """Return a text of the same length in small letters, without accents but for letters that are written as two."""
    return (text if text.isascii() else ACCENTED.sub(lambda found: BASES[found[0]], text)).lower()


def key(text: str) -> str:
    """Return what is the same for all ways to write a text, and now and then for another text, too."""
    return ONE_OR_TWO.sub(lambda found: TWO.get(found[0], found[0])[0], folded(roster.squeezed(text)))


def is_wide(text: str) -> bool:
    """Return whether a text is of letters like the Japanese, which part no words, and of which two are a name."""
    return all(unicodedata.east_asian_width(letter) == "W" for letter in text)


def _tokens(text: str) -> list[str]:
    """A pattern for each letter of a text, and then for what must stand neither before nor after it."""
    words = folded(composed(text)).split()
    tokens = list[str]()
    for word in words:
        letters = [_token(letters) for letters in PARTS.findall(word)]
        spaced = [part for letter in letters for part in (letter, r"\s?")][:-1] if is_wide(word) else letters
        tokens += [BETWEEN, *spaced] if tokens else spaced
    is_long = len(words) > 1 and sum(map(len, words)) >= LONG and min(map(len, words)) > 1
    no_digit = "0-9" if len(words) == 1 else ""  # "ada2" is another id
    before = f"(?(letter)(?!)){'(?(digit)(?!))' if no_digit else ''}" if _joins(words[0][0]) else ""
    after = f"(?![{no_digit}{LETTERS}])" if _joins(words[-1][-1]) else ""
    return tokens if is_long or not before + after else [*tokens, before + after]


def _joins(letter: str) -> bool:
    """Whether letters beside this one make it part of a longer word: of Japanese and the like they do not."""
    return letter.isdigit() or letter.upper() != letter.lower()


def _first(text: str) -> str:
    """The first letter of a text, or of the two that may stand for it."""
    return TWO.get(text[0], text)[0]


def _token(letters: str) -> str:
    """A pattern for a letter, or for two, as `folded` leaves them."""
    if letters in TWO:
        alike = "".join(one for one, two in TWO.items() if two == TWO[letters])  # as \u00f8 for \u00f6
        return f"(?:{TWO[letters]}|[{TWO[letters][0]}{alike}])"
    same = "".join(one for one, two in TWO.items() if letters in (two, two[0]))
    if len(letters) == 2:
        return f"(?:{letters}|[{same}])"
    return f"[{letters}{same}]" if same else re.escape(letters)


def _any(tails: Sequence[list[str]]) -> str:
    """A pattern for any of these lists of patterns, those with the same beginning together."""
    ends = zip(min(tails), max(tails), strict=False)  # what they share, all between them do
    same = [one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends)]
    heads: dict[str, list[list[str]]] = {}
    for tail in (tail[len(same) :] for tail in tails):
        heads.setdefault("".join(tail[:1]), []).append(tail[1:])
    is_end = heads.pop("", None) is not None
    branches = "|".join(head + _any(rest) for head, rest in heads.items())
    return "".join(same) + (f"(?:{branches}){'?' * is_end}" if branches else "")


def _bases() -> dict[str, str]:
    """The letter without its accent for each letter that has one."""
    letters = (chr(code) for codes in ((0xC0, 0x250), (0x370, 0x530), (0x1E00, 0x2000)) for code in range(*codes))
    small = {letter: letter.lower() for letter in letters if letter.isalpha() and letter.lower() not in TWO}
    found = {letter: ALONE.get(one, unicodedata.normalize("NFD", one)[0]) for letter, one in small.items()}
    return {letter: base for letter, base in found.items() if base not in (letter, small[letter])}


BASES = _bases()
ACCENTED = re.compile(f"[{''.join(BASES)}]")
