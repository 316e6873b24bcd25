"""Traces to read: plain events of a GPU's work, and what is usually read out of them wrongly."""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import mode
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, shortened
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Inputs

Event = dict[str, Any]
Answer = tuple[int, float]

OPS = ("add", "matmul", "getitem", "sum", "copy to device", "copy to host")
TRIES = 1000


def event(line: int, what: str, issued: float, start: float, end: float, waits: bool = False) -> Event:
    """Describe one piece of work: which line asked for what, when the GPU did it (seconds), whether the host waited."""
    return {"line": line, "what": what, "issued": issued, "start": start, "end": end, "waits": waits}


NOBODY = event(-1, "", 0, 0, 0)  # whoever is blamed for a gap that is left out

BY_HAND = [
    event(6, "matmul", 0.0007, 0.0015, 0.0045),
    event(4, "copy to host", 0.0132, 0.0140, 0.0150, waits=True),
    event(5, "add", 0.0052, 0.0060, 0.0075),
    event(5, "add", 0.0062, 0.0075, 0.0110),
    event(6, "matmul", 0.0197, 0.0205, 0.0220),
    event(7, "add", 0.0237, 0.0245, 0.0265),
    event(4, "copy to host", 0.0157, 0.0165, 0.0175, waits=True),
]
"""Line 4 works for 2 ms only, but 3 ms go by before it and 1.5 and 3 after its waits: 9.5; line 5 takes 6.5, 6 takes 6.

Each usual mistake leads to another line or other seconds.
"""
FIRST_LATE = [event(3, "add", 0.0045, 0.005, 0.006), event(8, "matmul", 0.0047, 0.006, 0.009)]
"""Nothing is done before 5 ms: that gap is due to line 3, which takes 6 ms with it; line 8 takes 3."""
NEARLY_ALIKE = [event(3, "sum", 0.0, 0.0, 0.002), event(5, "add", 0.0005, 0.002, 0.00404)]
"""Line 3 takes 2 ms, line 5 takes 2.04."""


def costliest(trace: Sequence[Event]) -> Answer:
    """Return the line to which most of the GPU's time is due, work and gaps: what `find_bottleneck` must give."""
    return _largest(_shares(trace))


def _shares(
    trace: Sequence[Event],
    *,
    work: bool = True,
    gaps: bool = True,
    first: bool = True,
    blamed: Callable[[Event, Event], Event] = lambda before, after: before if before["waits"] else after,
    order: str = "start",
    until: str = "start",
) -> list[tuple[int, float]]:
    """Return (line, seconds) of every piece of work and every gap: together, all seconds until the last event's end.

    first: with the gap before the first event. blamed: which of two events the gap between them is put down to; it
    lasts `until` the second's start. order: what the events are sorted by ("": not at all).
    """
    events = sorted(trace, key=lambda e: float(e[order]) if order else 0)
    shares, before = [], event(events[0]["line"], "", 0, 0, 0 if first else events[0]["start"])
    for e in events:
        if gaps:
            shares.append((blamed(before, e)["line"], e[until] - before["end"]))
        if work:
            shares.append((e["line"], e["end"] - e["start"]))
        before = e
    return shares


