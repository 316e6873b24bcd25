"""Traces to read: plain events of a GPU's work, and what is usually read out of them wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.mistakes import Mistake, given
from unrolled.checks.spec import Inputs

Event = dict[str, Any]
Answer = tuple[int, float]

OPS = ("add", "matmul", "getitem", "sum", "copy to device", "copy to host")


def event(line: int, what: str, issued: float, start: float, end: float, stream: int = 0) -> Event:
    """Describe one piece of work: which line of the program asked for what, and when the GPU did it; seconds."""
    return {"line": line, "what": what, "stream": stream, "issued": issued, "start": start, "end": end}


BY_HAND = [
    event(4, "add", 0.0000, 0.0010, 0.0030),
    event(5, "matmul", 0.0001, 0.0030, 0.0080),
    event(4, "add", 0.0002, 0.0080, 0.0100),
    event(6, "sum", 0.0003, 0.0100, 0.0155),
    event(6, "sum", 0.0004, 0.0155, 0.0156),
    event(4, "add", 0.0005, 0.0156, 0.0176),
]
"""Line 4 takes 6 ms in three pieces, line 5 takes 5 ms in one, line 6 takes 5.6 ms in a long and a short one."""


def costliest(trace: Sequence[Event]) -> Answer:
    """Return the line with most seconds of work, all its events together: what `find_bottleneck` must give."""
    return _largest(trace, _seconds)


def _largest(trace: Sequence[Event], cost: Callable[[list[Event]], float]) -> Answer:
    """Return (line, cost) of the line whose events cost most."""
    groups: dict[int, list[Event]] = {}
    for e in trace:
        groups.setdefault(e["line"], []).append(e)
    line = max(groups, key=lambda line: cost(groups[line]))
    return line, cost(groups[line])


def _seconds(events: Sequence[Event]) -> float:
    return float(sum(e["end"] - e["start"] for e in events))


def _line_of_what(trace: Sequence[Event]) -> list[Event]:
    """Return the events as if all those with the same `what` came from one line, that of the first."""
    lines = {e["what"]: e["line"] for e in reversed(trace)}
    return [e | {"line": lines[e["what"]]} for e in trace]


ONE_STREAM = given(
    "only stream 0 is counted: take the events of all streams",
    trace=lambda trace: [e for e in trace if e["stream"] == 0],
)

TRACE_MISTAKES = (
    Mistake(
        "that is the longest single event: add up all events of a line",
        lambda trace: _largest(trace, lambda events: max(_seconds([e]) for e in events)),
    ),
    Mistake(
        "that is the cost of one call: what counts is the total of all calls",
        lambda trace: _largest(trace, lambda events: _seconds(events) / len(events)),
    ),
    given(
        "you count from `issued`: then it waited in the queue. The work began at `start`",
        trace=lambda trace: [e | {"start": e["issued"]} for e in trace],
    ),
    Mistake(
        "from the first start to the last end there is other work, too: add up end - start",
        lambda trace: _largest(trace, lambda events: max(e["end"] for e in events) - min(e["start"] for e in events)),
    ),
    given("you added up by `what`: the same kernel may come from several lines", trace=_line_of_what),
    ONE_STREAM,
    given(
        "that line has most events, but short ones: add up their seconds",
        trace=lambda trace: [e for e in trace if e["line"] == _largest(trace, len)[0]],
    ),
)


def drawn_trace(rng: np.random.Generator, streams: int) -> Inputs:
    """Draw a trace of 40 to 80 events in 6 lines, on so many streams, in which each usual mistake shows."""
    misread = [mistake.of(costliest) for mistake in TRACE_MISTAKES if streams > 1 or mistake is not ONE_STREAM]
    for _ in range(1000):
        trace = _any_trace(rng, streams)
        if all(wrong(trace)[0] != costliest(trace)[0] for wrong in misread):
            break
    return {"trace": trace}


def _any_trace(rng: np.random.Generator, streams: int) -> list[Event]:
    """Draw a trace in which each line has its own kernel, seconds and share of the events."""
    lines = sorted(int(line) for line in rng.permutation(np.arange(3, 40))[:6])
    kinds = {
        line: (str(rng.choice(OPS)), float(10 ** rng.uniform(-5, -3)), float(rng.uniform(0.2, 2))) for line in lines
    }
    weights = np.array([weight for _, _, weight in kinds.values()])
    host, free, trace = 0.0, [0.0] * streams, []
    for line in rng.choice(lines, int(rng.integers(40, 81)), p=weights / weights.sum()):
        what, seconds, _ = kinds[int(line)]
        stream = int(rng.integers(streams))
        begin = max(host, free[stream])
        free[stream] = begin + seconds * float(rng.uniform(0.7, 1.3))
        trace.append(event(int(line), what, host, begin, free[stream], stream))
        host += 8e-6
    return trace


def no_pair(got: Any, expected: str, second: type = object) -> tuple[str, ...]:
    """Say why this is no pair as it is expected, with something of type `second` in it."""
    if isinstance(got, (tuple, list)) and len(got) == 2 and isinstance(got[1], second):
        return ()
    advice = ": is the return statement missing?" if got is None else ""
    return (f"expected a pair {expected}, got {type(got).__name__}{advice}",)


def same_line(got: Any, expected: Answer, inputs: Inputs) -> Mismatch | None:
    """Judge whether the line is right, and its seconds within a millionth."""
    if lines := no_pair(got, "(line, seconds)"):
        return Mismatch(lines)
    line, seconds = got
    try:
        same, near = int(line) == expected[0], abs(float(seconds) - expected[1]) <= 1e-6 * expected[1]
    except (TypeError, ValueError):
        kinds = f"{type(line).__name__} and {type(seconds).__name__}"
        return Mismatch((f"expected a pair (line, seconds) of numbers, got {kinds}",))
    takes = f"{expected[1] * 1e3:.3f} ms"
    if not same:
        return Mismatch((f"got line {int(line)}; expected line {expected[0]}, which takes {takes}",))
    told = f"{float(seconds) * 1e3:.3f} ms"
    says = f"line {expected[0]} is right, but you give it {told}: it takes {takes}"
    return None if near else Mismatch((says,))
