"""The simulated GPU, on the judge's side: a machine in a process of its own, and what a worker may do with it.

The judge puts the inputs there, and hands the worker nothing but the places where they lie. What the worker commands
goes through a `Facade`, which lets it reach its inputs, its own arrays, and what the judge gave it. The trace is kept
by the machine, and read by the judge.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.crashes import ReportedError
from unrolled.checks.gpu import PROFILE
from unrolled.checks.limits import TimeLimitError
from unrolled.simgpu import current, ndarray
from unrolled.simgpu.command import InvalidCommandError, KernelOrder, OutOfMemoryError, View, told
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.pool import array_of
from unrolled.simgpu.process import Link
from unrolled.simgpu.profiles import GPUProfile
from unrolled_grader.box.lease import Lease, Resource
from unrolled_grader.box.process import START_LIMIT, Process
from unrolled_grader.box.zygote import ZygoteError

COMMANDS = 50_000  # commands that a worker may give in one call; each takes about half a millisecond
FAILURES = 100  # commands of one call that may fail. Whether one fails may tell something of the numbers on the GPU.
MEMORY = 2**30  # bytes that a worker's arrays may take at a time
ELEMENTS = 2**28  # elements of one array that a worker names
LAUNCH = 1_000_000  # characters of one launch with all that it names
KERNEL = 200_000  # characters of a kernel of the worker's own, with all that its names stand for
LINES = 20_000  # lines of such kernels that are reported in one call: the judge reads the reports of all launches
DOWNLOAD = 2**25  # bytes of one download
RESULT, ARRAYS = 2**28, 1_000
"""Bytes and number of the arrays that a worker names at a time, as its result or in a call of an object that the judge
keeps. To fetch one takes a message to the machine."""
ENDED = "the simulated GPU ended: too much memory?"


real = Lease(places=[Resource("gpu-" + "-".join(re.findall(r"\w+", os.environ.get("CUDA_VISIBLE_DEVICES", ""))))])
"""The lease on the real GPU, for what is timed there."""


class SimulatedGPU(Process):
    """A machine in a process and a box of its own."""

    def __init__(self, *, boxed: bool) -> None:
        super().__init__(boxed=boxed, memory=2 * MEMORY)
        self.ended = ""  # why it is given up; empty while it works
        self.overran = False  # whether it was given up because its time was over
        try:
            self.link = Link(self.socket)
        except (OSError, EOFError) as error:
            self.close()
            raise ZygoteError(f"no simulated GPU could be started: {error}") from None

    def fresh(self, seed: int = 0) -> Guarded:
        """Return a new machine for one case: no arrays, its clock at 0, the order of blocks drawn from this seed."""
        guarded = Guarded(self)
        guarded.use(PROFILE, seed)
        return guarded


class Guarded:
    """The machine during one case. If it ends or takes too long, it is given up.

    Every method is that of `unrolled.simgpu.process.Link`, and raises TimeLimitError after `deadline` and ReportedError
    if the machine ended.
    """

    def __init__(self, gpu: SimulatedGPU) -> None:
        self.deadline = math.inf  # on the monotonic clock
        self.over = False  # whether the case is over: what is freed from now on was the case's, and is gone
        self._gpu = gpu

    @property
    def profile(self) -> GPUProfile:
        return self._gpu.link.profile

    def free(self, buffer: int) -> None:
        if not self.over:
            self._gpu.link.free(buffer)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._call, name)

    def check(self) -> None:
        """Raise what every method raises from now on, if the machine was given up."""
        if self._gpu.overran:
            raise TimeLimitError(self._gpu.ended)
        if self._gpu.ended:
            raise ReportedError([self._gpu.ended])

    def _call(self, name: str, *positional: Any, **named: Any) -> Any:
        self.check()
        self._gpu.socket.settimeout(max(0.01, min(START_LIMIT, self.deadline - time.monotonic())))
        try:
            return getattr(self._gpu.link, name)(*positional, **named)
        except TimeoutError:
            self._gpu.ended, self._gpu.overran = "the simulated GPU worked for too long", True
        except (OSError, EOFError):
            self._gpu.ended = ENDED
        self._gpu.kill()
        return self.check()


class Facade:
    """What a worker may do with the machine, during one case. `do` is all that it can call."""

    METHODS = ("do",)
    ASK_BYTES = 2**26
    COMMANDS = frozenset(
        {"allocate", "launch", "upload", "download", "synchronize", "record", "wait", "elapsed", "clock"}
        | {"start_trace", "stop_trace", "memory", "run_kernel"}
        | {"begin_capture", "end_capture", "is_capturing", "launch_graph", "upload_graph"}
    )

    def __init__(self, machine: Guarded) -> None:
        self.machine = machine
        self._given: dict[int, Any] = {}
        """Memory as large as each buffer that the judge gave; nobody touches it, so it takes no room."""
        self._own: dict[int, Any] = {}
        self._reach = ChainMap(self._own, self._given)
        self._used = 0
        self._events: set[int] = set()
        self._traces: set[int] = set()
        self._graphs: set[int] = set()
        self._kept: list[Any] = []
        self._commands = self._failures = self._lines = 0
        self._named = self._arrays = 0

    def give(self, array: Any) -> View:
        """Let the worker reach one of the judge's arrays until the case is over; return the place where it lies."""
        view: View = array.as_view()
        self._given[view.buffer] = np.empty(_extent(view), np.uint8)
        self._kept.append(array)
        return view

    def begin(self) -> None:
        """Begin a new message: count anew how many arrays and bytes a worker names."""
        self._named = self._arrays = 0

    def array(self, view: View) -> Any:
        """Return the array at a place that a worker names. InvalidCommandError out of reach, or for too much."""
        self._named += self._check(view).nbytes
        self._arrays += 1
        if self._named > RESULT:
            raise InvalidCommandError(f"more than {RESULT:,} bytes at a time")
        if self._arrays > ARRAYS:
            raise InvalidCommandError(f"more than {ARRAYS:,} arrays at a time")
        return ndarray.from_view(view)

    def do(self, command: str, *arguments: Any, freed: Iterable[int] = ()) -> Any:
        """Return a command's result. Raises what the machine does, InvalidCommandError for what is forbidden."""
        self._commands += 1
        if self._commands > COMMANDS:
            raise InvalidCommandError(f"more than {COMMANDS:,} commands in one call")
        for buffer in freed:
            if (memory := self._own.pop(buffer, None)) is not None:
                self._used -= memory.nbytes
                self.machine.free(buffer)
            elif buffer in self._graphs:
                self._graphs.discard(buffer)
                self.machine.free(buffer)
        if command not in self.COMMANDS:
            raise InvalidCommandError(f"there is no command {command!r:.40}")
        if self._failures >= FAILURES:
            raise InvalidCommandError(f"{FAILURES} commands in one call failed")
        own = getattr(self, f"_{command}", None)
        try:
            cleaned = [_plain(argument) for argument in arguments]
            return getattr(self.machine, command)(*cleaned) if own is None else own(*cleaned)
        except Exception:
            self._failures += 1
            raise

    def _allocate(self, nbytes: int, purpose: str = "", stream: int = 0) -> int:
        if type(nbytes) is not int or nbytes < 0:
            raise InvalidCommandError(f"nbytes is {nbytes!r:.40}; expected a whole number, 0 or more")
        if self._used + nbytes > MEMORY:
            raise OutOfMemoryError(
                f"Out of memory allocating {nbytes:,} bytes (allocated so far: {self._used:,} bytes, limit set to: "
                f"{MEMORY:,} bytes while a check runs)."
            )
        buffer: int = self.machine.allocate(nbytes, purpose, _here(stream))
        self._own[buffer] = np.empty(nbytes, np.uint8)
        self._used += nbytes
        return buffer

    def _launch(self, op: str, inputs: Sequence[Any], outputs: Sequence[Any], options: Any, stream: int) -> None:
        if not all(isinstance(views, list) for views in (inputs, outputs)) or not isinstance(options, dict):
            raise InvalidCommandError("a launch takes lists of inputs and outputs, and a dictionary of options")
        if len(repr((inputs, outputs, options))) > LAUNCH:
            raise InvalidCommandError(f"a launch of more than {LAUNCH:,} characters")
        for operand in (*inputs, *outputs):
            if isinstance(operand, View):
                self._check(operand)
        operands = [_number(x) if isinstance(x, list) else x for x in inputs]
        self.machine.launch(op, operands, outputs, options, _here(stream))

    def _run_kernel(self, program: Any, given: Any, grid: Any, block: Any, shared: Any, stream: int) -> str:
        """The report, or the fault, as JSON. The machine checks the order once more, and keeps a report of its own."""
        if not all(isinstance(part, list) for part in (given, grid, block)):
            raise InvalidCommandError("a kernel has lists of arguments, and of sizes of grid and block")
        if len(repr((program, given, grid, block, shared))) > KERNEL:
            raise InvalidCommandError(f"a kernel of more than {KERNEL:,} characters")
        if self._lines > LINES:
            raise InvalidCommandError(f"more than {LINES:,} lines of kernels in one call")
        for argument in given:
            if isinstance(argument, View):
                self._check(argument)
        order = KernelOrder(program, given, tuple(grid), tuple(block), shared)
        outcome = told(lambda: self._reported(order, stream))
        self._failures += "fault" in outcome
        return json.dumps(outcome)

    def _reported(self, order: KernelOrder, stream: int) -> KernelReport | None:
        report: KernelReport | None = self.machine.run_kernel(order, _here(stream))
        self._lines += 0 if report is None else 1 + len(report.lines)
        return report

    def _begin_capture(self, stream: int, mode: int | None) -> None:
        self.machine.begin_capture(_own(stream), mode)

    def _end_capture(self, stream: int) -> int:
        graph: int = self.machine.end_capture(_own(stream))
        self._graphs.add(graph)
        return graph

    def _is_capturing(self, stream: int) -> bool:
        return bool(self.machine.is_capturing(_here(stream)))

    def _launch_graph(self, graph: int, stream: int) -> str:
        """What the kernels' reports have in lines, or the fault, as JSON."""
        self._check_graph(graph)
        if self._lines > LINES:
            raise InvalidCommandError(f"more than {LINES:,} lines of kernels in one call")
        outcome = told(lambda: int(self.machine.launch_graph(graph, _here(stream))))
        self._failures += "fault" in outcome
        self._lines += outcome.get("report", 0)
        return json.dumps(outcome)

    def _upload_graph(self, graph: int, stream: int) -> None:
        self._check_graph(graph)
        self.machine.upload_graph(graph, _here(stream))

    def _synchronize(self, stream: int | None) -> None:
        self.machine.synchronize(_here(stream))

    def _upload(self, view: View, data: Any, stream: int, blocking: bool) -> None:
        self._check(view)
        if not isinstance(data, np.ndarray):
            raise InvalidCommandError("an upload takes bytes")
        self.machine.upload(view, data.tobytes(), _here(stream), bool(blocking))

    def _download(self, view: View, stream: int) -> Any:
        if self._check(view).nbytes > DOWNLOAD:
            raise InvalidCommandError(f"at most {DOWNLOAD:,} bytes are fetched at a time while a check runs")
        return np.frombuffer(self.machine.download(view, _here(stream)), np.uint8)

    def _record(self, stream: int) -> int:
        event: int = self.machine.record(_here(stream))
        self._events.add(event)
        return event

    def _wait(self, event: int, stream: int | None) -> None:
        self._check_event(event)
        self.machine.wait(event, _here(stream))

    def _elapsed(self, first: int, last: int) -> float:
        self._check_event(first, last)
        return float(self.machine.elapsed(first, last))

    def _start_trace(self) -> int:
        number: int = self.machine.start_trace()
        self._traces.add(number)
        return number

    def _stop_trace(self, number: int) -> str:
        if number not in self._traces:
            raise InvalidCommandError(f"trace {number!r:.40} is not open")
        self._traces.discard(number)
        return str(self.machine.stop_trace(number).to_json())

    def _check(self, view: Any) -> Any:
        if not isinstance(view, View):
            raise InvalidCommandError(f"expected a place on the GPU, got {type(view).__name__}")
        return array_of(view, self._reach, ELEMENTS)

    def _check_graph(self, graph: Any) -> None:
        if type(graph) is not int or graph not in self._graphs:
            raise InvalidCommandError(f"graph {graph!r:.40} does not exist")

    def _check_event(self, *events: Any) -> None:
        for event in events:
            if type(event) is not int or event not in self._events:
                raise InvalidCommandError(f"event {event!r:.40} was never recorded")


