"""Fewer and smaller numbers: what they cost in accuracy on MNIST, and what their products gain or lose in time.

    python benchmarks/precision.py [--quick] [--json FILE] [--threads 1]

Products: int8 (exact, through float32 in blocks or through float64) and binary (xor and popcount on packed words),
beside the float32 product of BLAS, of square matrices; `ratio` is ours / peer. Accuracies: source A's network, trained
two epochs in batches of 64, then in int8 (scales from 1,000 training images), float16, and with 90 % of its weights
pruned and one more epoch. The same extra epoch without pruning is beside it. Training in float16 rounds weights, what
passes between layers, and all gradients to float16, scales the loss, and keeps float32 weights for the update; three
seeds, an epoch each. `points` is the accuracy against float32's in points. --quick takes scikit-learn's digits and
smaller matrices.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import common
import twins
from networks import source_a
from unrolled import data, nn, ops
from unrolled.ops import precision
from unrolled.ops.precision.int8_products import int8_matmul_in_float64

PACKAGES = ("unrolled", "numpy", "scipy", "threadpoolctl")
Row = dict[str, Any]


class Rounded(nn.Layer):
    """Rounds to float16 what passes, forward and backward."""

    def forward(self, x: Any, training: bool = False) -> Any:
        return rounded(x)

    def backward(self, grad: Any) -> Any:
        return None if grad is None else rounded(grad)


def rounded(x: Any) -> Any:
    """Return x as float16 holds it: too large is infinite."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def product_rows(quick: bool) -> list[Row]:
    """Return a row for each kind of product."""
    rng, rows = np.random.default_rng(0), []
    for n in (512,) if quick else (1024, 4096):
        a, b = (rng.integers(-127, 128, (n, n)).astype(np.int8) for _ in range(2))
        x, y = a.astype(np.float32), b.astype(np.float32)
        p, q = precision.pack_signs(x), precision.pack_signs(y)
        kinds: dict[str, Callable[[], Any]] = {
            "int8, blocks of float32": lambda a=a, b=b: precision.int8_matmul(a, b),  # type: ignore[misc]
            "int8, float64": lambda a=a, b=b: int8_matmul_in_float64(a, b),  # type: ignore[misc]
            "binary": lambda p=p, q=q, n=n: precision.binary_matmul(p, q, n),  # type: ignore[misc]
        }
        for name, ours in kinds.items():
            steps = {"ours": ours, "peer": lambda x=x, y=y: x @ y}  # type: ignore[misc]
            times, _ = common.side_by_side(steps, rounds=1, patience=0)
            rows.append({"name": f"{name}, {n}", "peer": "float32 BLAS", **common.compared(times)})
    return rows


def trained(train: data.Dataset, epochs: int, seed: int = 0) -> nn.Sequential:
    """Return source A's network after so many epochs."""
    network = source_a(seed)
    network.fit(train, epochs=epochs, batch_size=64, seed=seed, progress=False)
    return network


def trained_in_half(train: data.Dataset, epochs: int, seed: int) -> nn.Sequential:
    """Return the same, trained in float16 with a dynamic loss scale."""
    layers = [each for layer in source_a(seed).layers for each in (layer, Rounded())]
    network = nn.Sequential(Rounded(), *layers, seed=seed).build(train.images.shape[1:])
    network.layers[1].is_first = True
    weights, optimizer, state = network.parameters.copy(), nn.Adam(), precision.LossScale()
    for epoch in range(epochs):
        for images, labels in data.minibatches(train, 64, (seed, epoch)):
            network.parameters = rounded(weights)
            _, grad = ops.softmax_cross_entropy(network.forward(images, training=True), labels)
            network.backward(grad * np.float32(state.scale))
            gradients = rounded(network.gradients)
            finite = bool(np.isfinite(gradients).all())
            if finite:
                optimizer.step(weights, gradients / np.float32(state.scale))
            state = precision.next_loss_scale(state, finite, every=200)
    network.parameters = rounded(weights)
    return network


def accuracy_rows(train: data.Dataset, test: data.Dataset, epochs: int) -> list[Row]:
    """Return accuracies of the smaller networks beside those in float32."""
    network = trained(train, epochs)
    more, pruned = copy.deepcopy(network), network.prune(0.9)
    for each in (more, pruned):
        each.fit(train, epochs=1, batch_size=64, seed=1, progress=False)
    found = {
        "int8": (network.quantize(train.images[:1000]), network),
        "int8, percentile 99.9": (network.quantize(train.images[:1000], 99.9), network),
        "float16": (network.half(), network),
        "90 % pruned, one more epoch": (pruned, more),
    }
    rows = []
    for name, (small, peer) in found.items():
        ours, theirs = small.evaluate(test).accuracy, peer.evaluate(test).accuracy
        rows.append({"name": name, "accuracy": ours, "peer_accuracy": theirs, "points": 100 * (ours - theirs)})
    return rows


def half_row(train: data.Dataset, test: data.Dataset, epochs: int) -> Row:
    """Return the mean accuracies of three seeds, trained in float16 and in float32."""
    ours = [trained_in_half(train, epochs, seed).evaluate(test).accuracy for seed in range(3)]
    theirs = [trained(train, epochs, seed).evaluate(test).accuracy for seed in range(3)]
    mean, peer = statistics.mean(ours), statistics.mean(theirs)
    found = {"accuracies": ours, "peer_accuracies": theirs, "points": 100 * (mean - peer)}
    return {"name": "trained in float16, mean of 3 seeds", "accuracy": mean, "peer_accuracy": peer, **found}


def main() -> None:
    """Measure the products, then the accuracies."""
    chosen = common.options(__doc__)
    twins.limit_threads(chosen.threads)
    rows = product_rows(chosen.quick)
    train, test = data.digits().split() if chosen.quick else data.mnist()
    rows += accuracy_rows(train, test, 2)
    rows.append(half_row(train, test, 10 if chosen.quick else 1))
    for row in rows:
        if "accuracy" in row:
            print(
                f"{row['name']}: {row['accuracy']:.4f} against {row['peer_accuracy']:.4f}, {row['points']:+.2f} points"
            )
    common.finish(chosen, list(rows), PACKAGES)


if __name__ == "__main__":
    main()
