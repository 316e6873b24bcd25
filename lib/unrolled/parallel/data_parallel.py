"""Data parallel training: each rank has all of the network and a shard of each mini-batch; gradients are summed.

A rank's gradient is the mean over its shard. The mean over the whole batch is the sum of n_r / n times that: with
uneven shards the mean of the means is another number. So n ranks take the steps of one rank with the full batch, to
rounding, whatever n; dropout, too, drops what one rank drops. Batch normalization is the exception: it computes with
the statistics of each shard, and the running averages are averaged after each epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import Array, Module, array_module, to_device, to_host
from unrolled.nn import Adam, Evaluation, History, Optimizer, Sequential
from unrolled.nn.schedules import Schedule
from unrolled.nn.watch import Watch
from unrolled.ops.arguments import check_whole
from unrolled.parallel.checkpoint import Checkpoint, Place
from unrolled.parallel.communicator import Communicator, Pending
from unrolled.parallel.dropping import drawing_together
from unrolled.parallel.same import check_same, dataset_told
from unrolled.parallel.shards import shard


def fit(
    network: Sequential,
    train: Dataset,
    comm: Communicator,
    *,
    epochs: int = 5,
    batch_size: int = 32,
    optimizer: Optimizer | None = None,
    schedule: Schedule | None = None,
    validation: Dataset | None = None,
    seed: int = 0,
    accumulate: int = 1,
    buckets: int = 1,
    checkpoint: str | Path | None = None,
    every: int = 1,
) -> History:
    """Train a network on all ranks together; return the history of all. Every rank calls it with the same arguments.

    The mini-batches, of `batch_size` images over all ranks, are those of `Sequential.fit` with the same seed; a rank
    looks at its own rows alone. They are moved to where the network is: a network that was built on a GPU trains with
    data on the host, or in a file (`np.load(path, mmap_mode="r")`). One that is not built lives where the data are.

    `accumulate` takes a rank's rows through the network in so many parts, one after the other: less memory, the same
    step. With `buckets` above 1 the gradient is summed in so many pieces, each begun while the layers before it are
    still computing. `checkpoint` is a folder: rank 0 writes there after every `every` steps, and a training that finds
    one there goes on from it. Rank 0's first parameters are everybody's.

    Raises MismatchError where ranks disagree in network, data or options, ValueError for a batch smaller than the
    number of ranks and data without images, NonFiniteError, on all ranks, after an epoch that spoiled the parameters.
    """
    optimizer = optimizer or Adam()
    _check_options(comm, train, validation, epochs, batch_size, accumulate, buckets)
    rates = [1.0 if schedule is None else float(schedule(epoch)) for epoch in range(epochs)]
    saved = None if checkpoint is None else Checkpoint(Path(checkpoint), every)
    network.build(train.images.shape[1:], array_module(train.images))
    told: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "optimizer": (optimizer, optimizer.steps)}
    told |= {"schedule": rates, "seed": seed, "accumulate": accumulate, "buckets": buckets}
    told |= {"checkpoint": None if checkpoint is None else (str(checkpoint), every)}
    told |= {"train": dataset_told(train), "validation": dataset_told(validation)}
    check_same(comm, network, **told)
    for values in (network.parameters, network.state):
        if len(values):
            comm.broadcast(values, out=values)
    place = Place() if saved is None else saved.resume(comm, network, optimizer)
    history, pieces = History(), _buckets(network, buckets)
    with drawing_together(comm, network) as begin:
        steps = _Steps(comm, network, train, batch_size, seed, optimizer, accumulate, pieces, saved, begin)
        steps.pass_over(place)
        for epoch in range(place.epoch, epochs):
            history.trained(*steps.epoch(epoch, place.step if epoch == place.epoch else 0, rates[epoch]))
            if validation is not None:
                history.validated(evaluate(network, validation, comm))
    return history


def batches(
    count: int, batch_size: int, seed: int | Sequence[int], comm: Communicator
) -> Iterator[tuple[int, np.ndarray[Any, Any], int]]:
    """Return an iterator over (step, this rank's rows, rows of all ranks) of an epoch, in `data.minibatches`' order."""
    order = np.random.default_rng(seed).permutation(count)
    for step, start in enumerate(range(0, count, batch_size)):
        rows = order[start : start + batch_size]
        yield step, rows[shard(len(rows), comm.rank, comm.size)], len(rows)


def gradients(
    comm: Communicator,
    network: Sequential,
    images: Array,
    labels: Array,
    total: int,
    accumulate: int = 1,
    pieces: Sequence[slice] = (slice(None),),
) -> tuple[Array, Array]:
    """Fill `network.gradients` with the gradient of the mean loss over all ranks' `total` images.

    images and labels are this rank's, none where a short batch leaves it without. `pieces` of the gradient are summed
    one by one, the last first, as soon as the backward pass has filled them. Dropout draws for this rank's images alone
    (`fit` lets it draw as one rank would). Returns this rank's share of the loss (its sum over ranks is the loss of the
    batch) and its scores (N, M).
    """
    if len(pieces) > 1 and len(images):
        return _overlapped(comm, network, images, labels, total, pieces)
    parts = [shard(len(images), part, accumulate) for part in range(accumulate)]
    loss, scores = _in_parts(network, images, labels, total, [part for part in parts if part.stop > part.start])
    if len(pieces) == 1:
        comm.all_reduce(network.gradients, out=network.gradients)
    else:  # without images: as the others do
        for pending in [comm.start_all_reduce(piece, out=piece) for piece in _views(network, pieces)]:
            pending.wait()
    return loss, scores


def evaluate(network: Sequential, dataset: Dataset, comm: Communicator, batch_size: int = 256) -> Evaluation:
    """Return mean loss and accuracy over all images; each rank looks at its own. Every rank gets the result.

    Images are moved to where the network is, a batch at a time. Raises ValueError for a data set without images.
    """
    _check_some("dataset", dataset)
    check_whole("batch_size", batch_size)
    module, mine = array_module(network.parameters), shard(len(dataset), comm.rank, comm.size)
    sums = np.zeros(2)
    for start in range(mine.start, mine.stop, batch_size):
        part = slice(start, min(start + batch_size, mine.stop))
        batch = Dataset(to_device(dataset.images[part], module), to_device(dataset.labels[part], module))
        sums += np.array(network.evaluate(batch, batch_size)) * len(batch)
    return Evaluation(*map(float, to_host(comm.all_reduce(to_device(sums / len(dataset), module)))))


@dataclass(frozen=True)
class _Steps:
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


def _check_options(
    comm: Communicator,
    train: Dataset,
    validation: Dataset | None,
    epochs: int,
    batch_size: int,
    accumulate: int,
    buckets: int,
) -> None:
    """Raise ValueError for what is wrong on this rank by itself."""
    check_whole("epochs", epochs, 0)
    check_whole("accumulate", accumulate)
    check_whole("buckets", buckets)
    if batch_size < comm.size:
        raise ValueError(f"batch_size is {batch_size}; expected at least {comm.size}, an image for each rank")
    if accumulate > 1 and buckets > 1:
        raise ValueError(f"accumulate is {accumulate} and buckets {buckets}: a gradient in parts is summed at once")
    _check_some("train", train)
    if validation is not None:
        _check_some("validation", validation)


def _check_some(name: str, dataset: Dataset) -> None:
    if not len(dataset):
        raise ValueError(f"{name} is empty: its images have shape {dataset.images.shape}")


def _taken(train: Dataset, rows: np.ndarray[Any, Any], module: Module) -> tuple[Array, Array]:
    """These rows of the data, in an array library."""
    chosen = to_device(rows, array_module(train.images))
    return to_device(train.images[chosen], module), to_device(train.labels[chosen], module)


def _in_parts(
    network: Sequential, images: Array, labels: Array, total: int, parts: Sequence[slice]
) -> tuple[Array, Array]:
    """Fill the gradient with this rank's share, a part of its images after the other: with zeros if it has none."""
    module = array_module(network.parameters)
    if not parts:
        network.gradients[...] = 0
        return module.zeros((), dtype=network.dtype), module.zeros((0, 1), dtype=network.dtype)
    summed, loss, scores = None, 0.0, []
    for part in parts:
        share = (part.stop - part.start) / total
        part_scores = network.forward(images[part], training=True)
        part_loss, grad = network.loss(part_scores, labels[part])
        network.backward(grad * share)  # here it is small: one pass less over all gradients
        if len(parts) > 1:
            summed = network.gradients.copy() if summed is None else module.add(summed, network.gradients, out=summed)
        loss = loss + part_loss * share
        scores.append(part_scores)
    if summed is not None:
        network.gradients[...] = summed
    return loss, scores[0] if len(scores) == 1 else module.concatenate(scores)


