"""Ranks that are started once and run one program after the other: what tests share that are not about their start."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from unrolled.parallel import Communicator
from unrolled.parallel.mpi_start import run_mpi


class Group:
    """`ranks` processes that talk through MPI. Call it with a program and its arguments; it returns what `run` does.

    A program that raises an error ends the group, and the error is raised here. Use it as a context.
    """

    def __init__(self, ranks: int) -> None:
        self._lines, theirs = zip(*(Pipe() for _ in range(ranks)), strict=True)
        self._error: BaseException | None = None
        handles = [line.fileno() for line in theirs]
        self._thread = threading.Thread(target=self._stand_by, args=(ranks, handles, theirs), daemon=True)
        self._thread.start()
        self(Communicator.barrier)  # they are there once this returns

    def __call__(self, program: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
        try:
            for line in self._lines:
                line.send_bytes(cloudpickle.dumps((program, arguments, named)))
            return [pickle.loads(line.recv_bytes()) for line in self._lines]
        except (EOFError, OSError):
            self._thread.join()
            raise self._error or AssertionError("the ranks ended") from None

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *exception: object) -> None:
        for line in self._lines:
            line.close()
        self._thread.join()

    def _stand_by(self, ranks: int, handles: Sequence[int], theirs: Sequence[Connection]) -> None:
        """What the thread does: wait until the ranks end, and close their ends of the lines, for whoever reads here."""
        try:
            run_mpi(_serve, (handles,), ranks=ranks, files=handles)
        except BaseException as error:
            self._error = error
        finally:
            for line in theirs:
                line.close()


def _serve(comm: Communicator, handles: Sequence[int]) -> None:
    """Be a rank: run programs until the other end of the line is closed."""
    for other in {*handles} - {handles[comm.rank]}:
        Connection(other).close()
    with Connection(handles[comm.rank]) as line:
        while True:
            try:
                program, arguments, named = pickle.loads(line.recv_bytes())
            except EOFError:
                return
            line.send_bytes(cloudpickle.dumps(program(comm, *arguments, **named)))
