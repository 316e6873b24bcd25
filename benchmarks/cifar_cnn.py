"""Source B's network on CIFAR-10: seconds a step by channels beside PyTorch on the CPU, and the accuracy it reaches.

    python benchmarks/cifar_cnn.py [--quick] [--json benchmarks/results/cifar_cnn.json] [--threads 2]

The network: conv 16, 64 or 256 filters 5x5 - max-pool 4 - ReLU - dense 1000 - ReLU - dense 10; SGD 0.01, momentum 0.9,
weight decay 1e-4, batch 100, 40,000 images to train, 10,000 to validate, 10,000 to test, ZCA-whitened. Loss and
gradients of both sides are compared before they are timed, on made images. `ratio` is ours / PyTorch, each side in a
process that keeps its freed memory; `ratio_apart` without that: see cpu.py. `epoch_s` is 400 steps. `source_cpu_s` and
`source_gpu_s` are the source's seconds an epoch (2015; a K20c), `source_accuracy` what it reached on the test images
after 50 epochs.

The accuracy after 2 epochs needs the data (`unrolled data fetch cifar10`, or UNROLLED_DATA); --quick leaves it out.
It comes from one BLAS thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import common
import twins
from common import Row
from networks import SOURCE_B, momentum, source_b
from unrolled import data

TRAIN, BATCH, EPOCHS = 40_000, 100, 2
AT_LEAST = 0.6  # of the validation images, after 2 epochs with 16 channels
SOURCE_CPU = {16: 3705 / 50}  # seconds of 50 epochs; channels 64 and 256 were run on the GPU alone
SOURCE_GPU = {16: 619 / 50, 64: 781 / 50, 256: 1253 / 50}
SOURCE_ACCURACY = {16: 0.7385, 64: 0.7592, 256: 0.7599}


def step_row(channels: int, chosen: Any) -> Row:
    """Measure one training step, and return its row."""
    row = twins.row(SOURCE_B[f"{channels} channels"], max(1, 160 // channels), chosen, TRAIN)
    return row | {"source_cpu_s": SOURCE_CPU.get(channels), "source_gpu_s": SOURCE_GPU[channels]}


def whitened() -> tuple[data.Dataset, data.Dataset, data.Dataset]:
    """Return the images to train, to validate and to test, ZCA-whitened."""
    train, test = data.cifar10()
    parts = train.images[:TRAIN], train.images[TRAIN:], test.images
    labels = train.labels[:TRAIN], train.labels[TRAIN:], test.labels
    first, second, third = map(data.Dataset, data.zca_whiten(*parts), labels)
    return first, second, third


def accuracy_row(channels: int = 16) -> Row:
    """Train for 2 epochs; return a row with accuracy and seconds, or one that says so where the data is absent."""
    name = f"cifar accuracy after {EPOCHS} epochs, {channels} channels"
    if absent := common.absent("cifar10"):
        return {"name": name, "absent": absent}
    train, validation, test = whitened()
    network = source_b(channels)
    options = {"epochs": EPOCHS, "batch_size": BATCH, "optimizer": momentum(), "progress": False}
    seconds = common.seconds(lambda: network.fit(train, **options))
    accuracies = {
        key: network.evaluate(part).accuracy for key, part in {"accuracy": validation, "test_accuracy": test}.items()
    }
    row = {"name": name, "ours_s": seconds, "epoch_s": seconds / EPOCHS, **accuracies, "at_least": AT_LEAST}
    return row | {"source_accuracy": SOURCE_ACCURACY[channels]}


def rows(chosen: Any) -> Iterator[Row]:
    """Measure the steps, then the accuracy."""
    yield from (step_row(channels, chosen) for channels in SOURCE_GPU)
    if not chosen.quick:
        twins.limit_threads(1)
        yield accuracy_row()


if __name__ == "__main__":
    common.run(__doc__, rows)
