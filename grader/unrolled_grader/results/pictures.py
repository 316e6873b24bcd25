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
SOURCE = re.compile(
    r"data:[\w.+-]+/[\w.+-]+(?:;[\w.+=-]+)*;base64,(?P<data>[A-Za-z0-9+/=]*)"
    r"|(?<=[<\"'])attachment:(?P<quoted>[^\n\"'<>]+)(?=[>\"'])"
    r"|attachment:(?P<name>(?:[^\s\"<>()`]|\([^\s\"<>()`]*\))+)"
)
"""The address of a picture. Jupyter leaves brackets in an attachment's name as they are, and people blanks."""
PLACE = re.compile(r"picture-[0-9a-f]{16}-\d+")
"""What stands in a picture's place meanwhile. Nobody who writes a text can know the number in it."""


@dataclass
class Pictures:
    """The pictures of one text, which has `PLACE`s for them."""

    attachments: Mapping[str, Any]
    word: str = field(default_factory=lambda: secrets.token_hex(8))
    shown: list[str] = field(default_factory=list)  # in the places: data URIs, and words where a picture is left out
    known: dict[str, str] = field(default_factory=dict)  # by its data, as one may be shown often
    room: int = ROOM

    def with_placeholders(self, source: str) -> str:
        """Return Markdown with a place for each picture."""
        return SOURCE.sub(self._place, source)

    def put_back(self, markup: str) -> str:
        """Return inert HTML with the pictures in it, and a word in place of each that is left out."""
        shown = re.sub(rf'<img [^<>]*src="picture-{self.word}-(\d+)"[^<>]*>', self._picture, markup)
        without_source = r"<img(?![^<>]* src=)[^<>]*>"  # such as a picture on another server
        return self.in_words(re.sub(without_source, r"\g<0>(picture left out)", shown))

    def in_words(self, text: str) -> str:
        """Return a text that shows no pictures, such as code, with a word in each place."""

        def word(match: re.Match[str]) -> str:
            shown = self.shown[int(match[1])]
            return "(a picture)" if shown.startswith("data:") else shown

        return re.sub(rf"picture-{self.word}-(\d+)", word, text)

    def _place(self, match: re.Match[str]) -> str:
        data = match["data"]
        if data is None:
            name = match["quoted"] or match["name"]
            bundle = self.attachments.get(name) or self.attachments.get(unquote(name)) or {}
            data = next((text for text in bundle.values() if isinstance(text, str)), "")
        uri = self.known[data] if data in self.known else self.known.setdefault(data, picture(data))
        if not uri or len(uri) > self.room:
            uri = f"(picture left out, {-(-len(data) * 3 // 4000)} kB)"
        else:
            self.room -= len(uri)
        self.shown.append(uri)
        return f"picture-{self.word}-{len(self.shown) - 1}"

    def _picture(self, match: re.Match[str]) -> str:
        shown, place = self.shown[int(match[1])], f"picture-{self.word}-{match[1]}"
        return match[0].replace(f'src="{place}"', f'src="{shown}"') if shown.startswith("data:") else shown


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
