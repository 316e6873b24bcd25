"""Ranks that stay: processes started once through MPI, which run a program again and again on arrays in a shared file.

To start processes takes a second, and a step takes milliseconds. So what is timed is no start: the ranks wait for a
line of JSON, find their arguments in the file, and leave their results there.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from unrolled.device import Array
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.errors import NoEngineError, RankError
from unrolled.parallel.launch import cores
from unrolled.parallel.mpi_start import END_SECONDS, launcher, run_mpi
from unrolled.timing.blocks import cpu_seconds

Inputs = dict[str, Any]
Share = Callable[[Inputs, int, int], Sequence[Any]]  # (inputs, rank, ranks): this rank's arguments
Place = tuple[str, tuple[int, ...], int]  # of an array in the file: dtype, shape, bytes from the start
NONE: tuple[int, Array] = (-1, np.empty(0, np.uint8))
ALIGNED = 64  # bytes
TIMEOUT = 12.0
"""Seconds that a rank may wait or be silent: with them a deadlock is named before the limit of a check, 30 s, has
passed. Whoever times the ranks may hold all of them up for longer, between two orders."""
JOIN_SECONDS = END_SECONDS + 2.0  # after which they have ended, or were ended


def missing(ranks: int, among: int = 0) -> str:
    """Return why so many ranks cannot run side by side here, on `among` cores or on all in reach; "" if they can."""
    among = among or cores()
    if among < ranks:
        return f"{ranks} ranks need {ranks} cores, and here {'is' if among == 1 else 'are'} {among}"
    if os.name != "posix":
        return "ranks that stay need Linux or macOS"
    try:
        import cloudpickle  # noqa: F401

        launcher()
    except ImportError:
        return "ranks that run a notebook's function need cloudpickle: pip install cloudpickle"
    except NoEngineError as error:
        return str(error)
    return ""


class Team:
    """`ranks` processes with one BLAS thread each, which run program(comm, *share(inputs, rank, ranks)).

    Inputs are arrays by name, in a file of `size` bytes that all of them map; or in a `shared` one that there is
    already: its descriptor, and its bytes as they are mapped here. A rank may wait `timeout` seconds for others.
    Use it as a context: no process is left after it. Raises NoEngineError without MPI, RankError where a rank fails.
    """

    def __init__(
        self,
        program: Callable[..., Any],
        share: Share,
        ranks: int,
        *,
        size: int = 0,
        shared: tuple[int, Array] = NONE,
        timeout: float = TIMEOUT,
    ) -> None:
        self._file = _new_file(size) if shared is NONE else None
        memory, self.bytes = shared if self._file is None else (self._file.fileno(), _mapped(self._file.fileno()))
        self.shared = memory, self.bytes
        """What another team takes to have the same file, as long as this one is open."""
        self._used = 0
        self._error: BaseException | None = None
        self._lines, theirs = zip(*(socket.socketpair() for _ in range(ranks)), strict=True)
        handed = [end.fileno() for end in theirs]
        self._answers = [line.makefile("rb") for line in self._lines]
        self._theirs, self._over = theirs, threading.Event()
        work = (_serve, (program, share, memory, handed), None, ranks, timeout, (memory, *handed), self._over)
        self._thread = threading.Thread(target=self._run, args=work, daemon=True)
        self._thread.start()
        try:
            self._ask({"hello": ranks})
        except BaseException:
            self.close()
            raise

    def put(self, inputs: Inputs) -> dict[str, Array]:
        """Copy arrays into the file; return them as they lie there. Raises ValueError where it is full."""
        return {name: self._put(np.ascontiguousarray(array)) for name, array in inputs.items()}

    def prepare(self, inputs: Sequence[Inputs], results: int, slot: int) -> None:
        """Have the ranks make ready for calls with these inputs, whose arrays lie in the file.

        All ranks' results of the call with number n begin at byte results + n * slot, one behind the other.
        """
        places = [{name: self._place(array) for name, array in each.items()} for each in inputs]
        self._ask({"inputs": places, "results": results, "slot": slot})

    def run(self, calls: int, first: int = 0) -> float:
        """Make so many calls, from the prepared inputs with number `first` on, again from 0 after the last.

        Return the seconds of CPU time that all ranks together took, by what they say themselves.
        """
        return self._ask({"calls": calls, "first": first})

    def close(self) -> None:
        """End the ranks."""
        self._over.set()
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._thread.join(JOIN_SECONDS)
        for end in (*self._answers, *self._lines, *self._theirs, *([self._file] if self._file else [])):
            end.close()

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(self, *arguments: Any) -> None:
        """What the thread does: stand by the ranks until they end; then nobody waits for them any longer."""
        try:
            run_mpi(*arguments)
        except BaseException as error:
            self._error = error
        for line in self._lines:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def _ask(self, order: Mapping[str, Any]) -> float:
        """Give all ranks an order, and wait until each has done it; return the CPU seconds that it took them."""
        try:
            for line in self._lines:
                line.sendall(json.dumps(order).encode() + b"\n")
            done = [answers.readline() for answers in self._answers]
        except OSError:
            done = [b""]
        if not all(done):
            self._thread.join(JOIN_SECONDS)
            raise self._error or RankError("the ranks ended")
        return sum(map(float, done))

    def _put(self, array: Array) -> Array:
        start = -(-self._used // ALIGNED) * ALIGNED
        if start + array.nbytes > self.bytes.size:
            raise ValueError(f"inputs of more than the {self.bytes.size:,} bytes of the shared file")
        self._used = start + array.nbytes
        there: Array = self.bytes[start : self._used].view(array.dtype).reshape(array.shape)
        there[...] = array
        return there

    def _place(self, array: Array) -> Place:
        return array.dtype.str, array.shape, array.ctypes.data - self.bytes.ctypes.data


def alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program of one rank that calls a function which knows nothing of ranks."""
    return partial(_without_comm, function)


