"""The simulated GPU in this process: it executes commands, and keeps their modelled times."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unrolled.simgpu import cost, operations
from unrolled.simgpu.captures import (
    LANES,
    ORIGIN,
    Capture,
    CapturedEvent,
    Captures,
    Done,
    Work,
    failure,
    library_of,
)
from unrolled.simgpu.command import Inputs, InvalidCommandError, KernelOrder, Machine, Options, View, Views
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.lockstep import launch as lockstep
from unrolled.simgpu.lockstep import price
from unrolled.simgpu.lockstep.arrays import GlobalArray
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault
from unrolled.simgpu.lockstep.state import RunLimits
from unrolled.simgpu.pool import Pool, array_of, real_memory
from unrolled.simgpu.profiles import GPUProfile, named
from unrolled.simgpu.timeline import Timeline
from unrolled.simgpu.trace import Allocation, Event, GraphLaunch, Launch, Synchronization, Trace, Transfer


@dataclass(frozen=True)
class MachineLimits:
    """What a machine refuses, so that no command takes unbounded time or memory."""

    elements: int = 2**30
    """Values of one view, and those that one command handles."""
    flops: int = 10**14
    """Floating-point operations of one command."""
    operands: int = 64
    buffers: int = 10**6
    streams: int = 256
    events: int = 10**6
    """CUDA events, and events of one trace."""
    traces: int = 64
    """Traces open at a time."""
    kernels: RunLimits = field(default_factory=RunLimits)
    """Of each launch of a program's own kernel; what its source may hold, `lockstep.source` says."""