def _sums(shares: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Return the seconds of each line."""
    seconds: dict[int, float] = defaultdict(float)
    for line, share in shares:
        seconds[line] += share
    seconds.pop(NOBODY["line"], None)
    return seconds


def _largest(shares: Sequence[tuple[int, float]]) -> Answer:
    """Return the line with most seconds, and these."""
    return max(_sums(shares).items(), key=lambda item: item[1])


def _from_first_to_last(trace: Sequence[Event]) -> Answer:
    """Return the line whose first event and last are farthest apart, and how far."""
    ends: dict[int, list[float]] = defaultdict(list)
    for e in trace:
        ends[e["line"]] += [e["start"], e["end"]]
    return max(((line, max(times) - min(times)) for line, times in ends.items()), key=lambda pair: pair[1])


def _of_shares(says: str, **changes: Any) -> Mistake:
    """Return the mistake of the costliest line by other shares."""
    return Mistake(says, lambda trace: _largest(_shares(trace, **changes)))


def _waited_or_nobody(before: Event, after: Event) -> Event:
    return before if before["waits"] else NOBODY


def _waiting_for_ever(trace: Sequence[Event]) -> Answer:
    """Put each gap down to the last event before it that waited, however long ago."""
    waited: list[Event] = []

    def blamed(before: Event, after: Event) -> Event:
        waited.extend([before] if before["waits"] else [])
        return waited[-1] if waited else after

    return _largest(_shares(trace, blamed=blamed))


def _line_of_what(trace: Sequence[Event]) -> list[Event]:
    """Return the events as if all those with the same `what` came from one line, that of the first."""
    lines = {e["what"]: e["line"] for e in reversed(trace)}
    return [e | {"line": lines[e["what"]]} for e in trace]


def _end(trace: Sequence[Event]) -> float:
    return max(float(e["end"]) for e in trace)


TO_THE_NEXT = _of_shares(
    "each gap is put down to the line after it: after an event that `waits` it is due to the line that waited",
    blamed=lambda before, after: after,
)
TO_THE_LAST = _of_shares(
    "each gap is put down to the line before it: unless that event `waits`, the GPU is idle because the host has not "
    "asked for the next one yet",
    blamed=lambda before, after: before,
)

SHOWN_MISTAKES = (
    _of_shares(
        "only the GPU's work is in it: while the GPU is idle, time goes by as well. Each gap is due to a line, too",
        gaps=False,
    ),
    TO_THE_NEXT,
    TO_THE_LAST,
    _of_shares("only the gaps are in it: the work counts as well", work=False),
    _of_shares(
        "the trace holds its events in any order: a gap lies between two that follow each other by `start`", order=""
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
"""These lead to another result for each trace that is drawn."""

TRACE_MISTAKES = (
    *SHOWN_MISTAKES,
    _of_shares(
        "a gap is put down to the wrong one of two: `waits` tells of the event before the gap. If that one waits, the "
        "gap is due to its line, else to the line of the event after it",
        blamed=lambda before, after: after if before["waits"] else before,
    ),
    _of_shares(
        "`waits` of the event after a gap decides in yours; what counts is whether the event before it waits",
        blamed=lambda before, after: before if after["waits"] else after,
    ),
    _of_shares(
        "the gaps after an event that `waits` are due to nobody in yours: they belong to the line that waited",
        blamed=lambda before, after: NOBODY if before["waits"] else after,
    ),
    _of_shares(
        "the gaps between events that do not wait are due to nobody in yours: they belong to the line that comes next",
        blamed=_waited_or_nobody,
    ),
    Mistake(
        "once a line has waited, all later gaps go to it in yours: only the gap right after it does", _waiting_for_ever
    ),
    _of_shares(
        "the gap before the first event is missing: time starts at 0, and that gap is due to the first event's line",
        first=False,
    ),
    Mistake(
        "this is the costliest for each of its events: in total, not per call",
        lambda trace: _largest(
            [(e, s / len([x for x in trace if x["line"] == e])) for e, s in _sums(_shares(trace)).items()]
        ),
    ),
    Mistake(
        "this is the line with most events: add up their seconds and their gaps",
        lambda trace: (most := mode(e["line"] for e in trace), _sums(_shares(trace))[most]),
    ),
    Mistake(
        "this is the line with the largest number: max(seconds) compares the keys, max(seconds, key=seconds.get) "
        "what stands there",
        lambda trace: max(_sums(_shares(trace)).items()),
    ),
    result("these are all seconds of the trace: those of the one line are asked", lambda y, trace: (y[0], _end(trace))),
    result("this is a share of the whole: the line's seconds are asked", lambda y, trace: (y[0], y[1] / _end(trace))),
    result("these are milliseconds; seconds are asked", lambda y: (y[0], 1e3 * y[1])),
    result("these are microseconds; seconds are asked", lambda y: (y[0], 1e6 * y[1])),
    _of_shares("the events are sorted by something else than their `start`", order="line"),
    Mistake(
        "your gaps end where the next event is `issued`: the GPU is idle until it starts",
        lambda trace: _largest([(line, max(0.0, seconds)) for line, seconds in _shares(trace, until="issued")]),
    ),
    Mistake(
        "the gap after an event that `waits` goes to two lines in yours: it is due to the line that waited, alone",
        lambda trace: _largest(
            [*_shares(trace, blamed=_waited_or_nobody, work=False), *_shares(trace, blamed=lambda before, after: after)]
        ),
    ),
    Mistake(
        "this is the time from a line's first event to its last: other lines worked in between", _from_first_to_last
    ),
)


def drawn_trace(rng: np.random.Generator, waits: bool) -> Inputs:
    """Draw a trace of 40 to 80 events in 6 lines, in which the usual mistakes show.

    waits: whether a line that waits costs most, or one that the host is slow to ask for.
    """
    misread = [m.of(costliest) for m in SHOWN_MISTAKES if m is not (TO_THE_LAST if waits else TO_THE_NEXT)]
    for _ in range(TRIES):
        trace = _any_trace(rng, waits)
        line, _ = right = costliest(trace)
        if all(wrong(trace) != right for wrong in misread) and misread[0](trace)[0] != line:
            break
    return {"trace": trace}


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


def any_events(rng: np.random.Generator) -> Inputs:
    """Draw one event or more of a few lines, with gaps or none; the last may cost most."""
    trace, done = list[Event](), 0.0
    for _ in range(edge_size(rng, 6)):
        start = done + float(rng.choice([0, 0.001, 0.004])) * float(rng.uniform(0.9, 1.1))
        issued, done = float(rng.uniform(0, start)), start + float(rng.uniform(0.001, 0.003))
        line, waits = int(rng.integers(3, 7)), bool(rng.random() < 0.5)
        trace.append(event(line, str(rng.choice(OPS)), issued, start, done, waits))
    return {"trace": [trace[i] for i in rng.permutation(len(trace))]}


def no_pair(got: Any, expected: str, second: type = numbers.Real) -> tuple[str, ...]:
    """Say why this is no pair as it is expected: a number, then something of type `second`."""
    if got is None:
        return (f"expected a pair {expected}, got None: is the return statement missing?",)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        kind = f"{len(got)} items" if isinstance(got, (tuple, list)) else type(got).__name__
        return (f"expected a pair {expected}, got {kind}: {shortened(got, 60)}",)
    if isinstance(got[0], numbers.Real) and isinstance(got[1], second):
        return ()
    turned = isinstance(got[0], second) and isinstance(got[1], numbers.Real)
    how = "the pair is the other way round: " if turned else ""
    return (f"{how}expected a pair {expected}, got {shortened(got, 60)}",)


def same_line(got: Any, expected: Answer, inputs: Inputs) -> Mismatch | None:
    """Judge whether the line is right, and its seconds within a millionth."""
    if lines := no_pair(got, "(line, seconds) of numbers"):
        return Mismatch(lines)
    line, seconds = map(float, got)
    if seconds.is_integer() and not line.is_integer():
        return Mismatch((f"the pair is the other way round: expected (line, seconds), got ({line:.4g}, {seconds:g})",))
    shares = _shares(inputs["trace"])
    takes = f"{expected[1] * 1e3:.3f} ms ({_parts(shares, inputs['trace'], expected[0])})"
    if line != expected[0]:
        return Mismatch((f"got line {line:g}; expected line {expected[0]}, which takes {takes}",))
    wrong = f"line {line:g} is right, but you give it {seconds * 1e3:.3f} ms: it takes {takes}"
    return None if abs(seconds - expected[1]) <= 1e-6 * expected[1] else Mismatch((wrong,))


def _parts(shares: Sequence[tuple[int, float]], trace: Sequence[Event], line: int) -> str:
    """Say what a line's seconds consist of."""
    work = sum(e["end"] - e["start"] for e in trace if e["line"] == line)
    return f"{work * 1e3:.3f} of work, {(_sums(shares)[line] - work) * 1e3:.3f} of gaps"
