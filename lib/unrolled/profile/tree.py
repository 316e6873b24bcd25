"""What was recorded, as plain data: spans as they came, and the tree of parts that they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any

REMAINDER = "(in none of these)"


@dataclass(frozen=True)
class Span:
    """One stretch of the program. `start` and `seconds`: on the device, where there is one; all in seconds."""

    name: str
    start: float
    seconds: float
    host_start: float
    host_seconds: float
    parts: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Node:
    """All spans of one name in one place. `seconds` is their time; `host_seconds` what the host took to issue them."""

    name: str
    calls: float
    seconds: float
    host_seconds: float
    parts: tuple[Node, ...] = ()

    @property
    def self_seconds(self) -> float:
        """Seconds that lie in none of the node's parts; for a node without parts, all of them."""
        return self.seconds - sum(part.seconds for part in self.parts)

    def divided(self, by: float) -> Node:
        """Return the node for one of `by` repeats: its calls and times, and those of its parts, divided."""
        parts = tuple(part.divided(by) for part in self.parts)
        return Node(self.name, self.calls / by, self.seconds / by, self.host_seconds / by, parts)

    def to_dict(self, whole: float) -> dict[str, Any]:
        """Return the node and its parts as plain data, each with its share of `whole` seconds."""
        return {
            "name": self.name,
            "calls": self.calls,
            "seconds": self.seconds,
            "self_seconds": self.self_seconds,
            "host_seconds": self.host_seconds,
            "share": self.seconds / whole if whole else 0.0,
            "parts": [part.to_dict(whole) for part in self.parts],
        }


@dataclass(frozen=True)
class ProfileRow:
    """A line of the table: a node, or what is left over of the node above it (then `calls` is None)."""

    depth: int
    name: str
    calls: float | None
    seconds: float
    self_seconds: float | None = None
    host_seconds: float | None = None


def merged(name: str, spans: Sequence[Span]) -> Node:
    """Return one node of spans in the same place; their parts are merged by name, in the order in which they came."""
    groups: dict[str, list[Span]] = {}
    for part in (part for span in spans for part in span.parts):
        groups.setdefault(part.name, []).append(part)
    seconds, host_seconds = sum(span.seconds for span in spans), sum(span.host_seconds for span in spans)
    return Node(name, len(spans), seconds, host_seconds, tuple(starmap(merged, groups.items())))


def rows(node: Node, depth: int = 0) -> Iterator[ProfileRow]:
    """Yield the node, its parts, theirs, and after the parts of each what none of them accounts for."""
    own = node.self_seconds if node.parts else None
    yield ProfileRow(depth, node.name, node.calls, node.seconds, own, node.host_seconds)
    for part in node.parts:
        yield from rows(part, depth + 1)
    if node.parts:
        yield ProfileRow(depth + 1, REMAINDER, None, node.self_seconds)


def every(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans and all their parts, each before what lies inside it."""
    for span in spans:
        yield span
        yield from every(span.parts)


def chrome_events(spans: Sequence[Span], where: str, on_device: bool, origin: float) -> list[dict[str, Any]]:
    """Return the spans as events that ui.perfetto.dev and chrome://tracing draw as boxes; times count from `origin`.

    Format: "Trace Event Format", Google, 2016: "X" is a complete event, "M" names a block of rows; in microseconds.
    """
    rows = {"host": [(span.name, span.host_start, span.host_seconds) for span in every(spans)]}
    if on_device:
        rows["device"] = [(span.name, span.start, span.seconds) for span in every(spans)]
    events: list[dict[str, Any]] = []
    for number, (side, boxes) in enumerate(rows.items(), 1):
        row = {"pid": number, "tid": 1}
        events.append({"ph": "M", **row, "name": "process_name", "args": {"name": f"spans, {side} ({where})"}})
        for name, start, seconds in boxes:
            events.append({"ph": "X", **row, "name": name, "ts": (start - origin) * 1e6, "dur": seconds * 1e6})
    return events
