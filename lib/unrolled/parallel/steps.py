"""The steps of a training on many ranks, epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array, Module, array_module, to_device, to_host
from unrolled.nn import History, NonFiniteError, Optimizer, Sequential
from unrolled.nn.watch import Snapshot, first_parameter
from unrolled.parallel.batch_gradients import gradients
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.shards import shard


@dataclass(frozen=True)
class Steps:
    """The steps of a training, and what all of them need."""

    comm: Communicator
    network: Sequential
    train: Dataset
    batch_size: int
    seed: int
    optimizer: Optimizer
    pieces: Sequence[slice]
    begin: Callable[[int], None]  # to be told how many images a mini-batch has

    def epoch(self, epoch: int, rate: float, history: History) -> None:
        """Take the steps of an epoch, and add what all ranks found to the history.

        Raises NonFiniteError, on all ranks, where parameters are not finite; they are then those that the epoch began
        with.
        """
        comm, network, module = self.comm, self.network, array_module(self.network.parameters)
        start, good = time.perf_counter(), Snapshot(network)
        steps = list(batches(len(self.train), self.batch_size, (self.seed, epoch), comm))
        # Where the network is: this rank's share of each loss, how many images were right, and what is not finite.
        found = module.zeros(len(steps) + 2, dtype=np.float32)
        for step, (rows, total) in enumerate(steps):
            self.begin(total)
            images, labels = _rows(self.train, rows, module)
            with np.errstate(all="ignore"):  # NumPy would warn of what is named below
                found[step], scores = gradients(comm, network, images, labels, total, self.pieces)
                if labels.ndim != 1:
                    found[-2] = np.nan
                elif len(labels):
                    found[-2:-1] += (scores.argmax(axis=1) == labels).sum()
                self.optimizer.step(network.parameters, network.gradients, rate)
        if len(network.state):
            comm.all_reduce(network.state, out=network.state)
            network.state[...] /= comm.size
        found[-1] = 0.0 if module.isfinite(network.parameters).all() else 1.0
        *losses, right, spoiled = to_host(comm.all_reduce(found))
        if spoiled:
            finite = np.isfinite(losses)  # a loss is finite, then its update is not
            first = len(losses) if finite.all() else 1 + int(finite.argmin())
            place = first_parameter(network)
            good.restore()
            raise NonFiniteError(epoch * len(steps) + first, *place, kept=f"that epoch {epoch + 1} began with")
        sizes = [total for _, total in steps]
        history.trained(np.array(losses), sizes, float(right), time.perf_counter() - start)


def batches(
    count: int, batch_size: int, seed: int | Sequence[int], comm: Communicator
) -> Iterator[tuple[np.ndarray[Any, Any], int]]:
    """Return an iterator over (this rank's rows, rows of all ranks) of an epoch, in `data.minibatches`' order."""
    order = np.random.default_rng(seed).permutation(count)
    for start in range(0, count, batch_size):
        rows = order[start : start + batch_size]
        yield rows[shard(len(rows), comm.rank, comm.size)], len(rows)


def _rows(train: Dataset, rows: np.ndarray[Any, Any], module: Module) -> tuple[Array, Array]:
    """These rows of the data, in an array library."""
    chosen = to_device(rows, array_module(train.images))
    return to_device(train.images[chosen], module), to_device(train.labels[chosen], module)