class LocalMachine(Machine):
    """A machine in this process. memory_limit caps what the profile's GPU has, in bytes.

    From the seed comes the order of a kernel's blocks, another one for each launch. A report tells the launch's own
    seed, which tells nothing of the next.
    """

    def __init__(
        self,
        profile: str | GPUProfile = "T4",
        memory_limit: int | None = None,
        limits: MachineLimits | None = None,
        seed: int = 0,
    ) -> None:
        self.profile = named(profile) if isinstance(profile, str) else profile
        self.limits = limits or MachineLimits()
        self._pool = Pool(min(int(self.profile.memory), memory_limit or real_memory()))
        self._timeline = Timeline()
        self._captures = Captures(self._pool)
        self._events: list[float | CapturedEvent] = []
        self._traces: dict[int, Trace] = {}
        self._next_trace = 0
        self._own: dict[int, Any] = {}
        """Of each buffer that kernels of the program's own wrote: which bytes one of these wrote last."""
        self._seed = seed
        self._kernels = self._graph_launches = 0

    # memory, launches and transfers

    def allocate(self, nbytes: int, purpose: str = "", stream: int = 0) -> int:
        if type(nbytes) is not int or nbytes < 0:
            raise InvalidCommandError(f"nbytes is {nbytes!r:.40}; expected a whole number, 0 or more")
        if len(self._pool.buffers) >= self.limits.buffers:
            raise InvalidCommandError(f"more than {self.limits.buffers:,} buffers")
        self._check_stream(stream)
        self._captures.check(stream, purpose)
        self._captures.check_growth(nbytes)
        buffer, grew = self._pool.take(nbytes)
        begun = self._timeline.call(self.profile.host["reserve" if grew else "allocate"])
        self._note(Allocation(nbytes, begun, False, grew, self._caller("")[1], bool(self._captures.streams)))
        return buffer

    def free(self, buffer: int) -> None:
        if type(buffer) is int and buffer < 0:
            self._captures.drop(buffer)
            return
        self._own.pop(buffer, None)
        nbytes = self._pool.give(buffer)
        if nbytes is not None and self._traces:  # `where` would be that of a finalizer
            self._note(Allocation(nbytes, self._timeline.host, True))

    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        options = options or {}
        self._check_stream(stream)
        self._captures.check(stream, library_of(op, inputs, outputs, options))
        capture = self._captures.of(stream)
        work = self._work(op, inputs, outputs, options, capture is not None)
        call = cost.host_seconds(op, options, self.profile)
        self._issue(work, (*inputs, *outputs), stream, capture, call, cost.library_seconds(op, self.profile))

    def _work(self, op: str, inputs: Inputs, outputs: Views, options: Options, later: bool) -> Work:
        """A launch, checked. What is to run later runs once now, on copies: so errors come at the call."""
        operation = operations.find(op)
        arrays = [x if x is None else self._array(x) if isinstance(x, View) else operations.scalar(x) for x in inputs]
        results = [self._array(x) for x in outputs]
        kind = (tuple(outputs[0].shape), outputs[0].dtype) if outputs else ((), "")

        def compute(outputs: list[Any]) -> None:
            with _naming(op), np.errstate(all="ignore"):  # a GPU does not warn
                operation(arrays, outputs, options)

        with _naming(op):
            price = cost.of(op, inputs, outputs, options, self.profile)
            sizes = {"operations": price.flops, "values": price.elements, "operands": len(arrays) + len(results)}
            mosts = self.limits.flops, self.limits.elements, self.limits.operands
            for (what, size), most in zip(sizes.items(), mosts, strict=True):
                if size > most:
                    raise InvalidCommandError(f"{op} of {size:,} {what}, at most {most:,} are taken")
        done = Done(price.seconds, price.work, (price.bytes_read, price.bytes_written, price.flops), kind)

        def run() -> Done:
            compute(results)
            self._disown(outputs)
            return done

        if later:
            compute([x.copy() for x in results])
        name = str(options["name"]) if op == "kernel" else op
        return Work(name, run, self._caller("", later)[1])

    def run_kernel(self, order: KernelOrder, stream: int = 0) -> KernelReport | None:
        self._check_stream(stream)
        if len(order.arguments) > self.limits.operands:
            text = f"a kernel with {len(order.arguments):,} arguments, at most {self.limits.operands:,} are taken"
            raise InvalidCommandError(text)
        capture = self._captures.of(stream)
        arguments = [self._global(x) if isinstance(x, View) else _number(*x) for x in order.arguments]
        name = lockstep.check(order, arguments, self.limits.kernels) if capture else ""
        work = Work(name, lambda: self._kernel_run(order, arguments), self._caller("", bool(capture))[1])
        return self._issue(work, order.arguments, stream, capture, self.profile.host["kernel"], 0.0)

    def _issue(
        self, work: Work, operands: Sequence[Any], stream: int, capture: Capture | None, call: float, before: float
    ) -> KernelReport | None:
        """Do work now or, in a capture, keep it. The call takes the host so long, and what comes `before` it."""
        done = None if capture else work.run()
        self._timeline.call(before)
        issued = self._timeline.call(call)
        if capture:
            self._captures.add(capture, stream, work, [x for x in operands if isinstance(x, View)])
        elif done:
            self._ran(work, done, stream, issued, call)
        return done.report if done else None

    def _kernel_run(self, order: KernelOrder, arguments: list[Any]) -> Done:
        """Run a program's own kernel, blocks in an order of its own."""
        self._kernels += 1
        drawn = hashlib.blake2b(f"{self._seed} {self._kernels}".encode(), digest_size=7)
        seed = int.from_bytes(drawn.digest(), "big")
        try:
            report = lockstep.launch(order, arguments, self.profile, self.limits.kernels, seed)
        except CUDADriverError:  # the kernel never ran
            raise
        except KernelFault as error:
            self._note(error.fault)
            raise
        self._note_own(x for x in arguments if isinstance(x, GlobalArray))
        total = report.total
        seconds, work = price.seconds(total, report.blocks, self.profile)
        return Done(seconds, work, (report.bytes_read, report.bytes_written, total.operations), report=report)

    def _ran(self, work: Work, done: Done, stream: int, issued: float, call: float, graph: int | None = None) -> None:
        """Put a kernel on the timeline, and into the traces."""
        gain = self.profile.graph_gain if graph is not None else 0.0
        start, end = self._timeline.enqueue(stream, done.seconds - gain, done.work, "compute")
        name = done.report.name if done.report else work.name
        self._note(Launch(name, stream, issued, call, start, end, *done.figures, *done.kind, work.where, graph))
        if done.report is not None:
            self._note(done.report)

    # graphs

    def begin_capture(self, stream: int, mode: int | None = None) -> None:
        self._check_stream(stream)
        self._timeline.call(self.profile.host["event"])
        self._captures.begin(stream, mode)

    def end_capture(self, stream: int) -> int:
        self._check_stream(stream)
        self._timeline.call(self.profile.host["instantiate"])
        return self._captures.end(stream)

    def is_capturing(self, stream: int) -> bool:
        self._check_stream(stream)
        return self._captures.is_capturing(stream)

    def upload_graph(self, graph: int, stream: int = 0) -> None:
        self._check_stream(stream)
        self._captures.graph(graph)
        self._timeline.call(self.profile.host["graph"])

    def launch_graph(self, graph: int, stream: int = 0) -> int:
        self._check_stream(stream)
        found, capture = self._captures.graph(graph), self._captures.of(stream)
        issued = self._timeline.call(call := self.profile.host["graph"])
        if capture:
            self._captures.add_graph(capture, stream, found)
            return 0
        begun, events, lines = self._timeline.record(stream), dict[int, float](), 0
        kernels = sum(node.work is not None for node in found.nodes)
        self._graph_launches += 1
        for node in found.nodes:
            lane = stream if node.lane == ORIGIN else LANES + node.lane
            if node.work:
                done = node.work.run()
                self._ran(node.work, done, lane, issued, 0.0, self._graph_launches)
                lines += 0 if done.report is None else 1 + len(done.report.lines)
            elif node.waits:
                self._timeline.hold(lane, events[node.event])
            else:
                events[node.event] = self._timeline.record(lane)
        end = self._timeline.end(stream)
        note = GraphLaunch(self._graph_launches, kernels, stream, issued, call, begun, end, self._caller("")[1])
        self._note(note)
        return lines

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._check_stream(stream)
        self._captures.check(stream, "H2D")
        self._captures.of(stream)
        array = self._array(view)
        if len(data) != array.nbytes:
            raise InvalidCommandError(f"{len(data):,} bytes for an array of {array.nbytes:,}")
        array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
        self._disown([view])
        bandwidth = self.profile.pageable_bandwidth if blocking else self.profile.link_bandwidth
        self._transfer("to device", array.nbytes, stream, bandwidth, blocking)

    def download(self, view: View, stream: int = 0) -> bytes:
        self._check_stream(stream)
        self._captures.check(stream, "D2H")
        self._captures.of(stream)
        array = self._array(view)
        self._transfer("to host", array.nbytes, stream, self.profile.pageable_bandwidth, True)
        return bytes(array.tobytes())

    # time: streams, events, the clock

    def synchronize(self, stream: int | None = None) -> None:
        if stream is not None:
            self._check_stream(stream)
        self._captures.check_wait(stream)
        self._timeline.call(self.profile.host["synchronize"])
        self._wait(self._timeline.end(stream), "synchronize")

    def record(self, stream: int = 0) -> int:
        self._check_stream(stream)
        if len(self._events) >= self.limits.events:
            raise InvalidCommandError(f"more than {self.limits.events:,} events")
        self._timeline.call(self.profile.host["event"])
        captured = self._captures.record(stream, len(self._events))
        self._events.append(self._timeline.record(stream) if captured is None else captured)
        return len(self._events) - 1

    def wait(self, event: int, stream: int | None) -> None:
        if stream is None:
            time = self._event(event)
            self._timeline.call(self.profile.host["event"])
            self._wait(time, "event")
            return
        self._check_stream(stream)
        found = self._recorded(event)
        self._timeline.call(self.profile.host["event"])
        if not self._captures.wait(found, stream):
            self._timeline.hold(stream, self._event(event))

    def elapsed(self, first: int, last: int) -> float:
        if max(self._event(first), self._event(last)) > self._timeline.host:
            raise RuntimeError("cudaErrorNotReady: device not ready")
        return self._event(last) - self._event(first)

    def clock(self) -> float:
        return self._timeline.host

    # what is recorded, and memory in numbers

    def start_trace(self) -> int:
        if len(self._traces) >= self.limits.traces:
            raise InvalidCommandError(f"more than {self.limits.traces} open traces")
        self._next_trace += 1
        self._traces[self._next_trace] = Trace(self.profile.name, self._timeline.host)
        return self._next_trace

    def stop_trace(self, number: int) -> Trace:
        trace = self._traces.pop(number, None) if type(number) is int else None
        if trace is None:
            raise InvalidCommandError(f"trace {number!r:.40} is not open")
        trace.end, trace.device_end = self._timeline.host, self._timeline.end(None)
        return trace

    def memory(self) -> dict[str, int]:
        pool = self._pool
        return {"used": pool.used, "total": pool.total, "capacity": pool.capacity}

    def free_all(self) -> None:
        self._pool.drop()

    def own_bytes(self, view: View) -> int:
        self._array(view)
        if view.buffer not in self._own:
            return 0
        return sum(array_of(view, self._own, self.limits.elements).tobytes())

    def _note_own(self, arrays: Iterable[GlobalArray]) -> None:
        """Note which bytes of these a kernel of the program's own has written."""
        for array in arrays:
            if array.shadow is not None and (memory := self._pool.buffers.get(array.buffer)) is not None:
                own = self._own.setdefault(array.buffer, np.zeros(memory.nbytes, np.uint8))
                cells = array.shadow.written(np.arange(array.shadow.cells))
                written = cells.repeat(array.data.itemsize // array.unit)[: len(own)]
                own[: len(written)] |= written

    def _disown(self, views: Views) -> None:
        """Note that what is not the program's own has written to these."""
        for view in views:
            if view.buffer in self._own:
                array_of(view, self._own, self.limits.elements)[...] = 0

    # checks and the timeline

    def _array(self, view: View) -> Any:
        if not isinstance(view, View):
            raise InvalidCommandError(f"an operand of type {type(view).__name__}; expected a View")
        return array_of(view, self._pool.buffers, self.limits.elements)

    def _global(self, view: View) -> GlobalArray:
        """An array as a kernel sees it: all of its buffer, and where in it the array lies."""
        array = self._array(view)
        memory = self._pool.buffers[view.buffer]
        itemsize = array.itemsize
        if any(n % itemsize for n in (view.offset, *view.strides)):
            raise InvalidCommandError(f"a view of {array.dtype} that lies askew in its memory")
        flat = memory[: memory.nbytes // itemsize * itemsize].view(array.dtype)
        steps = tuple(stride // itemsize for stride in view.strides)
        return GlobalArray("", flat, view.offset // itemsize, tuple(view.shape), steps, view.buffer)

    def _check_stream(self, stream: int) -> None:
        if type(stream) is not int or not 0 <= stream < self.limits.streams:
            raise InvalidCommandError(f"stream is {stream!r:.40}; expected 0 to {self.limits.streams - 1}")

    def _recorded(self, event: int) -> float | CapturedEvent:
        if type(event) is not int or not 0 <= event < len(self._events):
            raise InvalidCommandError(f"event {event!r:.40} was never recorded")
        return self._events[event]

    def _event(self, event: int) -> float:
        """The time of an event. Raises CUDARuntimeError for one that was captured."""
        found = self._recorded(event)
        if isinstance(found, CapturedEvent):
            found.capture.invalid = True
            raise failure("CapturedEvent")
        return found

    def _transfer(self, direction: str, nbytes: int, stream: int, bandwidth: float, blocking: bool) -> None:
        """The host's waiting for it is part of the transfer, and no synchronization besides: one thing counts once."""
        call, work = self.profile.host["upload" if direction == "to device" else "download"], nbytes / bandwidth
        issued = self._timeline.call(call)
        start, end = self._timeline.enqueue(stream, self.profile.link_latency + work, work, direction)
        if blocking:
            self._timeline.wait(end)
        cause, where = self._caller("copy")
        self._note(Transfer(direction, nbytes, stream, issued, call, start, end, blocking, cause, where))

    def _wait(self, until: float, cause: str) -> None:
        start, end = self._timeline.wait(until)
        self._note(Synchronization(start, end, *self._caller(cause)))

    def _note(self, event: Event) -> None:
        for trace in list(self._traces.values()):
            if len(trace) >= self.limits.events:
                raise InvalidCommandError(f"a trace of more than {self.limits.events:,} events: stop it earlier")
            trace.add(event)

    def _caller(self, otherwise: str, always: bool = False) -> tuple[str, str | None]:
        return _calling(otherwise) if self._traces or always else (otherwise, None)


@contextmanager
def _naming(op: str) -> Iterator[None]:
    """In this block, whatever else a bad command leads to becomes an InvalidCommandError that names the op."""
    try:
        yield
    except (TypeError, ValueError, MemoryError):
        raise
    except Exception as error:
        raise InvalidCommandError(f"{op}: {type(error).__name__}: {error}") from error


def _calling(otherwise: str) -> tuple[str, str | None]:
    """What of this package or of `device` the program called ("to_host", "__float__"), and file:line of that.

    The name is `otherwise` where the program calls the machine itself.
    """
    frame, name = sys._getframe(1), otherwise
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(("unrolled.simgpu", "unrolled.device")) and module != "contextlib":
            break
        if module not in (__name__, "contextlib"):
            name = frame.f_code.co_name
        frame = frame.f_back
    return name, f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _number(dtype: str, number: bool | int | float) -> Any:
    """A kernel's argument that is no array."""
    try:
        return operations.dtype_of(dtype).type(operations.scalar(number))
    except (OverflowError, TypeError) as error:
        raise InvalidCommandError(f"a number that is no {dtype}: {error}") from None
