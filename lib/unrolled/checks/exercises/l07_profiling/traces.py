"""Traces to read: plain events of a GPU's work, and what is usually read out of them wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Function, Inputs, Mistake

Event = dict[str, Any]
Answer = tuple[int, float]

OPS = ("add", "matmul", "getitem", "sum", "copy to device", "copy to host")
TRIES = 1000


def event(line: int, what: str, issued: float, start: float, end: float, stream: int = 0) -> Event:
    """One piece of work: which line of the program asked for what, and when the GPU did it; seconds."""
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
    """The line with most seconds of work, all its events together: what `find_bottleneck` must give."""
    return _largest(trace, lambda events: sum(e["end"] - e["start"] for e in events))


def _largest(trace: Sequence[Event], cost: Callable[[list[Event]], float], by: str = "line") -> Answer:
    """(line, cost) of the group of events that costs most."""
    groups: dict[Any, list[Event]] = {}
    for e in trace:
        groups.setdefault(e[by], []).append(e)
    costs = {key: cost(events) for key, events in groups.items()}
    key = max(costs, key=lambda name: costs[name])
    return (key if by == "line" else groups[key][0]["line"]), costs[key]


def _longest(trace: Sequence[Event]) -> Answer:
    return _largest(trace, lambda events: max(e["end"] - e["start"] for e in events))


def _per_call(trace: Sequence[Event]) -> Answer:
    return _largest(trace, lambda events: sum(e["end"] - e["start"] for e in events) / len(events))


def _most_calls(trace: Sequence[Event]) -> Answer:
    line = _largest(trace, len)[0]
    return line, sum(e["end"] - e["start"] for e in trace if e["line"] == line)


def _since_issued(trace: Sequence[Event]) -> Answer:
    return _largest(trace, lambda events: sum(e["end"] - e["issued"] for e in events))


def _first_to_last(trace: Sequence[Event]) -> Answer:
    return _largest(trace, lambda events: max(e["end"] for e in events) - min(e["start"] for e in events))


def _by_op(trace: Sequence[Event]) -> Answer:
    return _largest(trace, lambda events: sum(e["end"] - e["start"] for e in events), by="what")


def _on_one_stream(trace: Sequence[Event]) -> Answer:
    return costliest([e for e in trace if e["stream"] == 0])


TRACE_MISTAKES = (
    Mistake("that is the longest single event: add up all events of a line", _longest),
    Mistake("that is the cost of one call: what counts is the total of all calls", _per_call),
    Mistake("you count from `issued`: then it waited in the queue. The work began at `start`", _since_issued),
    Mistake("from the first start to the last end there is other work, too: add up end - start", _first_to_last),
    Mistake("you added up by `what`: the same kernel may come from several lines", _by_op),
    Mistake("only stream 0 is counted: take the events of all streams", _on_one_stream),
    Mistake("that line has most events, but short ones: add up their seconds", _most_calls),
)


def drawn_trace(streams: int) -> Function:
    """Draws a trace of 40 to 80 events in 6 lines, on so many streams, in which each usual mistake shows."""

    def draw(rng: np.random.Generator) -> Inputs:
        misread = [m.function for m in TRACE_MISTAKES if streams > 1 or m.function is not _on_one_stream]
        for _ in range(TRIES):
            trace = _any_trace(rng, streams)
            if all(wrong(trace)[0] != costliest(trace)[0] for wrong in misread):
                break
        return {"trace": trace}

    return draw


def _any_trace(rng: np.random.Generator, streams: int) -> list[Event]:
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


def same_line(got: Any, expected: Answer, inputs: Inputs) -> Mismatch | None:
    """The line, and its seconds within a millionth."""
    if not (isinstance(got, (tuple, list)) and len(got) == 2):
        advice = ": is the return statement missing?" if got is None else ""
        return Mismatch((f"expected a pair (line, seconds), got {type(got).__name__}{advice}",))
    line, seconds = got
    try:
        same, near = int(line) == expected[0], abs(float(seconds) - expected[1]) <= 1e-6 * expected[1]
    except (TypeError, ValueError):
        return Mismatch(
            (f"expected a pair (line, seconds) of numbers, got {type(line).__name__} and {type(seconds).__name__}",)
        )
    if same and near:
        return None
    if not same:
        return Mismatch((f"got line {int(line)}; expected line {expected[0]}, which takes {expected[1] * 1e3:.3f} ms",))
    return Mismatch(
        (
            f"line {expected[0]} is right, but you give it {float(seconds) * 1e3:.3f} ms: it takes "
            f"{expected[1] * 1e3:.3f} ms",
        )
    )
