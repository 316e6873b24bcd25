"""Ranks as processes that talk through MPI: mpi4py, on arrays of NumPy.

Before each operation the ranks compare what they call (a few numbers on a communicator of its own), so that no sum of
two shapes begins. Every wait has a time limit: what waits longer says where, asks where the others wait, and ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Any

import numpy as np

from unrolled.device import Array
from unrolled.parallel.calls import Call, from_note, place
from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.errors import DeadlockError, MismatchError, NoEngineError, ParallelError, RankError
from unrolled.parallel.packing import failure_of
from unrolled.parallel.store import Failure, Store

HEADER, BODY = 1, 2  # tags
SPINS = 2_000  # questions to MPI before a wait lets other processes run
KINDS = ("barrier", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "send")
WORDS = 12  # of a header: kind, peer, dtype, axes, shape
MOST_AXES = WORDS - 4
SAFELY = {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}
"""What MPICH is told. Ranks of one machine may read each other's memory by process_vm_readv(2). Where that is refused,
as in the grader's box, MPICH 5.0 goes on with wrong sums, and says nothing."""
GRACE = 2.0  # seconds that others have to say where they wait


def load() -> Any:
    """Return mpi4py's MPI, not begun. Raises NoEngineError where it or its MPI library is missing."""
    try:
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise NoEngineError(f'engine "mpi" needs mpi4py and an MPI library ({why}): pip install mpi4py mpich') from None
    return MPI


def begun() -> Any:
    """Return mpi4py's MPI, begun in this process, which is a rank from now on. Raises NoEngineError."""
    mpi = load()
    if not mpi.Is_initialized():
        for name, value in SAFELY.items():
            os.environ.setdefault(name, value)
        mpi.Init_thread()
    return mpi


class MpiCommunicator(Communicator):
    """The group of all ranks of MPI_COMM_WORLD, seen from one. `store` hears of failures; arrays are NumPy's.

    A wait for others takes at most `timeout` seconds. Use it as a context, or `close` it: what was sent is delivered
    then. float16 and bool, which MPI cannot add, travel as float32 and as bytes.
    """

    engine = "mpi"

    def __init__(self, store: Store, timeout: float = 20.0) -> None:
        self._mpi = begun()
        self._comm = self._mpi.COMM_WORLD
        self._headers = self._comm.Dup()
        self.rank, self.size, self.timeout = self._comm.rank, self._comm.size, timeout
        self._store = store
        self._sent: list[tuple[Any, Any]] = []  # requests, with the array that they read
        self._line = Line(store)

    # collectives

    def _start_all_reduce(self, x: Array, out: Array) -> Pending:
        call = self._compared("all_reduce", x)
        given, taken = _addable(x, out)
        source = self._mpi.IN_PLACE if given is taken else given
        return MpiPending(self, call, self._comm.Iallreduce(source, taken), taken, out)

    def _reduce_scatter(self, x: Array, out: Array) -> Array:
        call = self._compared("reduce_scatter", x)
        given, taken = _addable(x, out)
        taken = np.empty_like(taken) if given is taken else taken
        return MpiPending(self, call, self._comm.Ireduce_scatter_block(given, taken), taken, out).wait()

    def _all_gather(self, x: Array, out: Array) -> Array:
        call = self._compared("all_gather", x)
        self._wait(self._comm.Iallgather(_bytes(x.copy()), _bytes(out)), call)
        return out

    def _broadcast(self, x: Array, root: int, out: Array) -> Array:
        call = self._compared("broadcast", x, root)
        if out is not x and self.rank == root:
            out[...] = x
        self._wait(self._comm.Ibcast(_bytes(out), root), call)
        return out

    def _barrier(self) -> None:
        self._compared("barrier")  # in which all have answered

    # messages

    def _send(self, x: Array, to: int) -> None:
        call, kept = self._call("send", x), x.copy()
        header = _header(call, self.rank)
        self._sent = [each for each in self._sent if not each[0].Test()]
        self._sent.append((self._headers.Isend(header, to, HEADER), header))
        self._sent.append((self._comm.Isend(_bytes(kept), to, BODY), kept))

    def _receive(self, x: Array, source: int) -> None:
        call = self._call(f"receive from rank {source}", x)
        header = np.empty(WORDS, np.int64)
        self._wait(self._headers.Irecv(header, source, HEADER), call)
        if (header[2:] != _header(call, source)[2:]).any():
            self._differ(call, {source: header})
        self._wait(self._comm.Irecv(_bytes(x), source, BODY), call)

    # the end

    def close(self) -> None:
        """Deliver what was sent, and leave the group. Raises RankError for what nobody receives in time."""
        for request, array in self._sent:
            self._wait(request, Call("the delivery of what was sent", np.shape(array), array.dtype, place()))
        self._line.close()
        self._store.leave()

    def __enter__(self) -> MpiCommunicator:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            self.close()
        else:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """Tell all other ranks that this one ends by an error."""
        self._line.close()
        self._store.fail(failure_of(self.rank, error))

    # what all of them do

    def _call(self, kind: str, x: Array | None = None) -> Call:
        if x is not None and type(x) is not np.ndarray and not isinstance(x, np.ndarray):
            raise TypeError(f"x is a {type(x).__module__} array; engine mpi carries NumPy's: device.to_host(x)")
        shape, dtype = ((), np.dtype("int64")) if x is None else (x.shape, x.dtype)
        return Call(kind, shape, dtype, place())

    def _compared(self, kind: str, x: Array | None = None, root: int = -1) -> Call:
        """Say what is called, and return it once all ranks have called the same. Raises MismatchError."""
        call = self._call(kind, x)
        header, headers = _header(call, root), np.empty((self.size, WORDS), np.int64)
        self._wait(self._headers.Iallgather(header, headers), call)
        if others := {rank: headers[rank] for rank in range(self.size) if (headers[rank] != header).any()}:
            self._differ(call, others)
        return call

    def _differ(self, call: Call, others: dict[int, Any]) -> None:
        rank, header = next(iter(others.items()))
        theirs = _read(header)
        raise MismatchError(f"ranks disagree: rank {rank} calls {theirs}; rank {self.rank} calls {call}")

    def _wait(self, request: Any, call: Call) -> None:
        """Wait until MPI is through with a request; end with the places of all ranks if that takes too long."""
        for _ in range(SPINS):
            if request.Test():
                return
        end = time.monotonic() + self.timeout
        while not request.Test():
            time.sleep(0)
            if time.monotonic() > end:
                raise self._hang(call)

    def _hang(self, call: Call) -> ParallelError:
        """What to raise where nothing came: a deadlock if all wait, else the ranks that do not."""
        self._store.put(f"waits/{self.rank}", call.note())
        waits = [f"rank {self.rank} waits in {call}"]
        free = []
        for rank in sorted(set(range(self.size)) - {self.rank}):
            note = self._store.get(f"waits/{rank}", GRACE)
            waits += [f"rank {rank} waits in {from_note(note)}"] if note else []
            free += [] if note else [f"rank {rank} waits for nobody"]
        kind = RankError if free else DeadlockError
        return kind(f"no progress for {self.timeout:g} s: {'; '.join([*waits, *free])}")


