"""Ranks in processes over MPI: the interface's results, and that whatever goes wrong is named and leaves no process."""

import itertools
import os
import signal
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

pytest.importorskip("mpi4py", reason="MPI is not installed: pip install -e '.[mpi]'")
pytest.importorskip("cloudpickle", reason="cloudpickle is not installed: pip install -e '.[mpi]'")

from mpi_ranks import LONG, SHORT, SURELY

from unrolled import parallel
from unrolled.checks.limits import time_limit
from unrolled.parallel import launch, mpi_start, store
from unrolled.parallel.mpi import ANSWER_SECONDS

pytestmark = pytest.mark.usefixtures("_no_rank_left")


@pytest.fixture(scope="module")
def found():
    """What three ranks, started once, find in each of these programs."""
    programs = {"all": everything, "ahead": ahead, "another shape": another_shape}
    programs |= {number: partial(caught, program=case[0]) for number, case in enumerate(DISAGREE)}
    results = run(lambda comm: {name: program(comm) for name, program in programs.items()}, ranks=3)
    return {name: [result[name] for result in results] for name in programs}


def run(program, *arguments, ranks=2, timeout=LONG, **named):
    return parallel.run(program, *arguments, ranks=ranks, engine="mpi", timeout=timeout, **named)


def everything(comm):
    """All operations on each dtype, as (got, expected)."""
    found, values = [], np.random.default_rng(0).integers(0, 9, (3, 6, 3))
    right, left, rows = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size, 6 // comm.size
    for dtype in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64"):
        all_values = values.astype(dtype)
        x, total = all_values[comm.rank], all_values.sum(axis=0).astype(dtype)
        pending = comm.start_all_reduce(x)
        found += [(comm.all_reduce(x), total), (comm.all_gather(x), all_values.reshape(-1, 3))]
        found += [(comm.reduce_scatter(x), total[comm.rank * rows : (comm.rank + 1) * rows])]
        found += [(comm.broadcast(x, comm.size - 1), all_values[-1]), (pending.wait(), total)]
        comm.send(x, right)
        comm.send(x[0], right)
        found += [(comm.receive(np.empty_like(x), left), all_values[left])]
        found += [(comm.receive(np.empty_like(x[0]), left), all_values[left, 0])]
        comm.barrier()
        x = x.copy()
        assert comm.all_reduce(x, out=x) is x
        found += [(x, total)]
    return found


def test_operations_give_what_numpy_gives(found):
    for got, expected in itertools.chain(*found["all"]):
        np.testing.assert_array_equal(got, expected, strict=True)


def ahead(comm):
    """The others begin their sums only after rank 0 has begun them, and has computed and sent something since."""
    sums = [np.full(size, comm.rank + 1.0) for size in (3, 100_000)]
    if comm.rank:
        comm.receive(np.empty(1), 0)
    begun = [comm.start_all_reduce(x) for x in sums]
    if comm.rank == 0:
        for other in (1, 2):
            comm.send(np.zeros(1), other)
        for other in (1, 2):
            comm.receive(np.empty(1), other)  # in which the sums go on
    else:
        for pending in begun:
            pending.wait()
        comm.send(np.zeros(1), 0)
    comm.barrier()
    return [set(pending.wait().tolist()) for pending in begun]


def test_a_sum_begins_without_those_who_come_late(found):
    assert found["ahead"] == [[{6.0}, {6.0}]] * 3


def test_the_program_gets_all_named_arguments_and_one_blas_thread_and_its_prints_come_through(capfd):
    def program(comm, **named):
        import threadpoolctl

        print(f"this is rank {comm.rank}", flush=True)
        named["network"].append(comm.rank)  # each rank's own
        return named, {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}

    found = run(program, seed=7, link="mine", network=[])
    assert found == [({"seed": 7, "link": "mine", "network": [rank]}, {1}) for rank in (0, 1)]
    printed = capfd.readouterr().out
    assert "this is rank 0" in printed
    assert "this is rank 1" in printed


