"""The simulated GPU in this process: its memory, its commands, its timeline and its traces."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from unrolled.simgpu import cost, operations
from unrolled.simgpu.command import CommandError, Operand, OutOfMemoryError, Plain, View
from unrolled.simgpu.profiles import PROFILES, Profile
from unrolled.simgpu.timeline import Timeline
from unrolled.simgpu.trace import Allocation, Event, Launch, Synchronization, Trace, Transfer

BLOCK = 512
"""The pool gives out multiples of so many bytes, as CuPy's does."""
DIMENSIONS = 32


@dataclass(frozen=True)
class Limits:
    """What a machine refuses, so that no command takes unbounded time or memory."""

    elements: int = 2**30  # of one view
    flops: int = 10**14  # of one command
    buffers: int = 10**6
    streams: int = 256
    events: int = 10**6  # CUDA events, and events of one trace
    traces: int = 64  # open at a time


class LocalMachine:
    """`command.Machine` in this process. memory_limit caps what the profile's GPU has, in bytes."""

    def __init__(
        self, profile: str | Profile = "T4", memory_limit: int | None = None, limits: Limits | None = None
    ) -> None:
        self.profile = PROFILES[profile] if isinstance(profile, str) else profile
        self.limits = limits or Limits()
        self._pool = Pool(min(self.profile.memory, memory_limit or _real_memory()))
        self._timeline = Timeline()
        self._events: list[float] = []
        self._traces: dict[int, Trace] = {}
        self._next_trace = 0

    def allocate(self, nbytes: int) -> int:
        if type(nbytes) is not int or nbytes < 0:
            raise CommandError(f"nbytes is {nbytes!r:.40}; expected a whole number, 0 or more")
        if len(self._pool.buffers) >= self.limits.buffers:
            raise CommandError(f"more than {self.limits.buffers:,} buffers")
        buffer, grew = self._pool.take(nbytes)
        begun = self._timeline.call(self.profile.host["reserve" if grew else "allocate"])
        self._note(Allocation(nbytes, begun, False, grew, self._where()))
        return buffer

    def free(self, buffer: int) -> None:
        nbytes = self._pool.give(buffer)
        if nbytes is not None:
            self._note(Allocation(nbytes, self._timeline.host, True, False, self._where()))

    def launch(
        self,
        op: str,
        inputs: Sequence[Operand],
        outputs: Sequence[View],
        options: Mapping[str, Plain] | None = None,
        stream: int = 0,
    ) -> None:
        options = options or {}
        self._check_stream(stream)
        operation = operations.find(op)
        arrays = [self._array(x) if isinstance(x, View) else x for x in inputs]
        results = [self._array(x) for x in outputs]
        price = cost.of(op, inputs, outputs, options, self.profile)
        if price.flops > self.limits.flops:
            raise CommandError(f"{op} of {price.flops:,} operations, at most {self.limits.flops:,} are taken")
        with np.errstate(all="ignore"):  # a GPU does not warn
            operation(arrays, results, options)
        issued = self._timeline.call(cost.host_seconds(op, self.profile))
        start, end = self._timeline.enqueue(stream, price.seconds, price.work, "compute")
        shape, dtype = (outputs[0].shape, outputs[0].dtype) if outputs else ((), "")
        name = str(options["name"]) if op == "kernel" else op
        figures = (price.bytes_read, price.bytes_written, price.flops)
        self._note(Launch(name, stream, issued, start, end, *figures, shape, dtype, self._where()))

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._check_stream(stream)
        array = self._array(view)
        if len(data) != array.nbytes:
            raise CommandError(f"{len(data):,} bytes for an array of {array.nbytes:,}")
        array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
        end = self._transfer("to device", array.nbytes, stream)
        if blocking:
            self._wait(end, "upload")

    def download(self, view: View, stream: int = 0) -> bytes:
        self._check_stream(stream)
        array = self._array(view)
        self._wait(self._transfer("to host", array.nbytes, stream), "download")
        return bytes(array.tobytes())

    def synchronize(self, stream: int | None = None) -> None:
        if stream is not None:
            self._check_stream(stream)
        self._timeline.call(self.profile.host["synchronize"])
        self._wait(self._timeline.end(stream), "synchronize")

    def record(self, stream: int = 0) -> int:
        self._check_stream(stream)
        if len(self._events) >= self.limits.events:
            raise CommandError(f"more than {self.limits.events:,} events")
        self._timeline.call(self.profile.host["event"])
        self._events.append(self._timeline.record(stream))
        return len(self._events) - 1

    def wait(self, event: int, stream: int | None) -> None:
        time = self._event(event)
        self._timeline.call(self.profile.host["event"])
        if stream is None:
            self._wait(time, "event")
        else:
            self._check_stream(stream)
            self._timeline.hold(stream, time)

    def elapsed(self, first: int, last: int) -> float:
        return self._event(last) - self._event(first)

    def clock(self) -> float:
        return self._timeline.host

    def start_trace(self) -> int:
        if len(self._traces) >= self.limits.traces:
            raise CommandError(f"more than {self.limits.traces} open traces")
        self._next_trace += 1
        self._traces[self._next_trace] = Trace(self.profile.name, self._timeline.host, self._timeline.host)
        return self._next_trace

    def stop_trace(self, number: int) -> Trace:
        if number not in self._traces:
            raise CommandError(f"trace {number!r:.40} is not open")
        trace = self._traces.pop(number)
        trace.end = self._timeline.host
        return trace

    def memory(self) -> dict[str, int]:
        pool = self._pool
        return {"used": pool.used, "total": pool.total, "peak": pool.peak, "capacity": pool.capacity}

    def reset_peak(self) -> None:
        self._pool.peak = self._pool.used

    def free_all(self) -> None:
        self._pool.drop()

    def _array(self, view: View) -> Any:
        return array_of(view, self._pool.buffers, self.limits.elements)

    def _check_stream(self, stream: int) -> None:
        if type(stream) is not int or not 0 <= stream < self.limits.streams:
            raise CommandError(f"stream is {stream!r:.40}; expected 0 to {self.limits.streams - 1}")

    def _event(self, event: int) -> float:
        if type(event) is not int or not 0 <= event < len(self._events):
            raise CommandError(f"event {event!r:.40} was never recorded")
        return self._events[event]

    def _transfer(self, direction: str, nbytes: int, stream: int) -> float:
        issued = self._timeline.call(self.profile.host["transfer"])
        work = nbytes / self.profile.link_bandwidth
        start, end = self._timeline.enqueue(stream, self.profile.link_latency + work, work, direction)
        self._note(Transfer(direction, nbytes, stream, issued, start, end, self._where()))
        return end

    def _wait(self, until: float, cause: str) -> None:
        start, end = self._timeline.wait(until)
        self._note(Synchronization(start, end, cause, self._where()))

    def _note(self, event: Event) -> None:
        for trace in self._traces.values():
            trace.add(event)

    def _where(self) -> str | None:
        return caller() if self._traces else None


