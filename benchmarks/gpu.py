"""The library on a real GPU through CuPy, beside PyTorch's eager mode on the same GPU in the same run.

    python benchmarks/gpu.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/gpu.json]

Sections: steps (training steps of the sources' networks and of Keras's example; the same network, optimizer and data in
PyTorch, on the device already; loss and gradients compared first), channels (source B's on the CPU beside the GPU),
layers (the step drilled down), pooling (source A's three fills), transfers, ceilings, launches (what each kind of call
costs), mnist, cifar (real data; needs MNIST and CIFAR-10, or UNROLLED_DATA). What fails leaves its error as a row.

`ours_s` and `peer_s` are medians of interleaved blocks, timed by CUDA events; `ratio` is the median of the pairs.
`host_us` is what issuing the work costs the host, `device_us` what doing it costs the device. All in float32; TF32 is
off on both sides. `source` is what a source's author measured, on other machines (2015, 2020).
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cupy as cp
import numpy as np
import torch

import cifar_cnn
import common
import gpu_common
import mnist_cnn
import twins
from common import Row
from networks import KERAS, SOURCE_A, SOURCE_B, Case, keras_example, momentum, source_a, source_b
from unrolled import data, kernels, nn
from unrolled.nn import optim

STEP_AIMS = {
    **{"mnist step, batch 8": 1.0, "mnist step, batch 128": 1.0},
    **dict.fromkeys(("cifar step", "keras example step", "mnist step"), 1.5),
}
"""At most so many times PyTorch's: by a case's whole name, or by how it begins."""
STEP_SOURCES = {
    **{f"mnist step, batch {batch}": words for batch, words in mnist_cnn.SOURCE.items()},
    "keras example step, batch 128": "4 s an epoch",
    **{f"cifar step, {n} channels": f"{seconds:.1f} s an epoch" for n, seconds in cifar_cnn.SOURCE_GPU.items()},
    "cifar step, 64 channels, second dense layer": "16.4 s an epoch",
    "cifar step, 64 channels, window 2": "19.1 s an epoch",
    "cifar step, 64 channels, window 4 stride 2": "30 min an epoch, GPU idle",
}
CASES = (*SOURCE_A.values(), KERAS, *SOURCE_B.values())
SIZES = (4_000, 64_000, 1_000_000, 16_000_000, 256_000_000)
MNIST_AIMS = {8: 8.0, 128: 0.6}  # seconds an epoch
CIFAR_AIMS = {16: 0.737, 64: 0.759}  # accuracy on the test images
WIDTHS = (0.001, 0.01)  # of the first weights, convolution and dense: found on the validation images with 64 channels
EPOCHS = {"mnist": 5, "cifar": 50}


def step_rows(chosen: Any) -> list[Row]:
    """Measure every step."""
    return gpu_common.each(CASES, lambda case: [row(case, 5 if chosen.quick else 15)])


def row(case: Case, rounds: int) -> Row:
    """Measure a step: seconds on both sides; the host's and the device's share, launches and memory of ours.

    Returns one row; loss and gradients are compared first.
    """
    certain = replace(case, network=partial(keras_example, 0.0)) if case is KERAS else case  # without dropout
    twins.check(certain, cp, 3 * common.TOLERANCE)
    steps = {"ours": twins.ours(case, cp), "peer": twins.peer(case, cp)}
    found = common.compared(gpu_common.side_by_side(steps, calls=40, rounds=rounds))
    counted = {f"launches{side}": launches(steps[key]) for side, key in (("", "ours"), ("_peer", "peer"))}
    shares = {**gpu_common.costs(steps["ours"], 10), "peak_mb": peak_mb(case)}
    at_most = next(STEP_AIMS[name] for name in (case.name, case.name.partition(",")[0]) if name in STEP_AIMS)
    aims = {"peer": "PyTorch", "at_most": at_most, "source": STEP_SOURCES.get(case.name, "")}
    return {"name": case.name, **found, **aims, **shares, **counted}


def peak_mb(case: Case) -> float:
    """Return the MB that two steps of a fresh network take from a memory pool of their own; their batches included."""
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        step = twins.ours(case, cp)
        step()
        step()
        gpu_common.synchronize()
        return float(pool.total_bytes() / 1e6)


def launches(step: Callable[[], Any]) -> int | None:
    """Return the number of kernels that a step launches, as PyTorch's profiler sees them; None where it sees none."""
    try:
        names = traced(step)
    except Exception:  # the profiler is not the point of the row
        return None
    return sum(not name.startswith(("Memcpy", "Memset")) for name in names) or None


