"""The NCCL engine where there is no GPU: what it says, and with a fake CuPy how ranks start and what goes wrong."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from unrolled.parallel import DeadlockError, MismatchError, NoEngineError, RankError, calls, launch
from unrolled.parallel.calls import place
from unrolled.parallel.nccl_start import _why, packed, run_nccl, variables, world
from unrolled.parallel.store import FOUND_BY

LAUNCHED = {"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node7", "MASTER_PORT": "29500"}


def cupy_that_sees(monkeypatch: pytest.MonkeyPatch, count: int, available: bool = True) -> None:
    """Let a CuPy be there that sees so many GPUs."""
    runtime = SimpleNamespace(getDeviceCount=lambda: count, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(runtime=runtime, nccl=SimpleNamespace(available=available))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda, __version__="fake"))
    monkeypatch.setitem(sys.modules, "cupy.cuda", cuda)


def test_what_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(NoEngineError, match=r'engine "nccl" needs CuPy .*pip install -e ".\[gpu\]"'):
        run_nccl(print, ranks=2)
    cupy_that_sees(monkeypatch, 2, available=False)
    with pytest.raises(NoEngineError, match="needs NCCL, which CuPy fake does not find"):
        run_nccl(print, ranks=2)
    cupy_that_sees(monkeypatch, 1)
    with pytest.raises(NoEngineError, match="needs a GPU a rank: 2 are asked for, 1 are there"):
        run_nccl(print, ranks=2)
    for name, value in (LAUNCHED | {"LOCAL_RANK": "1"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NoEngineError, match="rank 1 is to take GPU 1; this machine has 1"):
        world()


def test_a_launchers_variables_say_who_is_who():
    assert variables(LAUNCHED) == (1, 4, "node7", 29500)
    assert variables(LAUNCHED | {"TORCHELASTIC_USE_AGENT_STORE": "True"}) == (1, 4, "node7", 29501)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"RANK": "", "MASTER_PORT": ""}, "RANK, MASTER_PORT not set"),
        ({"RANK": "one"}, "whole numbers: .*'one'"),
        ({"RANK": "4"}, "RANK is 4 and WORLD_SIZE 4; expected a rank from 0"),
        ({"RANK": "-1"}, "RANK is -1"),
        ({"MASTER_PORT": "65535"}, "MASTER_PORT is 65535; expected"),
    ],
)
def test_wrong_variables_are_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        variables(LAUNCHED | wrong)


@pytest.mark.parametrize(
    ("environment", "gpus", "found"),
    [
        ({}, 2, False),
        ({"MASTER_ADDR": "node7"}, 2, False),
        (LAUNCHED, 2, True),
        (LAUNCHED, 0, True),  # an error: its ranks could not find each other otherwise
        (LAUNCHED | {"PMI_RANK": "1"}, 0, False),
        (LAUNCHED | {"PMIX_RANK": "1"}, 2, True),
        (LAUNCHED | {"RANK": "0", "WORLD_SIZE": "1"}, 0, False),
        (LAUNCHED | {"RANK": "0", "WORLD_SIZE": "1"}, None, False),
    ],
)
def test_a_script_takes_what_its_launcher_and_its_machine_have(environment, gpus, found, monkeypatch):
    for name in (*FOUND_BY, *launch.MPI_RANKS):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "cupy", None)
    if gpus is not None:
        cupy_that_sees(monkeypatch, gpus)
    assert launch._found_by_variables() == found


def test_a_program_in_a_folder_beside_the_package_is_not_taken_for_it():
    beside = str(Path(calls.__file__).parent) + "_mine/program.py"
    found: dict[str, Any] = {"place": place}
    exec(compile("\n\nwhere = place()", beside, "exec"), found)
    assert found["where"] == (beside, 3)


def test_what_cannot_go_to_another_process_is_named():
    with pytest.raises(TypeError, match="function and arguments cannot go to another process"):
        packed((print, (x for x in ()), {}))


def test_the_error_of_one_rank_explains_the_end_of_another():
    error = {"kind": "RankError", "text": "rank 1 raised KeyError"}
    silent, failed = mock.Mock(**{"poll.return_value": False}), mock.Mock(**{"recv.return_value": (False, error)})
    why = _why([0], [silent, failed], {}, None)  # type: ignore[arg-type, list-item]
    assert isinstance(why, RankError)
    assert str(why) == "rank 1 raised KeyError"


FAKE = Path(__file__).parent / "fake_cupy"
LONG = 60.0  # seconds that a rank may wait where something happens
SHORT = 5.0  # where it waits in vain


@pytest.fixture
def fake_cupy(monkeypatch, tmp_path):
    """Put a fake CuPy in the place of the real one, in the processes of ranks too; their files are removed."""
    monkeypatch.syspath_prepend(str(FAKE))
    monkeypatch.setenv("PYTHONPATH", str(FAKE), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "cupy"}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
        del sys.modules[name]
    sys.modules.update(known)


def zeros(count: int, dtype: Any = np.float32) -> Any:
    import cupy as cp

    return cp.zeros(count, dtype=dtype)


def collectives(comm: Any) -> list[Any]:
    x = zeros(4) + comm.rank + 1
    begun = [comm.start_all_reduce(x * 2), comm.start_all_reduce(x * 3)]
    comm.barrier()
    found = [comm.prepare_all_reduce(x)(), comm.reduce_scatter(x), comm.all_gather(x), comm.broadcast(x, root=1)]
    return [np.asarray(each).tolist() for each in (*found, *(each.wait() for each in begun))]


def messages(comm: Any, shift: float) -> list[float]:
    other = 1 - comm.rank
    for number in range(3):
        x = zeros(2) + comm.rank + number + shift
        comm.send(x, other)
        x.fill(-1)
    return [float(comm.receive(zeros(2), other)[0]) for _ in range(3)]


def all_of_them(comm: Any, shift: float) -> tuple[Any, ...]:
    found = collectives(comm), messages(comm, shift)
    wrong = []
    for x in (np.zeros(3, dtype=np.float32), zeros(3, dtype=bool), zeros(6)[::2]):
        try:
            comm.all_reduce(x)
        except (TypeError, ValueError) as error:
            wrong.append(str(error))
    return *found, wrong


@pytest.mark.usefixtures("fake_cupy")
def test_what_two_ranks_find():
    """Sums, messages that wait for nobody and keep values and order, errors in words."""
    sums, received, wrong = zip(*run_nccl(all_of_them, named={"shift": 0.5}), strict=True)
    assert sums == ([[3.0] * 4, [3.0] * 2, [1.0] * 4 + [2.0] * 4, [2.0] * 4, [6.0] * 4, [9.0] * 4],) * 2
    assert received == ([1.5, 2.5, 3.5], [0.5, 1.5, 2.5])
    for host, dtype, strided in wrong:
        assert "engine nccl carries CuPy's: cupy.asarray(x)" in host
        assert "dtype bool; NCCL carries float16" in dtype
        assert "not contiguous" in strided


def raises(comm: Any) -> None:
    comm.barrier()
    if comm.rank:
        raise KeyError("ours")
    comm.barrier()


def signals(comm: Any, name: str) -> None:
    comm.barrier()
    if comm.rank:
        os.kill(os.getpid(), signal.Signals[name])
    comm.barrier()


def differ(comm: Any) -> None:
    comm.all_reduce(zeros(4 + comm.rank))


def differ_in_message(comm: Any) -> None:
    comm.receive(zeros(4), 0) if comm.rank else comm.send(zeros(4, np.float64), 1)


def all_wait(comm: Any) -> None:
    comm.receive(zeros(4), 1 - comm.rank)


def nobody_receives(comm: Any) -> None:
    comm.rank or comm.send(zeros(4), 1)


dies, freezes = (partial(signals, name=name) for name in ("SIGKILL", "SIGSTOP"))


CALL = r"of float32 \(4,\) in test_parallel_nccl.py:\d+"


@pytest.mark.usefixtures("fake_cupy")
@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (differ, MismatchError, rf"all_reduce {CALL}"),
        (differ_in_message, MismatchError, rf"rank 1 calls receive {CALL}; rank 0 calls send of float64"),
        (raises, RankError, "rank 1 raised KeyError: 'ours'"),
        (dies, RankError, "rank 1 died"),
        (freezes, RankError, "rank 1 has given no sign of life for 5 s"),
        (all_wait, DeadlockError, rf"rank \d waits in receive {CALL}; rank \d waits in receive {CALL}"),
        (nobody_receives, RankError, "waits in the end, for rank 1 to receive what was sent to it"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_goes_wrong_is_named_and_no_process_is_left(function, kind, words):
    with pytest.raises(kind, match=words):
        run_nccl(function, timeout=SHORT if function in (freezes, all_wait, nobody_receives) else LONG)
    assert multiprocessing.active_children() == []


SCRIPT = """
import cupy as cp
from unrolled.parallel.nccl_start import world
with world(timeout=float({timeout})) as comm:
    assert float(comm.all_reduce(cp.full(3, comm.rank + 1.0, dtype="float32")).max()) == 3
print("good from", comm.rank)
"""


def start(rank: int, port: int, timeout: float) -> subprocess.Popen[str]:
    variables = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    command, pipe = [sys.executable, "-c", SCRIPT.format(timeout=timeout)], subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | variables, text=True, stdout=pipe, stderr=pipe)


@pytest.fixture
def own_port() -> Iterator[int]:
    """A port that no other program gets meanwhile: bound here, and nobody listens before rank 0 does."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        yield int(probe.getsockname()[1])


@pytest.mark.usefixtures("fake_cupy")
def test_processes_meet_by_environment_variables(own_port):
    started = {rank: start(rank, own_port, 60) for rank in (1, 0)}
    for rank, process in started.items():
        printed, errors = process.communicate()
        assert printed == f"good from {rank}\n", errors


@pytest.mark.usefixtures("fake_cupy")
def test_a_rank_too_few_is_named(own_port):
    _, errors = start(0, own_port, 1.0).communicate()
    missing = "rank 1 is not there after 1 s: were all 2 ranks started?"
    start_waits = "no progress for 1 s: rank 0 waits in the start of NCCL; rank 1 waits for nobody"  # found out first
    assert f"RankError: {missing}" in errors or f"RankError: {start_waits}" in errors