class Pool:
    """Blocks of memory: live ones by id, and free ones by size, kept for the next array of that size."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffers: dict[int, Any] = {}
        self.used = self.total = self.peak = 0
        self._blocks: dict[int, Any] = {}
        self._free: dict[int, list[Any]] = {}
        self._next = 0

    def take(self, nbytes: int) -> tuple[int, bool]:
        """A new buffer's id, and whether the pool had to grow. Raises OutOfMemoryError."""
        size = -(-nbytes // BLOCK) * BLOCK
        kept = self._free.get(size)
        block = kept.pop() if kept else self._grow(nbytes, size)
        self._next += 1
        self.buffers[self._next], self._blocks[self._next] = block[:nbytes], block
        self.used += size
        self.peak = max(self.peak, self.used)
        return self._next, not kept

    def give(self, buffer: int) -> int | None:
        """Take a buffer back; its bytes, or None for an unknown id."""
        block = self._blocks.pop(buffer, None)
        if block is None:
            return None
        self._free.setdefault(block.nbytes, []).append(block)
        self.used -= block.nbytes
        return int(self.buffers.pop(buffer).nbytes)

    def drop(self) -> None:
        """Let go of all free blocks."""
        self._free.clear()
        self.total = self.used

    def _grow(self, nbytes: int, size: int) -> Any:
        if self.total + size > self.capacity:
            self.drop()
        if self.total + size > self.capacity:
            raise OutOfMemoryError(
                f"Out of memory allocating {nbytes:,} bytes (allocated so far: {self.used:,} bytes, "
                f"limit set to: {self.capacity:,} bytes)."
            )
        try:
            block = np.zeros(size, np.uint8)  # nobody sees what this process had there
        except MemoryError:
            raise OutOfMemoryError(f"Out of memory allocating {nbytes:,} bytes: this machine has no more") from None
        self.total += size
        return block


def array_of(view: View, buffers: Mapping[int, Any], elements: int) -> Any:
    """The view as a NumPy array on its buffer. Raises CommandError if any of it would lie outside."""
    dtype = operations.dtype_of(view.dtype)
    memory = buffers.get(view.buffer) if type(view.buffer) is int else None
    if memory is None:
        raise CommandError(f"buffer {view.buffer!r:.40} does not exist")
    numbers = (view.offset, *view.shape, *view.strides)
    if not all(type(n) is int for n in numbers) or len(view.shape) != len(view.strides):
        raise CommandError("a view's offset, shape and strides are whole numbers, one stride for each length")
    if len(view.shape) > DIMENSIONS or min((0, *view.shape)) < 0 or prod(view.shape) > elements:
        raise CommandError(f"shape is {view.shape!r:.80}; expected at most {DIMENSIONS} axes, {elements:,} elements")
    reach = [(n - 1) * s for n, s in zip(view.shape, view.strides, strict=True)]
    low = view.offset + sum(min(0, r) for r in reach)
    high = view.offset + sum(max(0, r) for r in reach) + dtype.itemsize
    if prod(view.shape) and not 0 <= low <= high <= memory.nbytes:
        raise CommandError(f"a view of bytes {low:,} to {high:,} of a buffer with {memory.nbytes:,}")
    if not prod(view.shape):
        return np.empty(view.shape, dtype)
    return np.ndarray(view.shape, dtype, memory, view.offset, view.strides)


def caller() -> str | None:
    """file:line of the nearest caller outside this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("unrolled.simgpu"):
        frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _real_memory() -> int:
    """Half of this computer's memory, where the system tells it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):  # no such call on Windows
        return 4 * 2**30
