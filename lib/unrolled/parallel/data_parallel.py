"""Data parallel training: each rank has all of the network and a shard of each mini-batch; gradients are summed.

A rank's gradient is the mean over its shard. The mean over the whole batch is the sum of n_r / n times that: with
uneven shards the mean of the means is another number. So n ranks take the steps of one rank with the full batch, to
rounding, whatever n; dropout, too, drops what one rank drops. Batch normalization is the exception: it computes with
the statistics of each shard, and the running averages are averaged after each epoch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.data import Dataset
from unrolled.device import array_module, to_device, to_host
from unrolled.nn import Adam, Evaluation, History, Optimizer, Sequential, training
from unrolled.nn.schedules import Schedule
from unrolled.ops.arguments import check_whole
from unrolled.parallel.batch_gradients import cuts
from unrolled.parallel.communicator import Communicator
from unrolled.parallel.dropping import drawing_together
from unrolled.parallel.same import check_same, dataset_words
from unrolled.parallel.shards import shard
from unrolled.parallel.steps import Steps


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
    buckets: int = 1,
) -> History:
    """Train a network on all ranks together; return the history of all. Every rank calls it with the same arguments.

    The mini-batches, of `batch_size` images over all ranks, are those of `Sequential.fit` with the same seed; a rank
    looks at its own rows alone. They are moved to where the network is: a network that was built on a GPU trains with
    data on the host, or in a file (`np.load(path, mmap_mode="r")`). One that is not built lives where the data are.

    With `buckets` above 1 the gradient is summed in so many pieces, each begun while the layers before it are still
    computing.

    Rank 0's first parameters are everybody's, and so are its state and what its optimizer remembers of steps before.
    Dropout begins to draw anew, from the seeds of rank 0's layers.

    Raises MismatchError where ranks disagree in network, data or options, TypeError and ValueError for what is wrong
    with these on a rank by itself, such as a batch smaller than the number of ranks, NonFiniteError, on all ranks,
    after an epoch where the parameters are not finite.
    """
    training.check_options(epochs, batch_size, optimizer, schedule)
    check_whole("seed", seed, 0)
    check_whole("buckets", buckets)
    if batch_size < comm.size:
        raise ValueError(f"batch_size is {batch_size}; expected at least {comm.size}, an image for each rank")
    _build_for(network, train, validation)
    optimizer = Adam() if optimizer is None else optimizer
    rates = [1.0 if schedule is None else float(schedule(epoch)) for epoch in range(epochs)]
    memories = optimizer.prepare(network.parameters)
    options: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "optimizer": (optimizer, optimizer.steps)}
    options |= {"schedule": rates, "seed": seed, "buckets": buckets}
    options |= {"train": dataset_words(train), "validation": dataset_words(validation)}
    check_same(comm, network, **options)
    for values in (network.parameters, network.state, *(memories if optimizer.steps else ())):
        if len(values):
            comm.broadcast(values, out=values)
    history, pieces = History(), cuts(network, buckets)
    with drawing_together(comm, network) as begin:
        steps = Steps(comm, network, train, batch_size, seed, optimizer, pieces, begin)
        for epoch, rate in enumerate(rates):
            steps.epoch(epoch, rate, history)
            if validation is not None:
                history.validated(evaluate(network, validation, comm))
    return history


def evaluate(network: Sequential, dataset: Dataset, comm: Communicator, batch_size: int = 256) -> Evaluation:
    """Return mean loss and accuracy over all images; each rank looks at its own. Every rank gets the result.

    Images are moved to where the network is, a batch at a time. Raises ValueError for a data set without images.
    """
    training.check_set("dataset", dataset)
    check_whole("batch_size", batch_size)
    module, mine = array_module(network.parameters), shard(len(dataset), comm.rank, comm.size)
    sums = np.zeros(2)
    for start in range(mine.start, mine.stop, batch_size):
        part = slice(start, min(start + batch_size, mine.stop))
        batch = Dataset(to_device(dataset.images[part], module), to_device(dataset.labels[part], module))
        sums += np.array(network.evaluate(batch, batch_size)) * len(batch)
    return Evaluation(*map(float, to_host(comm.all_reduce(to_device(sums / len(dataset), module)))))


def _build_for(network: Sequential, train: Dataset, validation: Dataset | None) -> None:
    """Build the network for its data, wherever they are. Raises TypeError or ValueError for data that do not fit."""
    training.check_set("train", train)
    network.build(train.images.shape[1:], array_module(train.images))
    if validation is not None:
        training.check_set("validation", validation)
        module = array_module(network.parameters)
        first, labels = to_device(validation.images[:1], module), to_device(validation.labels, module)
        training.check_validation(network, first, labels)
