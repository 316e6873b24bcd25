"""Modelled time: a clock for the host, one for each stream, and engines that streams share. No real clock is read.

Stream 0 is CUDA's default stream: it waits for all others, and they wait for it; but for non-blocking ones, which are
those from number NON_BLOCKING on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NON_BLOCKING = 128
LANES = 256
"""Side streams of graphs have numbers from here on, which no program's stream has."""


@dataclass
class Timeline:
    """Clocks of host, streams and engines. All times are seconds since the machine was made."""

    host: float = 0.0
    streams: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    engines: dict[str, float] = field(default_factory=dict)

    def call(self, seconds: float) -> float:
        """Keep the host busy for so long; return the time at which that began."""
        begun = self.host
        self.host += seconds
        return begun

    def end(self, stream: int | None) -> float:
        """Return when all work given so far to a stream is done (None: to the device)."""
        if stream is None:
            return max(self.streams.values())
        if stream == 0:
            return max(end for number, end in self.streams.items() if number < NON_BLOCKING)
        return max(self.streams.get(stream, 0.0), self.streams[0] if stream < NON_BLOCKING else 0.0)

    def enqueue(self, stream: int, seconds: float, work: float, engine: str) -> tuple[float, float]:
        """Put work on a stream; return (start, end). It starts when the host has issued it and work before it is done.

        `work` is how long it takes the engine as a whole. Work of several streams shares the engine, so that streams
        hide each other's latency, but two kernels that each fill the GPU take as long side by side as in a row.
        """
        start = max(self.host, self.end(stream))
        shared = max(start, self.engines.get(engine, 0.0)) + work
        end = max(start + seconds, shared)
        self.engines[engine] = shared
        self.streams[stream] = end
        return start, end

    def record(self, stream: int) -> float:
        """Return the time of an event at this place of a stream."""
        return max(self.host, self.end(stream))

    def hold(self, stream: int, until: float) -> None:
        """Let what the stream gets from now on start no earlier than `until`."""
        self.streams[stream] = max(self.end(stream), until)

    def wait(self, until: float) -> tuple[float, float]:
        """Let the host wait until then; return from when to when it waited."""
        begun = self.host
        self.host = max(self.host, until)
        return begun, self.host
