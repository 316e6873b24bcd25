"""The sides of compiled.py: many training steps by ours and by each peer, all in float32 without TF32.

A side is made in a process of its own. It takes its first steps on the same batches as all others, and compares its
losses with those of our network on the CPU. Images, labels and the order of a whole call lie on the GPU already.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import common
import networks
from networks import CIFAR, MNIST, momentum, source_a, source_b
from unrolled import nn
from unrolled.nn import optim

FIRST, TOLERANCE = 5, 1e-3  # steps that are compared, and how far a loss may be off, relatively
Losses = list[float]


@dataclass(frozen=True)
class Case(networks.Case):
    """Training steps: besides, how many a timed call takes, and the aim beside JAX's."""

    steps: int
    at_most: float

    def data(self) -> tuple[Any, Any, Any]:
        """Return made images (M, ...), labels (M,) and the order (steps, batch) in which they are taken."""
        rng = np.random.default_rng(0)
        size = max(self.batch, min(60_000, self.steps * self.batch) // self.batch * self.batch)
        passes = -(-self.steps * self.batch // size)
        order = np.concatenate([rng.permutation(size) for _ in range(passes)])[: self.steps * self.batch]
        images = rng.random((size, *self.image), dtype=np.float32)
        return images, rng.integers(0, 10, size), order.reshape(self.steps, self.batch)


CASES = (
    Case("compiled step, batch 8", source_a, optim.Adam, MNIST, 8, 2000, 0.4),
    Case("compiled step, batch 128", source_a, optim.Adam, MNIST, 128, 1000, 0.5),
    Case("compiled step, batch 1024", source_a, optim.Adam, MNIST, 1024, 400, 1.0),
    Case("compiled step, source B", partial(source_b, 64), momentum, CIFAR, 100, 400, 0.7),
)


def expected(case: Case) -> Losses:
    """Return the losses of the first steps by our network on the CPU."""
    images, labels, order = case.data()
    step = case.stepper()
    return [float(step(images[chosen], labels[chosen])[0]) for chosen in order[:FIRST]]


def make(side: str, number: int, losses: Losses) -> tuple[common.Step, common.Step]:
    """Return (all steps of a case, nothing) by one side, once its first losses are seen to be right."""
    found, run = SIDES[side](CASES[number])
    if not np.allclose(found, losses, rtol=TOLERANCE):
        raise ArithmeticError(f"{side}, {CASES[number].name}: losses {found}, expected {losses}")
    return run, lambda: None


def _ours(case: Case) -> tuple[Losses, common.Step]:
    import cupy as cp

    images, labels, order = (cp.asarray(values) for values in case.data())
    steps = nn.compiled(case.build(cp), case.optimizer(), case.batch)
    if steps.reason:
        raise ValueError(f"{case.name} is not compiled: {steps.reason}")
    found = steps.epoch(images, labels, order[:FIRST].ravel()).tolist()
    return found, lambda: steps.epoch(images, labels, order.ravel())  # looks at the losses, so it waits


def _eager(case: Case) -> tuple[Losses, common.Step]:
    import cupy as cp

    images, labels, order = (cp.asarray(values) for values in case.data())
    step = case.stepper(cp)

    def run(steps: int) -> list[Any]:
        losses = [step(images[chosen], labels[chosen])[0] for chosen in order[:steps]]
        cp.cuda.runtime.deviceSynchronize()
        return losses

    return list(map(float, run(FIRST))), partial(run, min(200, case.steps))


def _jax(case: Case) -> tuple[Losses, common.Step]:
    """All steps in one `lax.scan`, compiled ahead."""
    jax: Any = import_module("jax")
    jax.config.update("jax_default_matmul_precision", "highest")
    network, optimizer = case.build(), case.optimizer()
    images, labels, order = (jax.numpy.asarray(values) for values in case.data())
    parameters = [{name: jax.numpy.asarray(x) for name, x in layer.parameters.items()} for layer in network.layers]

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        scores = jax.nn.log_softmax(_forward(jax, network, parameters, x))
        return -jax.numpy.take_along_axis(scores, y[:, None], axis=1).mean()

    def step(state: Any, chosen: Any) -> Any:
        parameters, memory, number = state
        value, grad = jax.value_and_grad(loss)(parameters, images[chosen], labels[chosen])
        return (*_update(jax, optimizer, parameters, grad, memory, number + 1), number + 1), value

    zeros = jax.tree.map(jax.numpy.zeros_like, parameters)
    run = jax.jit(lambda state, order: jax.lax.scan(step, state, order), donate_argnums=0)
    state = [((parameters, (zeros, jax.tree.map(jax.numpy.copy, zeros)), 0))]

    def many(steps: int) -> Any:
        state[0], losses = run(state[0], order[:steps])
        return np.asarray(losses)

    return many(FIRST).tolist(), partial(many, case.steps)


def _forward(jax: Any, network: nn.Sequential, parameters: Any, x: Any) -> Any:
    lax = jax.lax
    for layer, own in zip(network.layers, parameters, strict=True):
        if isinstance(layer, nn.Conv2d):
            padding = [(int(layer.padding), int(layer.padding))] * 2  # type: ignore[arg-type]
            x = lax.conv_general_dilated(x, own["weight"], (layer.stride,) * 2, padding)
            x = x + own["bias"][:, None, None]
        elif isinstance(layer, nn.MaxPool2d):
            size, stride = (1, 1, layer.kernel_size, layer.kernel_size), layer.stride or layer.kernel_size
            x = lax.reduce_window(x, -jax.numpy.inf, lax.max, size, (1, 1, stride, stride), "VALID")
        elif isinstance(layer, nn.Linear):
            x = x @ own["weight"].T + own["bias"]
        else:
            x = jax.nn.relu(x) if isinstance(layer, nn.ReLU) else x.reshape(len(x), -1)
    return x


def _update(jax: Any, optimizer: Any, parameters: Any, grad: Any, memory: Any, number: Any) -> Any:
    """Adam, or SGD with momentum and weight decay."""
    first, second = memory
    if isinstance(optimizer, optim.SGD):
        grad = jax.tree.map(lambda g, p: g + optimizer.weight_decay * p, grad, parameters)
        first = jax.tree.map(lambda v, g: optimizer.momentum * v + g, first, grad)
        return jax.tree.map(lambda p, v: p - optimizer.learning_rate * v, parameters, first), (first, second)
    a, b = optimizer.beta1, optimizer.beta2
    first = jax.tree.map(lambda m, g: a * m + (1 - a) * g, first, grad)
    second = jax.tree.map(lambda s, g: b * s + (1 - b) * g * g, second, grad)

    def moved(p: Any, m: Any, s: Any) -> Any:
        root = jax.numpy.sqrt(s / (1 - b**number)) + optimizer.epsilon
        return p - optimizer.learning_rate * (m / (1 - a**number)) / root

    return jax.tree.map(moved, parameters, first, second), (first, second)


def _torch(case: Case, compile_it: bool) -> tuple[Losses, common.Step]:
    """A step in a CUDA graph, its batch gathered inside; fused optimizers."""
    import torch

    import twins

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    images, labels, order = (torch.from_numpy(values).cuda() for values in case.data())
    network = twins.twin(case.build()).cuda()
    forward: Any = torch.compile(network) if compile_it else network
    rule = case.optimizer()
    more = {"capturable": True} if isinstance(rule, optim.Adam) else {}
    optimizer = twins.optimizer(rule, network.parameters(), fused=True, **more)
    chosen, loss = order[0].clone(), torch.zeros((), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        value = torch.nn.functional.cross_entropy(forward(images[chosen]), labels[chosen])
        torch.autograd.backward(value)
        optimizer.step()
        loss.copy_(value.detach())

    before = [parameter.detach().clone() for parameter in network.parameters()]
    graph = _captured(torch, step)
    with torch.no_grad():  # as if no step had been taken
        for parameter, value in zip(network.parameters(), before, strict=True):
            parameter.copy_(value)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()

    def run(steps: int, losses: Losses | None = None) -> None:
        for number in itertools.islice(order, steps):
            chosen.copy_(number)
            graph.replay()
            if losses is not None:
                losses.append(float(loss))
        torch.cuda.synchronize()

    found: Losses = []
    run(FIRST, found)
    return found, partial(run, case.steps)


def _captured(torch: Any, step: Callable[[], None]) -> Any:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


SIDES: dict[str, Callable[[Case], tuple[Losses, common.Step]]] = {
    "ours": _ours,
    "jax": _jax,
    "torch_graph": partial(_torch, compile_it=False),
    "torch_compiled": partial(_torch, compile_it=True),
    "eager": _eager,
}
