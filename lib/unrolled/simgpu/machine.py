"""The simulated GPU in this process: it executes commands, and keeps their modelled times."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from unrolled.simgpu import addressing, cost, operations, ordering, touches
from unrolled.simgpu.captures import ORIGIN, Capture, CapturedEvent, Captures, Done, Work, failure, library_of
from unrolled.simgpu.command import (
    Inputs,
    InvalidCommandError,
    KernelOrder,
    Machine,
    Options,
    StreamRaceError,
    View,
    Views,
    naming,
)
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.limits import MachineLimits
from unrolled.simgpu.lockstep import launch as lockstep
from unrolled.simgpu.lockstep import price
from unrolled.simgpu.lockstep.arrays import GlobalArray
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault
from unrolled.simgpu.memory import Memory
from unrolled.simgpu.ordering import READ, WRITE, Clock, History, Line, Order, Touches
from unrolled.simgpu.pool import Pool, real_memory
from unrolled.simgpu.profiles import GPUProfile, named
from unrolled.simgpu.recorder import Recorder
from unrolled.simgpu.timeline import LANES, Timeline
from unrolled.simgpu.trace import Allocation, GraphLaunch, Launch, Synchronization, Trace, Transfer


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
        self._order = Order()
        self._events: list[tuple[float, Clock] | CapturedEvent] = []
        self._recorder = Recorder(self.limits.traces, self.limits.events, self.limits.lines)
        self._memory = Memory(self._pool, self.limits.elements)
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
        buffer, grew = self._pool.take(nbytes, stream)
        begun = self._timeline.call(self.profile.host["reserve" if grew else "allocate"])
        if self._recorder:
            where, captured = self._recorder.caller("")[1], bool(self._captures.streams)
            self._recorder.note(Allocation(nbytes, begun, False, grew, where, captured))
        return buffer

    def free(self, buffer: int) -> None:
        if type(buffer) is int and buffer < 0:
            self._captures.drop(buffer)
            return
        nbytes = self._memory.free(buffer)
        if nbytes is not None and self._recorder:  # `where` would be that of a finalizer
            self._recorder.note(Allocation(nbytes, self._timeline.host, True))

    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        options = options or {}
        self._check_stream(stream)
        self._captures.check(stream, library_of(op, options))
        capture = self._captures.of(stream)
        work = self._work(op, inputs, outputs, options, capture is not None)
        call = cost.host_seconds(op, options, self.profile)
        self._issue(work, (*inputs, *outputs), stream, capture, call, cost.library_seconds(op, self.profile))

    def _work(self, op: str, inputs: Inputs, outputs: Views, options: Options, later: bool) -> Work:
        """A launch, checked. What is to run later runs once now, on copies: so errors come at the call."""
        operation = operations.find(op)
        arrays = list(map(self._memory.operand, inputs))
        results = [self._memory.array(x) for x in outputs]
        kind = (tuple(outputs[0].shape), outputs[0].dtype) if outputs else ((), "")

        def compute(outputs: list[Any]) -> None:
            with naming(op), np.errstate(all="ignore"):  # a GPU does not warn
                operation(arrays, outputs, options)

        with naming(op):
            price = cost.of(op, inputs, outputs, options, self.profile)
            sizes = {"operations": price.flops, "values": price.elements, "operands": len(arrays) + len(results)}
            mosts = self.limits.flops, self.limits.elements, self.limits.operands
            for (what, size), most in zip(sizes.items(), mosts, strict=True):
                if size > most:
                    raise InvalidCommandError(f"{op} of {size:,} {what}, at most {most:,} are taken")
        done = Done(price.seconds, price.work, (price.bytes_read, price.bytes_written, price.flops), kind)
        read, written = self._memory.places(inputs), self._memory.places(outputs)
        done.touches = cache(lambda: list(touches.of_launch(op, read, written)))  # a graph's are asked for again

        def run() -> Done:
            if arrays and (indexed := touches.indexed(op, arrays, results)) is not None:  # as it is before the launch
                with naming(op):
                    key = addressing.index_of(indexed, arrays[1:], options)
                done.touches = list(touches.of_launch(op, read, written, key))
            compute(results)
            self._memory.lost(outputs)
            return done

        if later:
            compute([x.copy() for x in results])
        name = str(options["name"]) if op == "kernel" else op
        return Work(name, run, self._recorder.caller("", later)[1], self._recorder.line())

    def run_kernel(self, order: KernelOrder, stream: int = 0) -> KernelReport | None:
        self._check_stream(stream)
        if len(order.arguments) > self.limits.operands:
            text = f"a kernel with {len(order.arguments):,} arguments, at most {self.limits.operands:,} are taken"
            raise InvalidCommandError(text)
        capture = self._captures.of(stream)
        arguments = list(map(self._memory.argument, order.arguments))
        name = lockstep.check(order, arguments, self.limits.kernels) if capture else ""
        histories = {view.buffer: history for history, view in self._memory.places(order.arguments)}

        def run() -> Done:
            return self._kernel_run(order, arguments, histories)

        work = Work(name, run, self._recorder.caller("", bool(capture))[1], self._recorder.line())
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

    def _kernel_run(self, order: KernelOrder, arguments: list[Any], histories: Mapping[int, History]) -> Done:
        """Run a program's own kernel, blocks in an order of its own; histories: by buffer."""
        self._kernels += 1
        drawn = hashlib.blake2b(f"{self._seed} {self._kernels}".encode(), digest_size=7)
        seed = int.from_bytes(drawn.digest(), "big")
        try:
            report = lockstep.launch(order, arguments, self.profile, self.limits.kernels, seed)
        except CUDADriverError:  # the kernel never ran
            raise
        except KernelFault as error:
            self._recorder.note(error.fault)
            raise
        arrays = [x for x in arguments if isinstance(x, GlobalArray)]
        self._memory.wrote(arrays)
        total = report.total
        seconds, work = price.seconds(total, report.blocks, self.profile)
        figures = report.bytes_read, report.bytes_written, total.operations
        return Done(seconds, work, figures, report=report, touches=touches.of_kernel(histories, arrays))

    def _ran(self, work: Work, done: Done, stream: int, issued: float, call: float, graph: int | None = None) -> None:
        """Put a kernel on the timeline, and into the traces."""
        name = done.report.name if done.report else work.name
        self._enter(stream, done.touches, name, work.line)
        gain = self.profile.graph_gain if graph is not None else 0.0
        start, end = self._timeline.enqueue(stream, done.seconds - gain, done.work, "compute")
        if not self._recorder:
            return
        where = work.where
        self._recorder.note(Launch(name, stream, issued, call, start, end, *done.figures, *done.kind, where, graph))
        if done.report is not None:
            self._recorder.note(done.report)

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
        begun, events, lines = self._timeline.record(stream), dict[int, tuple[float, Clock]](), 0
        kernels = sum(node.work is not None for node in found.nodes)
        self._graph_launches += 1
        for node in found.nodes:
            lane = stream if node.lane == ORIGIN else LANES * node.lane + stream
            if node.work:
                done = node.work.run()
                self._ran(node.work, done, lane, issued, 0.0, self._graph_launches)
                lines += 0 if done.report is None else 1 + len(done.report.lines)
            elif node.waits:
                self._hold(lane, events[node.event])
            else:
                events[node.event] = self._timeline.record(lane), ordering.record(self._order, lane)
        end = self._timeline.end(stream)
        note = GraphLaunch(
            self._graph_launches, kernels, stream, issued, call, begun, end, self._recorder.caller("")[1]
        )
        self._recorder.note(note)
        return lines

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._check_stream(stream)
        self._captures.check(stream, "H2D")
        self._captures.of(stream)
        array = self._memory.array(view)
        if len(data) != array.nbytes:
            raise InvalidCommandError(f"{len(data):,} bytes for an array of {array.nbytes:,}")
        self._copies(view, WRITE, "a copy to the device", stream)
        array[...] = np.frombuffer(data, array.dtype).reshape(array.shape)
        self._memory.lost([view])
        bandwidth = self.profile.pageable_bandwidth if blocking else self.profile.link_bandwidth
        self._transfer("to device", array.nbytes, stream, bandwidth, blocking)

    def download(self, view: View, stream: int = 0) -> bytes:
        self._check_stream(stream)
        self._captures.check(stream, "D2H")
        self._captures.of(stream)
        array = self._memory.array(view)
        self._copies(view, READ, "a copy to the host", stream)
        ordering.wait(self._order, ordering.record(self._order, stream), None)
        self._transfer("to host", array.nbytes, stream, self.profile.pageable_bandwidth, True)
        return bytes(array.tobytes())

    # time: streams, events, the clock

    def synchronize(self, stream: int | None = None) -> None:
        self._synchronize(stream)
        if stream is None:
            ordering.wait_for_all(self._order)
        else:
            ordering.wait(self._order, ordering.record(self._order, stream), None)

    def _synchronize(self, stream: int | None) -> None:
        """Let the host's clock wait."""
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
        now = self._timeline.record(stream), ordering.record(self._order, stream)
        self._events.append(now if captured is None else captured)
        return len(self._events) - 1

    def wait(self, event: int, stream: int | None) -> None:
        if stream is None:
            time, clock = self._event(event)
            self._timeline.call(self.profile.host["event"])
            self._wait(time, "event")
            ordering.wait(self._order, clock, None)
            return
        self._check_stream(stream)
        found = self._recorded(event)
        self._timeline.call(self.profile.host["event"])
        if not self._captures.wait(found, stream):
            self._hold(stream, self._event(event))

    def _hold(self, stream: int, event: tuple[float, Clock]) -> None:
        """Let a stream wait for an event."""
        self._timeline.hold(stream, event[0])
        ordering.wait(self._order, event[1], stream)

    def elapsed(self, first: int, last: int) -> float:
        (begun, *_), (ended, *_) = events = self._event(first), self._event(last)
        if max(begun, ended) > self._timeline.host:
            raise RuntimeError("cudaErrorNotReady: device not ready")
        for _, clock in events:  # the host has seen that they are over
            ordering.wait(self._order, clock, None)
        return ended - begun

    def clock(self) -> float:
        return self._timeline.host

    # what is recorded, and memory in numbers

    def start_trace(self, idle: bool = False) -> int:
        if idle:
            self._synchronize(None)
        return self._recorder.start(self.profile.name, self._timeline.host)

    def stop_trace(self, number: int) -> Trace:
        trace = self._recorder.stop(number)
        trace.end, trace.device_end = self._timeline.host, self._timeline.end(None)
        return trace

    def memory(self) -> dict[str, int]:
        pool = self._pool
        return {"used": pool.used, "total": pool.total, "capacity": pool.capacity}

    def free_all(self) -> None:
        self._pool.drop()

    def own_bytes(self, view: View) -> int:
        return self._memory.own_bytes(view)

    # checks and the timeline

    def _check_stream(self, stream: int) -> None:
        if type(stream) is not int or not 0 <= stream < self.limits.streams:
            raise InvalidCommandError(f"stream is {stream!r:.40}; expected 0 to {self.limits.streams - 1}")

    def _recorded(self, event: int) -> tuple[float, Clock] | CapturedEvent:
        if type(event) is not int or not 0 <= event < len(self._events):
            raise InvalidCommandError(f"event {event!r:.40} was never recorded")
        return self._events[event]

    def _event(self, event: int) -> tuple[float, Clock]:
        """The time of an event, and what it comes after. Raises CUDARuntimeError for one that was captured."""
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
        cause, where = self._recorder.caller("copy")
        self._recorder.note(Transfer(direction, nbytes, stream, issued, call, start, end, blocking, cause, where))

    def _copies(self, view: View, kind: str, name: str, stream: int) -> None:
        (place,) = self._memory.places([view])
        self._enter(stream, partial(touches.of_view, *place, kind), name, self._recorder.line())

    def _enter(self, stream: int, reached: Touches, name: str, line: Line | None) -> None:
        """Note what a stream reads and writes. Raises StreamRaceError where nothing orders it after other work."""
        if found := ordering.enter(self._order, stream, reached, name, line):
            fault = ordering.fault(*found)
            self._recorder.note(fault)
            raise StreamRaceError(str(fault))

    def _wait(self, until: float, cause: str) -> None:
        start, end = self._timeline.wait(until)
        self._recorder.note(Synchronization(start, end, *self._recorder.caller(cause)))
