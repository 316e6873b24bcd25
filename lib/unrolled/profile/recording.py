"""Recording spans, named stretches of a program, one inside the other: by the host's clock, on a GPU by events besides.

To wait for the GPU at the start and the end of every span would change what is measured: each time, the GPU would run
out of work. A CUDA event waits for nothing. It is queued like any other work, and the stream notes the time when it
reaches the event. So the seconds of a span on a GPU are those between two events of the current stream, the parts of a
span add up to it, and the host does not stop. How long the host took to issue the span is noted as well. Where that was
as long as the GPU took, the GPU waited for the host: the code is launch-bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from unrolled import device
from unrolled.profile.profiles import Profile, Span
from unrolled.timing.blocks import blas_threads, no_collection

_active: list[Recording | None] = []


class HostClock:
    """The clock of work on the host: a mark is a reading of `time.perf_counter`, in seconds."""

    on_device, module, where = False, np, "measured, CPU"

    def begin(self, name: str) -> float:
        """Return a mark for the start of a span."""
        return time.perf_counter()

    def end(self) -> float:
        """Return a mark for the end of the span that began last and is not over."""
        return time.perf_counter()

    def host(self, mark: float) -> float:
        """Return the host's clock at a mark, in seconds."""
        return mark

    def between(self, first: float, last: float) -> float:
        """Return the seconds from one mark to another."""
        return last - first


class Mark(NamedTuple):
    """A border of a span on a device: seconds on the host's clock, and an event in the current stream."""

    host: float
    event: Any


class DeviceClock:
    """The clock of work on a module's GPU: CuPy's, or the simulated one, whose times on host and GPU are both modelled.

    With CuPy every span is an NVTX range as well, so that Nsight Systems shows it by name.
    """

    on_device = True

    def __init__(self, module: device.Module) -> None:
        self.module = module
        self._nvtx = getattr(module.cuda, "nvtx", None)

    def begin(self, name: str) -> Mark:
        # The event first and the host's clock last, in `end` the other way round: less of our own work lies inside.
        if self._nvtx is not None:
            self._nvtx.RangePush(name)
        event = self._event()
        return Mark(device.clock(self.module), event)

    def end(self) -> Mark:
        mark = Mark(device.clock(self.module), self._event())
        if self._nvtx is not None:
            self._nvtx.RangePop()
        return mark

    def host(self, mark: Mark) -> float:
        return mark.host

    def between(self, first: Mark, last: Mark) -> float:
        return float(self.module.cuda.get_elapsed_time(first.event, last.event)) / 1000

    @property
    def where(self) -> str:
        """What gives the times, in words."""
        if device.is_simulated(self.module):
            return f"modelled, {self.module.profile().name}"
        runtime = self.module.cuda.runtime
        return f"measured, {runtime.getDeviceProperties(runtime.getDevice())['name'].decode()}"

    def _event(self) -> Any:
        event = self.module.cuda.Event()
        event.record()
        return event


Clock = HostClock | DeviceClock


@dataclass(slots=True)
class _Open:
    """A span that may not be over: its borders as marks of the clock."""

    name: str
    begin: Any
    end: Any = None
    parts: list[_Open] = field(default_factory=list)


@dataclass(slots=True)
class _Timed:
    """What `span` gives to `with`: a class, which costs a third of a generator."""

    recorder: Recording
    name: str

    def __enter__(self) -> None:
        self.recorder.begin(self.name)

    def __exit__(self, *_error: object) -> None:
        self.recorder.end()


class Recording(Profile):
    """The profile of a `with recording(...)` block, for one thread. While it runs, `span` adds parts."""

    def __init__(self, clock: Clock, name: str) -> None:
        super().__init__(clock.where, clock.on_device)
        self._clock, self._name = clock, name
        self._stack: list[_Open] = []

    def span(self, name: str) -> AbstractContextManager[None]:
        """Time what stands in the `with` block as a part of the span around it. Spans of one name add up."""
        return _Timed(self, name)

    def begin(self, name: str) -> None:
        """Open a span, which `end` closes: what `span` does around its block."""
        opened = _Open(name, self._clock.begin(name))
        if self._stack:
            self._stack[-1].parts.append(opened)
        self._stack.append(opened)

    def end(self) -> None:
        """Close the span that was opened last."""
        self._stack.pop().end = self._clock.end()

    @contextmanager
    def running(self) -> Iterator[Recording]:
        """Record the block, with a synchronization before and after, as the span that all others lie inside."""
        device.synchronize(self._clock.module)
        self.begin(self._name)
        whole = self._stack[0]
        _active.append(self)
        try:
            yield self
        finally:
            _active.pop()
            while self._stack:  # the whole, and spans left open inside
                self.end()
            device.synchronize(self._clock.module)
            self.spans = (_resolved(self._clock, whole, whole.begin, self._clock.host(whole.begin)),)


@contextmanager
def recording(module: device.Module = np, name: str = "whole") -> Iterator[Recording]:
    """Record what the block does, in spans: `with recording(cp) as p:`, and inside `with p.span("forward"):`.

    Seconds are those of the device of `module`, which does the work. The block starts and ends with a
    synchronization, and no garbage is collected in it. BLAS has one thread.
    """
    recorder = Recording(HostClock() if module is np else DeviceClock(module), name)
    with blas_threads(1) as threads_in_words, no_collection(), recorder.running():
        yield recorder
        recorder.where += "" if recorder.on_device else f", {threads_in_words()}"


def span(name: str) -> AbstractContextManager[None]:
    """Time a block inside layers and functions as a span of the recording that runs; without one it does nothing."""
    recorder = _active[-1] if _active else None
    return nullcontext() if recorder is None else recorder.span(name)


@contextmanager
def quiet() -> Iterator[None]:
    """Let `span` do nothing inside the block."""
    _active.append(None)
    try:
        yield
    finally:
        _active.pop()


def _resolved(clock: Any, opened: _Open, parent: Any, start: float) -> Span:
    """The span in plain numbers. `start` is when the parent (its first mark) began, on the clock of the seconds."""
    start += clock.between(parent, opened.begin)
    seconds = clock.between(opened.begin, opened.end)
    host = clock.host(opened.begin)
    parts = tuple(_resolved(clock, part, opened.begin, start) for part in opened.parts)
    return Span(opened.name, start, seconds, host, clock.host(opened.end) - host, parts)
