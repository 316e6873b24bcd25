"""The interface between a program's arrays and the simulated GPU: commands, plain data that can go over a socket.

The front end (arrays, functions) keeps shapes, dtypes and strides, never computes, and sends commands to a `Machine`.
The machine owns the memory, computes, and keeps the timeline. It may live in this process (`machine.LocalMachine`) or
in one of its own (`process.Link`), and it checks everything that a command says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from unrolled.simgpu.kernel_report import KernelReport
from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.faults import CUDADriverError, KernelFault

if TYPE_CHECKING:
    from unrolled.simgpu.profiles import GPUProfile
    from unrolled.simgpu.trace import Trace

Plain: TypeAlias = Any  # None, bool, int, float, str, and lists and dictionaries of them: what JSON can say
Options: TypeAlias = Mapping[str, Plain]


class InvalidCommandError(ValueError):
    """A command that no front end of ours sends: an unknown op, a view outside its buffer, a limit passed."""


class OutOfMemoryError(MemoryError):
    """The simulated GPU has no room; the message names what was asked for, and what is in use."""


class CUDARuntimeError(RuntimeError):
    """What CUDA's runtime refuses: the name of its error, a colon, and what that means."""


class StreamRaceError(RuntimeError):
    """Two streams reach the same bytes, one of them to write, and nothing orders the two; the text names both."""


RAISED: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        *(InvalidCommandError, OutOfMemoryError, CUDARuntimeError, StreamRaceError),
        *(faults.UnsupportedError, faults.OperatorError, faults.CompileException),
        *(TypeError, ValueError, MemoryError, RuntimeError, NameError, AttributeError, IndexError),
        *(OverflowError, ZeroDivisionError, SyntaxError, AssertionError, NotImplementedError),
    )
}
"""What a machine elsewhere may raise, by name: it comes as a name and a text, from which the error is made here."""


