"""The clock of a recording: the host's, and on a GPU an event in the stream besides.

To wait for the GPU at the start and the end of every span would change what is measured: each time, the GPU would run
out of work. A CUDA event waits for nothing. It is queued like any other work, and the stream notes the time when it
reaches the event. So the seconds of a span on a GPU are those between two events of the current stream, the parts of a
span add up to it, and the host does not stop. How long the host took to issue the span is noted as well. Where that was
as long as the GPU took, the GPU waited for the host: the code is launch-bound.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from unrolled import device


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
