"""`compiled`: the training step of a network as one program, and what happens where there is none."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn.compiler.stages import NotCompilableError, stages
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer
from unrolled.nn.watch import NonFiniteError, Snapshot, first_non_finite
from unrolled.ops.arguments import check_arrays, check_whole


class Program(Protocol):
    """Steps of one network with one optimizer and one batch size, with no Python between kernels."""

    def run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """Take len(order) // batch steps, on the images that `order` names; return the losses (S,), where they are.

        Changes the network's parameters and gradients and the optimizer's memory, and counts its steps.
        """
        ...


def compiled(network: Sequential, optimizer: Optimizer, batch: int) -> Compiled:
    """Return training steps of `network` on batches of `batch` samples, compiled where the network lies.

    The network is built (`build((1, 28, 28), module)`). What cannot be compiled runs eagerly: `reason` says why.
    Raises ValueError for a network that is not built and for a batch below 1, TypeError for what is no optimizer.
    """
    check_whole("batch", batch)
    if not isinstance(network, Sequential):
        raise TypeError(f"network is {network!r}; expected nn.Sequential(...)")
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer is {optimizer!r}; expected an object such as nn.Adam()")
    return Compiled(network, optimizer, batch)


class Compiled:
    """Training steps of one network: `epoch` takes many, `step` one.

    `reason` is None, or why the steps run eagerly, in words.
    """

    def __init__(self, network: Sequential, optimizer: Optimizer, batch: int) -> None:
        self.network, self.optimizer, self.batch = network, optimizer, batch
        self.reason: str | None = None
        self._program: Program | None = None
        self._before = _Before(network, optimizer)
        self._layers = repr(network)
        try:
            self._program = _program(network, optimizer, batch)
        except NotCompilableError as error:
            self.reason = str(error)

    def step(self, images: Array, labels: Array) -> Array:
        """Train on one batch: images (N, ...), labels (N,). Return the loss, an array without axes."""
        module = array_module(self.network.parameters)
        return self.epoch(images, labels, module.arange(len(images)))[0]

    def epoch(self, images: Array, labels: Array, order: Array, rate: float = 1.0) -> Array:
        """Train on the samples that `order` (N,) names, `batch` at a time; a smaller last batch runs eagerly.

        images (M, ...) and labels (M,) lie where the network does; `order` comes from there or from the host. `rate`
        multiplies the learning rate, as a schedule does. Returns the losses (S,), S = ceil(N / batch), for a `step`
        with more samples than the batch as well. Raises ValueError where the network changed since it was compiled,
        and NonFiniteError, which names step, layer and array, where a loss or a parameter is not finite: the network
        has the parameters of the last good step then.
        """
        order = self._fitting(images, labels, order)
        self._before.take()
        losses = self._run(images, labels, order, rate)
        self._check_finite(losses, images, labels, order, rate)
        return losses

    def _run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """All steps: whole batches by the program, the rest without it; the losses (S,)."""
        whole = len(order) - len(order) % self.batch if self._program else 0
        losses = [self._program.run(images, labels, order[:whole], rate)] if whole and self._program else []
        for at in range(whole, len(order), self.batch):
            chosen = order[at : at + self.batch]
            loss, _ = self.network.loss_and_scores(images[chosen], labels[chosen])
            self.optimizer.step(self.network.parameters, self.network.gradients, rate)
            losses.append(loss.reshape(1))
        return array_module(images).concatenate(losses)

    def _fitting(self, images: Array, labels: Array, order: Array) -> Array:
        """The order, where the network lies. Raises ValueError or TypeError for what does not fit the network."""
        if repr(self.network) != self._layers:
            raise ValueError(
                f"the network is {self.network!r} now, it was {self._layers} when compiled: compile it again"
            )
        module = check_arrays(images=images, labels=labels, parameters=self.network.parameters)
        if tuple(images.shape[1:]) != self.network.input_shape or labels.shape != images.shape[:1]:
            expected = f"images (M, {', '.join(map(str, self.network.input_shape or ()))}) and labels (M,)"
            raise ValueError(f"images has shape {images.shape}, labels {labels.shape}; expected {expected}")
        if order.ndim != 1 or not len(order) or order.dtype.kind not in "iu":
            raise ValueError(f"order is {order.dtype} {order.shape}; expected whole numbers (N,), at least one")
        least, most = int(to_host(order.min())), int(to_host(order.max()))
        if least < 0 or most >= len(images):
            raise ValueError(f"order names samples {least} to {most}; expected 0 to {len(images) - 1}")
        return to_device(order, module)

    def _check_finite(self, losses: Array, images: Array, labels: Array, order: Array, rate: float) -> None:
        """Look at all losses and parameters, once; the host waits for a device here.

        The losses name the step. A second run up to it, from the parameters of before, finds layer and array.
        """
        bad = np.flatnonzero(~np.isfinite(to_host(losses)))
        if not len(bad) and bool(to_host(array_module(losses).isfinite(self.network.parameters).all())):
            return
        last = int(bad[0]) if len(bad) else len(losses) - 1
        self._before.restore()
        if last:
            self._run(images, labels, order[: last * self.batch], rate)
        chosen = order[last * self.batch : (last + 1) * self.batch]
        raise NonFiniteError(last + 1, *first_non_finite(self.network, images[chosen], labels[chosen]))


class _Before:
    """Parameters, state and the optimizer's memory as they were before a run."""

    def __init__(self, network: Sequential, optimizer: Optimizer) -> None:
        self._optimizer, self._network = optimizer, Snapshot(network)
        self._memory: list[Array] = []
        self._steps = 0

    def take(self) -> None:
        self._network.take()
        self._memory, self._steps = [array.copy() for array in self._optimizer._memory], self._optimizer.steps

    def restore(self) -> None:
        """Give back what was taken; an optimizer that had no memory then starts anew."""
        self._network.restore()
        if not self._memory:
            self._optimizer.reset()
        for array, before in zip(self._optimizer._memory, self._memory, strict=False):
            array[...] = before
        self._optimizer.steps = self._steps


def _program(network: Sequential, optimizer: Optimizer, batch: int) -> Program:
    """The program for where the network lies. Raises NotCompilableError."""
    read = stages(network)
    module = array_module(network.parameters)
    if module is np:
        from unrolled.nn.compiler import host

        return host.HostProgram(network, optimizer, batch, read)
    from unrolled.nn.compiler import cuda

    return cuda.GraphProgram(network, optimizer, batch, read)
