"""Running a program on many ranks, by the engine that is there."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from unrolled.ops.arguments import check_whole
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.emulation import emulate
from unrolled.parallel.errors import NoEngineError

ENGINES = ("auto", "emulation", "mpi", "nccl")


def run(
    program: Callable[..., Any],
    *arguments: Any,
    ranks: int = 2,
    engine: str = "auto",
    timeout: float = 20.0,
    **named: Any,
) -> list[Any]:
    """Call program(communicator, *arguments, **named) on `ranks` ranks; return their results by rank.

    engine "mpi" starts processes, one BLAS thread each; "nccl" processes with a GPU each; "emulation" threads that take
    turns in this process. "auto" takes "mpi" where that works, with cloudpickle, which carries functions of a
    notebook, and there is a core a rank, else "emulation". A rank may wait `timeout` seconds for others.

    Raises what `emulate` raises; in processes RankError where a rank raised an error, died or hung: its text says which
    and why. Raises NoEngineError for an engine that is not there.
    """
    check_whole("ranks", ranks)
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; expected one of {', '.join(ENGINES)}")
    if engine == "auto":
        engine = chosen(ranks)
    if engine == "emulation":
        return emulate(program, *arguments, ranks=ranks, **named)
    if engine == "nccl":
        from unrolled.parallel.nccl_start import run_nccl

        return run_nccl(program, arguments, named, ranks, timeout)
    from unrolled.parallel.mpi_start import run_mpi

    return run_mpi(program, arguments, named, ranks, timeout)


def world(engine: str = "auto", timeout: float = 20.0) -> Communicator:
    """Return the group that this process was started in, for a script: use it as a context.

    engine "mpi" is for `mpiexec -n 2 python script.py`; alone, the script is a group of one rank. "nccl" is for
    `torchrun` or `srun`, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set: a GPU a rank. "auto" takes "nccl"
    where MASTER_ADDR is set, else "mpi". Raises NoEngineError for an engine that is not there.
    """
    if engine not in ("auto", "mpi", "nccl"):
        raise ValueError(f"engine is {engine!r}; expected one of auto, mpi, nccl")
    if engine == "nccl" or (engine == "auto" and "MASTER_ADDR" in os.environ):
        from unrolled.parallel import nccl_start

        return nccl_start.world(timeout)
    from unrolled.parallel import mpi_start

    return mpi_start.world(timeout)


def chosen(ranks: int) -> str:
    """Return the engine that "auto" takes for so many ranks on this machine: "mpi" or "emulation"."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not 1 < ranks <= cores or find_spec("cloudpickle") is None:
        return "emulation"
    from unrolled.parallel.mpi_start import launcher

    try:
        launcher()
    except NoEngineError:
        return "emulation"
    return "mpi"