def traced(step: Callable[[], Any]) -> list[str]:
    """Return the names of what the device does in a step."""
    kinds = torch.profiler.ProfilerActivity
    gpu_common.synchronize()
    with torch.profiler.profile(activities=[kinds.CUDA]) as profile:
        step()
        gpu_common.synchronize()
    return [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]


def layer_rows(chosen: Any) -> list[Row]:
    """Measure source A's steps layer by layer."""
    return [row for batch in (8, 128) for row in parts_of(SOURCE_A[batch])]


def parts_of(case: Case) -> list[Row]:
    """Measure forward and backward of each layer, loss and update of a step: microseconds of host and device."""
    network, optimizer = case.build(cp), case.optimizer()
    x, labels = case.batches(cp)[0]
    network.loss_and_scores(x, labels)
    parts: list[tuple[str, Callable[[], Any]]] = []
    values = [x]
    for layer in network.layers:
        values.append(layer.forward(values[-1], True))
    _, grad = network.loss(values[-1], labels)
    for number, layer in enumerate(network.layers):
        parts.append((f"{number} {type(layer).__name__} forward", partial(layer.forward, values[number], True)))
    parts.append(("loss", partial(network.loss, values[-1], labels)))
    for number, layer in reversed(list(enumerate(network.layers))):
        parts.append((f"{number} {type(layer).__name__} backward", partial(layer.backward, grad)))
        grad = layer.backward(grad)
    parts.append(("update", partial(optimizer.step, network.parameters, network.gradients)))
    rows: list[Row] = [{"name": f"{case.name}: {part}", **gpu_common.costs(step)} for part, step in parts]
    whole: Row = {"name": f"{case.name}: whole step", **gpu_common.costs(twins.ours(case, cp))}
    sums = {key: whole[key] - sum(row[key] for row in rows) for key in ("host_us", "device_us")}
    return [*rows, {"name": f"{case.name}: remainder", **sums}, whole]


def cpu_rows(chosen: Any) -> list[Row]:
    """Measure source B's channels on the CPU of the same machine, and the GPU's time beside it."""
    found = list[Row]()
    for case in itertools.islice(SOURCE_B.values(), 3):
        step = twins.ours(case)
        step()
        row = {"name": f"{case.name}, CPU beside GPU"}
        row |= {"cpu_s": min(common.seconds(step) for _ in range(4))}
        found.append(row | {"gpu_s": gpu_common.seconds(twins.ours(case, cp), 40, 5 if chosen.quick else 15)})
    return found


def pooling_rows(chosen: Any) -> list[Row]:
    """Measure pooling's three fills at batch 8: source A's statement, its repair, and the source's mask.

    There are 15,680 windows of 4 places each. Raises ArithmeticError if mask and index differ.
    """
    n = 8 * 10 * 14 * 14
    rng = np.random.default_rng(0)
    places, grad = cp.asarray(rng.integers(0, 4, n)), cp.asarray(rng.random(n, dtype=np.float32))
    mask, target, numbers = cp.zeros((n, 4), "float32"), cp.zeros((n, 4), "float32"), cp.arange(n)
    mask[numbers, places] = 1
    ways = {
        "quadratic": (lambda: target.__setitem__((slice(None), places), grad), "[:, idx]", "9,500 us"),
        "indexed": (lambda: target.__setitem__((numbers, places), grad), "[arange, idx]", None),
        "mask": (lambda: cp.multiply(mask, grad[:, None], out=target), "mask", "16.3 us"),
    }
    ways["indexed"][0]()
    linear = target.copy()
    target.fill(0)
    ways["mask"][0]()
    if not (target == linear).all():
        raise ArithmeticError("pooling: mask and index differ")
    return [
        {"name": f"pooling fill, batch 8, {name}", "statement": statement, **gpu_common.costs(way), "source": source}
        for name, (way, statement, source) in ways.items()
    ]


