"""A profile: spans as they were recorded, the tree of parts that they add up to, and how it reads."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unrolled.timing.measuring import duration

REMAINDER = "(in none of these)"
LAUNCH_BOUND = 0.9  # of the time on the device: if the host took as long to issue it, the device waited for the host
STOPS = 0.1  # of the host's time: waits and copies that take more are named in the verdict
BAR = 10  # characters


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


def merged(name: str, spans: Sequence[Span], repeats: int) -> Node:
    """Return spans in the same place as a node for one of the repeats, with parts merged by name, as they came."""
    groups: dict[str, list[Span]] = {}
    for part in (part for span in spans for part in span.parts):
        groups.setdefault(part.name, []).append(part)
    seconds, host_seconds = sum(span.seconds for span in spans), sum(span.host_seconds for span in spans)
    parts = tuple(merged(part, group, repeats) for part, group in groups.items())
    return Node(name, len(spans) / repeats, seconds / repeats, host_seconds / repeats, parts)


def rows(node: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    """Yield (depth, node) of the node, its parts, theirs, and after each's parts what none accounts for (NaN calls)."""
    yield depth, node
    for part in node.parts:
        yield from rows(part, depth + 1)
    if node.parts:
        yield depth + 1, Node(REMAINDER, math.nan, node.self_seconds, math.nan)


def every(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the spans and all their parts, each before what lies inside it."""
    for span in spans:
        yield span
        yield from every(span.parts)


@dataclass(eq=False)
class Profile:
    """Where the time went. All figures are for one repeat, in seconds."""

    where: str  # what gave the times, as "measured, CPU" or "modelled, T4"
    on_device: bool  # whether seconds are a GPU's
    spans: Sequence[Span] = ()  # what was recorded, one root for each repeat
    bare: float | None = None  # of the same work without spans inside, where that was measured
    host_parts: Mapping[str, float] | None = None  # what the host did, where known (`simgpu.trace.Trace.host_parts`)

    @property
    def root(self) -> Node:
        """The whole, with its parts. RuntimeError while the recording still runs."""
        if not self.spans:
            raise RuntimeError("nothing is recorded yet: look at a recording after its `with` block")
        return merged(self.spans[0].name, self.spans, len(self.spans))

    @property
    def tree(self) -> dict[str, Any]:
        """`root` and `where` as plain data: name, calls, seconds, self_seconds, host_seconds, share (of it), parts."""
        return {**self.root.to_dict(self.seconds), "where": self.where}

    @property
    def seconds(self) -> float:
        """Seconds of the whole."""
        return self.root.seconds

    @property
    def remainder(self) -> float:
        """Seconds of the whole that lie in none of its parts."""
        return self.root.self_seconds

    @property
    def explained(self) -> float:
        """The share of the whole that its parts explain, from 0 to 1; without any parts 0."""
        return 1 - self.remainder / self.seconds if self.seconds else 0.0

    @property
    def overhead(self) -> float:
        """How many seconds recording adds to the same work without spans; NaN where that was not measured."""
        return float("nan") if self.bare is None else self.seconds - self.bare

    def at(self, *path: str) -> Node:
        """Return the node at a path, as in `at("backward", "2: MaxPool2d(2)")`. ValueError, with the names, if none."""
        node = self.root
        for name in path:
            parts = {part.name: part for part in node.parts}
            if name not in parts:
                raise ValueError(f"{node.name!r} has no part {name!r}; it has {', '.join(map(repr, parts)) or 'none'}")
            node = parts[name]
        return node

    def table(self, depth: int | None = None) -> str:
        """Return the tree as text; levels below `depth` are left out."""
        root = self.root
        unit, factor, digits = _unit(root.seconds)
        head = ["", "calls", unit, "share", "self", "host"]
        lines = [[*head[: len(head) - (not self.on_device)], ""]]
        for level, node in rows(root):
            if depth is not None and level > depth:
                continue
            share = node.seconds / root.seconds if root.seconds else 0.0
            own = node.self_seconds if node.parts else math.nan
            times = [_fixed(value, factor, digits) for value in (own, node.host_seconds)]
            calls = "" if math.isnan(node.calls) else f"{node.calls:g}"
            cells = [calls, _fixed(node.seconds, factor, digits), f"{100 * share + 0.0:.1f} %"]
            bar = "█" * round(BAR * max(0.0, share))
            lines.append([2 * level * " " + node.name, *cells, *times[: 1 + self.on_device], bar])
        repeats = f", mean of {len(self.spans)} repeats" if len(self.spans) > 1 else ""
        title = f"{root.name}: {duration(root.seconds)} ({self.where}{repeats})"
        return "\n".join([title, *_aligned(lines), *self._remarks()])

    def chrome_trace(self, path: str | Path, trace: Any = None) -> Path:
        """Write the spans as Chrome's trace JSON, which ui.perfetto.dev and chrome://tracing open, and return the path.

        `trace`: of the simulated GPU, recorded around the same work; its launches become further rows, and times count
        from its start, not from that of the first span. RuntimeError while the recording still runs.
        """
        self.root  # noqa: B018 (raises while the recording runs)
        origin = self.spans[0].host_start if trace is None else trace.start
        events = chrome_events(self.spans, self.where, self.on_device, origin)
        if trace is not None:
            from unrolled.simgpu import chrome

            events += chrome.chrome_events(trace)
        Path(path).write_text(json.dumps({"displayTimeUnit": "ms", "traceEvents": events}), encoding="utf-8")
        return Path(path)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return self.table() if self.spans else f"{type(self).__name__}(nothing recorded yet)"

    def _pace(self) -> str:
        """Say what the host did while the GPU waited for it."""
        if not (parts := self.host_parts):
            return "That is launch-bound, unless the host itself waited or copied."
        stops = (parts["waiting"] + parts["copying"]) / sum(parts.values())
        verdict = f"{100 * stops:.0f} % of that is waits and copies" if stops > STOPS else "Launch-bound"
        return f"{verdict}: {', '.join(f'{name} {duration(seconds)}' for name, seconds in parts.items())}."

    def _remarks(self) -> list[str]:
        root, remarks = self.root, []
        if root.parts:
            remarks.append(f"The parts of {root.name} explain {100 * self.explained:.1f} % of it.")
        if self.on_device and root.host_seconds >= LAUNCH_BOUND * root.seconds:
            remarks.append(f"The host took {duration(root.host_seconds)}: the GPU waited for it. {self._pace()}")
        if self.bare is not None:
            share = self.overhead / self.bare if self.bare else 0.0
            remarks.append(f"Without spans inside: {duration(self.bare)}. Recording them adds {100 * share:.1f} %.")
        return remarks


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


def _unit(seconds: float) -> tuple[str, float, int]:
    """One unit for all rows, so that they can be compared: its name, units in a second, digits."""
    if seconds >= 1:
        return "s", 1.0, 3
    return ("ms", 1e3, 3) if seconds >= 1e-3 else ("µs", 1e6, 1)


def _fixed(seconds: float, factor: float, digits: int) -> str:
    return "" if math.isnan(seconds) else f"{round(seconds * factor, digits) + 0.0:.{digits}f}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """The first and the last column to the left, the others to the right."""
    first, *widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join([name.ljust(first), *map(str.rjust, cells, widths), bar]).rstrip() for name, *cells, bar in lines]
