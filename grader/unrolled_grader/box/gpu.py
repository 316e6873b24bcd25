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
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.crashes import ReportedError
from unrolled.checks.gpu import PROFILE
from unrolled.checks.limits import TimeLimitError
from unrolled.simgpu import current, ndarray
from unrolled.simgpu.command import (
    Inputs,
    InvalidCommandError,
    KernelOrder,
    Machine,
    Options,
    OutOfMemoryError,
    View,
    Views,
)
from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.pool import array_of
from unrolled.simgpu.process import CALLS, Link, answer, failure
from unrolled.simgpu.trace import Trace
from unrolled_grader.box.lease import Lease, Resource
from unrolled_grader.box.process import START_LIMIT, Process
from unrolled_grader.box.wire import Array, parsed
from unrolled_grader.box.zygote import ZygoteError

COMMANDS = 50_000  # commands that a worker may give in one call; each takes about half a millisecond
FAILURES = 100  # commands of one call that may fail. Whether one fails may tell something of the numbers on the GPU.
MEMORY = 2**30  # bytes that a worker's arrays may take at a time
ELEMENTS = 2**28  # elements of one array that a worker names
COMMAND = 1_000_000  # characters of one command with all that it names
KERNEL = 200_000  # characters of a kernel of the worker's own, with all that its names stand for
LINES = 20_000  # lines of such kernels that are reported in one call: the judge reads the reports of all launches
DOWNLOAD = 2**25  # bytes of one download
NOT_ITS_OWN = {"event": "was never recorded", "graph": "does not exist", "trace": "is not open"}
RESULT, ARRAYS = 2**28, 1_000
"""Bytes and number of the arrays that a worker names at a time, as its result or in a call of an object that the judge
keeps. To fetch one takes a message to the machine."""


real = Lease(places=[Resource("gpu-" + "-".join(re.findall(r"\w+", os.environ.get("CUDA_VISIBLE_DEVICES", ""))))])
"""The lease on the real GPU, for what is timed there."""


class SimulatedGPU(Process):
    """A machine in a process and a box of its own."""

    def __init__(self, *, boxed: bool) -> None:
        super().__init__(boxed=boxed, memory=2 * MEMORY)
        try:
            Link(self.socket)
        except (OSError, EOFError) as error:
            self.close()
            raise ZygoteError(f"no simulated GPU could be started: {error}") from None

    def fresh(self, seed: int = 0) -> Guarded:
        """Return a new machine for one case: no arrays, its clock at 0, the order of blocks drawn from this seed."""
        guarded = Guarded(self)
        guarded.use(PROFILE, seed)
        return guarded


class Guarded(Link):
    """The machine during one case. If it ends or takes too long, it is given up.

    Every method raises TimeLimitError after `deadline`, and ReportedError if the machine ended. What is freed once the
    case is over was the case's, and is gone.
    """

    def __init__(self, gpu: SimulatedGPU) -> None:
        self.deadline = math.inf  # on the monotonic clock
        self._gpu = gpu
        super().__init__(gpu.socket)

    def check(self) -> None:
        """Raise what every method raises from now on, if the machine was given up."""
        if self._gpu.overran:
            raise TimeLimitError(self._gpu.dead)
        if self._gpu.dead:
            raise ReportedError([self._gpu.dead])

    def _exchange(self, message: Mapping[str, Any], data: bytes) -> tuple[dict[str, Any], bytearray]:
        self.check()
        self._gpu.socket.settimeout(max(0.01, min(START_LIMIT, self.deadline - time.monotonic())))
        try:
            return super()._exchange(message, data)
        except TimeoutError:
            self._gpu.give_up("the simulated GPU worked for too long", overran=True)
        except (OSError, EOFError):
            self._gpu.give_up("the simulated GPU ended: too much memory?")
        self.check()
        raise AssertionError  # never


