"""Smaller numbers on a real GPU: products and evaluations in float16, int8 and with 90 % zeros, beside float32.

    python benchmarks/gpu_precision.py [--quick] [--json lib/unrolled/records/gpu_precision.json]

Products are of square matrices. Evaluations are forward passes of 1,024 images of 28 x 28 that lie on the GPU in the
dtype of the network, whole and layer by layer. TF32 is off. Times are of interleaved blocks between CUDA events;
`ratio` is float32 / ours, the median of the pairs. `error` is the largest difference to float32, as a share of its
largest value. Where a layer's `ours_s` stays the same, the host is what it waits for: a launch takes it that long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import cupy as cp

import common
import gpu_common
from common import Row
from networks import keras_example, source_a
from unrolled import nn
from unrolled.ops import precision

BATCH = 1024


def faster(section: str, name: str, ours: Callable[[], Any], peer: Callable[[], Any], calls: int) -> Row:
    """Return a row: ours beside float32."""
    times = gpu_common.side_by_side({"ours": ours, "peer": peer}, calls, 9)
    found = common.compared(times)
    found["ratio"] = common.compared(times, "peer", "ours")["ratio"]
    return {"section": section, "name": name, "peer": "float32", **found}


def product_rows(n: int) -> list[Row]:
    """Return a row for each kind of product of n x n matrices."""
    rng = cp.random.default_rng(0)
    x, y = (rng.standard_normal((n, n), dtype=cp.float32) for _ in range(2))
    a, b = x.astype(cp.float16), y.astype(cp.float16)
    p, q = (cp.clip(cp.rint(40 * each), -127, 127).astype(cp.int8) for each in (x, y))
    mask = cp.asarray(rng.random((n, n)) < 0.1, cp.float32)
    sparse = precision.sparse(y * mask)
    kinds = {
        "float16": lambda: cp.matmul(a, b),
        "int8": lambda: precision.int8_matmul(p, q),
        "sparse, 90 % zeros": lambda: precision.sparse_matmul(x, sparse),
    }
    calls = 40 if n < 4096 else 5
    rows = []
    for kind, ours in kinds.items():
        row = faster("products", f"matmul {kind} {n}", ours, lambda: cp.matmul(x, y), calls)
        rows.append(row | {"tera_operations_s": 2 * n**3 / row["ours_s"] / 1e12})
    return rows


def network_rows(name: str, network: nn.Sequential) -> list[Row]:
    """Return a row for the whole network in float16, and one for each layer."""
    network.build((1, 28, 28), cp)
    half = network.half()
    images = cp.random.default_rng(1).random((BATCH, 1, 28, 28), dtype=cp.float32)
    x, y = images, images.astype(cp.float16)
    expected, found = network.forward(x), half.forward(y)
    error = float(abs(found - expected).max() / abs(expected).max())
    whole = faster("networks", f"{name}, batch {BATCH}", lambda: half.forward(y), lambda: network.forward(x), 20)
    rows = [whole | {"images_s": BATCH / whole["ours_s"], "error": error}]
    for number, (plain, small) in enumerate(zip(network.layers, half.layers, strict=True)):
        title = f"{name}, layer {number}, {plain!r}"
        ours, peer = (lambda at=y, layer=small: layer.forward(at)), (lambda at=x, layer=plain: layer.forward(at))
        rows.append(faster("layers", title, ours, peer, 20))
        x, y = plain.forward(x), small.forward(y)
    return rows


def main() -> None:
    """Measure the products, then the networks; each section's failure is a row."""
    chosen = common.options(__doc__)
    sections = {f"products {n}": partial(product_rows, n) for n in ((1024,) if chosen.quick else (1024, 4096, 8192))}
    for name, network in {"source A": source_a(), "Keras's example": keras_example(0.0)}.items():
        sections[name] = partial(network_rows, name, network)
    chosen.only = list(sections)
    gpu_common.measured(chosen, lambda name, rows: sections[name]())


if __name__ == "__main__":
    main()