@contextmanager
def naming(op: str) -> Iterator[None]:
    """In this block, whatever else a bad command leads to becomes an InvalidCommandError that names the op."""
    try:
        yield
    except (TypeError, ValueError, MemoryError):
        raise
    except Exception as error:
        raise InvalidCommandError(f"{op}: {type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class View:
    """Where an array lies: offset and strides in bytes, dtype as NumPy names it ("float32")."""

    buffer: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return prod(self.shape)


Operand: TypeAlias = View | bool | int | float | complex | None
"""An array, or a Python scalar, which stays one: NumPy 2's weak promotion."""
Inputs: TypeAlias = Sequence[Operand]
Views: TypeAlias = Sequence[View]


@dataclass(frozen=True)
class KernelOrder:
    """A launch of a program's own kernel: its source as plain data, arguments, and sizes as (x, y, z).

    An argument is an array, or (dtype, number). `shared` is the shared memory that the launch adds, in bytes.
    """

    program: Plain
    arguments: Sequence[View | tuple[str, bool | int | float]]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int = 0


class Machine(ABC):
    """A simulated GPU. Work that it is asked for advances its modelled host clock; no method reads a real clock.

    A method of plain values asks a machine elsewhere, by `_call`; `LocalMachine` has its own of each.
    """

    profile: GPUProfile

    def _call(self, name: str, *arguments: Any) -> Any:
        """What the machine answers to the call of this name; raises what it raises."""
        raise NotImplementedError

    def allocate(self, nbytes: int, purpose: str = "", stream: int = 0) -> int:
        """Return the id of a new buffer. Raises OutOfMemoryError, which names its size and what is in use.

        purpose: what it is for, if a capture of the stream refuses that: "H2D", "cuBLAS" or "cuRAND".
        """
        return int(self._call("allocate", nbytes, purpose, stream))

    @abstractmethod
    def free(self, buffer: int) -> None:
        """Give a buffer back to the pool, or let go of a graph. Unknown ids are ignored."""

    @abstractmethod
    def launch(self, op: str, inputs: Inputs, outputs: Views, options: Options | None = None, stream: int = 0) -> None:
        """Launch one kernel on a stream. For the ops, their inputs, outputs and options see `operations.py`."""

    @abstractmethod
    def run_kernel(self, order: KernelOrder, stream: int = 0) -> KernelReport | None:
        """Compile a kernel of the program's own from its source, run it, and return what was counted.

        While the stream is capturing it only compiles, and returns None. Raises what the compiler refuses, with CuPy's
        kind of error, and KernelFault for what the kernel does wrong.
        """

    @abstractmethod
    def upload(self, view: View, data: bytes, stream: int = 0, blocking: bool = True) -> None:
        """Write the host's bytes (C order, of the view's dtype and shape) to the view."""

    @abstractmethod
    def download(self, view: View, stream: int = 0) -> bytes:
        """Return the view's bytes in C order, after all work on the stream: the host waits."""

    def synchronize(self, stream: int | None = None) -> None:
        """Let the host wait for a stream; None: for the whole device."""
        self._call("synchronize", stream)

    def record(self, stream: int = 0) -> int:
        """Record an event, the device's time at this place of the stream, and return its id."""
        return int(self._call("record", stream))

    def wait(self, event: int, stream: int | None) -> None:
        """Let the stream wait for the event; None: the host."""
        self._call("wait", event, stream)

    def elapsed(self, first: int, last: int) -> float:
        """Return the seconds between two events.

        Raises RuntimeError, as CUDA does, while the host has not waited for both.
        """
        return float(self._call("elapsed", first, last))

    def begin_capture(self, stream: int, mode: int | None = None) -> None:
        """Keep what the stream is given from now on, in place of doing it, until `end_capture`; see `captures.py`.

        mode: CUDA's number; None is its default, in which the pool cannot grow.
        """
        self._call("begin_capture", stream, mode)

    def end_capture(self, stream: int) -> int:
        """End a capture and return the number of its graph, which `free` takes back. Raises CUDARuntimeError."""
        return int(self._call("end_capture", stream))

    def is_capturing(self, stream: int) -> bool:
        """Return whether the stream takes part in a capture."""
        return bool(self._call("is_capturing", stream))

    def launch_graph(self, graph: int, stream: int = 0) -> int:
        """Do all that was captured, on the values that lie there now, and return how many lines the reports have.

        Reports are those of kernels of the program's own: they are in the trace. Raises KernelFault as `run_kernel`.
        """
        return int(result_of(self._call("launch_graph", graph, stream)))

    def upload_graph(self, graph: int, stream: int = 0) -> None:
        """Send a graph to the device before its first launch."""
        self._call("upload_graph", graph, stream)

    def clock(self) -> float:
        """Return the seconds on the modelled host clock."""
        return float(self._call("clock"))

    def start_trace(self, idle: bool = False) -> int:
        """Begin a trace and return its number. idle: when all work so far is done, which orders nothing."""
        return int(self._call("start_trace", idle))

    @abstractmethod
    def stop_trace(self, number: int) -> Trace:
        """End a trace and return what happened in it. Does not wait for the device: synchronize first."""

    def memory(self) -> dict[str, int]:
        """Return {"used", "total", "capacity"} in bytes: live, live and free blocks, the limit."""
        return dict(self._call("memory"))

    def own_bytes(self, view: View) -> int:
        """Return how many of an array's bytes a kernel of the program's own wrote last."""
        raise NotImplementedError

    def free_all(self) -> None:
        """Give the pool's free blocks back."""
        self._call("free_all")


def outcome_of(run: Callable[[], KernelReport | int | None]) -> dict[str, Plain]:
    """Return as plain data what running kernels gives (a report, a number, None), or the KernelFault that it raises."""
    try:
        found = run()
        return {"report": found.to_plain() if isinstance(found, KernelReport) else found}
    except KernelFault as error:
        return {"fault": asdict(error.fault), "refused": isinstance(error, CUDADriverError)}


def result_of(outcome: Plain) -> Any:
    """Return the result, or raise the KernelFault, that `outcome_of` made plain. Raises ValueError for other data."""
    try:
        if "report" in outcome:
            report = outcome["report"]
            return report if report is None or type(report) is int else KernelReport.from_plain(report)
        kind = CUDADriverError if outcome["refused"] else KernelFault
        fault = faults.Fault.from_plain(outcome["fault"])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"no report of a kernel: {error!r:.80}") from None
    raise kind(fault)
