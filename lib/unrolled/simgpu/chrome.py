"""A trace as Chrome trace events, for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from unrolled.simgpu.trace import GraphLaunch, Launch, Trace, Transfer

HOST_ROW = 1

_Part = tuple[str, int, float, float, dict[str, Any]]  # name, row, start, end, arguments


def chrome_events(trace: Trace) -> list[dict[str, Any]]:
    """Return the trace as Chrome trace events, for Perfetto and chrome://tracing: a row for the host and each stream.

    Put them into a file as {"traceEvents": [...]}. Times are microseconds from the trace's start.
    """
    work: list[Launch | Transfer] = [*trace.launches, *trace.transfers]
    rows = {HOST_ROW: "host"} | {_row(event): f"stream {event.stream}" for event in work}
    names = [
        {"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": name}}
        for row, name in sorted(rows.items())
    ]
    parts = [part for event in work for part in _drawn(event)]
    parts += [("graph", HOST_ROW, event.issued, event.issued + event.call, _facts(event)) for event in trace.graphs]
    parts += [("wait: " + event.cause, HOST_ROW, event.start, event.end, {}) for event in trace.synchronizations]
    process = {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": f"{trace.profile} (modelled)"}}
    return [process, *names, *(_complete(trace.start, *part) for part in sorted(parts, key=lambda part: part[2]))]


def _drawn(event: Launch | Transfer) -> list[_Part]:
    """The host's call and the device's work."""
    facts = _facts(event)
    if isinstance(event, Launch):
        called = (event.op, HOST_ROW, event.issued, event.issued + event.call, {"where": event.where})
        ran = (event.op, _row(event), event.start, event.end, facts)
        return [called, ran] if event.graph is None else [ran]
    name = f"copy {event.direction}"
    host_end = event.end if event.blocking else event.issued + event.call
    return [
        (name, HOST_ROW, event.issued, host_end, {"where": event.where}),
        (name, _row(event), event.start, event.end, facts),
    ]


def _facts(event: Launch | GraphLaunch | Transfer) -> dict[str, Any]:
    return {name: value for name, value in asdict(event).items() if name not in ("issued", "start", "end", "stream")}


def _row(event: Launch | Transfer) -> int:
    return HOST_ROW + 1 + event.stream


def _complete(origin: float, name: str, row: int, start: float, end: float, facts: dict[str, Any]) -> dict[str, Any]:
    times = {"ts": round(1e6 * (start - origin), 3), "dur": round(1e6 * (end - start), 3)}
    return {"ph": "X", "pid": 0, "tid": row, "name": name, **times, "args": facts}