SHAPES = "all_reduce of float64 (3,)", "all_reduce of float64 (4,)"
ROOTS = "broadcast from rank 0 of float64 (3,)", "broadcast from rank 1 of float64 (3,)"
GATHER = "all_gather of float64 (3,)", "barrier"
DISAGREE = [
    (lambda comm: comm.all_reduce(np.zeros(4 if comm.rank == 1 else 3)), *SHAPES),
    (lambda comm: comm.start_all_reduce(np.zeros(4 if comm.rank == 1 else 3)).wait(), *SHAPES),
    (lambda comm: comm.broadcast(np.zeros(3), root=int(comm.rank == 1)), *ROOTS),
    (lambda comm: comm.barrier() if comm.rank == 1 else comm.all_gather(np.zeros(3)), *GATHER),
]


def caught(comm, program):
    """What a program that disagrees raises."""
    try:
        program(comm)
    except parallel.MismatchError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("number", range(len(DISAGREE)))
def test_ranks_that_disagree_are_named_with_both_lines_on_all_of_them(number, found):
    program, *called = DISAGREE[number]
    usual, other = (f"calls {call} in <lambda>:{program.__code__.co_firstlineno}" for call in called)
    assert found[number] == [
        f"ranks disagree: rank 1 {other}; rank 0 {usual}",
        f"ranks disagree: rank 0 {usual}; rank 1 {other}",
        f"ranks disagree: rank 1 {other}; rank 2 {usual}",
    ]


def another_shape(comm):
    if comm.rank == 0:
        comm.send(np.zeros(10**5), 1)
        comm.send(np.ones(3), 1)
    if comm.rank != 1:
        return None
    says = caught(comm, lambda comm: comm.receive(np.empty(3), 0))
    return says, comm.receive(np.empty(3), 0).tolist()


def test_a_message_of_another_shape_is_named_and_not_taken_for_the_next_one(found):
    says, values = found["another shape"][1]
    assert "rank 0 calls send of float64 (100000,) in " in says
    assert "rank 1 calls receive from rank 0 of float64 (3,) in " in says
    assert values == [1.0, 1.0, 1.0]


def endless(comm):
    """It computes for ever, and leaves the core to others in between."""
    while comm.rank:
        sum(range(10**6))
        time.sleep(0.1)
    comm.barrier()


def killed(comm):
    """The others add up, long enough to be met in the middle."""
    if comm.rank:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        comm.all_reduce(np.ones(2**20))


class Unreadable:
    """What raises an error in those who get it."""

    def __reduce__(self):
        return divmod, (1, 0)


def unmatched(comm):
    if comm.rank == 0:
        comm.send(np.zeros(3), 1)
        comm.send(np.zeros(10**6), 1)
    else:
        comm.receive(np.empty(3), 0)


def late(comm):
    if comm.rank:  # later than others answer who are asked where they wait
        time.sleep(ANSWER_SECONDS + 0.5)
    comm.receive(np.empty(3), 1 - comm.rank)


def waits(rank):
    return f"rank {rank} waits in receive from rank {1 - rank}"


WRONG = {
    "work that cannot be read": (
        lambda comm, work=Unreadable(): comm.barrier(),  # noqa: B008
        parallel.RankError,
        "rank [01] raised ZeroDivisionError",
    ),
    "a deadlock of ranks that come one after the other": (
        late,
        parallel.DeadlockError,
        f"{waits(0)} .*; {waits(1)}|{waits(1)} .*; {waits(0)}",
    ),
    "a rank that returns early": (
        lambda comm: comm.rank and comm.barrier(),
        parallel.DeadlockError,
        "rank 1 waits in barrier in .*; rank 0 has returned|rank 0 has returned; rank 1 waits in barrier in ",
    ),
    "a message that nobody receives": (
        unmatched,
        parallel.RankError,
        r"rank 0's send to rank 1 of float64 \(1000000,\) in test_parallel_mpi.py"
        rf":{unmatched.__code__.co_firstlineno + 3} was never received",
    ),
    "an endless rank": (endless, parallel.RankError, "rank 0 waits in barrier in .*; rank 1 waits for nobody"),
    "a frozen rank": (
        lambda comm: (comm.rank and os.kill(os.getpid(), signal.SIGSTOP)) or comm.barrier(),
        parallel.RankError,
        "rank 1 has given no sign of life for 5 s|rank 1 waits for nobody",
    ),
    "an error": (lambda comm: 1 / (comm.rank - 1), parallel.RankError, "rank 1 raised ZeroDivisionError(.|\n)*line"),
    "a result that cannot be brought here": (
        lambda comm: (x for x in "x") if comm.rank else None,
        parallel.RankError,
        "rank 1 raised TypeError: the result of rank 1 cannot go to another process: cannot pickle 'generator'",
    ),
    "a kill": (killed, parallel.RankError, "rank 1 died"),
}
IN_VAIN = {name for name in WRONG if name.startswith(("a deadlock", "an endless", "a frozen"))}


