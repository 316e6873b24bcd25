"""The networks that the sources train, and Keras's example, with the training steps that several benchmarks measure."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from unrolled import data, nn
from unrolled.device import array_module, to_host
from unrolled.nn import optim

BATCHES = 16  # taken in turn, so that no side finds its inputs in the cache
MNIST, CIFAR = (1, 28, 28), (3, 32, 32)


def source_a(seed: int = 0) -> nn.Sequential:
    """Return source A's network."""
    return nn.Sequential(
        *(nn.Conv2d(10, 3, padding=1, weight_scale=0.05), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(100, weight_scale=0.05), nn.ReLU(), nn.Linear(10, weight_scale=0.05)),
        seed=seed,
    )


def keras_example(dropout: float = 1.0) -> nn.Sequential:
    """Return Keras's example for MNIST, as source A's peer; dropout 0 turns it off, to compare results."""
    return nn.Sequential(
        *(nn.Conv2d(32, 3), nn.ReLU(), nn.Conv2d(64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25 * dropout)),
        *(nn.Flatten(), nn.Linear(128), nn.ReLU(), nn.Dropout(0.5 * dropout), nn.Linear(10)),
    )


def source_b(
    channels: int = 16,
    window: int = 4,
    stride: int | None = None,
    second: bool = False,
    widths: tuple[float | None, float | None] = (None, None),
) -> nn.Sequential:
    """Return source B's network with what it tried: channels, windows, a second dense layer.

    `widths`: of the first weights, in the convolution and the dense layers.
    """
    convolution, dense = widths
    more = (nn.Linear(1000, weight_scale=dense), nn.ReLU()) if second else ()
    return nn.Sequential(
        *(nn.Conv2d(channels, 5, weight_scale=convolution), nn.MaxPool2d(window, stride), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(1000, weight_scale=dense), nn.ReLU(), *more, nn.Linear(10, weight_scale=dense)),
    )


@dataclass(frozen=True)
class Case:
    """A training step: the network, its optimizer, the shape of an image, and how many are in a batch."""

    name: str
    network: Callable[[], nn.Sequential]
    optimizer: Callable[[], optim.Optimizer]
    image: tuple[int, int, int]
    batch: int

    def batches(self, module: Any = np, seed: int = 0, count: int = BATCHES) -> list[tuple[Any, Any]]:
        """Return random images and labels as arrays of a module: a step takes as long as on real ones."""
        rng = np.random.default_rng(seed)
        images = rng.random((count, self.batch, *self.image), dtype=np.float32)
        labels = rng.integers(0, 10, (count, self.batch))
        return [(module.asarray(x), module.asarray(y)) for x, y in zip(images, labels, strict=True)]

    def build(self, module: Any = np) -> nn.Sequential:
        """Return the network, built for these images where the module's arrays lie."""
        return self.network().build(self.image, module)

    def stepper(self, module: Any = np) -> Callable[[Any, Any], tuple[Any, Any]]:
        """Return what takes a training step with images and labels, and returns its loss and scores."""
        network, optimizer = self.build(module), self.optimizer()

        def step(images: Any, labels: Any) -> tuple[Any, Any]:
            found = network.loss_and_scores(images, labels)
            optimizer.step(network.parameters, network.gradients)
            return found

        return step


momentum = partial(optim.SGD, 0.01, momentum=0.9, weight_decay=1e-4)
SOURCE_A = {n: Case(f"mnist step, batch {n}", source_a, optim.Adam, MNIST, n) for n in (8, 128, 1024)}
KERAS = Case("keras example step, batch 128", keras_example, optim.AdaDelta, MNIST, 128)
SOURCE_B = {
    name: Case(f"cifar step, {name}", network, momentum, CIFAR, 100)
    for name, network in {
        **{f"{n} channels": partial(source_b, n) for n in (16, 64, 256)},
        "64 channels, second dense layer": partial(source_b, 64, second=True),
        "64 channels, window 2": partial(source_b, 64, 2),
        "64 channels, window 4 stride 2": partial(source_b, 64, 4, 2),
    }.items()
}
BATCH, RATE, FALLS = 64, 0.003, 0.6  # rate: Adam's in the first epoch; falls: its factor from one epoch to the next
TARGET, MOST = 0.98, 12  # accuracy; epochs
TRAINING = f"training to 98 %, batch {BATCH}"
SEEDS = range(5)


def training_row(train: data.Dataset, test: data.Dataset, at_most_s: float) -> dict[str, Any]:
    """Measure how long a compiled training takes until it knows 98 % of MNIST's test images: the median over seeds.

    Source A's network with Adam. The epochs are on the clock, with the capture of graphs in the first; looking at the
    test images after each is not. A seed draws weights and order; one that does not get there takes infinitely long.
    """
    to_target(train, test, SEEDS[0], most=1)  # compiles kernels, which a process does once
    seconds, epochs, accuracies = zip(*(to_target(train, test, seed) for seed in SEEDS), strict=True)
    row = {"section": "mnist", "name": TRAINING, "ours_s": statistics.median(seconds)}
    row |= {"at_most_s": at_most_s, "slowest_s": max(seconds), "epochs": statistics.median(epochs)}
    return row | {"accuracy": min(accuracies), "at_least": TARGET, "batch": BATCH, "seeds": len(SEEDS)}


def to_target(train: data.Dataset, test: data.Dataset, seed: int, most: int = MOST) -> tuple[float, int, float]:
    """Train until the target; return the seconds of the epochs, their number and the accuracy."""
    module = array_module(train.images)
    network = source_a(seed=seed).build(train.images.shape[1:], module)
    steps = nn.compiled(network, optim.Adam(RATE), BATCH)
    rng, seconds, accuracy = np.random.default_rng(seed), 0.0, 0.0
    for epoch in range(most):
        start = time.perf_counter()
        to_host(steps.epoch(train.images, train.labels, rng.permutation(len(train.images)), FALLS**epoch))
        seconds += time.perf_counter() - start
        accuracy = network.evaluate(test).accuracy
        if accuracy >= TARGET:
            break
    return seconds if accuracy >= TARGET else np.inf, epoch + 1, accuracy
