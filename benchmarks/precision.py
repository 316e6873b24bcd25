"""Fewer and smaller numbers: what they cost in accuracy on MNIST, and what their products gain or lose in time.

    python benchmarks/precision.py [--quick] [--json FILE] [--threads 1]

Products: int8 (exact, through float32 in blocks or through float64), binary (xor and popcount on packed words) and
sparse (90 % zeros, CSR), beside the float32 product of BLAS, of square matrices; `ratio` is ours / peer.
"bitwise_count alone" counts the bits that the binary product counts, and does nothing else.

Networks: source A's, trained two epochs in batches of 64, then in float16, in int8 (scales from 1,000 training images),
and with 90 % of its weights pruned or its inner dense layer binary, each trained one more epoch. `points` is the
accuracy against the peer's in points: the peer of those that trained on is float32 trained on. `bytes` is what the
weights take: 2, 1 or 1/8 a weight, 8 for each that is left in a sparse matrix. `seconds` is one evaluation of all test
images, the median of five. Trained in float16: `fit(precision="float16")`, an epoch each, three seeds, beside float32
of the same seeds. --quick takes scikit-learn's digits and smaller matrices.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

import common
import twins
from common import Row
from networks import source_a
from unrolled import data, nn
from unrolled.nn.smaller_layers import BinaryLinear
from unrolled.ops import precision
from unrolled.ops.precision.binary import COLUMNS, ROWS


def product_rows(quick: bool) -> list[Row]:
    """Return a row for each kind of product."""
    rng, rows = np.random.default_rng(0), []
    for n in (512,) if quick else (1024, 4096):
        a, b = (rng.integers(-127, 128, (n, n)).astype(np.int8) for _ in range(2))
        x, y = a.astype(np.float32), b.astype(np.float32)
        p, q = precision.pack_signs(x), precision.pack_signs(y)
        s = precision.sparse(y * precision.magnitude_mask(y, 0.9))
        kinds: dict[str, Callable[[], Any]] = {
            "int8, blocks of float32": lambda a=a, b=b: precision.int8_matmul(a, b),
            "int8, float64": lambda a=a, b=b: (a.astype(float) @ b.astype(float)).astype(np.int32),  # one product
            "sparse, 90 % zeros": lambda x=x, s=s: precision.sparse_matmul(x, s),
            "binary": lambda p=p, q=q, n=n: precision.binary_matmul(p, q, n),
            "binary, bitwise_count alone": lambda n=n: count_alone(n),
        }
        for name, ours in kinds.items():
            times, _ = common.side_by_side({"ours": ours, "peer": lambda x=x, y=y: x @ y}, rounds=1, patience=0)
            row = {"section": "products", "name": f"{name}, {n}", "peer": "float32 BLAS"}
            rows.append(row | common.compared(times))
    return rows


def count_alone(n: int) -> None:
    """Count the bits of as many words as `binary_matmul` does for n x n signs, in pieces that stay in the cache."""
    words = np.full(COLUMNS * ROWS, 0x5555555555555555, np.uint64)
    counts = np.empty(words.size, np.uint8)
    for _ in range(-(-n * n * (n // 64) // words.size)):
        np.bitwise_count(words, out=counts)


def trained(train: data.Dataset, epochs: int, seed: int = 0, kind: str = "float32") -> nn.Sequential:
    """Return source A's network after so many epochs."""
    network = source_a(seed)
    network.fit(train, epochs=epochs, batch_size=64, seed=seed, progress=False, precision=kind)
    return network


def network_rows(train: data.Dataset, test: data.Dataset, epochs: int) -> list[Row]:
    """Return accuracy, bytes and seconds of one network in each kind of number."""
    network = trained(train, epochs)
    more, few, signs = copy.deepcopy(network), network.prune(0.9), network.binarize()
    for each in (more, few, signs):
        each.fit(train, epochs=1, batch_size=64, seed=1, progress=False)
    found = {
        "float32": (network, network),
        "float16": (network.half(), network),
        "int8": (network.quantize(train.images[:1000]), network),
        "int8, percentile 99.9": (network.quantize(train.images[:1000], 99.9), network),
        "float32, one more epoch": (more, more),
        "90 % pruned, one more epoch": (few, more),
        "binary dense layer, one more epoch": (signs, more),
    }
    peers = {id(peer): peer.evaluate(test).accuracy for _, peer in found.values()}
    rows = []
    for name, (small, peer) in found.items():
        accuracy = small.evaluate(test).accuracy
        seconds = [common.seconds(lambda small=small: small.scores(test.images, 1000)) for _ in range(6)][1:]
        row = {"section": "networks", "name": name, "accuracy": accuracy, "points": 100 * (accuracy - peers[id(peer)])}
        rows.append(row | {"bytes": weight_bytes(small), "seconds": statistics.median(seconds)})
    return rows


def weight_bytes(network: nn.Sequential) -> int:
    """Return the bytes that the weights take where they are stored as small as they can be."""
    total = 0
    for layer in network.layers:
        if "weight" in layer.constants:
            total += sum(value.nbytes for value in layer.constants.values())
        elif layer.parameters:
            weight, bias = layer.parameters["weight"], layer.parameters["bias"]
            kept = 8 * int(np.count_nonzero(weight)) if "mask" in layer.state else weight.nbytes
            total += bias.nbytes + (-(-weight.size // 8) if isinstance(layer, BinaryLinear) else kept)
    return total


def half_rows(train: data.Dataset, test: data.Dataset, epochs: int) -> list[Row]:
    """Return the accuracies of three seeds, trained in float16 and in float32."""
    rows: list[Row] = []
    for seed in range(3):
        ours, theirs = (trained(train, epochs, seed, kind).evaluate(test).accuracy for kind in ("float16", "float32"))
        names = {"section": "training", "name": f"trained in float16, seed {seed}"}
        rows.append(names | {"accuracy": ours, "peer_accuracy": theirs, "points": 100 * (ours - theirs)})
    means = {key: statistics.mean(row[key] for row in rows) for key in ("accuracy", "peer_accuracy", "points")}
    return [*rows, {"section": "training", "name": "trained in float16, mean of 3 seeds", **means}]


def rows(chosen: Any) -> list[Row]:
    """Measure the products, then the networks, then training."""
    twins.limit_threads(chosen.threads)
    train, test = data.digits().split() if chosen.quick else data.mnist()
    trainings = half_rows(train, test, 10 if chosen.quick else 1)
    return product_rows(chosen.quick) + network_rows(train, test, 2) + trainings


if __name__ == "__main__":
    common.run(__doc__, rows)
