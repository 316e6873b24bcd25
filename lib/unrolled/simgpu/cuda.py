"""Streams, events, the device and its memory, under CuPy's names. All times are modelled."""

from __future__ import annotations

import sys
from itertools import count
from types import TracebackType
from typing import Any, ClassVar

from unrolled.simgpu import current
from unrolled.simgpu.captures import RELAXED
from unrolled.simgpu.command import CUDARuntimeError, Machine, OutOfMemoryError
from unrolled.simgpu.timeline import NON_BLOCKING

STREAMS = 127  # of each kind, beside the default one; further ones share their numbers, as a GPU's queues are shared

_numbers = count()


class Stream:
    """A queue of work: `with stream:` sends the block's work there.

    `Stream.null`, the default, waits for all others, and they for it, but for those that are `non_blocking`.
    """

    null: ClassVar[Stream]

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        first = NON_BLOCKING if non_blocking else 1
        self.number = 0 if null else first + next(_numbers) % STREAMS

    def __enter__(self) -> Stream:
        current.streams.append(self.number)
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        current.streams.pop()

    def use(self) -> Stream:
        """Send all that follows to this stream, and return the stream."""
        current.streams[-1] = self.number
        return self

    @property
    def ptr(self) -> int:
        return self.number

    def synchronize(self) -> None:
        """Wait until the stream has done its work."""
        current.machine().synchronize(self.number)

    def record(self, event: Event | None = None) -> Event:
        """Mark this place of the stream with an event, a new one unless given, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what follows on this stream wait for the event; the host does not wait."""
        current.machine().wait(event.place, self.number)

    def begin_capture(self, mode: int | None = None) -> None:
        """Keep what the stream is given from now on, until `end_capture`, in place of doing it.

        In a capture the host can neither wait nor copy, and nothing calls cuBLAS or cuRAND. Unless the mode is
        `runtime.streamCaptureModeRelaxed` (which CuPy takes by itself), the pool cannot grow: make arrays before.
        Raises RuntimeError for the default stream.
        """
        if self.number == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        current.machine().begin_capture(self.number, mode)

    def end_capture(self) -> Graph:
        """End the capture and return its graph. Raises CUDARuntimeError if something in it was refused."""
        machine = current.machine()
        return Graph._of(machine, machine.end_capture(self.number))

    def is_capturing(self) -> bool:
        """Return whether the stream takes part in a capture. Raises RuntimeError once an error has broken it."""
        return current.machine().is_capturing(self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.number == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __repr__(self) -> str:
        return f"<Stream {self.number} of the simulated GPU>"


Stream.null = Stream(null=True)


class Graph:
    """Kernels that were captured on a stream: `launch` does them all, by one call of the host.

    They work on the same memory each time, with the values that lie there then. Numbers of the host are those of the
    capture.
    """

    _machine: Machine
    _number: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )

    @classmethod
    def _of(cls, machine: Machine, number: int) -> Graph:
        self = object.__new__(cls)
        self._machine, self._number = machine, number
        return self

    def launch(self, stream: Stream | None = None) -> None:
        """Launch the graph on a stream, the one in use unless given, and return at once."""
        self._machine.launch_graph(self._number, current.number(stream))

    def upload(self, stream: Stream | None = None) -> None:
        """Send the graph to the device, so that the first launch does not have to."""
        self._machine.upload_graph(self._number, current.number(stream))

    def __del__(self) -> None:
        if hasattr(self, "_number") and not sys.is_finalizing():
            self._machine.free(self._number)


def get_current_stream() -> Stream:
    """Return the stream that work goes to."""
    stream = Stream(null=True)
    stream.number = current.streams[-1]
    return stream


class Event:
    """A mark in a stream, with the device's time when it gets there."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._place: int | None = None

    @property
    def place(self) -> int:
        """The machine's number of the mark. Raises RuntimeError before the event is recorded."""
        if self._place is None:
            raise RuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle (the event was never recorded)")
        return self._place

    @property
    def done(self) -> bool:
        """Whether the host has seen the stream reach the mark; it does not wait."""
        try:
            current.machine().elapsed(self.place, self.place)
        except RuntimeError:
            return False
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark behind the work that the stream has so far."""
        self._place = current.machine().record(current.number(stream))

    def synchronize(self) -> None:
        """Wait until the stream has reached the mark."""
        if self._place is not None:
            current.machine().wait(self._place, None)


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Return the milliseconds between two events, on the modelled device. Wait for the second one first."""
    return 1000 * current.machine().elapsed(start_event.place, end_event.place)


class Device:
    """The simulated GPU; there is one, number 0."""

    def __init__(self, device: int | None = None) -> None:
        if device not in (None, 0):
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal (one GPU is simulated)")
        self.id = 0

    def synchronize(self) -> None:
        """Wait until the device has done all its work."""
        current.machine().synchronize()

    def use(self) -> Device:
        return self

    @property
    def mem_info(self) -> tuple[int, int]:
        """(free, total) bytes."""
        return runtime.memGetInfo()

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None:
        return None

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<CUDA Device 0 (simulated {current.profile().name})>"


class _Runtime:
    """The calls of CUDA's runtime that the course makes."""

    CUDARuntimeError = CUDARuntimeError
    streamCaptureModeGlobal, streamCaptureModeThreadLocal, streamCaptureModeRelaxed = 0, 1, RELAXED  # noqa: N815

    def deviceSynchronize(self) -> None:  # noqa: N802 (CUDA's names, here and below)
        """Wait until the device has done all its work."""
        current.machine().synchronize()

    def getDeviceCount(self) -> int:  # noqa: N802
        return 1

    def getDeviceProperties(self, device: int = 0) -> dict[str, Any]:  # noqa: N802
        """{"name", "totalGlobalMem", "multiProcessorCount"} of a device.

        The name, bytes as in CUDA, says that it is simulated.
        """
        Device(device)
        figures = current.profile()
        sizes = {"totalGlobalMem": figures.memory, "multiProcessorCount": int(figures.multiprocessors)}
        return {"name": f"{figures.name} (simulated)".encode(), **sizes}

    def memGetInfo(self) -> tuple[int, int]:  # noqa: N802
        """(free, total) bytes of the device; what the pool holds is not free."""
        memory = current.machine().memory()
        return memory["capacity"] - memory["total"], memory["capacity"]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"cuda.runtime.{name} is not simulated")


runtime = _Runtime()


class MemoryPool:
    """The pool that arrays get their memory from."""

    def used_bytes(self) -> int:
        """Return the bytes in blocks of live arrays."""
        return int(current.machine().memory()["used"])

    def total_bytes(self) -> int:
        """Return the bytes taken from the device: for live arrays, and in blocks kept for the next ones."""
        return int(current.machine().memory()["total"])

    def free_bytes(self) -> int:
        """Return the bytes in blocks kept for the next arrays."""
        return self.total_bytes() - self.used_bytes()

    def free_all_blocks(self) -> None:
        """Give the blocks that no array uses back to the device."""
        current.machine().free_all()


def get_default_memory_pool() -> MemoryPool:
    """Return the pool that all arrays get their memory from."""
    return MemoryPool()


class memory:  # noqa: N801 (CuPy's module)
    """CuPy's module of that name, as far as the course uses it: its error."""

    OutOfMemoryError = OutOfMemoryError


def is_available() -> bool:
    """Return True: a simulated GPU is always there."""
    return True


def __getattr__(name: str) -> Any:
    raise AttributeError(f"cuda.{name} is not simulated")
