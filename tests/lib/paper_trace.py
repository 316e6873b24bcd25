"""A trace of the simulated GPU, made by hand: what pictures look at, and nothing else."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

START = 5.0  # seconds on the modelled clock when a trace begins


class PaperTrace(SimpleNamespace):
    """Times are seconds. `launch` and the others advance the host's clock as the program does."""

    def __init__(self, profile: str = "T4") -> None:
        super().__init__(profile=profile, start=START, end=START, launches=[], transfers=[], synchronizations=[])
        self.streams: dict[int, float] = defaultdict(lambda: START)

    def launch(self, op: str, work: float, call: float = 1e-5, stream: int = 0, flops: int = 10**6) -> PaperTrace:
        self.launches.append(self._issued(stream, work, call=call, op=op, flops=flops, bytes=8 * 10**6))
        return self

    @property
    def host_launches(self) -> list[Any]:
        return self.launches

    def by_graph(self) -> dict[int, list[Any]]:
        return {}

    def copy(self, direction: str, work: float, blocking: bool = True, call: float = 1e-5) -> PaperTrace:
        event = self._issued(0, work, call=call, direction=direction, blocking=blocking)
        self.transfers.append(event)
        self.end = event.end if blocking else self.end
        return self

    def synchronize(self) -> PaperTrace:
        done = max([self.end, *self.streams.values()])
        self.synchronizations.append(SimpleNamespace(start=self.end, end=done, cause="synchronize"))
        self.end = done
        return self

    def by_op(self) -> dict[str, Any]:
        sums: dict[str, Any] = {}
        for event in self.launches:
            total = sums.setdefault(event.op, SimpleNamespace(flops=0, bytes=0, seconds=0.0))
            total.flops += event.flops
            total.bytes += event.bytes
            total.seconds += event.end - event.start
        return sums

    def _issued(self, stream: int, work: float, call: float, **facts: Any) -> SimpleNamespace:
        """Call for an event: it starts when its stream has done what was before it."""
        issued, self.end = self.end, self.end + call
        start = max(self.end, self.streams[stream])
        end = self.streams[stream] = start + work
        return SimpleNamespace(stream=stream, issued=issued, start=start, end=end, call=call, **facts)


def lying_clock() -> PaperTrace:
    """Four calls of 10 µs, 3 ms of work: a clock without a synchronization reads 40 µs."""
    trace = PaperTrace()
    for op, work in (("matmul", 1e-3), ("add", 5e-4), ("maximum", 5e-4), ("matmul", 1e-3)):
        trace.launch(op, work)
    return trace.synchronize()
