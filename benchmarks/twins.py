"""A network of ours and its twin in PyTorch: same weights, batches and optimizer, compared before they are timed.

On the CPU, or on a GPU: there `module` is CuPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import common
from cpu import limit_threads
from networks import Case
from unrolled import nn
from unrolled.device import to_host
from unrolled.nn import optim


def twin(network: nn.Sequential) -> torch.nn.Sequential:
    """Return this network in PyTorch, with copies of the weights."""
    return torch.nn.Sequential(*map(_twin, network.layers))


def optimizer(ours: optim.Optimizer, parameters: Any, **options: Any) -> Any:
    """Return PyTorch's optimizer of the same rule and numbers."""
    if isinstance(ours, optim.SGD):
        numbers = {"momentum": ours.momentum, "weight_decay": ours.weight_decay}
        return torch.optim.SGD(parameters, lr=ours.learning_rate, **numbers, **options)
    if isinstance(ours, optim.AdaDelta):
        return torch.optim.Adadelta(parameters, lr=ours.learning_rate, rho=ours.decay, **options)
    return torch.optim.Adam(parameters, lr=ours.learning_rate, **options)


def tensors(arrays: Any, module: Any) -> tuple[torch.Tensor, ...]:
    """Return copies of arrays of the host on the device of a module."""
    made = map(torch.from_numpy, arrays)
    return tuple(made) if module is np else tuple(each.cuda() for each in made)


def built(case: Case, module: Any) -> Any:
    """Return PyTorch's network of a case, on the device of a module."""
    made = twin(case.build())
    return made if module is np else made.cuda()


def check(case: Case, module: Any = np, tolerance: float = common.TOLERANCE) -> None:
    """Raise ArithmeticError unless both sides find the same loss and the same gradients."""
    images, labels = case.batches()[0]
    network, other = case.build(module), built(case, module)
    loss, _ = network.loss_and_scores(module.asarray(images), module.asarray(labels))
    x, y = tensors((images, labels), module)
    peer_loss = torch.nn.functional.cross_entropy(other(x), y)
    torch.autograd.backward(peer_loss)
    peers = [parameter.grad.cpu().numpy() for parameter in other.parameters() if parameter.grad is not None]
    grads = [layer.gradients[key] for layer in network.layers for key in ("weight", "bias") if key in layer.gradients]
    pairs = [(loss, peer_loss.detach().cpu().numpy()), *zip(grads, peers, strict=True)]
    for number, (a, b) in enumerate(pairs):
        what = f"gradient {number}" if number else "loss"
        common.check(f"{case.name}: {what}", to_host(a), b, tolerance)


def ours(case: Case, module: Any = np) -> common.Step:
    """Return a step of the library."""
    step, batches = case.stepper(module), itertools.cycle(case.batches(module))
    return lambda: step(*next(batches))


def peer(case: Case, module: Any = np) -> common.Step:
    """Return a step of PyTorch, eager, with its default optimizer."""
    return stepper(built(case, module), case.optimizer(), [tensors(batch, module) for batch in case.batches()])


def stepper(network: Any, rule: optim.Optimizer, batches: Sequence[Any]) -> common.Step:
    """Return a step of PyTorch's network, by its optimizer of a rule of ours, on the batches in turn."""
    theirs, endless = optimizer(rule, network.parameters()), itertools.cycle(batches)

    def step() -> None:
        images, labels = next(endless)
        theirs.zero_grad()
        torch.autograd.backward(torch.nn.functional.cross_entropy(network(images), labels))
        theirs.step()

    return step


SIDES: dict[str, Callable[[Case], common.Step]] = {"ours": ours, "peer": peer}


def make(side: str, case: Case, steps: int, threads: int) -> tuple[common.Step, common.Step]:
    """Return a function that does so many training steps of one side on the CPU, and one that does a single step."""
    limit_threads(threads)
    step = SIDES[side](case)
    return lambda: [step() for _ in range(steps)], step


def row(case: Case, steps: int, chosen: Any, epoch: int, **more: Any) -> dict[str, Any]:
    """Measure one step on both sides on the CPU, each in a process of its own, in both modes of `common.both_modes`.

    A timed call makes so many steps. Returns besides the seconds of an epoch of so many images.
    """
    steps = max(1, steps // 8) if chosen.quick else steps
    limit_threads(chosen.threads)
    check(case)
    found = common.both_modes(make, case, steps, chosen.threads, quick=chosen.quick, calls=common.CALLS)
    seconds = {key: found[key] / steps for key in ("ours_s", "peer_s")}
    ratios = {key: found[key] for key in ("ratio", "ratio_apart", "others")}
    each = epoch / case.batch  # steps
    epochs = {"epoch_s": seconds["ours_s"] * each, "peer_epoch_s": seconds["peer_s"] * each}
    return {"name": case.name, "peer": "PyTorch", **seconds, **ratios, **more, **epochs}


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
