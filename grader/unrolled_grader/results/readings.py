"""What a text may be in the writing of a program: escaped for JSON, HTML or an address, or read in a wrong encoding."""

from __future__ import annotations

import html
import re
import urllib.parse
from collections.abc import Iterator

WINDOWS = ("cp932", "cp1252", "cp1250", "cp1251", "cp1254", "cp850")
"""How Excel and older programs write: in Japan, in the west, the middle and the east of Europe, in Turkey; DOS."""
ESCAPES = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+|(?:\\+x[0-9a-fA-F]{2})+")
CODE = re.compile(r"[ux]([0-9a-fA-F]+)")
ENTITY = re.compile(r"[\w ]&(?:#|\w{2,8};)|&(?:#|\w{2,8};)\w")
QUOTED = re.compile(r"%(?:2[0-9A-Fa-f]|[C-Fc-f][0-9A-Fa-f]%)")
TWISTED = re.compile("[\u00c2-\u00f4][^\x00-\x7f]+")
"""UTF-8 that a program took for Windows-1252, as in "MÃ¼ller"."""


def of_bytes(data: bytes) -> Iterator[str]:
    """Yield the texts that a file's bytes may be, the likeliest first."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield from of_text(data.decode("utf-16", "replace"))
        return
    text = data.decode("utf-8", "replace")
    yield from of_text(text)
    if "\ufffd" in text and b"\0" not in data[:1000]:
        yield from (data.decode(encoding, "replace") for encoding in WINDOWS)


def of_text(text: str) -> Iterator[str]:
    """Yield a text, and what it is with each kind of escape resolved that it has."""
    yield text
    if "\\u" in text or "\\x" in text:
        yield ESCAPES.sub(lambda found: _characters(found[0]), text)
    if ENTITY.search(text):
        yield html.unescape(text)
    if QUOTED.search(text):
        yield urllib.parse.unquote(text)
    if not text.isascii() and (straight := TWISTED.sub(lambda found: _straight(found[0]), text)) != text:
        yield straight


def _characters(escapes: str) -> str:
    """The characters of a run of escapes: two halves are one, and several bytes may be one in UTF-8."""
    codes = [int(code, 16) for code in CODE.findall(escapes)]
    if "u" in escapes:
        halves = b"".join(code.to_bytes(2, "little") for code in codes)
        return halves.decode("utf-16-le", "replace")
    raw = bytes(codes)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _straight(text: str) -> str:
    """A text as it was before UTF-8 was taken for Windows-1252; itself if it was not."""
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode()
        except UnicodeError:
            continue
    return text
