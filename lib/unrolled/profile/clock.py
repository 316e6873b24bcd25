"""The clock of a recording: the host's, and on a GPU an event in the stream besides.

To wait for the GPU at every border of a span would change what is measured: the GPU would run empty at each of them.
A CUDA event waits for nothing. It is work like any other: the stream notes the time when it comes to it. So the seconds
of a span on a GPU are those between two events of the current stream, the parts of a span add up to it, and the host
hurries on. How long the host took to issue the span stands beside. Where it took as long as the GPU, the GPU waited for
the host: the code is launch-bound.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from unrolled import device


class HostClock:
    """A mark is a reading of the wall clock."""

    on_device = False

    def begin(self, name: str) -> float:
        """The first border of a span."""
        return time.perf_counter()

    def end(self) -> float:
        """The last border of the span that began last and is not over."""
        return time.perf_counter()

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def host(self, mark: float) -> float:
        """The host's clock at a mark."""
        return mark

    def between(self, first: float, last: float) -> float:
        """Seconds from one mark to another."""
        return last - first

    def where(self) -> str:
        """What gives the times."""
        return "measured, CPU"


class Mark(NamedTuple):
    """A border of a span on a device: seconds on the host's clock, and an event in the current stream."""

    host: float
    event: Any


class DeviceClock:
    """The same where a module drives a device: CuPy and the simulated GPU, whose two clocks are both modelled.

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

    def synchronize(self) -> None:
        device.synchronize(self.module)

    def host(self, mark: Mark) -> float:
        return mark.host

    def between(self, first: Mark, last: Mark) -> float:
        return float(self.module.cuda.get_elapsed_time(first.event, last.event)) / 1000

    def where(self) -> str:
        if device.is_simulated(self.module):
            return f"modelled, {self.module.profile().name}"
        runtime = self.module.cuda.runtime
        return f"measured, {runtime.getDeviceProperties(runtime.getDevice())['name'].decode()}"

    def _event(self) -> Any:
        event = self.module.cuda.Event()
        event.record()
        return event


Clock = HostClock | DeviceClock


def clock_of(module: device.Module) -> Clock:
    """The clock for work that runs where this module's arrays lie."""
    return HostClock() if module is np else DeviceClock(module)
