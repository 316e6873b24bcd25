"""The steps of a training on many ranks, epoch by epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array, Module, array_module, to_device, to_host
from unrolled.nn import Optimizer, Sequential
from unrolled.nn.watch import Watch
from unrolled.parallel.batch_gradients import gradients
from unrolled.parallel.checkpoint import Checkpoint, Place
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
    accumulate: int
    pieces: Sequence[slice]
    saved: Checkpoint | None
    begin: Callable[[int], None]  # to be told how many images a mini-batch has

    @property
    def sizes(self) -> list[int]:
        """The images of each mini-batch of an epoch."""
        starts = range(0, len(self.train), self.batch_size)
        return [min(self.batch_size, len(self.train) - start) for start in starts]

    def pass_over(self, place: Place) -> None:
        """Leave out the steps before a place: what is random goes on as if they had been taken."""
        for size in [*self.sizes * place.epoch, *self.sizes[: place.step]]:
            self.begin(size)

    def epoch(self, epoch: int, first: int, rate: float) -> tuple[np.ndarray[Any, Any], list[int], float, float]:
        """Take the steps of an epoch from step `first` on; return what `History.trained` takes."""
        start, steps, watch = time.perf_counter(), len(self.sizes), Watch(self.network)
        sums, own = _Sums(self.network, steps), (self.comm, self.network)
        order = batches(len(self.train), self.batch_size, (self.seed, epoch), self.comm)
        for step, rows, total in islice(order, first, None):
            self.begin(total)
            images, labels = _taken(self.train, rows, array_module(self.network.parameters))
            with np.errstate(all="ignore"):  # NumPy would warn of what `watch` reports
                found = gradients(*own, images, labels, total, self.accumulate, self.pieces)
                sums.add(step, *found, labels, total)
                self.optimizer.step(self.network.parameters, self.network.gradients, rate)
            if self.saved is not None:
                self.saved.after_step(*own, self.optimizer, Place.after(epoch, step, steps))
        watch.check_parameters()
        _average_state(*own)
        return *sums.of_all(self.comm), time.perf_counter() - start


def batches(
    count: int, batch_size: int, seed: int | Sequence[int], comm: Communicator
) -> Iterator[tuple[int, np.ndarray[Any, Any], int]]:
    """Return an iterator over (step, this rank's rows, rows of all ranks) of an epoch, in `data.minibatches`' order."""
    order = np.random.default_rng(seed).permutation(count)
    for step, start in enumerate(range(0, count, batch_size)):
        rows = order[start : start + batch_size]
        yield step, rows[shard(len(rows), comm.rank, comm.size)], len(rows)


class _Sums:
    """The losses and hits of this rank in one epoch, kept where the network is."""

    def __init__(self, network: Sequential, steps: int) -> None:
        module = array_module(network.parameters)
        self._losses = module.zeros(steps, dtype=np.float32)
        self._sizes = np.zeros(len(self._losses))
        self._right = module.zeros(1, dtype=np.float32)

    def add(self, step: int, loss: Array, scores: Array, labels: Array, total: int) -> None:
        self._losses[step] = loss
        self._sizes[step] = total
        if labels.ndim != 1:
            self._right += np.nan
        elif len(labels):
            self._right += (scores.argmax(axis=1) == labels).sum()

    def of_all(self, comm: Communicator) -> tuple[np.ndarray[Any, Any], list[int], float]:
        """Return losses, sizes and hits of all ranks' batches, as `History.trained` takes them."""
        taken = self._sizes > 0  # after a checkpoint an epoch begins in its middle
        losses = to_host(comm.all_reduce(self._losses))
        right = float(to_host(comm.all_reduce(self._right))[0])
        return losses[taken], self._sizes[taken].astype(int).tolist(), right


def _taken(train: Dataset, rows: np.ndarray[Any, Any], module: Module) -> tuple[Array, Array]:
    """These rows of the data, in an array library."""
    chosen = to_device(rows, array_module(train.images))
    return to_device(train.images[chosen], module), to_device(train.labels[chosen], module)


def _average_state(comm: Communicator, network: Sequential) -> None:
    if len(network.state):
        comm.all_reduce(network.state, out=network.state)
        network.state[...] /= comm.size
