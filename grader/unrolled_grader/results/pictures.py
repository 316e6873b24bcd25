"""Pictures in Markdown: taken out before it is parsed, put back once its HTML is inert.

A picture is an attachment of its cell or a data URI, in Markdown or as an <img>. Its data pass no parser of ours, so
its size costs nothing; Pillow reads its header, and what is no picture, or too large a one, is left out with a word.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from PIL import Image

PIXEL_LIMIT = 25_000_000  # pixels of one picture: a small file can unfold into gigabytes in a browser
ROOM = 14_000_000  # characters of all pictures of one text: what the largest notebook can hold, each shown once
SOURCE = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,(?P<data>[A-Za-z0-9+/=]*)|attachment:(?P<name>[^\s\"'<>)]+)")
PLACE = re.compile(r"picture-[0-9a-f]{16}-\d+")
"""What stands in a picture's place meanwhile. Nobody who writes a text can know the number in it."""


@dataclass
class Pictures:
    """The pictures of one text, which has `PLACE`s for them."""

    attachments: Mapping[str, Any]
    word: str = field(default_factory=lambda: secrets.token_hex(8))
    uris: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)  # by its data, as one may be shown often
    room: int = ROOM

    def taken_out(self, source: str) -> str:
        """Return Markdown with a place for each picture, and a word in place of each that is left out."""
        text = SOURCE.sub(self._place, source)
        gone = rf"gone-{self.word}-(\d+)"
        text = re.sub(rf"!\[[^\]\n]*\]\(\s*<?{gone}[^)\n]*\)|<img\b[^<>]*?{gone}[^<>]*>", _left_out, text)
        return re.sub(gone, _left_out, text)

    def put_back(self, markup: str) -> str:
        """Return inert HTML with the pictures in it. Where a place is no picture's, as in code, it stands for one."""
        shown = re.sub(rf'(<img [^<>]*src=")picture-{self.word}-(\d+)"', self._picture, markup)
        return re.sub(rf"picture-{self.word}-\d+", "(a picture)", shown)

    def _place(self, match: re.Match[str]) -> str:
        data = match["data"]
        if data is None:
            bundle = self.attachments.get(match["name"]) or self.attachments.get(unquote(match["name"])) or {}
            data = next((text for text in bundle.values() if isinstance(text, str)), "")
        uri = self.known[data] if data in self.known else self.known.setdefault(data, picture(data))
        if not uri or len(uri) > self.room:
            return f"gone-{self.word}-{len(data) * 3 // 4}"
        self.room -= len(uri)
        self.uris.append(uri)
        return f"picture-{self.word}-{len(self.uris) - 1}"

    def _picture(self, match: re.Match[str]) -> str:
        return f'{match[1]}{self.uris[int(match[2])]}"'


def picture(encoded: str) -> str:
    """Return the data URI of a picture in base64; empty if it is no picture, or too large to be shown."""
    try:
        data = base64.b64decode("".join(encoded.split()), validate=True)
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "GIF")) as image:  # reads the header alone
            kind, (width, height) = str(image.format).lower(), image.size
    except (binascii.Error, ValueError, OSError, SyntaxError, Image.DecompressionBombError):
        return ""
    if width * height * getattr(image, "n_frames", 1) > PIXEL_LIMIT:
        return ""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _left_out(match: re.Match[str]) -> str:
    size = next(filter(None, match.groups()))
    return f"(picture left out, {-(-int(size) // 1000)} kB)"