def _overlapped(
    comm: Communicator, network: Sequential, images: Array, labels: Array, total: int, pieces: Sequence[slice]
) -> tuple[Array, Array]:
    """Run forward and backward; begin to sum each piece of the gradient once its layers are through."""
    share = len(images) / total
    scores = network.forward(images, training=True)
    loss, grad = network.loss(scores, labels)
    grad = grad * share
    waiting: list[Pending] = []
    todo, start = _views(network, pieces), len(network.gradients)
    starts = [piece.start or 0 for piece in reversed(pieces)]
    for layer in reversed(network.layers):
        grad = layer.backward(grad)
        start -= sum(array.size for array in layer.gradients.values())
        while len(waiting) < len(todo) and start <= starts[len(waiting)]:
            piece = todo[len(waiting)]
            waiting.append(comm.start_all_reduce(piece, out=piece))
    for pending in waiting:
        pending.wait()
    return loss * share, scores


def _views(network: Sequential, pieces: Sequence[slice]) -> list[Array]:
    """The pieces of the gradient, the last first: the order in which a backward pass fills them."""
    return [network.gradients[piece] for piece in reversed(pieces)]


def _buckets(network: Sequential, count: int) -> list[slice]:
    """At most `count` slices of the flat gradient, of about the same size, cut between layers."""
    sizes = [sum(map(prod, layer.parameter_shapes.values())) for layer in network.layers]
    ends = np.cumsum(sizes).tolist()
    wanted = [len(network.gradients) * number / count for number in range(1, count)]
    nearest = {min((abs(end - at), end) for end in ends)[1] for at in wanted}
    cuts = sorted(nearest - {0, len(network.gradients)})
    return [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(network.gradients)], strict=True)]


def _average_state(comm: Communicator, network: Sequential) -> None:
    if len(network.state):
        comm.all_reduce(network.state, out=network.state)
        network.state[...] /= comm.size
