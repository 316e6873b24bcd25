"""Ranks on real GPUs through NCCL: results, overlap, messages, graphs, training, and what goes wrong."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

from unrolled import data, nn, parallel
from unrolled.device import to_host
from unrolled.nn import optim
from unrolled.parallel import DeadlockError, MismatchError, NoEngineError, RankError
from unrolled.parallel.nccl import gpus
from unrolled.parallel.nccl_start import run_nccl

cp: Any = pytest.importorskip("cupy", reason='CuPy is not installed: pip install -e ".[gpu]"')

MB = 1 << 18  # elements of float32


@cache
def here() -> int:
    try:
        return gpus()
    except NoEngineError:
        return 0


two = pytest.mark.skipif("here() < 2", reason="fewer than 2 GPUs")


def own(comm: Any, dtype: Any = np.float32, rows: int = 4) -> Any:
    return cp.arange(rows * 3, dtype=dtype).reshape(rows, 3) + comm.rank


def collectives(comm: Any, dtype: Any) -> list[Any]:
    x = own(comm, dtype)
    out = comm.all_reduce(x)
    inside = x.copy()
    comm.all_reduce(inside, out=inside)
    parts = comm.reduce_scatter(x), comm.all_gather(x), comm.broadcast(x, root=comm.size - 1)
    under_way = [comm.start_all_reduce(x * number) for number in range(1, 4)]
    comm.barrier()
    return [to_host(each) for each in (out, inside, *parts, *(each.wait() for each in under_way), x)]


def check_collectives(results: list[Any], dtype: Any) -> None:
    ranks = len(results)
    base = np.arange(12, dtype=dtype).reshape(4, 3)
    xs = [base + np.asarray(rank, dtype) for rank in range(ranks)]
    total = sum(xs[1:], xs[0])
    for rank, result in enumerate(results):
        rows = 4 // ranks
        expected = [total, total, total[rank * rows : (rank + 1) * rows], np.concatenate(xs), xs[-1]]
        for got, want in zip(result, [*expected, total, total * 2, total * 3, xs[rank]], strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_one_rank_is_a_group(dtype):
    check_collectives(run_nccl(collectives, [dtype], ranks=1), dtype)


@two
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_two_ranks_sum_gather_and_scatter(dtype):
    check_collectives(run_nccl(collectives, [dtype], ranks=2), dtype)


def messages(comm: Any) -> list[float]:
    other = 1 - comm.rank
    x = cp.full(16 * MB, comm.rank + 1.0, dtype=np.float32)
    comm.send(x, other)  # both send first
    x.fill(-1)
    y = comm.receive(cp.empty_like(x), other)
    found = [float(y.min()), float(y.max())]
    several = [cp.full(MB, number, dtype=np.float32) for number in range(3)]
    if comm.rank == 0:  # three on the way before one is received; the answer needs all of them
        for each in several:
            comm.send(each, 1)
        total = comm.all_reduce(cp.ones(1, dtype=np.float32))  # a collective may pass a message
        answer = comm.receive(cp.empty(MB, dtype=np.float32), 1)
    else:
        total = comm.all_reduce(cp.ones(1, dtype=np.float32))
        got = [comm.receive(cp.empty(MB, dtype=np.float32), 0) for _ in several]
        answer = got[0] + 10 * got[1] + 100 * got[2]
        comm.send(answer, 0)
    return [*found, float(total[0]), float(answer.min()), float(answer.max())]


@two
def test_a_send_waits_for_nobody_and_keeps_its_values_and_order():
    assert run_nccl(messages, ranks=2) == [[2, 2, 2, 210, 210], [1, 1, 2, 210, 210]]


def graph(comm: Any) -> float:
    x = cp.ones(MB, dtype=np.float32)
    comm.all_reduce(x, out=x)
    comm.barrier()
    stream, prepared = cp.cuda.Stream(non_blocking=True), comm.prepare_all_reduce(x, out=x)
    with stream:
        x.fill(1)
        stream.begin_capture()
        prepared()
        x *= 0.75
        captured = stream.end_capture()
        for _ in range(4):
            captured.launch(stream)
        stream.synchronize()
    return float(x.max())


@two
def test_a_graph_holds_an_all_reduce():
    assert run_nccl(graph, ranks=2) == [1.5**4] * 2


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(10), dtype=np.float64)


def drawn(count: int, *shape: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((count, *shape)), rng.integers(0, 4, count)


def train(comm: Any, images: Any, labels: Any, buckets: int, moved: bool) -> tuple[Any, list[float]]:
    ours = network().build(images.shape[1:], cp)
    train = data.Dataset(cp.asarray(images), cp.asarray(labels)) if moved else data.Dataset(images, labels)
    named = {"epochs": 2, "batch_size": 7, "optimizer": optim.SGD(0.1), "validation": train, "buckets": buckets}
    history = parallel.fit(ours, train, comm, **named)  # type: ignore[arg-type]
    return to_host(ours.parameters), [*history.loss, *history.validation_loss]


@two
@pytest.mark.parametrize("moved", [False, True], ids=["data on the host", "data on the GPU"])
@pytest.mark.parametrize("buckets", [1, 2])
def test_two_ranks_train_as_one_with_the_full_batch(buckets, moved):
    arguments = [*drawn(15, 1, 10, 10), buckets, moved]  # batches of 7, 7 and 1: rank 1 has 3 images, 3 and none
    ((one, expected),), ((first, losses), (second, _)) = (run_nccl(train, arguments, ranks=n) for n in (1, 2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, one, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(losses, expected, rtol=1e-6)


# what goes wrong


def differ(comm: Any) -> None:
    comm.all_reduce(cp.zeros(4 + comm.rank, dtype=np.float32))


def raises(comm: Any) -> None:
    comm.barrier()
    if comm.rank:
        raise KeyError("ours")
    comm.barrier()


def dies(comm: Any) -> None:
    x = cp.zeros(MB, dtype=np.float32)
    for step in range(1000):
        if comm.rank and step == 500:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.all_reduce(x, out=x)
    x.sum().get()


def freezes(comm: Any) -> None:
    comm.barrier()
    if comm.rank:
        os.kill(os.getpid(), signal.SIGSTOP)
    comm.barrier()


def all_wait(comm: Any) -> None:
    x = cp.zeros(4, dtype=np.float32)
    comm.receive(x, 1 - comm.rank)


def one_too_many(comm: Any) -> None:
    x = cp.zeros(4, dtype=np.float32)
    x.sum().get()  # loads its kernel: while the device waits, that would stop all of Python
    comm.all_reduce(x)
    if comm.rank == 0:
        comm.all_reduce(x)  # the shape is known: only the device waits
        x.sum().get()
    comm.receive(x, 1 - comm.rank)


@two
@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (
            differ,
            MismatchError,
            r"rank \d calls all_reduce of float32 .*test_gpu_parallel.py:\d+; rank \d calls all_reduce of float32",
        ),
        (raises, RankError, "rank 1 raised KeyError"),
        (dies, RankError, "rank 1 died"),
        (freezes, RankError, "rank 1 has given no sign of life"),
        (all_wait, DeadlockError, r"rank \d waits in receive of float32 \(4,\) in .*rank \d waits in receive"),
        (one_too_many, DeadlockError, r"rank 0 waits in all_reduce of float32 \(4,\) in test_gpu"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_what_goes_wrong_is_named_and_no_process_is_left(function, kind, words):
    with pytest.raises(kind, match=words):
        run_nccl(function, ranks=2, timeout=6)
    assert multiprocessing.active_children() == []


# started by others

SCRIPT = """
import cupy as cp
from unrolled.parallel.nccl_start import world
with world(timeout=float({timeout})) as comm:
    assert float(comm.all_reduce(cp.full(3, comm.rank + 1.0, dtype=cp.float32)).max()) == 3
print("good from", comm.rank)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(script: Any, rank: int, port: int) -> subprocess.Popen[str]:
    env = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(script)], env=os.environ | env, text=True, **pipes)  # type: ignore


@two
def test_processes_meet_by_environment_variables(tmp_path):
    script, port = tmp_path / "script.py", free_port()
    script.write_text(SCRIPT.format(timeout=30))
    started = [start(script, rank, port) for rank in (0, 1)]
    for rank, process in enumerate(started):
        output, errors = process.communicate()
        assert output == f"good from {rank}\n", errors


@two
def test_torchrun_starts_them(tmp_path):
    pytest.importorskip("torch", reason="torchrun is PyTorch's")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(timeout=30))
    asked = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port()), str(script)]
    done = subprocess.run([sys.executable, *asked], capture_output=True, text=True, check=False)
    assert sorted(done.stdout.split("\n")) == ["", "good from 0", "good from 1"], done.stderr
