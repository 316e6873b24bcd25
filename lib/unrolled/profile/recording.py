"""Recording spans: named stretches of a program, one inside the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.device import Module, synchronize
from unrolled.profile.clock import Clock, DeviceClock, HostClock
from unrolled.profile.profiles import Profile
from unrolled.profile.tree import Span
from unrolled.timing.blocks import no_collection
from unrolled.timing.threads import blas_threads

TRIALS = 100  # empty spans that tell what a span costs
_active: list[Recording | None] = []


@dataclass(slots=True)
class _Open:
    """A span that may not be over: its borders as marks of the clock."""

    name: str
    begin: Any
    end: Any = None
    parts: list[_Open] = field(default_factory=list)


class _Timed:
    """What `span` gives to `with`: a class, which costs a third of a generator."""

    __slots__ = ("name", "recorder")

    def __init__(self, recorder: Recording, name: str) -> None:
        self.recorder, self.name = recorder, name

    def __enter__(self) -> None:
        self.recorder.begin(self.name)

    def __exit__(self, *_error: object) -> None:
        self.recorder.end()


class Recording(Profile):
    """The profile of a `with recording(...)` block, for one thread. While it runs, `span` adds parts."""

    def __init__(self, clock: Clock, name: str) -> None:
        super().__init__(clock.where, clock.on_device, cost_of_a_span=self._measured_cost)
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
        synchronize(self._clock.module)
        self.begin(self._name)
        whole = self._stack[0]
        _active.append(self)
        try:
            yield self
        finally:
            _active.pop()
            while self._stack:  # the whole, and spans left open inside
                self.end()
            synchronize(self._clock.module)
            self.spans = (_resolved(self._clock, whole, whole.begin, self._clock.host(whole.begin)),)

    def _measured_cost(self) -> float:
        trial = Recording(self._clock, "trial")
        with trial.running():
            for _ in range(TRIALS):
                with trial.span("empty"):
                    pass
        whole = trial.spans[0]
        return max(whole.seconds, whole.host_seconds) / TRIALS


@contextmanager
def recording(module: Module = np, name: str = "whole", threads: int | None = 1) -> Iterator[Recording]:
    """Record what the block does, in spans: `with recording(cp) as p:`, and inside `with p.span("forward"):`.

    `module` is the array module whose device does the work; seconds are then those of the device (see `clock`). The
    block starts and ends with a synchronization, and no garbage is collected in it. `threads`: BLAS threads; None
    leaves them alone.
    """
    recorder = Recording(HostClock() if module is np else DeviceClock(module), name)
    with blas_threads(threads) as held, no_collection(), recorder.running():
        yield recorder
        recorder.where += "" if recorder.on_device else f", {held()}"


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
