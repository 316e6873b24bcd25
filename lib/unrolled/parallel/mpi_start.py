"""Starting ranks that talk through MPI: from here by `mpiexec`, or as one of those that `mpiexec` has started.

python -m unrolled.parallel.mpi_start FOLDER PORT TIMEOUT      what a rank of `run_mpi` is started as
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unrolled.ops.arguments import check_whole
from unrolled.parallel.errors import NoEngineError, RankError
from unrolled.parallel.mpi import MpiCommunicator, begun, leave, load
from unrolled.parallel.packing import failure_of, packed
from unrolled.parallel.store import Store, StoreServer, error_of

HOST = "127.0.0.1"
WORK, RESULT = "work.pickle", "result-{}.pickle"
ENOUGH = 5.0  # seconds that processes have to end by themselves, once one has failed
SOON = 1.0  # seconds that they have where nobody waits for what they do
LOOKS = 0.02  # seconds between two looks at the processes
QUIET = {"UCX_LOG_LEVEL": "fatal", "HWLOC_HIDE_ERRORS": "2"}  # where /sys is out of sight, MPI's libraries complain
KEPT = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**25))
"""glibc keeps freed memory up to so many bytes. Else each step may get its arrays anew from the system, page by page,
which takes as long again as a step's work and does not get faster with more ranks."""
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def launcher() -> str:
    """Return the path of `mpiexec`: that beside this Python, else the first one found. Raises NoEngineError."""
    load()
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise NoEngineError('engine "mpi" needs mpiexec, which is not here: pip install mpich')
    return found


def run_mpi(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    ranks: int = 2,
    timeout: float = 20.0,
    files: Sequence[int] = (),
    over: threading.Event | None = None,
) -> list[Any]:
    """Call function(comm, *args, **named) in `ranks` processes, one BLAS thread each; return their results by rank.

    What they print is printed here. A rank may wait for others `timeout` seconds, and be silent as long. The open
    `files` are theirs, too, under the same numbers. Once `over` is set, what still runs is ended. Raises NoEngineError
    without MPI, RankError or what else ParallelError has for what goes wrong. No process is left then.
    """
    check_whole("ranks", ranks)
    command = [launcher(), "-n", str(ranks), sys.executable, "-m", __name__]
    with TemporaryDirectory(prefix="unrolled-ranks-") as folder:
        Path(folder, WORK).write_bytes(packed((function, tuple(args), dict(named or {}))))
        server = StoreServer(HOST, 0, ranks, timeout)
        words = [folder, str(server.server_address[1]), str(timeout)]
        process = subprocess.Popen(
            command + words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=files,
            env={**os.environ, **dict.fromkeys(ONE_THREAD, "1"), **QUIET, **KEPT, "PYTHONPATH": _path()},
        )
        said: list[str] = []
        reader = threading.Thread(target=_pass_on, args=(process, said), daemon=True)
        reader.start()
        try:
            _await_end(process, server, over or threading.Event())
            if over is not None and over.is_set():
                raise RankError("the ranks were ended")
            reader.join(ENOUGH)
            return [pickle.loads(_result(folder, rank, process, server, said)) for rank in range(ranks)]
        finally:
            _end(process)
            server.close()


def world(timeout: float = 20.0) -> MpiCommunicator:
    """Return the group that `mpiexec` started this process in: of one rank, if nobody did.

    Use it as a context. An error in it ends all ranks. Raises NoEngineError.
    """
    comm = begun().COMM_WORLD
    server = StoreServer("", 0, comm.size, timeout) if comm.rank == 0 else None
    host, port = comm.bcast((os.uname().nodename, server.server_address[1]) if server else None)
    store = Store(HOST if server else host, port, comm.rank, comm.size, timeout)
    return _Member(store, timeout, server)


class _Member(MpiCommunicator):
    """A rank that others started; rank 0 holds the store, and stays until all have left."""

    def __init__(self, store: Store, timeout: float, server: StoreServer | None) -> None:
        self._server = server
        super().__init__(store, timeout)

    def close(self) -> None:
        super().close()
        if self._server is not None:
            self._server.wait_for_goodbyes(self.timeout)
            self._server.close()

    def fail(self, error: BaseException) -> None:
        super().fail(error)
        time.sleep(ENOUGH / 10 if self._server is not None else 0)  # the others hear of it before their line breaks
        leave(failure_of(self.rank, error))


def _path() -> str:
    return os.pathsep.join(filter(None, sys.path))


def _await_end(process: subprocess.Popen[str], server: StoreServer, over: threading.Event) -> None:
    """Wait until the processes have ended, or one has failed, or it is over, and the others have had time to end."""
    while process.poll() is None and not server.failure and not over.is_set():
        time.sleep(LOOKS)
    if server.failure or over.is_set():
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENOUGH if server.failure else SOON)


def _result(folder: str, rank: int, process: subprocess.Popen[str], server: StoreServer, said: list[str]) -> bytes:
    """What a rank returned, pickled; else the failure that is known."""
    path = Path(folder, RESULT.format(rank))
    if server.failure is None and path.exists():
        return path.read_bytes()
    if server.failure is None:
        with server.changed:
            server.changed.wait_for(lambda: server.failure, 0.5)
    if server.failure is not None:
        raise error_of(server.failure)
    last = f": {said[-1].strip()}" if said else ""
    raise RankError(f"rank {rank} ended without a result (exit code {process.returncode}){last}")


def _pass_on(process: subprocess.Popen[str], said: list[str]) -> None:
    """Print what the ranks print, and keep the last line."""
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        for line in process.stdout:
            said[:] = [line] if line.strip() else said
            print(line, end="", flush=True)


def _end(process: subprocess.Popen[str]) -> None:
    """Leave no process: a stopped one ends by SIGKILL alone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        process.stdout.close()


def main(folder: str, port: str, timeout: str) -> None:
    """Be a rank of `run_mpi`: call the function, leave its result in the folder, or say what failed."""
    function, args, named = pickle.loads(Path(folder, WORK).read_bytes())
    comm = begun().COMM_WORLD
    store = Store(HOST, int(port), comm.rank, comm.size, float(timeout))
    try:
        with MpiCommunicator(store, float(timeout)) as group:
            result = packed(function(group, *args, **named))
            Path(folder, f"{comm.rank}.part").write_bytes(result)
            os.replace(Path(folder, f"{comm.rank}.part"), Path(folder, RESULT.format(comm.rank)))
    except BaseException:  # which the group has told
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
