"""What a picture puts on its sheet, for tests that look at it."""

from __future__ import annotations

from typing import Any

import pytest

from unrolled import show
from unrolled.show.sheet import Sheet


class Drawn:
    """What a picture puts on its sheet: boxes with their colours, hatches, outlines, lines, matrices and texts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._forget()

        def keep(name: str, note: Any) -> None:
            original = getattr(Sheet, name)

            def noted(sheet: Sheet, *args: Any, **options: Any) -> Any:
                note(*args, **options)
                return original(sheet, *args, **options)

            monkeypatch.setattr(Sheet, name, noted)

        keep("fill", lambda box, colour: self.fills.append((box, colour)))
        keep("outline", lambda box, colour, *_: self.outlines.append((box, colour)))
        keep("hatch", lambda boxes, _, colour="": self.hatches.extend((box, colour) for box in boxes))
        keep("line", lambda *points, colour="", **_: self.lines.append((points, colour)))
        keep("matrix", lambda cells, values, _: self.matrices.append((cells, values)))
        keep("text", lambda _, words, *args, **look: self.texts.append(words))

    def _forget(self) -> None:
        self.fills: list[tuple[tuple[float, ...], str]] = []
        self.outlines: list[tuple[tuple[float, ...], str]] = []
        self.hatches: list[tuple[tuple[float, ...], str]] = []
        self.lines: list[tuple[Any, str]] = []
        self.matrices: list[tuple[Any, Any]] = []
        self.texts: list[str] = []

    def at(self, explorer: show.Explorer, **values: Any) -> Drawn:
        """Draw the explorer there, forgetting what was drawn before."""
        self._forget()
        explorer.at(**values)
        return self

    def lit(self, cells: Any, colour: str) -> list[tuple[int, int, int, int]]:
        """Row, column, rows and columns of the blocks of this grid that are outlined in the colour."""
        found = []
        for (left, top, width, height), its in self.outlines:
            inside = cells.left - 1e-6 <= left < cells.right and cells.top - 1e-6 <= top < cells.bottom
            if its == colour and inside:
                place = (top - cells.top) / cells.height, (left - cells.left) / cells.width
                found.append(tuple(round(v) for v in (*place, height / cells.height, width / cells.width)))
        return found
