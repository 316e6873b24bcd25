"""Source A's network on MNIST: a training step beside PyTorch on the CPU, and the accuracy it reaches.

    python benchmarks/mnist_cnn.py [--quick] [--json benchmarks/results/mnist_cnn.json] [--threads 2]

The network: conv 10 filters 3x3 padding 1 - ReLU - max-pool 2 - dense 100 - ReLU - dense 10, Adam, first weights of
width 0.05. A step is forward, backward and update; loss and gradients of both sides are compared before they are
timed. `ratio` is ours / PyTorch, each side in a process that keeps its freed memory; `ratio_apart` without that: see
cpu.py. `epoch_s` is a step times 60,000 images / batch. `source` is what the source's author measured, on another
machine (2020).

The accuracies on MNIST need the data (`unrolled data fetch mnist`, or UNROLLED_DATA) and several minutes; --quick
leaves them out. The digits are scikit-learn's, learned by three networks that differ by their seed, one by one. All
accuracies come from one BLAS thread: beside other processes two are slower than one on products this small.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import common
import twins
from common import Row
from networks import SOURCE_A, source_a
from unrolled import data, nn
from unrolled.nn import optim

EPOCH = 60_000
SOURCE = {
    8: "batch 8: 30 min an epoch in NumPy, 100 s in CuPy, 50 s after one fix",
    128: "batch 128: Keras 4 s an epoch",
}
AIMS = {8: 0.7, 128: 1.0}


def recipe(seed: int = 0) -> nn.Sequential:
    """Return the course's best network: two convolutions, dropout.

    It is trained on images shifted by up to 2 pixels, by Adam with a learning rate that decays.
    """
    return nn.Sequential(  # pooled before the ReLU: the same values, a quarter of them to compare with 0
        *(nn.Conv2d(16, 3, padding=1), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(32, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten()),
        *(nn.Dropout(0.25), nn.Linear(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(10)),
        seed=seed,
    )


def step_row(batch: int, chosen: Any) -> Row:
    """Measure one training step of source A's network, and return its row."""
    row = twins.row(SOURCE_A[batch], 1600 // batch, chosen, EPOCH, at_most=AIMS[batch])
    return row | {"source": SOURCE[batch]}


def train_source_a(train: data.Dataset) -> nn.Sequential:
    """Return source A's network after 5 epochs of batch 8, as in the source."""
    network = source_a()
    network.fit(train, epochs=5, batch_size=8, optimizer=optim.Adam(), progress=False)
    return network


def train_recipe(train: data.Dataset, epochs: int = 10, batch_size: int = 64, seed: int = 0) -> nn.Sequential:
    """Return the best network, trained with each image shifted anew in every epoch."""
    rng = np.random.default_rng(seed)
    moved = data.Dataset(data.shifted(train.images, rng), train.labels)

    def shift(network: nn.Sequential, history: Any) -> None:
        moved.images[...] = data.shifted(train.images, rng)

    network = recipe(seed)
    plan = {"epochs": epochs, "batch_size": batch_size, "schedule": nn.cosine_decay(epochs), "seed": seed}
    network.fit(moved, optimizer=optim.Adam(), callbacks=[shift], progress=False, **plan)
    return network


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    """Return what is made, and the seconds that it took."""
    start = time.perf_counter()
    return make(), time.perf_counter() - start


def mnist_row(name: str, train: Callable[[data.Dataset], nn.Sequential], at_least: float, source: str) -> Row:
    """Return accuracy on the 10,000 test images and seconds of the training; a word instead without the data."""
    if absent := common.absent("mnist"):
        return {"name": name, "at_least": at_least, "absent": absent}
    images, test = data.mnist()
    network, seconds = timed(lambda: train(images))
    accuracy = network.evaluate(test).accuracy
    return {"name": name, "ours_s": seconds, "accuracy": accuracy, "at_least": at_least, "source": source}


def digits_row() -> Row:
    """Return the median accuracy of three seeds on the 297 digits kept apart, and the seconds of all three together."""
    train, test = data.digits().split()
    networks, seconds = timed(lambda: [train_recipe(train, 15, 32, seed) for seed in range(3)])
    accuracy = statistics.median(network.evaluate(test).accuracy for network in networks)
    return {"name": "digits accuracy, median of 3 seeds", "ours_s": seconds, "accuracy": accuracy, "at_least": 0.97}


def rows(chosen: Any) -> Iterator[Row]:
    """Measure the steps, then the accuracies."""
    yield from (step_row(batch, chosen) for batch in AIMS)
    twins.limit_threads(1)
    yield digits_row()
    if not chosen.quick:
        yield mnist_row("mnist accuracy, source A's settings", train_source_a, 0.98, "97.58 %, then 98.03 %")
        yield mnist_row("mnist accuracy, best recipe", train_recipe, 0.99, "Keras's example: 83.56 %")


if __name__ == "__main__":
    common.run(__doc__, rows)
