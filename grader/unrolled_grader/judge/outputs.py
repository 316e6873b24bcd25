"""What cells show, as nbformat's outputs: gathered on the judge's side from a worker that may say anything.

Sizes and numbers are limited here, whatever the worker does; what a cell clears or replaces counts no more. Only texts
are kept: JSON would be nested as deep as a worker likes, and no page that shows a graded notebook reads it. Metadata of
outputs is dropped: a mark in it is the judge's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

from unrolled_grader.box.wire import text_of

MARK = {"unrolled": "judge"}
"""Metadata of the judge's own outputs. What cells say of theirs is dropped, so nobody else has it."""
STREAM_LIMIT = 1_000_000  # characters of printed text that are kept of one cell
RICH_LIMIT = 8_000_000  # characters of pictures and other displayed data that are kept of one cell
NOTEBOOK_LIMIT = 30_000_000  # characters of all outputs that are kept of one notebook
COUNT_LIMIT = 500  # outputs that are kept of one cell
LINES_LIMIT = 1_000  # lines of a traceback that are kept: the last, which tell where it was raised and what
KINDS_LIMIT = 50  # forms of one output that are kept, such as text/plain and image/png
ID_LIMIT = 200  # characters of the name of a display that can be updated
UNSEEN = re.compile(
    r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]"
)
CUT = f"\n[output cut after {STREAM_LIMIT:,} characters]\n"
LEFT_OUT = f"[output left out: at most {COUNT_LIMIT} outputs, and {RICH_LIMIT:,} characters, are kept of a cell]\n"


@dataclass(eq=False)
class _Shown:
    """One output that stands in the notebook."""

    output: NotebookNode
    size: int = 0
    place: str = ""

    @property
    def printed(self) -> bool:
        return bool(self.output.output_type == "stream")


class Outputs:
    """The outputs of a notebook's cells while they run."""

    def __init__(self) -> None:
        self._cell = NotebookNode(outputs=[])
        self._left = NOTEBOOK_LIMIT
        self._shown: list[_Shown] = []  # what stands under this cell
        self._displays: dict[str, list[_Shown]] = {}  # what can be updated, under this cell and those above
        self._notices: set[str] = set()
        self._clear_before_next = False

    def begin(self, cell: NotebookNode) -> None:
        """Begin a cell: empty its outputs, and put what comes from now on under it."""
        cell.outputs = []
        self._cell, self._shown, self._notices = cell, [], set()
        self._clear_before_next = False

    def stream(self, name: str, text: str) -> None:
        """Put printed text, from stdout or stderr, under the cell."""
        if not text:
            return
        self._clear_if_asked()
        kept = text[: self._room(STREAM_LIMIT, printed=True)]
        if kept and not self._print(name, kept):
            self._say(LEFT_OUT)
        elif len(kept) < len(text):
            self._say(CUT, name)

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in a message of the worker's shell. What is malformed is passed over."""
        if "clear" in event:
            self._clear_before_next = True
            if not event["clear"]:
                self._clear_if_asked()
        elif "error" in event:
            lines = event.get("traceback")
            lines = [text_of(line) for line in lines[-LINES_LIMIT:]] if isinstance(lines, list) else []
            name, value = text_of(event["error"], 200), text_of(event.get("value"), 2000)
            size = len(name) + len(value) + sum(len(line) + 1 for line in lines)
            self._add("error", size, ename=name, evalue=value, traceback=lines)
        else:
            self._show(event)

    def _show(self, event: Mapping[str, Any]) -> None:
        shown = event.get("result", event.get("display"))
        kept = shown if isinstance(shown, dict) and len(shown) <= KINDS_LIMIT else {}
        data = {kind: value for kind, value in kept.items() if "/" in kind and isinstance(value, str)}
        size = sum(len(kind) + len(value) for kind, value in data.items())
        place = text_of(event.get("id"), ID_LIMIT)
        if data and event.get("update") and place:
            for earlier in self._displays.get(place, ()):
                self._replace(earlier, data, size)
        elif data:
            self._add("execute_result" if "result" in event else "display_data", size, place, data=data)

    def _add(self, kind: str, size: int, place: str = "", **content: Any) -> None:
        """Put an output under the cell, if there is room."""
        self._clear_if_asked()
        if len(self._shown) >= COUNT_LIMIT or size > self._room(RICH_LIMIT, printed=False):
            self._say(LEFT_OUT)
            return
        shown = _Shown(new_output(kind, **content), size, place)
        self._left -= size
        self._cell.outputs.append(shown.output)
        self._shown.append(shown)
        if place:
            self._displays.setdefault(place, []).append(shown)

    def _replace(self, shown: _Shown, data: dict[str, str], size: int) -> None:
        if size > RICH_LIMIT or size - shown.size > self._left:
            self._say(LEFT_OUT)
            return
        self._left -= size - shown.size
        shown.output.data, shown.size = NotebookNode(data), size

    def _print(self, name: str, text: str) -> bool:
        """Put text under the cell; whether there was a place for it."""
        last = self._shown[-1] if self._shown else None
        if last is None or not last.printed or last.output.name != name:
            if len(self._shown) >= COUNT_LIMIT:
                return False
            last = _Shown(new_output("stream", name=name, text=""))
            self._cell.outputs.append(last.output)
            self._shown.append(last)
        last.output.text += text
        last.size += len(text)
        self._left -= len(text)
        return True

    def _room(self, limit: int, printed: bool) -> int:
        """Characters that the cell may still show of this sort."""
        held = sum(shown.size for shown in self._shown if shown.printed == printed)
        return max(0, min(limit - held, self._left))

    def _say(self, words: str, name: str = "stdout") -> None:
        """Say once that something is missing, where it is missing."""
        if words in self._notices:
            return
        self._notices.add(words)
        last = self._cell.outputs[-1] if self._cell.outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += words
        else:
            self._cell.outputs.append(new_output("stream", name=name, text=words))

    def _clear_if_asked(self) -> None:
        if not self._clear_before_next:
            return
        self._cell.outputs = []
        for shown in self._shown:
            self._left += shown.size
            if shown.place:
                self._displays[shown.place].remove(shown)
                if not self._displays[shown.place]:
                    del self._displays[shown.place]
        self._shown, self._notices = [], set()
        self._clear_before_next = False


def in_sight(text: str) -> str:
    """Return the text as one line that shows every sign: � for line ends, commands, and what turns its direction."""
    return UNSEEN.sub("�", text)
