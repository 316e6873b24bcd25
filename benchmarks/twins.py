"""A network of ours and its twin in PyTorch: same weights, batches and optimizer, compared before they are timed."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import common
from cpu import limit_threads
from unrolled import data, nn
from unrolled.nn import optim

TOLERANCE = 1e-4  # of the largest value; float32 sums differ by their order
BATCHES = 16  # taken in turn, so that no side finds its inputs in the cache


@dataclass(frozen=True)
class Case:
    """A training step: the network, its optimizer on both sides, and how many steps one timed call makes."""

    network: Callable[[], nn.Sequential]
    ours: Callable[[], optim.Optimizer]
    peer: Callable[[Any], torch.optim.Optimizer]
    image: tuple[int, int, int]
    batch: int
    steps: int

    def batches(self) -> list[tuple[Any, Any]]:
        """Return random images and labels: a step takes as long as on real ones."""
        rng = np.random.default_rng(0)
        images = rng.random((BATCHES * self.batch, *self.image), dtype=np.float32)
        labels = rng.integers(0, 10, len(images))
        return list(data.minibatches((images, labels), self.batch, seed=0))


def twin(network: nn.Sequential) -> torch.nn.Sequential:
    """Return this network in PyTorch, with copies of the weights."""
    return torch.nn.Sequential(*map(_twin, network.layers))


def check(name: str, case: Case) -> None:
    """Exit unless both sides find the same loss and the same gradients."""
    images, labels = case.batches()[0]
    network = case.network().build(case.image)
    other = twin(network)
    loss, _ = network.loss_and_scores(images, labels)
    peer_loss = _peer_loss(other, torch.from_numpy(images), torch.from_numpy(labels))
    torch.autograd.backward(peer_loss)
    peers = [parameter.grad.numpy() for parameter in other.parameters() if parameter.grad is not None]
    grads = [layer.gradients[key] for layer in network.layers for key in ("weight", "bias") if key in layer.gradients]
    pairs = [(loss, peer_loss.detach().numpy()), *zip(grads, peers, strict=True)]
    for number, (a, b) in enumerate(pairs):
        if np.abs(a - b).max() > TOLERANCE * np.abs(b).max():
            sys.exit(f"{name}: {f'gradient {number}' if number else 'loss'} differs by {np.abs(a - b).max()}")


def make(side: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return a function that does `case.steps` training steps of one side, and one that does a single step."""
    limit_threads(threads)
    step = SIDES[side](case)
    return lambda: [step() for _ in range(case.steps)], step


def row(name: str, case: Case, chosen: Any) -> dict[str, Any]:
    """Measure one step on both sides, each in a process of its own, in both modes of `common.both_modes`."""
    case = replace(case, steps=max(1, case.steps // 8)) if chosen.quick else case
    check(name, case)
    found = common.both_modes(make, case, chosen.threads, quick=chosen.quick, calls=common.CALLS)
    seconds = {key: found[key] / case.steps for key in ("ours_s", "peer_s")}
    return {
        "name": name,
        "peer": "PyTorch",
        **seconds,
        **{key: found[key] for key in ("ratio", "ratio_apart", "others")},
    }


def _ours(case: Case) -> common.Step:
    network, optimizer = case.network().build(case.image), case.ours()
    batches = itertools.cycle(case.batches())

    def step() -> None:
        network.loss_and_scores(*next(batches))
        optimizer.step(network.parameters, network.gradients)

    return step


def _peer(case: Case) -> common.Step:
    network = twin(case.network().build(case.image))
    optimizer = case.peer(network.parameters())
    batches = itertools.cycle([tuple(map(torch.from_numpy, batch)) for batch in case.batches()])

    def step() -> None:
        optimizer.zero_grad()
        torch.autograd.backward(_peer_loss(network, *next(batches)))
        optimizer.step()

    return step


SIDES: dict[str, Callable[[Case], common.Step]] = {"ours": _ours, "peer": _peer}


def _peer_loss(network: torch.nn.Sequential, images: Any, labels: Any) -> Any:
    return torch.nn.functional.cross_entropy(network(images), labels)


def _twin(layer: Any) -> torch.nn.Module:
    if isinstance(layer, nn.ReLU):
        return torch.nn.ReLU()
    if isinstance(layer, nn.Flatten):
        return torch.nn.Flatten()
    if isinstance(layer, nn.MaxPool2d):
        return torch.nn.MaxPool2d(*layer.window)
    if isinstance(layer, nn.Dropout):
        return torch.nn.Dropout(layer.rate)
    weight = layer.parameters["weight"]
    if isinstance(layer, nn.Conv2d):
        filters, channels, *kernel = weight.shape
        other: Any = torch.nn.Conv2d(channels, filters, tuple(kernel), layer.stride, layer.padding)
    else:
        other = torch.nn.Linear(weight.shape[1], weight.shape[0])
    with torch.no_grad():
        other.weight.copy_(torch.from_numpy(weight))
        other.bias.copy_(torch.from_numpy(layer.parameters["bias"]))
    return other
