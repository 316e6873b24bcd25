"""Starting ranks that talk through NCCL: from here, or as one of many that `torchrun` or `srun` has started."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from unrolled.ops.arguments import check_whole
from unrolled.parallel.errors import NoEngineError, ParallelError, RankError
from unrolled.parallel.member import Member
from unrolled.parallel.nccl import NcclCommunicator, gpus, load
from unrolled.parallel.packing import failure_of, packed
from unrolled.parallel.store import FOUND_BY, Store, StoreServer, error_of

HOST = "127.0.0.1"
END_SECONDS = 5.0  # that a process has to end by itself, once its work is done or lost


def run_nccl(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
    ranks: int = 2,
    timeout: float = 30.0,
) -> list[Any]:
    """Call function(comm, *args, **named) in `ranks` processes, one a GPU, and return their results by rank.

    A rank may wait for others `timeout` seconds. Raises NoEngineError where there are too few GPUs, and RankError or
    what else ParallelError has for what goes wrong between ranks. No process is left then. A script that calls this
    needs `if __name__ == "__main__":`, as for `multiprocessing`.
    """
    check_whole("ranks", ranks)
    there = gpus()
    if ranks > there:
        raise NoEngineError(f'engine "nccl" needs a GPU a rank: {ranks} are asked for, {there} are there')
    server = StoreServer(HOST, 0, ranks, timeout)
    context = multiprocessing.get_context("spawn")
    work = packed((function, tuple(args), dict(named or {})))
    pipes, processes = [], []
    try:
        for rank in range(ranks):
            ours, theirs = context.Pipe(duplex=False)
            world = (rank, ranks, server.server_address[1], timeout)
            process = context.Process(target=_rank, args=(theirs, work, *world), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        return _results(pipes, server)
    finally:
        _end(processes)
        server.close()


def world(timeout: float = 30.0) -> NcclCommunicator:
    """Return the group that this process was started in, by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    `torchrun` sets them; with `srun`, set RANK=$SLURM_PROCID and WORLD_SIZE=$SLURM_NTASKS. LOCAL_RANK is the GPU to
    take, else RANK modulo the GPUs of this machine. Rank 0 listens at MASTER_PORT (the next port where torchrun's agent
    holds that one itself). Raises ValueError for variables that are missing or wrong, NoEngineError, ParallelError.
    """
    rank, size, host, port = variables(os.environ)
    cupy, _ = load()
    there = gpus()
    local = int(os.environ.get("LOCAL_RANK", rank % max(1, there)))
    if local >= there:
        raise NoEngineError(f"rank {rank} is to take GPU {local}; this machine has {there}, numbered from 0")
    server = StoreServer(HOST if host in (HOST, "localhost") else "", port, size, timeout) if rank == 0 else None
    cupy.cuda.Device(local).use()
    store = Store(HOST if server else host, port, rank, size, timeout)
    member = NcclMember(rank, size, store, timeout)
    member.server = server
    return member


class NcclMember(Member, NcclCommunicator):
    """A rank that `torchrun` or `srun` has started."""


def variables(environment: Mapping[str, str]) -> tuple[int, int, str, int]:
    """Return rank, size, host and port, as a launcher's variables say. Raises ValueError where they do not."""
    missing = [name for name in FOUND_BY if not environment.get(name)]
    if missing:
        raise ValueError(f"{', '.join(missing)} not set; expected {', '.join(FOUND_BY)}, as torchrun sets them")
    try:
        rank, size, port = (int(environment[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    except ValueError as error:
        raise ValueError(f"RANK, WORLD_SIZE and MASTER_PORT are whole numbers: {error}") from None
    if not 0 <= rank < size:
        raise ValueError(f"RANK is {rank} and WORLD_SIZE {size}; expected a rank from 0 to WORLD_SIZE - 1")
    if not 0 < port < 65535:
        raise ValueError(f"MASTER_PORT is {port}; expected a port from 1 to 65534")
    return rank, size, environment["MASTER_ADDR"], port + (environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True")


def _rank(pipe: Connection, work: bytes, rank: int, size: int, port: int, timeout: float) -> None:
    """In a rank's process: call the function, and send (True, its result) or (False, what failed)."""
    cupy, _ = load()
    cupy.cuda.Device(rank).use()
    comm = None
    try:
        store = Store(HOST, port, rank, size, timeout)
        function, args, named = pickle.loads(work)
        with NcclCommunicator(rank, size, store, timeout) as comm:
            result = packed(function(comm, *args, **named), f"the result of rank {rank}")
    except BaseException as error:
        pipe.send((False, failure_of(rank, error)))
        os._exit(1)  # what NCCL still has under way must not hold this process
    pipe.send((True, result))


def _results(pipes: list[Connection], server: StoreServer) -> list[Any]:
    """Return the results of all ranks, or raise the first failure."""
    results: dict[int, Any] = {}
    while len(results) < len(pipes):
        lost: list[int] = []
        for pipe in wait([pipe for rank, pipe in enumerate(pipes) if rank not in results]):
            rank = pipes.index(pipe)  # type: ignore[arg-type]
            try:
                done, value = pipes[rank].recv()
            except EOFError:
                lost.append(rank)
                continue
            if not done:
                raise error_of(value)
            results[rank] = pickle.loads(value)
        if lost:
            raise _why(lost, pipes, results, server)
    return [results[rank] for rank in range(len(pipes))]


def _why(lost: list[int], pipes: list[Connection], results: Mapping[int, Any], server: StoreServer) -> ParallelError:
    """Why ranks have ended without a word: another rank's error, else the first failure that the store heard of."""
    for rank in set(range(len(pipes))) - set(lost) - set(results):
        with suppress(EOFError, OSError):
            if pipes[rank].poll():
                done, value = pipes[rank].recv()
                if not done:
                    return error_of(value)
    with server.changed:
        server.changed.wait_for(lambda: server.failure, END_SECONDS)
    return error_of(server.failure) if server.failure else RankError(f"rank {lost[0]} died")


def _end(processes: list[Any]) -> None:
    """Leave no process: wait a little for those that are ending, then kill."""
    end = time.monotonic() + (END_SECONDS if sys.exc_info()[0] is None else 0.0)
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
