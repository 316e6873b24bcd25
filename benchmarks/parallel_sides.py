"""Sides of parallel.py whose ranks are processes that stay, and take turns with the other side's."""

from __future__ import annotations

import multiprocessing
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Client, Listener
from typing import Any

import numpy as np

from networks import momentum, source_a, source_b
from unrolled import nn
from unrolled.parallel import gradients
from unrolled.parallel.nccl_start import run_nccl

KEY = b"benchmarks/parallel"
BATCHES = 4  # taken in turn
END = 20.0  # seconds that the ranks of a side have to end
CLOSE = 1e-3  # of the gradient's norm, by which two sides may differ
Address = tuple[str, int]


@dataclass(frozen=True)
class Case:
    """A training step of a network by name, and how many images each rank takes."""

    network: str
    image: tuple[int, int, int]
    batch: int

    def build(self, module: Any = np) -> nn.Sequential:
        made = source_a() if self.network == "A" else source_b(256)
        return made.build(self.image, module)

    def batches(self, rank: int) -> list[tuple[Any, Any]]:
        """Return a rank's random images and labels: a step takes as long as on real ones."""
        rng = np.random.default_rng(rank)
        images = rng.random((BATCHES, self.batch, *self.image), dtype=np.float32)
        return list(zip(images, rng.integers(0, 10, (BATCHES, self.batch)), strict=True))


def make(comm: Any, case: Case, overlapped: bool) -> tuple[Callable[[], None], Callable[[], float]]:
    """Return a data-parallel step of ours, and the norm of the last step's mean gradient.

    One all-reduce of the flat gradient; or, overlapped, one of all layers but the first, beside its backward pass.
    """
    import cupy as cp

    network, optimizer = case.build(cp), momentum()
    batches = [(cp.asarray(x), cp.asarray(y)) for x, y in case.batches(comm.rank)]
    first = sum(view.size for view in network.layers[0].gradients.values())
    pieces = (slice(0, first), slice(first, None)) if overlapped else (slice(None),)
    count = 0

    def step() -> None:
        nonlocal count
        x, labels = batches[count % BATCHES]
        count += 1
        if comm.size > 1:
            gradients(comm, network, x, labels, case.batch * comm.size, pieces=pieces)
        else:
            network.loss_and_scores(x, labels)
        optimizer.step(network.parameters, network.gradients)

    return step, lambda: float(cp.linalg.norm(network.gradients))


def make_ddp(rank: int, size: int, case: Case, port: int) -> tuple[Callable[[], None], Callable[[], float]]:
    """Return a step of PyTorch's, with DistributedDataParallel if there is more than one rank; and the norm."""
    import torch

    import twins

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.cuda.set_device(rank)
    network: Any = twins.twin(case.build()).cuda()
    if size > 1:
        torch.distributed.init_process_group("nccl", f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
        network = torch.nn.parallel.DistributedDataParallel(network, device_ids=[rank])
    optimizer = twins.optimizer(momentum(), network.parameters())
    batches = [(torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()) for x, y in case.batches(rank)]
    count = 0

    def step() -> None:
        nonlocal count
        images, labels = batches[count % BATCHES]
        count += 1
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    return step, lambda: float(sum(p.grad.square().sum() for p in network.parameters()) ** 0.5)


def block(step: Callable[[], None], calls: int) -> float:
    """Return the seconds of one call, from `calls` in a row after one that lets the ranks meet; by CUDA's events."""
    import cupy as cp

    stream = cp.cuda.get_current_stream()
    step()
    first = stream.record()
    for _ in range(calls):
        step()
    last = stream.record()
    last.synchronize()
    return float(cp.cuda.get_elapsed_time(first, last)) / 1e3 / calls


def serve(rank: int, address: Address, step: Callable[[], None], norm: Callable[[], float]) -> None:
    """In a rank: say the first gradient's norm, then measure as often as asked."""
    with Client(address, authkey=KEY) as line:
        step()
        line.send((rank, norm()))
        while True:
            try:
                calls = line.recv()
            except EOFError:
                return
            line.send(block(step, calls))


def serve_ours(comm: Any, address: Address, case: Case, overlapped: bool) -> None:
    serve(comm.rank, address, *make(comm, case, overlapped))


def serve_ddp(rank: int, size: int, address: Address, case: Case, port: int) -> None:
    import cupy as cp

    cp.cuda.Device(rank).use()
    serve(rank, address, *make_ddp(rank, size, case, port))


def start_ours(address: Address, ranks: int, case: Case, overlapped: bool) -> None:
    run_nccl(serve_ours, [address, case, overlapped], ranks=ranks, timeout=120)


def start_ddp(address: Address, ranks: int, case: Case) -> None:
    context = multiprocessing.get_context("spawn")
    with Listener(("127.0.0.1", 0)) as free:
        port = free.address[1]
    for rank in range(ranks):
        context.Process(target=serve_ddp, args=(rank, ranks, address, case, port), daemon=True).start()


class Side:
    """The ranks of one side; as a context, they end with it."""

    def __init__(self, start: Callable[..., None], ranks: int, *arguments: Any) -> None:
        with Listener(("127.0.0.1", 0), authkey=KEY) as listener:
            self._thread = threading.Thread(target=start, args=(listener.address, ranks, *arguments), daemon=True)
            self._thread.start()
            self._lines = [listener.accept() for _ in range(ranks)]
        norms = dict(line.recv() for line in self._lines)
        self.norm = norms[0]

    def turn(self, calls: int) -> float:
        """Return the seconds of one call, on the rank that took longest."""
        for line in self._lines:
            line.send(calls)
        return max(line.recv() for line in self._lines)

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self._thread.join(END)


def in_turns(turns: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds that each side's turn gives, `rounds` times, after one that does not count.

    Their order alternates, so that it is the same on all ranks.
    """
    times: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        order = list(turns) if number % 2 else list(reversed(turns))
        for name in order:
            found = turns[name]()
            if number:
                times[name].append(found)
    return times


def agree(sides: Sequence[Side]) -> None:
    """Raise ArithmeticError unless all sides have found the same first gradient."""
    norms = [side.norm for side in sides]
    if max(norms) - min(norms) > CLOSE * statistics.median(norms):
        raise ArithmeticError(f"the norms of the first gradients differ: {norms}")
