"""Whole trainings for gpu.py, on real data: MNIST with source A's settings, CIFAR-10 with source B's."""

from __future__ import annotations

import statistics
from typing import Any

import cupy as cp

import cifar_cnn
import common
import mnist_cnn
from networks import momentum, source_a, source_b
from unrolled import data, nn
from unrolled.nn import optim

Row = dict[str, Any]
MNIST_AIMS = {8: 8.0, 128: 0.6}  # seconds an epoch
CIFAR_AIMS = {16: 0.737, 64: 0.759}  # accuracy on the test images
WIDTHS = (0.001, 0.01)  # of the first weights, convolution and dense: found on the validation images with 64 channels
EPOCHS = {"mnist": 5, "cifar": 50}


def on_gpu(part: data.Dataset) -> data.Dataset:
    return data.Dataset(cp.asarray(part.images), cp.asarray(part.labels))


class Best:
    """Keeps the parameters of the epoch that was most accurate on the validation images: a callback of `fit`."""

    epoch, accuracy, parameters = 0, 0.0, None

    def __call__(self, network: nn.Sequential, history: nn.History) -> None:
        if history.validation_accuracy[-1] > self.accuracy:
            self.epoch, self.accuracy = len(history.loss), history.validation_accuracy[-1]
            self.parameters = network.parameters.copy()


def trained(network: nn.Sequential, train: data.Dataset, epochs: int, batch: int, optimizer: Any, **more: Any) -> Row:
    """Train; return the seconds and the last loss of the epochs. The first also compiles the kernels."""
    history = network.fit(train, epochs=epochs, batch_size=batch, optimizer=optimizer, progress=False, **more)
    seconds = {"ours_s": statistics.median(history.seconds), "total_s": sum(history.seconds)}
    return seconds | {"epochs": epochs, "train_loss": history.loss[-1]}


def mnist_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure the seconds of an epoch, and the accuracy after five."""
    if absent := common.absent("mnist"):
        return [{"section": "training", "name": "mnist epoch", "absent": absent}]
    train, test = map(on_gpu, data.mnist())
    rows = []
    for batch, aim in MNIST_AIMS.items():
        network = source_a()
        row = trained(network, train, EPOCHS["mnist"], batch, optim.Adam())
        accuracy = {"accuracy": network.evaluate(test).accuracy, "at_least": 0.98 if batch == 8 else None}
        source = {"source": mnist_cnn.SOURCE[batch], "at_most_s": aim}
        rows.append({"section": "training", "name": f"mnist epoch, batch {batch}", **row, **accuracy, **source})
    return rows


def cifar_rows(quick: bool, rows_so_far: list[Row]) -> list[Row]:
    """Measure an epoch's seconds by channels, and the accuracy: validation images choose among fifty epochs."""
    if absent := common.absent("cifar10"):
        return [{"section": "training", "name": "cifar epoch", "absent": absent}]
    train, validation, test = map(on_gpu, cifar_cnn.whitened())
    rows: list[Row] = []
    for channels in (16, 64, 256):
        network, best = source_b(channels, widths=WIDTHS), Best()
        more = {"validation": validation, "callbacks": [best]}
        row = trained(network, train, EPOCHS["cifar"], cifar_cnn.BATCH, momentum(), **more)
        row["last_accuracy"] = network.evaluate(test).accuracy
        network.parameters[...] = best.parameters
        row |= {"accuracy": network.evaluate(test).accuracy, "at_least": CIFAR_AIMS.get(channels)}
        row |= {"validation_accuracy": best.accuracy, "epoch": best.epoch}
        row["over_16_channels"] = row["total_s"] / (rows[0] if rows else row)["total_s"]
        row["source"] = f"{cifar_cnn.SOURCE_GPU[channels]:.1f} s, {cifar_cnn.SOURCE_ACCURACY[channels]:.2%}"
        rows.append({"section": "training", "name": f"cifar epoch, {channels} channels", **row})
    return rows