class MpiPending(Pending):
    """A sum under way."""

    def __init__(self, comm: MpiCommunicator, call: Call, request: Any, taken: Array, out: Array) -> None:
        self._comm, self._call, self._request, self._taken, self._out = comm, call, request, taken, out

    def wait(self) -> Array:
        if self._request is not None:
            self._comm._wait(self._request, self._call)
            self._request = None
            if self._taken is not self._out:
                self._out[...] = self._taken
        return self._out


class Line:
    """A thread that says that this rank lives, and ends the process once another one has failed."""

    def __init__(self, store: Store) -> None:
        self._store, self._closed = store, False
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._closed = True

    def _run(self) -> None:
        while not self._closed:
            if (failure := self._store.beat()) and not self._closed:
                leave(failure)


def leave(failure: Failure) -> None:
    """End this process: MPI cannot be left in the middle of an operation."""
    with contextlib.suppress(OSError, ValueError):
        print(f"{failure['kind']}: {failure['text']}", file=sys.stderr, flush=True)
    os._exit(1)


def _header(call: Call, peer: int) -> Any:
    if len(call.shape) > MOST_AXES:
        raise ValueError(f"x has {len(call.shape)} axes; expected at most {MOST_AXES}")
    header = np.zeros(WORDS, np.int64)
    kind = call.kind if call.kind in KINDS else "send"
    header[: 4 + len(call.shape)] = KINDS.index(kind), peer, ord(call.dtype.char), len(call.shape), *call.shape
    return header


def _read(header: Any) -> str:
    kind, peer, dtype, axes, *shape = header.tolist()
    root = f" from rank {peer}" if KINDS[kind] == "broadcast" else ""
    array = "" if KINDS[kind] == "barrier" else f" of {np.dtype(chr(dtype))} {tuple(shape[:axes])}"
    return f"{KINDS[kind]}{root}{array}"


def _addable(x: Array, out: Array) -> tuple[Array, Array]:
    """x and out, or copies of a dtype that MPI can add."""
    wide = {"e": np.float32, "?": np.uint8}.get(x.dtype.char)
    if wide is None:
        return x, out
    return x.astype(wide), np.empty(out.shape, wide)


def _bytes(x: Array) -> Array:
    """The array as bytes: what only travels needs no dtype."""
    return np.asarray(x).reshape(-1).view(np.uint8)
