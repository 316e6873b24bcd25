"""Whole trainings for gpu.py, on real data: MNIST with source A's settings, CIFAR-10 with source B's."""

from __future__ import annotations

import statistics
from typing import Any

import cupy as cp

import cifar_cnn
import mnist_cnn
from unrolled import data, nn
from unrolled.nn import optim

Row = dict[str, Any]
MNIST_AIMS = {8: 8.0, 128: 0.6}  # seconds an epoch
CIFAR_AIMS = {16: 0.737, 64: 0.759}  # accuracy on the test images
WIDTHS = (0.001, 0.01)  # of the first weights, convolution and dense: found on the validation images with 64 channels
EPOCHS = {"mnist": 5, "cifar": 50}


def on_gpu(part: data.Dataset) -> data.Dataset:
    return data.Dataset(cp.asarray(part.images), cp.asarray(part.labels))


def ready(name: str) -> bool:
    return any(entry.ready() for entry in data.available() if entry.name == name)


def trained(network: nn.Sequential, train: data.Dataset, epochs: int, batch: int, optimizer: Any) -> tuple[Any, Row]:
    """The network, and the seconds and the last loss of its epochs. The first also compiles the kernels."""
    history = network.fit(train, epochs=epochs, batch_size=batch, optimizer=optimizer, progress=False)
    seconds = {"ours_s": statistics.median(history.seconds), "total_s": sum(history.seconds)}
    return network, seconds | {"epochs": epochs, "train_loss": history.loss[-1]}


def mnist_rows() -> list[Row]:
    """Seconds of an epoch, and the accuracy after five."""
    if not ready("mnist"):
        return [
            {"section": "training", "name": "mnist epoch", "absent": "MNIST is not here: unrolled data fetch mnist"}
        ]
    train, test = map(on_gpu, data.mnist())
    rows = []
    for batch, aim in MNIST_AIMS.items():
        network, row = trained(mnist_cnn.source_a(), train, EPOCHS["mnist"], batch, optim.Adam())
        accuracy = {"accuracy": network.evaluate(test).accuracy, "at_least": 0.98 if batch == 8 else None}
        source = {"source": mnist_cnn.SOURCE[batch], "at_most_s": aim}
        rows.append({"section": "training", "name": f"mnist epoch, batch {batch}", **row, **accuracy, **source})
    return rows


def cifar_rows() -> list[Row]:
    """Seconds of an epoch and the accuracy after fifty, by channels."""
    if not ready("cifar10"):
        return [{"section": "training", "name": "cifar epoch", "absent": "not here: unrolled data fetch cifar10"}]
    train, validation, test = map(on_gpu, cifar_cnn.whitened())
    rows = []
    for channels in (16, 64, 256):
        network = cifar_cnn.source_b(channels, WIDTHS)
        network, row = trained(network, train, EPOCHS["cifar"], cifar_cnn.BATCH, cifar_cnn.ours())
        accuracy = {"accuracy": network.evaluate(test).accuracy, "at_least": CIFAR_AIMS.get(channels)}
        rows.append({"section": "training", "name": f"cifar epoch, {channels} channels", **row, **accuracy})
        rows[-1]["validation_accuracy"] = network.evaluate(validation).accuracy
        rows[-1]["over_16_channels"] = row["total_s"] / rows[0]["total_s"]
        rows[-1]["source"] = f"{cifar_cnn.SOURCE_GPU[channels]:.1f} s, {cifar_cnn.SOURCE_ACCURACY[channels]:.2%}"
    return rows
