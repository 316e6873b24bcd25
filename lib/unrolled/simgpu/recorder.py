"""The traces of a machine that are open, and who called it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from unrolled.simgpu.command import InvalidCommandError
from unrolled.simgpu.ordering import Line
from unrolled.simgpu.trace import Event, Trace

_LIBRARY = str(Path(__file__).parents[1])
_MACHINE = (__name__, "unrolled.simgpu.machine", "contextlib")


class Recorder:
    """Takes down events in all open traces: at most so many traces at a time, and so many events in one.

    lines: whether the program runs in this process, so that its lines can be told.
    """

    def __init__(self, traces: int, events: int, lines: bool) -> None:
        self._traces, self._events, self._lines = traces, events, lines
        self._open: dict[int, tuple[Trace, Iterator[bool]]] = {}  # with True for each event that it has room for
        self._last = 0

    def start(self, profile: str, now: float) -> int:
        """Open a trace of the GPU of this name, at this time of the host's clock, and return its number."""
        if len(self._open) >= self._traces:
            raise InvalidCommandError(f"more than {self._traces} open traces")
        self._last += 1
        self._open[self._last] = Trace(profile, now), repeat(True, self._events)
        return self._last

    def stop(self, number: int) -> Trace:
        """Close a trace and return it."""
        found = self._open.pop(number, None) if type(number) is int else None
        if found is None:
            raise InvalidCommandError(f"trace {number!r:.40} is not open")
        return found[0]

    def note(self, event: Event) -> None:
        """Add an event to the open traces."""
        for trace, room in list(self._open.values()):
            if not next(room, False):
                raise InvalidCommandError(f"a trace of more than {self._events:,} events: stop it earlier")
            trace.add(event)

    def __bool__(self) -> bool:
        return bool(self._open)

    def caller(self, otherwise: str, always: bool = False) -> tuple[str, str | None]:
        """Return what of `simgpu` or of `device` was called ("to_host", "__float__"), and file:line of that.

        The name is `otherwise` where the program calls the machine itself, or no trace is open, unless asked `always`.
        """
        if not self._open and not always:
            return otherwise, None
        frame, name = sys._getframe(1), otherwise
        while frame.f_back is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if not module.startswith(("unrolled.simgpu", "unrolled.device")) and module != "contextlib":
                break
            if module not in _MACHINE:
                name = frame.f_code.co_name
            frame = frame.f_back
        return name, f"{frame.f_code.co_filename}:{frame.f_lineno}"

    def line(self) -> Line | None:
        """Return the line of the program, outside of all of the library; None where it is not known."""
        frame: Any = sys._getframe(1) if self._lines else None
        while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
            frame = frame.f_back
        return frame and (frame.f_code.co_filename, frame.f_lineno)
