"""A profile: the tree of parts, and how it reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from unrolled.profile.tree import Node, Span, chrome_events, every, merged, rows
from unrolled.timing.measuring import duration

LAUNCH_BOUND = 0.9  # of the time on the device: if the host took as long to issue it, the device waited for the host
STOPS = 0.1  # of the host's time: waits and copies that take more are named in the verdict
BAR = 10  # characters


@dataclass(eq=False)
class Profile:
    """Where the time went.

    `where`: what gave the times, as "measured, CPU" or "modelled, T4". `on_device`: whether seconds are a GPU's.
    `spans`: what was recorded, one root for each repeat; all figures are for one repeat. `bare`: seconds of the same
    work without spans inside, where that was measured. `cost_of_a_span()`: seconds that recording an empty span takes.
    `host_parts`: what the host did in one repeat, in seconds, where that is known (`simgpu.trace.Trace.host_parts`).
    """

    where: str
    on_device: bool
    spans: Sequence[Span] = ()
    bare: float | None = None
    cost_of_a_span: Callable[[], float] | None = None
    host_parts: Mapping[str, float] | None = None

    @property
    def root(self) -> Node:
        """The whole, with its parts. RuntimeError while the recording still runs."""
        if not self.spans:
            raise RuntimeError("nothing is recorded yet: look at a recording after its `with` block")
        return merged(self.spans[0].name, self.spans).divided(len(self.spans))

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

    @cached_property
    def overhead(self) -> float:
        """About how many seconds of the whole the recording itself takes; NaN if that is unknown.

        What spans add to a run without them, where that was measured; else their number times the cost of one.
        """
        if self.bare is not None:
            return self.seconds - self.bare
        if self.cost_of_a_span is None:
            return float("nan")
        inner = sum(1 for _ in every(self.spans)) - len(self.spans)
        return inner / max(1, len(self.spans)) * self.cost_of_a_span()

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
        for row in rows(root):
            if depth is not None and row.depth > depth:
                continue
            share = row.seconds / root.seconds if root.seconds else 0.0
            times = [_fixed(value, factor, digits) for value in (row.self_seconds, row.host_seconds)]
            calls = "" if row.calls is None else f"{row.calls:g}"
            cells = [calls, _fixed(row.seconds, factor, digits), f"{100 * share + 0.0:.1f} %"]
            bar = "█" * round(BAR * max(0.0, share))
            lines.append([2 * row.depth * " " + row.name, *cells, *times[: 1 + self.on_device], bar])
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
        elif root.parts and self.cost_of_a_span is not None:
            share = self.overhead / self.seconds if self.seconds else 0.0
            remarks.append(f"Recording took about {duration(self.overhead)} of it ({100 * share:.1f} %).")
        return remarks


def _unit(seconds: float) -> tuple[str, float, int]:
    """One unit for all rows, so that they can be compared: its name, units in a second, digits."""
    if seconds >= 1:
        return "s", 1.0, 3
    return ("ms", 1e3, 3) if seconds >= 1e-3 else ("µs", 1e6, 1)


def _fixed(seconds: float | None, factor: float, digits: int) -> str:
    return "" if seconds is None else f"{round(seconds * factor, digits) + 0.0:.{digits}f}"


def _aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """The first and the last column to the left, the others to the right."""
    first, *widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join([name.ljust(first), *map(str.rjust, cells, widths), bar]).rstrip() for name, *cells, bar in lines]
