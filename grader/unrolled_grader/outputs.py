"""What cells show, as nbformat's outputs: gathered on the judge's side from a worker that may say anything.

Sizes are limited here, whatever the worker does. Metadata of outputs is dropped: a mark in it is the judge's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

MARK = {"unrolled": "judge"}
"""Metadata of the judge's own outputs. What cells say of theirs is dropped, so nobody else has it."""
STREAM_LIMIT = 1_000_000
"""Characters of printed text that are kept of one cell."""
RICH_LIMIT = 8_000_000
"""Characters of pictures and other displayed data that are kept of one cell."""
NOTEBOOK_LIMIT = 30_000_000
"""Characters of all outputs that are kept of one notebook."""
ERRORS_LIMIT = 20
"""Tracebacks that are kept of one cell."""


class Outputs:
    """The outputs of a notebook's cells while they run."""

    def __init__(self) -> None:
        self._cell: NotebookNode | None = None
        self._left = {"stream": 0, "rich": 0, "error": 0, "notebook": NOTEBOOK_LIMIT}
        self._displays: dict[str, list[NotebookNode]] = {}
        self._clear_before_next = False

    def begin(self, cell: NotebookNode) -> None:
        """What comes from now on belongs to this cell."""
        cell.outputs = []
        self._cell = cell
        self._left |= {"stream": STREAM_LIMIT, "rich": RICH_LIMIT, "error": ERRORS_LIMIT}
        self._clear_before_next = False

    def stream(self, name: str, text: str) -> None:
        """Printed text, on stdout or stderr."""
        if self._cell is None or not text or self._left["stream"] < 0:
            return
        self._clear()
        kept = text[: max(0, min(self._left["stream"], self._left["notebook"]))]
        self._spend("stream", len(text))
        if self._left["stream"] < 0 or self._left["notebook"] < 0:
            self._left["stream"] = -1
            kept += f"\n[output cut after {STREAM_LIMIT:,} characters]\n"
        last = self._cell.outputs[-1] if self._cell.outputs else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += kept
        else:
            self._cell.outputs.append(new_output("stream", name=name, text=kept))

    def take(self, event: Mapping[str, Any]) -> None:
        """A message of the worker's shell. What is malformed is passed over."""
        if self._cell is None:
            return
        if "clear" in event:
            self._clear_before_next = True
            if not event["clear"]:
                self._clear()
        elif "error" in event:
            self._error(event)
        else:
            data = _bundle(event.get("result", event.get("display")))
            if data is not None and self._afford("rich", data):
                self._show(event, data)

    def _show(self, event: Mapping[str, Any], data: dict[str, Any]) -> None:
        assert self._cell is not None
        place = event.get("id")
        if event.get("update") and isinstance(place, str):
            for output in self._displays.get(place, ()):
                output.data = data
            return
        self._clear()
        kind = "execute_result" if "result" in event else "display_data"
        output = new_output(kind, data=data)
        self._cell.outputs.append(output)
        if isinstance(place, str):
            self._displays.setdefault(place, []).append(output)

    def _error(self, event: Mapping[str, Any]) -> None:
        assert self._cell is not None
        self._clear()
        lines = event.get("traceback")
        lines = [str(line) for line in lines] if isinstance(lines, list) else []
        if self._left["error"] > 0 and self._afford("rich", lines):
            self._left["error"] -= 1
            name, value = str(event.get("error"))[:200], str(event.get("value"))[:2000]
            self._cell.outputs.append(new_output("error", ename=name, evalue=value, traceback=lines))

    def _afford(self, kind: str, data: Any) -> bool:
        """Whether there is room for this. The first time that there is not, the cell says so."""
        assert self._cell is not None
        before = self._left[kind]
        self._spend(kind, len(json.dumps(data)))
        if self._left[kind] >= 0 and self._left["notebook"] >= 0:
            return True
        if before >= 0:
            self._left[kind] = -1
            text = f"[output left out: more than {RICH_LIMIT:,} characters]\n"
            self._cell.outputs.append(new_output("stream", name="stdout", text=text))
        return False

    def _spend(self, kind: str, size: int) -> None:
        self._left[kind] -= size
        self._left["notebook"] -= size

    def _clear(self) -> None:
        if self._clear_before_next and self._cell is not None:
            self._cell.outputs = []
        self._clear_before_next = False


def _bundle(data: Any) -> dict[str, Any] | None:
    """Displayed data by MIME type, if it is of that form."""
    if not isinstance(data, dict) or not all(isinstance(kind, str) and "/" in kind for kind in data):
        return None
    json_too = {kind: value for kind, value in data.items() if isinstance(value, str) or kind.endswith("json")}
    return json_too or None
