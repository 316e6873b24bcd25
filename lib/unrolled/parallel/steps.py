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
from unrolled.nn import NonFiniteError, Optimizer, Sequential
from unrolled.nn.watch import Snapshot, first_parameter
from unrolled.parallel.batch_gradients import gradients
from unrolled.parallel.checkpoint import Checkpoint, Progress
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

    def pass_over(self, progress: Progress) -> None:
        """Leave out the steps that are taken: what is random goes on as if they had been taken here."""
        for size in [*self.sizes * progress.epoch, *self.sizes[: progress.step]]:
            self.begin(size)

    def epoch(self, progress: Progress, rate: float) -> None:
        """Take the steps of an epoch that are left, and add what it found to the history."""
        own, found = (self.comm, self.network), Found(self, progress)
        order = batches(len(self.train), self.batch_size, (self.seed, progress.epoch), self.comm)
        for step, rows, total in islice(order, progress.step, None):
            self.begin(total)
            images, labels = _rows(self.train, rows, array_module(self.network.parameters))
            with np.errstate(all="ignore"):  # NumPy would warn of what `found` reports
                found.add(step, *gradients(*own, images, labels, total, self.accumulate, self.pieces), labels)
                self.optimizer.step(self.network.parameters, self.network.gradients, rate)
            if self.saved is not None and self.saved.is_due():
                _average_state(*own)
                self.saved.after_step(*own, self.optimizer, found.so_far(step + 1))
        _average_state(*own)
        done = found.so_far(len(self.sizes))
        progress.history.trained(done.losses, self.sizes, done.right, done.seconds)


def batches(
    count: int, batch_size: int, seed: int | Sequence[int], comm: Communicator
) -> Iterator[tuple[int, np.ndarray[Any, Any], int]]:
    """Return an iterator over (step, this rank's rows, rows of all ranks) of an epoch, in `data.minibatches`' order."""
    order = np.random.default_rng(seed).permutation(count)
    for step, start in enumerate(range(0, count, batch_size)):
        rows = order[start : start + batch_size]
        yield step, rows[shard(len(rows), comm.rank, comm.size)], len(rows)


class Found:
    """What this rank has found in an epoch, kept where the network is; rank 0's has what was found before a death."""

    def __init__(self, steps: Steps, before: Progress) -> None:
        network, left = steps.network, len(steps.sizes) - before.step
        self._steps, self._before = steps, before
        self._start = time.perf_counter() - before.seconds
        self._good = Snapshot(network)
        sums = np.concatenate([before.losses, np.zeros(left), [before.right, 0]]).astype(np.float32)
        self._sums = to_device(sums if steps.comm.rank == 0 else np.zeros_like(sums), array_module(network.parameters))
        self._right = self._sums[-2:-1]

    def add(self, step: int, loss: Array, scores: Array, labels: Array) -> None:
        """Add this rank's share of a mini-batch."""
        self._sums[step] = loss
        if labels.ndim != 1:
            self._right += np.nan
        elif len(labels):
            self._right += (scores.argmax(axis=1) == labels).sum()

    def so_far(self, step: int) -> Progress:
        """Return what all ranks have found in the first steps of the epoch: all ranks call this together.

        Raises NonFiniteError, on all ranks, where parameters are not finite.
        """
        comm, network = self._steps.comm, self._steps.network
        self._sums[-1] = 0.0 if array_module(network.parameters).isfinite(network.parameters).all() else 1.0
        sums = to_host(comm.all_reduce(self._sums))
        if sums[-1]:
            self._stop(sums[:step])
        seconds = time.perf_counter() - self._start
        return Progress(self._before.epoch, step, sums[:step], float(sums[-2]), seconds, self._before.history)

    def _stop(self, losses: np.ndarray[Any, Any]) -> None:
        """Raise NonFiniteError. A checkpoint whose parameters gave a loss that is not finite is removed."""
        finite, epoch, steps = np.isfinite(losses), self._before.epoch, len(self._steps.sizes)
        first = len(losses) - 1 if finite.all() else int(finite.argmin())  # a loss is finite, then its update is not
        saved = self._steps.saved
        if saved is not None and saved.newest is not None:
            next_step = (saved.newest.epoch - epoch) * steps + saved.newest.step
            if 0 <= next_step < len(losses) and not finite[next_step]:
                saved.remove_newest(self._steps.comm)
        place = first_parameter(self._steps.network)
        self._good.restore()
        kept = "of the checkpoint that it went on from" if self._before.step else f"that epoch {epoch + 1} began with"
        raise NonFiniteError(epoch * steps + first + 1, *place, kept=kept)


def _rows(train: Dataset, rows: np.ndarray[Any, Any], module: Module) -> tuple[Array, Array]:
    """These rows of the data, in an array library."""
    chosen = to_device(rows, array_module(train.images))
    return to_device(train.images[chosen], module), to_device(train.labels[chosen], module)


def _average_state(comm: Communicator, network: Sequential) -> None:
    if len(network.state):
        comm.all_reduce(network.state, out=network.state)
        network.state[...] /= comm.size