def _without_comm(function: Callable[..., Any], comm: Communicator, *arguments: Any) -> Any:
    return function(*arguments)


def _mapped(file: int) -> Array:
    return np.frombuffer(mmap.mmap(file, 0), np.uint8)


def _new_file(size: int) -> Any:
    """An open file of so many bytes that has no name; in memory, where the system has such files."""
    named = getattr(os, "memfd_create", None)
    file: Any = tempfile.TemporaryFile() if named is None else os.fdopen(named("unrolled"), "r+b")  # noqa: SIM115
    file.truncate(size)
    return file


def _serve(comm: Communicator, program: Callable[..., Any], share: Share, memory: int, lines: Sequence[int]) -> None:
    """Be a rank, on a core of its own: follow orders until the other end of its line is gone."""
    if comm.size > 1 and hasattr(os, "sched_setaffinity"):  # else a short block may end before they are moved apart
        reach = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {reach[comm.rank % len(reach)]})
    if hasattr(os, "SCHED_BATCH"):  # else the first rank that is woken may push aside who has yet to wake the next
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    shared = _mapped(memory)
    calls: list[Sequence[Any]] = []
    results = slot = 0
    for number, end in enumerate(lines):
        if number != comm.rank:
            os.close(end)
    with socket.socket(fileno=lines[comm.rank]) as line:
        for text in line.makefile("rb"):
            order, before = json.loads(text), cpu_seconds()
            if "inputs" in order:
                given = [{name: _at(shared, *place) for name, place in each.items()} for each in order["inputs"]]
                calls = [share(inputs, comm.rank, comm.size) for inputs in given]
                results, slot = order["results"], order["slot"]
                gc.collect(0)
            elif "calls" in order:
                _call(comm, program, calls, order, shared[results : results + slot * len(calls)].reshape(-1, slot))
            line.sendall(f"{cpu_seconds() - before}\n".encode())


def _call(comm: Communicator, program: Callable[..., Any], calls: Any, order: Mapping[str, int], slots: Array) -> None:
    gc.disable()
    for number in range(order["first"], order["first"] + order["calls"]):
        place = number % len(calls)
        result = np.ascontiguousarray(program(comm, *calls[place])).reshape(-1).view(np.uint8)
        mine = slots[place, comm.rank * result.size :]
        mine[: result.size] = result[: mine.size]
    gc.enable()


def _at(shared: Array, dtype: str, shape: Sequence[int], start: int) -> Array:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array: Array = shared[start : start + size].view(dtype).reshape(shape)
    return array
