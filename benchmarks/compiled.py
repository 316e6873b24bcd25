"""Compiled training steps on a GPU beside JAX, PyTorch's graphs and our eager path, on the same GPU in the same run.

    python benchmarks/compiled.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/compiled.json]

Sections: steps (source A's network with Adam at three batches, source B's with 64 channels; made images), mnist (real
data: five epochs at batch 8, and the seconds of training until 98 % of the test images are known; needs MNIST, or
UNROLLED_DATA), products (source A's wide layer by our kernels beside cuBLAS, both in a graph).
A timed call takes hundreds of steps, whose images lie on the GPU; all sides gather their batches there.
Each side is a process of its own, and they take turns; its first losses are compared with the CPU's before.
`ratio` is ours / JAX with all steps in one `lax.scan`; `ratio_graph` is by PyTorch with a step in a CUDA graph,
`ratio_compiled` by the same from `torch.compile`, `ratio_eager` by our eager path. Of products, `ratio` is ours /
cuBLAS with bias, ReLUs and sums, `ratio_products` ours / its three products alone. All in float32, without TF32.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from functools import partial
from typing import Any

import numpy as np

import common
import compiled_sides
import gpu_common
from common import Row
from unrolled import data, nn
from unrolled.device import array_module, to_host
from unrolled.nn import optim

PEERS = {"jax": "ratio", "torch_graph": "ratio_graph", "torch_compiled": "ratio_compiled", "eager": "ratio_eager"}
EPOCHS, SEED = 5, 0


def step_rows(chosen: Any) -> list[Row]:
    """Measure every case, all sides in turn."""
    return gpu_common.each(compiled_sides.CASES, lambda case: [step_row(case, chosen.quick)])


def step_row(case: compiled_sides.Case, quick: bool) -> Row:
    """Measure the seconds of a step by each side, and our ratios to the peers: medians of rounds."""
    number, losses = compiled_sides.CASES.index(case), compiled_sides.expected(case)
    sides = {side: (side, number, losses) for side in ("ours", *PEERS)}
    times, *_ = common.each_apart(compiled_sides.make, sides, 3 if quick else 9, 0.0, calls=1)
    step_counts = dict.fromkeys(times, case.steps) | {"eager": min(200, case.steps)}
    steps = {side: [seconds / step_counts[side] for seconds in times[side]] for side in times}
    found = {f"{side}_s": statistics.median(steps[side]) for side in steps}
    ratios = {key: common.compared(steps, "ours", side)["ratio"] for side, key in PEERS.items()}
    row = {"section": "steps", "name": case.name, "ours_s": found.pop("ours_s"), "peer": "JAX, lax.scan"}
    return {**row, "peer_s": found.pop("jax_s"), "at_most": case.at_most, **ratios, **found, "steps": case.steps}


def mnist_rows(chosen: Any) -> list[Row]:
    """Measure an epoch of MNIST at batch 8, and the accuracy after five, compiled and eager."""
    from gpu import on_gpu
    from networks import source_a, training_row

    row: Row = {"section": "mnist", "name": "compiled epoch, batch 8"}
    if absent := common.absent("mnist"):
        return [row | {"absent": absent}]
    train, test = map(on_gpu, data.mnist())
    network, eager = (source_a().build(train.images.shape[1:], array_module(train.images)) for _ in range(2))
    steps, rng, seconds = nn.compiled(network, optim.Adam(), 8), np.random.default_rng(SEED), []
    for _ in range(EPOCHS):
        start = time.perf_counter()
        losses = to_host(steps.epoch(train.images, train.labels, rng.permutation(len(train.images))))
        seconds.append(time.perf_counter() - start)
    row |= {"ours_s": statistics.median(seconds), "at_most_s": 0.25}
    row |= {"first_s": seconds[0], "total_s": sum(seconds), "epochs": EPOCHS, "train_loss": float(losses.mean())}
    row |= {"accuracy": network.evaluate(test).accuracy, "at_least": 0.98}
    if not chosen.quick:
        history = eager.fit(train, epochs=EPOCHS, batch_size=8, optimizer=optim.Adam(), seed=SEED, progress=False)
        row |= {"eager_s": statistics.median(history.seconds), "eager_accuracy": eager.evaluate(test).accuracy}
    return [row, training_row(train, test, 0.5)]


def product_rows(chosen: Any) -> list[Row]:
    """Measure the wide layer at each batch; a batch that fails leaves its error as a row."""
    import compiled_products

    rows = []
    for batch in compiled_products.BATCHES:
        name = f"wide layer in a graph, batch {batch}"
        rows += gpu_common.guarded(name, lambda batch=batch: [compiled_products.row(batch, chosen.quick)])
    return rows


SECTIONS = {"steps": step_rows, "mnist": mnist_rows, "products": product_rows}  # what calls a library itself comes last


if __name__ == "__main__":
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # several libraries share the GPU
    sys.exit(gpu_common.run(__doc__, SECTIONS, partial(common.installed, "jax", "jaxlib")))
