"""Chrome's trace format: a list of events that ui.perfetto.dev and chrome://tracing draw as rows of boxes.

Format: "Trace Event Format", Google, 2016: "X" is a complete event, "M" names a row; times are microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unrolled.profile.tree import Span, every

HOST, DEVICE = 1, 2  # process numbers: a block of rows each


def write(path: Path, spans: Sequence[Span], where: str, on_device: bool, trace: Any = None) -> Path:
    """Write the spans, and the events of a simulated GPU's trace if there is one, to `path`, and return it.

    Times count from the start of the trace, or else from that of the first span.
    """
    origin = spans[0].host_start if trace is None else trace.start
    events = [_named(HOST, f"spans, host ({where})")]
    events += [_box(HOST, span.name, span.host_start - origin, span.host_seconds) for span in every(spans)]
    if on_device:
        events.append(_named(DEVICE, f"spans, device ({where})"))
        events += [_box(DEVICE, span.name, span.start - origin, span.seconds) for span in every(spans)]
    if trace is not None:
        from unrolled.simgpu.chrome import chrome_events

        events += chrome_events(trace)
    path.write_text(json.dumps({"displayTimeUnit": "ms", "traceEvents": events}), encoding="utf-8")
    return path


def _box(process: int, name: str, start: float, seconds: float) -> dict[str, Any]:
    return {"ph": "X", "pid": process, "tid": 1, "name": name, "ts": start * 1e6, "dur": seconds * 1e6}


def _named(process: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": 1, "name": "process_name", "args": {"name": name}}