def transfer_rows(chosen: Any) -> list[Row]:
    """Measure copies between host and device, in pageable and pinned memory, until the copy is done."""
    rows = []
    for size in SIZES:
        device, pageable = cp.empty(size, "uint8"), np.ones(size, np.uint8)
        pinned = np.frombuffer(cp.cuda.alloc_pinned_memory(size), np.uint8, size)
        pinned[...] = 1
        for kind, host in (("pageable", pageable), ("pinned", pinned)):
            ways = {"to device": partial(device.set, host), "to host": partial(device.get, out=host)}
            for direction, way in ways.items():
                us = waiting_us(way, 3 if size > 1e8 else 15)
                row = {"name": f"transfer {direction}, {kind}, {size:,} bytes", "bytes": size, "us": us}
                rows.append(row | {"gb_per_s": size / us / 1e3})
    return rows


def ceiling_rows(chosen: Any) -> list[Row]:
    """Measure the fastest copy and matrix product: what a roofline is made of."""
    rows = []
    for size in (64_000_000, 2_000_000_000):
        a, b = cp.ones(size // 4, "float32"), cp.empty(size // 4, "float32")
        us = gpu_common.costs(partial(cp.copyto, b, a), 5)["device_us"]
        rows.append({"name": f"copy on the device, {size:,} bytes", "us": us, "gb_per_s": 2 * size / us / 1e3})
    rng = cp.random.default_rng(0)
    for dtype, sizes in (("float32", (256, 768, 2048, 8192)), ("float64", (4096,)), ("float16", (8192,))):
        for size in sizes:
            a, b = (rng.random((size, size), dtype="float32").astype(dtype) for _ in range(2))
            us = gpu_common.costs(partial(cp.matmul, a, b, out=cp.empty_like(a)), 5)["device_us"]
            rows.append({"name": f"matmul {dtype} {size}", "us": us, "tflops": 2 * size**3 / us / 1e6})
    return rows


def launch_rows(chosen: Any) -> list[Row]:
    """Measure each kind of call on arrays so small that only the launch counts: microseconds of host and device."""
    table, ones = common.table("gpu_calls"), partial(cp.ones, dtype="float32")
    names = {"cp": cp, "np": np, "kernels": kernels, "synchronize": gpu_common.synchronize}
    names |= {"x": ones((64, 64)), "y": ones((64, 64)), "out": ones((64, 64)), "big": ones(1_000_000)}
    names |= {"third": ones((4, 64, 64)), "fourth": ones((4, 64, 64)), "one": ones(1), "index": cp.arange(64)}
    names |= {"mask": names["x"] > 0, "generator": cp.random.default_rng(0)}
    names["mine"] = cp.ElementwiseKernel("T a, T b", "T c", "c = a * b + 1", "course_fused")
    calls, waits = ({f"call: {k}": eval(f"lambda: {v}", names) for k, v in table[part].items()} for part in table)
    rows = [{"name": name, **gpu_common.costs(call)} for name, call in calls.items()]
    return rows + [{"name": name, "waits_us": waiting_us(call, 30)} for name, call in waits.items()]


def waiting_us(call: Callable[[], Any], repeats: int) -> float:
    """Return the microseconds of a call that waits for the device, which has nothing else to do."""
    gpu_common.synchronize()
    found = [common.seconds(lambda: (call(), gpu_common.synchronize())) for _ in range(repeats + 2)]
    return 1e6 * statistics.median(found[2:])


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


def mnist_rows(chosen: Any) -> list[Row]:
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


def cifar_rows(chosen: Any) -> list[Row]:
    """Measure an epoch's seconds by channels, and the accuracy: validation images choose among fifty epochs."""
    if absent := common.absent("cifar10"):
        return [{"section": "training", "name": "cifar epoch", "absent": absent}]
    train, validation, test = map(on_gpu, cifar_cnn.whitened())
    rows = []
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


SECTIONS: dict[str, Callable[[Any], list[Row]]] = {
    "steps": step_rows,
    "channels": cpu_rows,
    "layers": layer_rows,
    "pooling": pooling_rows,
    "transfers": transfer_rows,
    "ceilings": ceiling_rows,
    "launches": launch_rows,
    "mnist": mnist_rows,
    "cifar": cifar_rows,
}

if __name__ == "__main__":
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.exit(gpu_common.run(__doc__, SECTIONS))
