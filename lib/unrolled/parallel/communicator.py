"""What a program of many ranks calls: the same few operations, whatever carries the messages.

Every rank runs the same program (SPMD: single program, multiple data) and is told apart by `rank`. A collective
operation is called by all ranks, in the same order, with arrays of the same shape and dtype. The engines are
`emulation` (threads of one process and a modelled network), `mpi` (processes) and `nccl` (GPUs).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.device import Array, Module, array_module
from unrolled.ops.arguments import check_array, check_shape, check_whole

if TYPE_CHECKING:
    from typing_extensions import Self


MOST_AXES = 8  # of an array


class Pending(ABC):
    """A collective operation under way: `wait` ends it and returns its result. Until then its arrays are in use."""

    @abstractmethod
    def wait(self) -> Array:
        """Return the result, once it is there. Called again, return it again."""


class Communicator(ABC):
    """The group of `size` ranks, seen from one of them.

    Arrays are contiguous, hold real numbers in this machine's order of bytes, and have at most eight axes.

    Every operation raises ParallelError's kinds for what is wrong between ranks, and ValueError or TypeError for what
    is wrong here. Results are new arrays, or `out`: x itself, or an array that shares no memory with x.
    """

    rank: int
    """This rank's number, from 0."""
    size: int
    """How many ranks there are."""
    engine: str
    """What carries the messages: "emulation", "mpi" or "nccl"."""

    @property
    def module(self) -> Module:
        """The array library whose arrays every engine of this kind carries: CuPy between GPUs, else NumPy."""
        return importlib.import_module("cupy") if self.engine == "nccl" else np

    def all_reduce(self, x: Array, out: Array | None = None) -> Array:
        """Return the sum of all ranks' x, on each of them."""
        return self._collective("all_reduce", _contiguous("x", x), _result(x, x.shape, out))

    def start_all_reduce(self, x: Array, out: Array | None = None) -> Pending:
        """Begin `all_reduce` and return at once: what is computed until `wait` runs beside it, as far as engines can.

        Ranks begin and wait in the same order.
        """
        return self._start_all_reduce(_contiguous("x", x), _result(x, x.shape, out))

    def prepare_all_reduce(self, x: Array, out: Array | None = None) -> Callable[[], Array]:
        """Return a call that does `all_reduce(x, out)`, again and again, of what x holds then: checked once, here.

        For small arrays, where checks cost more than the sum. All ranks prepare the same, in the same order. MPI 4.0
        has this as persistent collective operations (MPI_Allreduce_init).
        """
        return self._prepare_all_reduce(_contiguous("x", x), _result(x, x.shape, out))

    def reduce_scatter(self, x: Array, out: Array | None = None) -> Array:
        """Return this rank's block of the sum of all ranks' x (size * N, ...): the rows rank * N to (rank + 1) * N."""
        _contiguous("x", x)
        if x.ndim == 0 or len(x) % self.size:
            raise ValueError(f"x has shape {x.shape}; expected a first axis that {self.size} ranks can share evenly")
        return self._collective("reduce_scatter", x, _result(x, (len(x) // self.size, *x.shape[1:]), out))

    def all_gather(self, x: Array, out: Array | None = None) -> Array:
        """Return all ranks' x (N, ...) one below the other (size * N, ...), in the order of ranks, on each of them."""
        _contiguous("x", x)
        if x.ndim == 0:
            raise ValueError("x has no axis; expected (N, ...): x.reshape(1) is one row")
        return self._collective("all_gather", x, _result(x, (self.size * len(x), *x.shape[1:]), out))

    def broadcast(self, x: Array, root: int = 0, out: Array | None = None) -> Array:
        """Return the x of rank `root`, on each rank. Elsewhere x tells only shape and dtype."""
        self._check_rank("root", root)
        return self._collective("broadcast", _contiguous("x", x), _result(x, x.shape, out), root)

    def send(self, x: Array, to: int) -> None:
        """Send x to another rank. It is copied and on its way: nothing waits for the receiver.

        A message that nobody has received when all ranks have returned is an error.
        """
        self._check_rank("to", to, other=True)
        self._send(_contiguous("x", x), to)

    def receive(self, x: Array, source: int) -> Array:
        """Fill x with what rank `source` sent next, and return it. Waits until it is there."""
        self._check_rank("source", source, other=True)
        self._receive(_writable("x", _contiguous("x", x)), source)
        return x

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self._barrier()

    @abstractmethod
    def _collective(self, kind: str, x: Array, out: Array, root: int = -1) -> Array:
        """Return `out`, filled by the collective operation of this name; all arguments are checked."""

    def _prepare_all_reduce(self, x: Array, out: Array) -> Callable[[], Array]:
        return partial(self._collective, "all_reduce", x, out)

    @abstractmethod
    def _start_all_reduce(self, x: Array, out: Array) -> Pending: ...
    @abstractmethod
    def _send(self, x: Array, to: int) -> None: ...
    @abstractmethod
    def _receive(self, x: Array, source: int) -> None: ...
    @abstractmethod
    def _barrier(self) -> None: ...

    def close(self) -> None:  # noqa: B027
        """Deliver what was sent, and leave the group. An engine without processes has nothing to do.

        Raises RankError for a message that nobody has received.
        """

    def fail(self, error: BaseException) -> None:  # noqa: B027
        """Tell all other ranks that this one ends by an error. An engine without processes has nobody to tell."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.fail(error)
            return
        try:
            self.close()
        except BaseException as late:
            self.fail(late)
            raise

    def _check_rank(self, name: str, rank: Any, other: bool = False) -> None:
        check_whole(name, rank, 0)
        if rank >= self.size:
            raise ValueError(f"{name} is {rank}; expected a rank from 0 to {self.size - 1}")
        if other and rank == self.rank:
            raise ValueError(f"{name} is {rank}, this rank itself; expected another one")

    def __repr__(self) -> str:
        return f"<rank {self.rank} of {self.size}, {self.engine}>"


def _contiguous(name: str, x: Array) -> Array:
    check_array(name, x)
    if not x.flags.c_contiguous:
        raise ValueError(f"{name} {x.shape} is not contiguous: pass a copy, such as {name}.copy()")
    if not x.dtype.isnative:
        raise ValueError(f"{name} is of dtype {x.dtype}; expected this machine's order of bytes, {x.dtype.name}")
    if x.ndim > MOST_AXES:
        raise ValueError(f"{name} has {x.ndim} axes; expected at most {MOST_AXES}")
    return x


def _writable(name: str, x: Array) -> Array:
    if not getattr(x.flags, "writeable", True):  # CuPy's arrays have no such flag
        raise ValueError(f"{name} is read-only; expected an array that can be written to")
    return x


def _result(x: Array, shape: tuple[int, ...], out: Array | None) -> Array:
    """`out`, or a new array of this shape."""
    if out is None:
        return array_module(x).empty(shape, dtype=x.dtype)
    _writable("out", _contiguous("out", out))
    check_shape("out", out, shape, "x")
    overlap = getattr(array_module(x, out), "may_share_memory", None)  # the simulated GPU has none, and copies
    if out is not x and overlap is not None and overlap(x, out):  # exact, as both are contiguous
        raise ValueError("out overlaps x; expected x itself, or an array that shares no memory with x")
    if out.dtype != x.dtype:
        raise TypeError(f"out is of dtype {out.dtype}, x of {x.dtype}; expected the same")
    return out
