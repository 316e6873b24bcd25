"""Training steps for gpu.py: the networks of the sources beside their twins in PyTorch, layer by layer, on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import cupy as cp
import torch

import cifar_cnn
import common
import gpu
import gpu_timing as timing
import mnist_cnn
import twins
from networks import KERAS, SOURCE_A, SOURCE_B, Case, keras_example

Row = dict[str, Any]
AIMS = {
    **{"mnist step, batch 8": 1.0, "mnist step, batch 128": 1.0},
    **dict.fromkeys(("cifar step", "keras example step", "mnist step"), 1.5),
}
"""At most so many times PyTorch's: by a case's whole name, or by how it begins."""
SOURCES = {
    **{f"mnist step, batch {batch}": words for batch, words in mnist_cnn.SOURCE.items()},
    "keras example step, batch 128": "4 s an epoch",
    **{f"cifar step, {n} channels": f"{seconds:.1f} s an epoch" for n, seconds in cifar_cnn.SOURCE_GPU.items()},
    "cifar step, 64 channels, second dense layer": "16.4 s an epoch",
    "cifar step, 64 channels, window 2": "19.1 s an epoch",
    "cifar step, 64 channels, window 4 stride 2": "30 min an epoch, GPU idle",
}
CASES = (*SOURCE_A.values(), KERAS, *SOURCE_B.values())


def step_rows(quick: bool, rows: list[Row]) -> list[Row]:
    """Measure every step."""
    return gpu.each(CASES, lambda case: [row(case, 5 if quick else 15)])


def row(case: Case, rounds: int) -> Row:
    """Measure a step: seconds on both sides; the host's and the device's share, launches and memory of ours.

    Returns one row; loss and gradients are compared first.
    """
    certain = replace(case, network=partial(keras_example, 0.0)) if case is KERAS else case  # without dropout
    twins.check(certain, cp, 3 * twins.TOLERANCE)
    steps = {"ours": twins.ours(case, cp), "peer": twins.peer(case, cp)}
    found = common.compared(timing.side_by_side(steps, calls=40, rounds=rounds))
    host = timing.host_seconds(steps["ours"], calls=10)
    device = timing.device_seconds(steps["ours"], host, calls=10)
    counted = {f"launches{side}": launches(steps[key]) for side, key in (("", "ours"), ("_peer", "peer"))}
    shares = {"host_us": 1e6 * host, "device_us": 1e6 * device, "peak_mb": peak_mb(case)}
    at_most = next(AIMS[name] for name in (case.name, case.name.partition(",")[0]) if name in AIMS)
    aims = {"peer": "PyTorch", "at_most": at_most, "source": SOURCES.get(case.name, "")}
    return {"section": "steps", "name": case.name, **found, **aims, **shares, **counted}


def peak_mb(case: Case) -> float:
    """Return the MB that two steps of a fresh network take from a memory pool of their own; their batches included."""
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        step = twins.ours(case, cp)
        step()
        step()
        timing.synchronize()
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
    timing.synchronize()
    with torch.profiler.profile(activities=[kinds.CUDA]) as profile:
        step()
        timing.synchronize()
    return [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]


def layer_rows(quick: bool, rows: list[Row]) -> list[Row]:
    """Measure source A's steps layer by layer."""
    return [row for batch in (8, 128) for row in parts_of(SOURCE_A[batch])]


def parts_of(case: Case) -> list[Row]:
    """Measure forward and backward of each layer, loss and update of a step: microseconds of host and device."""
    network, optimizer = case.network().build(case.image, cp), case.optimizer()
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
    rows = [{"name": f"{case.name}: {part}", **timing.costs(step)} for part, step in parts]
    whole = {"name": f"{case.name}: whole step", **timing.costs(twins.ours(case, cp))}
    sums = {key: whole[key] - sum(row[key] for row in rows) for key in ("host_us", "device_us")}
    return [{"section": "layers", **each} for each in (*rows, {"name": f"{case.name}: remainder", **sums}, whole)]


def cpu_rows(quick: bool, rows: list[Row]) -> list[Row]:
    """Measure source B's channels on the CPU of the same machine, and put the GPU's time beside it."""
    found = []
    for case in itertools.islice(SOURCE_B.values(), 3):
        step = twins.ours(case)
        step()
        cpu = min(common.seconds(step) for _ in range(4))
        on_gpu = next((row["ours_s"] for row in rows if row["name"] == case.name), None)
        found.append({"section": "channels", "name": f"{case.name}, CPU beside GPU", "cpu_s": cpu, "gpu_s": on_gpu})
    return found