class Facade(Machine):
    """What a worker may do with the machine, during one case. `do` is all that it can call."""

    METHODS = ("do",)
    ASK_BYTES = 2**26
    CALLS = frozenset(CALLS - {"free_all", "own_bytes"})

    def __init__(self, machine: Guarded) -> None:
        self.machine = machine
        self.profile = machine.profile
        self._own, self._given = dict[int, Any](), dict[int, Any]()
        """Memory as large as each buffer; of those that the judge gave nobody touches it, so it takes no room."""
        self._reach = ChainMap(self._own, self._given)
        self._used = 0
        self._numbers: dict[str, set[int]] = {kind: set() for kind in NOT_ITS_OWN}
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

    def do(self, text: Any, data: Any) -> tuple[str, Array]:
        """Return the answer to a message of the machine's protocol, whose two parts are JSON and bytes."""
        self._commands += 1
        try:
            message = self._message(text)
            value, content = answer(self, message, data.tobytes() if isinstance(data, np.ndarray) else b"")
        except Exception as error:  # whatever a bad command leads to, the next one is answered
            self._failures += 1
            return json.dumps(failure(error)), np.empty(0, np.uint8)
        self._failures += isinstance(value, dict) and "fault" in value
        return json.dumps({"value": value}), np.frombuffer(content, np.uint8)

    def _message(self, text: Any) -> dict[str, Any]:
        """The message in a text. Raises InvalidCommandError, ValueError and the like for what is none, or too much."""
        if self._commands > COMMANDS:
            raise InvalidCommandError(f"more than {COMMANDS:,} commands in one call")
        if self._failures >= FAILURES:
            raise InvalidCommandError(f"{FAILURES} commands in one call failed")
        if not isinstance(text, str) or len(text) > COMMAND:
            raise InvalidCommandError(f"a command that is no text, or of more than {COMMAND:,} characters")
        message = parsed(text)
        name = message.get("call") if isinstance(message, dict) else None
        if not isinstance(name, str) or name not in self.CALLS:
            raise InvalidCommandError(f"there is no command {name!r:.40}")
        if name == "run_kernel" and len(text) > KERNEL:
            raise InvalidCommandError(f"a kernel of more than {KERNEL:,} characters")
        return message  # type: ignore[no-any-return]

    # the machine, as far as the worker may reach

    def allocate(self, nbytes: int, purpose: str = "", stream: int = 0) -> int:
        if type(nbytes) is not int or nbytes < 0:
            raise InvalidCommandError(f"nbytes is {nbytes!r:.40}; expected a whole number, 0 or more")
        if self._used + nbytes > MEMORY:
            raise OutOfMemoryError(
                f"Out of memory allocating {nbytes:,} bytes (allocated so far: {self._used:,} bytes, limit set to: "
                f"{MEMORY:,} bytes while a check runs)."
            )
        buffer = self.machine.allocate(nbytes, purpose, _here(stream))
        self._own[buffer] = np.empty(nbytes, np.uint8)
        self._used += nbytes
        return buffer

    def free(self, buffer: int) -> None:
        if (memory := self._own.pop(buffer, None)) is not None:
            self._used -= memory.nbytes
            self.machine.free(buffer)
        elif buffer in self._numbers["graph"]:
            self._numbers["graph"].discard(buffer)
            self.machine.free(buffer)

    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        for operand in (*inputs, *outputs):
            if isinstance(operand, View):
                self._check(operand)
        self.machine.launch(op, inputs, outputs, options, _here(stream))

    def run_kernel(self, order: KernelOrder, stream: int = 0) -> KernelReport | None:
        """Run a worker's own kernel. The machine checks the order once more, and keeps a report of its own."""
        self._check_lines()
        for argument in order.arguments:
            if isinstance(argument, View):
                self._check(argument)
        report = self.machine.run_kernel(order, _here(stream))
        self._lines += 0 if report is None else 1 + len(report.lines)
        return report

    def begin_capture(self, stream: int, mode: int | None = None) -> None:
        self.machine.begin_capture(_own(stream), mode)

    def end_capture(self, stream: int) -> int:
        return self._added("graph", self.machine.end_capture(_own(stream)))

    def launch_graph(self, graph: int, stream: int = 0) -> int:
        self._check_lines()
        lines = self.machine.launch_graph(self._own_number("graph", graph), _here(stream))
        self._lines += lines
        return lines

    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        self._check(view)
        self.machine.upload(view, data, _here(stream), bool(blocking))

    def download(self, view: View, stream: int = 0) -> bytes:
        if self._check(view).nbytes > DOWNLOAD:
            raise InvalidCommandError(f"at most {DOWNLOAD:,} bytes are fetched at a time while a check runs")
        return self.machine.download(view, _here(stream))

    def record(self, stream: int = 0) -> int:
        return self._added("event", self.machine.record(_here(stream)))

    def _call(self, name: str, *arguments: Any) -> Any:
        """Any other command of plain values, each of which is the worker's own or what it may ask about."""
        event, graph = partial(self._own_number, "event"), partial(self._own_number, "graph")
        kinds: dict[str, tuple[Callable[[Any], Any], ...]] = {
            "clock": (),
            "memory": (),
            "synchronize": (_here,),
            "is_capturing": (_here,),
            "wait": (event, _here),
            "elapsed": (event, event),
            "upload_graph": (graph, _here),
        }
        checked = (kind(argument) for kind, argument in zip(kinds[name], arguments, strict=True))
        return getattr(self.machine, name)(*checked)

    def start_trace(self, idle: bool = False) -> int:
        return self._added("trace", self.machine.start_trace(bool(idle)))

    def stop_trace(self, number: int) -> Trace:
        self._numbers["trace"].discard(self._own_number("trace", number))
        return self.machine.stop_trace(number)

    def _check(self, view: Any) -> Any:
        if not isinstance(view, View):
            raise InvalidCommandError(f"expected a place on the GPU, got {type(view).__name__}")
        return array_of(view, self._reach, ELEMENTS)

    def _check_lines(self) -> None:
        if self._lines > LINES:
            raise InvalidCommandError(f"more than {LINES:,} lines of kernels in one call")

    def _added(self, kind: str, number: int) -> int:
        self._numbers[kind].add(number)
        return number

    def _own_number(self, kind: str, number: Any) -> int:
        """The number of a thing of this kind that is the worker's. Raises InvalidCommandError for any other."""
        if type(number) is not int or number not in self._numbers[kind]:
            raise InvalidCommandError(f"{kind} {number!r:.40} {NOT_ITS_OWN[kind]}")
        return number


def _here(stream: Any) -> Any:
    """The stream that a worker names: its default one is that on which the judge calls the function."""
    return current.streams[-1] if type(stream) is int and stream == 0 else stream


def _own(stream: Any) -> Any:
    """A stream on which a worker begins or ends a capture: not the one that the judge may be capturing."""
    if current.streams[-1] != 0 and _here(stream) == current.streams[-1]:
        raise InvalidCommandError(f"stream is {stream!r:.40}, which is the judge's")
    return stream


def _extent(view: View) -> int:
    """Bytes from the buffer's begin to the view's end."""
    itemsize = np.dtype(view.dtype).itemsize
    return view.offset + sum(max(0, (n - 1) * s) for n, s in zip(view.shape, view.strides, strict=True)) + itemsize