@pytest.mark.parametrize("name", WRONG)
def test_what_goes_wrong_is_named_and_leaves_no_process(name):
    program, error, says = WRONG[name]
    with pytest.raises(error, match=says), time_limit(120):
        run(program, timeout=SHORT if name in IN_VAIN else LONG)


def test_a_thread_that_never_ends_keeps_nobody_from_the_results(monkeypatch):
    """MPI's own end waits for the process that the thread keeps."""
    monkeypatch.setattr(mpi_start, "END_SECONDS", 0.5)

    def program(comm):
        if comm.rank == 1:
            threading.Thread(target=time.sleep, args=(10**6,)).start()
        return comm.rank

    with time_limit(120):
        assert run(program) == [0, 1]


def test_a_rank_may_work_longer_than_the_others_wait():
    """Its message is large: the sender, who has returned, still has to deliver it."""

    def program(comm):
        if comm.rank == 0:
            comm.send(np.ones(10**6), 1)
            return 0
        time.sleep(4.5)
        return comm.receive(np.empty(10**6), 0).sum()

    assert run(program, timeout=4.0) == [0, 10**6]


def test_an_engine_and_a_library_that_are_not_there_are_named(monkeypatch):
    def program(comm):
        return None

    program.__module__ = "__main__"
    monkeypatch.setattr(mpi_start, "find_spec", lambda name: None)
    with pytest.raises(parallel.NoEngineError, match=r"function of a notebook or script .* pip install cloudpickle"):
        run(program)
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(parallel.NoEngineError, match="pip install mpi4py mpich"):
        run(lambda comm: None)
    with pytest.raises(ValueError, match="engine is 'gloo'; expected one of auto, emulation, mpi, nccl"):
        parallel.run(lambda comm: None, engine="gloo")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), "a", None, True])
def test_a_timeout_that_is_none_is_named(timeout):
    for start in (lambda: run(lambda comm: None, timeout=timeout), lambda: parallel.world(timeout=timeout)):
        with pytest.raises((TypeError, ValueError), match=f"timeout is {timeout!r}; expected".replace("'", ".")):
            start()


def test_a_rank_that_never_comes_is_named(tmp_path, monkeypatch):
    """It freezes before anything of ours runs, and MPI lets the others wait for it."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal\n"
        f"if '1' in map(os.environ.get, {launch.MPI_RANKS}):\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(store, "START_SECONDS", SURELY)
    with pytest.raises(parallel.RankError, match=r"ranks? (0, )?1 (is|are) not there after 1 s"), time_limit(120):
        run(lambda comm: None, timeout=SURELY)


def test_auto_takes_what_is_there(monkeypatch):
    assert launch.chosen(1) == launch.chosen(10_000) == "emulation"
    monkeypatch.setattr(launch.os, "sched_getaffinity", lambda process: range(2))
    assert launch.chosen(2) == "mpi"
    monkeypatch.setattr(mpi_start.shutil, "which", lambda name: None)
    monkeypatch.setattr(mpi_start.sys, "executable", "/nowhere/python")
    assert launch.chosen(2) == "emulation"
    assert parallel.run(lambda comm: comm.engine, ranks=2) == ["emulation"] * 2
