"""An array module that drives a GPU of paper: a host clock, a stream that lags behind, and CUDA's events on both."""

from types import SimpleNamespace
from typing import Any

import pytest

from unrolled import device


class PaperClock:
    """The wall clock of the host: it moves when it is told to, and by `reading` whenever it is read."""

    now = reading = 0.0

    def perf_counter(self) -> float:
        self.now += self.reading
        return self.now

    process_time = perf_counter

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


class OnDevice:
    """An array that lies on the fake GPU."""


class FakeGpu:
    """`launch(host, work)` takes the host so many seconds and gives the device so many; events stand in its stream.

    `log` keeps what happened, in order. It counts as simulated (its profile is named "paper") or as real.
    """

    def __init__(self, simulated: bool) -> None:
        self.simulated = simulated
        self.host = self.busy_until = 0.0
        self.log: list[str] = []
        self.ranges: list[str] = []
        gpu = self

        class Event:
            """Its time is when the stream comes to it; the host does not wait for that."""

            def __init__(self) -> None:
                self.time = float("nan")
                self.waited = False

            def record(self) -> None:
                gpu.log.append("record")
                self.time = max(gpu.host, gpu.busy_until)
                gpu.pending.append(self)

            def synchronize(self) -> None:
                gpu.log.append("wait")
                gpu.host = max(gpu.host, self.time)
                self.waited = True

        self.pending: list[Event] = []
        note, paper = self.ranges.append, {"name": b"NVIDIA Paper"}
        nvtx = SimpleNamespace(RangePush=lambda name: note(f"<{name}"), RangePop=lambda: note(">"))
        device_0 = {"getDevice": lambda: 0, "getDeviceProperties": lambda number: paper}
        runtime = SimpleNamespace(deviceSynchronize=self._synchronize, **device_0)
        self.cuda = SimpleNamespace(Event=Event, runtime=runtime, get_elapsed_time=self._elapsed, nvtx=nvtx)

    def launch(self, host: float, work: float) -> None:
        self.log.append("launch")
        self.host += host
        self.busy_until = max(self.host, self.busy_until) + work

    def profile(self) -> Any:
        return SimpleNamespace(name="paper")

    def _synchronize(self) -> None:
        self.log.append("synchronize")
        self.host = max(self.host, self.busy_until)
        for event in self.pending:
            event.waited = True
        self.pending.clear()

    def _elapsed(self, first: Any, last: Any) -> float:
        """Milliseconds; an error for events that nobody waited for, as CUDA's."""
        if not (first.waited and last.waited):
            raise RuntimeError("cudaErrorNotReady")
        return (last.time - first.time) * 1000


def register(monkeypatch: pytest.MonkeyPatch, simulated: bool = False) -> FakeGpu:
    """A fake GPU that `unrolled.device` knows."""
    gpu = FakeGpu(simulated)
    monkeypatch.setattr(device, "_modules", dict(device._modules))
    device.register(OnDevice, gpu)
    monkeypatch.setattr(device, "is_simulated", lambda module: getattr(module, "simulated", False), raising=False)
    monkeypatch.setattr(device, "clock", lambda module: module.host, raising=False)
    return gpu
