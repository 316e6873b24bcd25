"""Running a program on many ranks, by the engine that is there."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from importlib.util import find_spec
from numbers import Real
from typing import Any

from unrolled.ops.arguments import check_whole
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.emulation import run_emulated
from unrolled.parallel.errors import NoEngineError
from unrolled.parallel.network import Network
from unrolled.parallel.store import FOUND_BY

ENGINES = ("auto", "emulation", "mpi", "nccl")
MPI_RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Environment variables of which MPI's launchers set one."""


def run(
    program: Callable[..., Any],
    *arguments: Any,
    ranks: int = 2,
    engine: str = "auto",
    timeout: float = 20.0,
    **named: Any,
) -> list[Any]:
    """Call `program(communicator, *arguments, **named)` on `ranks` ranks; return their results by rank.

    engine "mpi" starts processes, one BLAS thread each; "nccl" processes with a GPU each; "emulation" threads that take
    turns in this process. "auto" takes "mpi" where that works, with cloudpickle, which carries functions of a
    notebook, and there is a core a rank, else "emulation". It never takes "nccl", which carries CuPy's arrays alone: a
    program on NumPy's would run on one machine and fail on the next. A rank may wait `timeout` seconds for others;
    nothing limits emulated ones, whose deadlocks are known at once.

    Raises what `emulate` raises; in processes RankError where a rank raised an error, died or hung: its text says which
    and why. Raises NoEngineError for an engine that is not there.
    """
    check_whole("ranks", ranks)
    _check_timeout(timeout)
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}")
    if engine == "auto":
        engine = chosen(ranks)
    if engine == "emulation":
        return run_emulated(program, arguments, named, Network(ranks))
    if engine == "nccl":
        from unrolled.parallel.nccl_start import run_nccl

        return run_nccl(program, arguments, named, ranks, timeout)
    from unrolled.parallel.mpi_start import run_mpi

    return run_mpi(program, arguments, named, ranks, timeout)


def world(engine: str = "auto", timeout: float = 20.0) -> Communicator:
    """Return the group that this process was started in, for a script: use it as a context.

    engine "mpi" is for `mpiexec -n 2 python script.py`; alone, the script is a group of one rank. "nccl" is for
    `torchrun` or `srun`, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set: a GPU a rank. "auto" takes "nccl"
    where all four are set, and else "mpi"; on a machine without a GPU, "mpi" also where MPI has started the ranks, or
    there is but one. Raises NoEngineError for an engine that is not there.
    """
    if engine not in ("auto", "mpi", "nccl"):
        raise ValueError(f"engine is {engine!r}; expected one of auto, mpi, nccl")
    _check_timeout(timeout)
    if engine == "nccl" or (engine == "auto" and _found_by_variables()):
        from unrolled.parallel import nccl_start

        return nccl_start.world(timeout)
    from unrolled.parallel import mpi_start

    return mpi_start.world(timeout)


def _check_timeout(timeout: float) -> None:
    """Raise TypeError unless it is a number, ValueError unless it is a time that can pass."""
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise TypeError(f"timeout is {timeout!r}; expected a number of seconds")
    if not 0 < timeout <= threading.TIMEOUT_MAX:
        raise ValueError(f"timeout is {timeout}; expected seconds above 0")


def _found_by_variables() -> bool:
    """Whether ranks are to find each other by `FOUND_BY`, and talk through NCCL."""
    if not all(os.environ.get(name) for name in FOUND_BY):
        return False
    if os.environ["WORLD_SIZE"] != "1" and not any(name in os.environ for name in MPI_RANKS):
        return True  # without GPUs an error: over MPI each process would be a group of its own, and not notice
    from unrolled.parallel.nccl import gpus

    try:
        return gpus() > 0
    except NoEngineError:
        return False


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen(ranks: int) -> str:
    """Return the engine that "auto" takes for so many ranks on this machine: "mpi" or "emulation"."""
    if not 1 < ranks <= cores() or find_spec("cloudpickle") is None:
        return "emulation"
    from unrolled.parallel.mpi_start import launcher

    try:
        launcher()
    except NoEngineError:
        return "emulation"
    return "mpi"
