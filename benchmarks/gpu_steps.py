"""Training steps for gpu.py: the networks of the sources beside their twins in PyTorch, layer by layer, on the CPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import cupy as cp
import numpy as np
import torch

import cifar_cnn
import common
import gpu_timing as timing
import mnist_cnn
import twins
from networks import keras_example, source_a, source_b
from unrolled import nn
from unrolled.device import to_host
from unrolled.nn import optim

MNIST, CIFAR = (1, 28, 28), (3, 32, 32)
BATCHES = 16  # taken in turn
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A training step, and what the aim is: at most so many times PyTorch's."""

    name: str
    network: Callable[[], nn.Sequential]
    ours: Callable[[], optim.Optimizer]
    peer: Callable[[Any], torch.optim.Optimizer]
    image: tuple[int, int, int]
    batch: int
    at_most: float
    source: str = ""
    checked: Callable[[], nn.Sequential] | None = None  # the network without what is random

    def batches(self, module: Any) -> Any:
        """Return random images and labels on the device: a step takes as long as on real ones."""
        rng = np.random.default_rng(0)
        images = rng.random((BATCHES, self.batch, *self.image), dtype=np.float32)
        labels = rng.integers(0, 10, (BATCHES, self.batch))
        return [(module.asarray(x), module.asarray(y)) for x, y in zip(images, labels, strict=True)]


def _mnist(batch: int, at_most: float) -> Case:
    name, source = f"mnist step, batch {batch}", mnist_cnn.SOURCE.get(batch, "")
    return Case(name, source_a, optim.Adam, torch.optim.Adam, MNIST, batch, at_most, source)


def _cifar(name: str, network: Callable[[], nn.Sequential], source: str) -> Case:
    return Case(f"cifar step, {name}", network, cifar_cnn.ours, cifar_cnn.peer, CIFAR, 100, 1.5, source)


ADADELTA = partial(torch.optim.Adadelta, lr=1.0, rho=0.95)
SOURCE_A = (_mnist(8, 1.0), _mnist(128, 1.0), _mnist(1024, 1.5))
KERAS = Case(
    *("keras example step, batch 128", keras_example, optim.AdaDelta, ADADELTA, MNIST, 128, 1.5, "4 s an epoch"),
    checked=partial(keras_example, 0.0),
)
SOURCE_B = (
    *(
        _cifar(f"{n} channels", partial(source_b, n), f"{cifar_cnn.SOURCE_GPU[n]:.1f} s an epoch")
        for n in (16, 64, 256)
    ),
    _cifar("64 channels, second dense layer", partial(source_b, 64, second=True), "16.4 s an epoch"),
    _cifar("64 channels, window 2", partial(source_b, 64, 2), "19.1 s an epoch"),
    _cifar("64 channels, window 4 stride 2", partial(source_b, 64, 4, 2), "30 min an epoch, GPU idle"),
)


def ours(case: Case) -> Callable[[], Any]:
    """Return a step of the library on CuPy."""
    network, optimizer = case.network().build(case.image, cp), case.ours()
    batches = itertools.cycle(case.batches(cp))

    def step() -> None:
        network.loss_and_scores(*next(batches))
        optimizer.step(network.parameters, network.gradients)

    return step


def peer(case: Case) -> Callable[[], Any]:
    """Return a step of PyTorch, eager, with its default optimizer for a GPU (several tensors a launch)."""
    network = twins.twin(case.network().build(case.image)).cuda()
    optimizer = case.peer(network.parameters())
    batches = itertools.cycle([(torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda()) for x, y in case.batches(np)])

    def step() -> None:
        images, labels = next(batches)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()

    return step


def check(case: Case) -> None:
    """Raise ArithmeticError unless loss and gradients on CuPy are those of PyTorch on the GPU."""
    make = case.checked or case.network
    images, labels = case.batches(np)[0]
    network = make().build(case.image, cp)
    other = twins.twin(make().build(case.image)).cuda()
    loss, _ = network.loss_and_scores(cp.asarray(images), cp.asarray(labels))
    expected = torch.nn.functional.cross_entropy(
        other(torch.from_numpy(images).cuda()), torch.from_numpy(labels).cuda()
    )
    expected.backward()
    grads = [layer.gradients[key] for layer in network.layers for key in ("weight", "bias") if key in layer.gradients]
    theirs = [parameter.grad.cpu().numpy() for parameter in other.parameters()]
    for number, (a, b) in enumerate([(loss, expected.item()), *zip(grads, theirs, strict=True)]):
        if not np.abs(to_host(a) - b).max() <= 3 * twins.TOLERANCE * np.abs(b).max():
            raise ArithmeticError(f"{case.name}: result {number} differs by {np.abs(to_host(a) - b).max()}")


def row(case: Case, rounds: int) -> Row:
    """Measure a step: seconds on both sides; the host's and the device's share, launches and memory of ours.

    Returns one row; loss and gradients are compared first.
    """
    check(case)
    steps = {"ours": ours(case), "peer": peer(case)}
    found = common.compared(timing.side_by_side(steps, calls=40, rounds=rounds))
    host = timing.host_seconds(steps["ours"], calls=10)
    device = timing.device_seconds(steps["ours"], host, calls=10)
    counted = {f"launches{side}": launches(steps[key]) for side, key in (("", "ours"), ("_peer", "peer"))}
    shares = {"host_us": 1e6 * host, "device_us": 1e6 * device, "peak_mb": peak_mb(case)}
    aims = {"peer": "PyTorch", "at_most": case.at_most, "source": case.source}
    return {"section": "steps", "name": case.name, **found, **aims, **shares, **counted}


def peak_mb(case: Case) -> float:
    """Return the MB that two steps of a fresh network take from a memory pool of their own; their batches included."""
    pool = cp.cuda.MemoryPool()
    with cp.cuda.using_allocator(pool.malloc):
        step = ours(case)
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


def layer_rows(case: Case) -> list[Row]:
    """Measure forward and backward of each layer, loss and update of a step: microseconds of host and device."""
    network, optimizer = case.network().build(case.image, cp), case.ours()
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
    whole = {"name": f"{case.name}: whole step", **timing.costs(ours(case))}
    sums = {key: whole[key] - sum(row[key] for row in rows) for key in ("host_us", "device_us")}
    return [{"section": "layers", **each} for each in (*rows, {"name": f"{case.name}: remainder", **sums}, whole)]


def cpu_rows(gpu: list[Row]) -> list[Row]:
    """Measure source B's channels on the CPU of the same machine, and put the GPU's time beside it."""
    rows = []
    for case in SOURCE_B[:3]:
        network, optimizer = case.network().build(case.image), case.ours()
        batches = itertools.cycle(case.batches(np))

        def step(network: Any = network, optimizer: Any = optimizer, batches: Any = batches) -> None:
            network.loss_and_scores(*next(batches))
            optimizer.step(network.parameters, network.gradients)

        step()
        cpu = min(common.seconds(step) for _ in range(4))
        on_gpu = next((row["ours_s"] for row in gpu if row["name"] == case.name), None)
        rows.append({"section": "channels", "name": f"{case.name}, CPU beside GPU", "cpu_s": cpu, "gpu_s": on_gpu})
    return rows