def _here(stream: Any) -> Any:
    """The stream that a worker names: its default one is that on which the judge calls the function."""
    return current.streams[-1] if type(stream) is int and stream == 0 else stream


def _own(stream: Any) -> Any:
    """A stream on which a worker begins or ends a capture: not the one that the judge may be capturing."""
    if current.streams[-1] != 0 and _here(stream) == current.streams[-1]:
        raise InvalidCommandError(f"stream is {stream!r:.40}, which is the judge's")
    return stream


def _plain(value: Any) -> Any:
    """What a worker sent as the machine's protocol can say it. Raises InvalidCommandError for anything else."""
    if value is None or isinstance(value, (bool, int, float, complex, str, View, np.ndarray)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item) for key, item in value.items()}
    raise InvalidCommandError(f"an argument of type {type(value).__name__}")


def _number(parts: list[Any]) -> complex:
    """A complex number that a worker sent in two parts."""
    if len(parts) != 2 or not all(type(part) is float for part in parts):
        raise InvalidCommandError("an operand that is no array and no number")
    return complex(*parts)


def _extent(view: View) -> int:
    """Bytes from the buffer's begin to the view's end."""
    itemsize = np.dtype(view.dtype).itemsize
    return view.offset + sum(max(0, (n - 1) * s) for n, s in zip(view.shape, view.strides, strict=True)) + itemsize
