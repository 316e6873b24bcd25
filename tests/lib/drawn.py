"""What a picture puts on its sheet, for tests that look at it."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled import show
from unrolled.show.sheet import Sheet


class Drawn:
    """What a picture puts on its sheet: boxes with their colours, hatches, lines and texts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fills: list[tuple[tuple[float, ...], str]] = []
        self.hatches: list[tuple[tuple[float, ...], str]] = []
        self.lines: list[tuple[Any, str]] = []
        self.texts: list[str] = []
        fill, hatch, line, text = Sheet.fill, Sheet.hatch, Sheet.line, Sheet.text

        def keep_fill(sheet: Sheet, box: Any, colour: str) -> None:
            self.fills.append((box, colour))
            fill(sheet, box, colour)

        def keep_hatch(sheet: Sheet, boxes: Any, pattern: str, colour: str = "") -> None:
            self.hatches += [(box, colour) for box in boxes]
            hatch(sheet, boxes, pattern, colour)

        def keep_line(sheet: Sheet, *points: Any, **look: Any) -> None:
            self.lines.append((points, look.get("colour", "")))
            line(sheet, *points, **look)

        def keep_text(sheet: Sheet, point: Any, words: str, *args: Any, **look: Any) -> None:
            self.texts.append(words)
            text(sheet, point, words, *args, **look)

        for name, keep in (("fill", keep_fill), ("hatch", keep_hatch), ("line", keep_line), ("text", keep_text)):
            monkeypatch.setattr(Sheet, name, keep)

    def at(self, explorer: show.Explorer, **values: Any) -> Drawn:
        """Draw the explorer there, forgetting what was drawn before."""
        self.fills, self.hatches, self.lines, self.texts = [], [], [], []
        explorer.at(**values)
        return self
