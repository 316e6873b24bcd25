"""Two MPI ranks on the cores of this machine: a data-parallel step beside the same step on one rank.

    python benchmarks/parallel_cpu.py [--quick] [--json benchmarks/results/parallel_cpu.json]

A rank is a process with one BLAS thread. A step is forward, backward, one all-reduce of the flat gradient, and update;
two ranks share the images of a batch. `one_rank_s` and `two_ranks_s` are medians of turns that alternate, each with the
other side asleep; `speedup` is the median of their paired ratios, `all_reduce_s` the time of the sum alone. The
gradients of both are compared before anything is timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import common
import networks
from networks import CIFAR, MNIST, source_a, source_b
from unrolled import nn, parallel

AT_LEAST = 1.6
RANKS = 2


@dataclass(frozen=True)
class Case(networks.Case):
    """A training step, whose batch is that of all ranks: besides, how many are in a turn, and the aim."""

    steps: int
    at_least: float | None = None


sgd, wide = partial(nn.SGD, 0.01), partial(source_b, 64)
CASES = (
    Case("source B's network, 64 channels, batch 512", wide, sgd, CIFAR, 512, 3, AT_LEAST),
    Case("source B's network, 64 channels, batch 100", wide, sgd, CIFAR, 100, 10),
    Case("source A's network, batch 1024", source_a, sgd, MNIST, 1024, 10, AT_LEAST),
    Case("source A's network, batch 128", source_a, sgd, MNIST, 128, 50),
    Case("source A's network, batch 8", source_a, sgd, MNIST, 8, 200),
)


def turns(comm: parallel.Communicator, case: Case, rounds: int) -> list[dict[str, float]]:
    """In a rank: let one rank and then all of them take their steps, round by round; return the seconds a step."""
    ((images, labels),) = case.batches(count=1)
    mine = parallel.shard(case.batch, comm.rank, comm.size)
    whole, shared, optimizer = case.build(), case.build(), case.optimizer()
    alone = partial(case.stepper(), images, labels)

    def together() -> None:
        parallel.gradients(comm, shared, images[mine], labels[mine], case.batch)
        optimizer.step(shared.parameters, shared.gradients)

    whole.loss_and_scores(images, labels)
    parallel.gradients(comm, shared, images[mine], labels[mine], case.batch)
    np.testing.assert_allclose(shared.gradients, whole.gradients, atol=1e-4 * np.abs(whole.gradients).max())
    found = []
    for _ in range(rounds):
        two = timed(comm, together, case.steps)
        one = timed(comm, alone, case.steps) if comm.rank == 0 else 0.0
        rest(comm)
        gradient = timed(comm, lambda: comm.all_reduce(shared.gradients, out=shared.gradients), case.steps)
        found.append({"one": one, "two": two, "sum": gradient})
    return found


def timed(comm: parallel.Communicator, step: Callable[[], object], steps: int) -> float:
    """Return the seconds of a step, after one that does not count."""
    step()
    start = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - start) / steps


def rest(comm: parallel.Communicator) -> None:
    """Let the others sleep until rank 0 is here: a rank that waits in MPI would keep its core busy."""
    note = np.zeros(1)
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(note, rank)
        return
    time.sleep(common.REST)
    comm.receive(note, 0)


def row(case: Case, quick: bool) -> dict[str, Any]:
    """Measure one case; return its row."""
    by_rank = parallel.run(turns, case, 3 if quick else 15, ranks=RANKS, engine="mpi", timeout=60)
    rounds = [
        (one["one"], max(one["two"], two["two"]), max(one["sum"], two["sum"]))
        for one, two in zip(*by_rank, strict=True)
    ]
    one, two, total = (statistics.median(times) for times in zip(*rounds, strict=True))
    speedup = statistics.median(alone / together for alone, together, _ in rounds)
    row = {"name": case.name, "one_rank_s": one, "two_ranks_s": two, "all_reduce_s": total}
    return row | {"speedup": speedup, "at_least": case.at_least, "engine": "mpi"}


if __name__ == "__main__":
    common.run(__doc__, lambda chosen: [row(case, chosen.quick) for case in CASES], ("mpi4py", "mpich"))
