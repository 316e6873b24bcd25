"""Traces to read: plain events of a GPU's work, and what is usually read out of them wrongly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.mistakes import Mistake, given
from unrolled.checks.spec import Inputs

Event = dict[str, Any]
Answer = tuple[int, float]

OPS = ("add", "matmul", "getitem", "sum", "copy to device", "copy to host")
TRIES = 1000


def event(line: int, what: str, issued: float, start: float, end: float, waits: bool = False) -> Event:
    """Describe one piece of work: which line asked for what, when the GPU did it (seconds), whether the host waited."""
    return {"line": line, "what": what, "issued": issued, "start": start, "end": end, "waits": waits}


BY_HAND = [
    event(4, "add", 0.0002, 0.0010, 0.0030),
    event(4, "add", 0.0097, 0.0105, 0.0125),
    event(5, "matmul", 0.0010, 0.0030, 0.0065),
    event(5, "matmul", 0.0014, 0.0065, 0.0080),
    event(6, "copy to host", 0.0018, 0.0080, 0.0085, waits=True),
    event(6, "copy to host", 0.0105, 0.0125, 0.0130, waits=True),
    event(7, "add", 0.0152, 0.0160, 0.0165),
]
"""Line 6 works for 1 ms only, but after its waits the GPU is idle for 2 and 3 ms: 6 ms; lines 4 and 5 take 5 each."""


def costliest(trace: Sequence[Event]) -> Answer:
    """Return the line to which most of the GPU's time is due, work and gaps: what `find_bottleneck` must give."""
    return _largest(_shares(trace))


def _shares(
    trace: Sequence[Event],
    *,
    work: bool = True,
    gaps: bool = True,
    blamed: Callable[[Event, Event], Event] = lambda before, after: before if before["waits"] else after,
    ordered: bool = True,
) -> list[tuple[int, float]]:
    """Return (line, seconds) of every piece of work and every gap: together, all seconds until the last event's end.

    blamed: which of two events, one after the other, the gap between them is put down to.
    """
    events = sorted(trace, key=lambda e: float(e["start"])) if ordered else list(trace)
    shares, before = [], event(events[0]["line"], "", 0, 0, 0)
    for e in events:
        if gaps:
            shares.append((blamed(before, e)["line"], e["start"] - before["end"]))
        if work:
            shares.append((e["line"], e["end"] - e["start"]))
        before = e
    return shares


def _largest(shares: Sequence[tuple[int, float]]) -> Answer:
    """Return the line with most seconds, and these."""
    seconds: dict[int, float] = defaultdict(float)
    for line, share in shares:
        seconds[line] += share
    return max(seconds.items(), key=lambda item: item[1])


def _line_of_what(trace: Sequence[Event]) -> list[Event]:
    """Return the events as if all those with the same `what` came from one line, that of the first."""
    lines = {e["what"]: e["line"] for e in reversed(trace)}
    return [e | {"line": lines[e["what"]]} for e in trace]


TO_THE_NEXT = Mistake(
    "each gap is put down to the line after it: after an event that `waits` it is due to the line that waited",
    lambda trace: _largest(_shares(trace, blamed=lambda before, after: after)),
)
TO_THE_LAST = Mistake(
    "each gap is put down to the line before it: unless that event `waits`, the GPU is idle because the host has not "
    "asked for the next one yet",
    lambda trace: _largest(_shares(trace, blamed=lambda before, after: before)),
)

TRACE_MISTAKES = (
    Mistake(
        "only the GPU's work is in it: while the GPU is idle, time goes by as well. Each gap is due to a line, too",
        lambda trace: _largest(_shares(trace, gaps=False)),
    ),
    TO_THE_NEXT,
    TO_THE_LAST,
    Mistake("only the gaps are in it: the work counts as well", lambda trace: _largest(_shares(trace, work=False))),
    Mistake(
        "the trace holds its events in any order: a gap lies between two that follow each other by `start`",
        lambda trace: _largest(_shares(trace, ordered=False)),
    ),
    Mistake(
        "that is the longest single event: add up all that is due to a line",
        lambda trace: max(((e["line"], e["end"] - e["start"]) for e in trace), key=lambda pair: pair[1]),
    ),
    Mistake(
        "you count from `issued`: then it waited in the queue, while the GPU did other work",
        lambda trace: _largest([(e["line"], e["end"] - e["issued"]) for e in trace]),
    ),
    given("you added up by `what`: the same kernel may come from several lines", trace=_line_of_what),
)


def drawn_trace(waits: bool) -> Callable[[np.random.Generator], Inputs]:
    """Return what draws a trace of 40 to 80 events in 6 lines, in which the usual mistakes show.

    waits: whether a line that waits costs most, or one that the host is slow to ask for.
    """
    misread = [m.of(costliest) for m in TRACE_MISTAKES if m is not (TO_THE_LAST if waits else TO_THE_NEXT)]

    def draw(rng: np.random.Generator) -> Inputs:
        for _ in range(TRIES):
            trace = _any_trace(rng, waits)
            line, _ = right = costliest(trace)
            if all(wrong(trace) != right for wrong in misread) and misread[0](trace)[0] != line:
                break
        return {"trace": trace}

    return draw


def _any_trace(rng: np.random.Generator, waits: bool) -> list[Event]:
    """Draw a trace in which each line has its own kernel, seconds, share of the events, and Python before it.

    The first line works little but costs most; the second works longest; the third waits, and the first if `waits`.
    """
    lines = [int(line) for line in rng.permutation(np.arange(3, 40))[:6]]
    what = {line: str(rng.choice(OPS[:4])) for line in lines}
    work, python = ({line: float(10 ** rng.uniform(-5, -4.2)) for line in lines} for _ in range(2))
    work[lines[1]], python[lines[0]] = 3e-4, 2e-5 if waits else 5e-4
    waiting = {lines[0] if waits else lines[2]}
    weights = np.array([3 if waits else 1.2, 0.5, *rng.uniform(0.5, 1, 4)])
    python |= dict.fromkeys(lines[3:], 0.0003) if waits else {}
    host, done, trace = 0.0, 0.0, []
    for line in rng.choice(lines, int(rng.integers(40, 81)), p=weights / weights.sum()).tolist():
        host += python[line] * float(rng.uniform(0.7, 1.3))
        start = max(host + 5e-6, done)
        done = start + work[line] * float(rng.uniform(0.7, 1.3))
        trace.append(event(line, what[line], host, start, done, waits=line in waiting))
        host = done if line in waiting else host
    return [trace[i] for i in rng.permutation(len(trace))]


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
    return None if near else Mismatch((f"line {expected[0]} is right, but you give it {told}: it takes {takes}",))
