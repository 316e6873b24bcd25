"""`compiled`: the training step of a network as one program, and what happens where there is none."""

from __future__ import annotations

from numbers import Real
from typing import Any, NoReturn, Protocol

import numpy as np

from unrolled import kernels, ops
from unrolled.device import Array, array_module, to_device, to_host
from unrolled.nn.compiler.before import Before
from unrolled.nn.compiler.stages import PASSES, NotCompilableError, stages_of
from unrolled.nn.layers import Dropout
from unrolled.nn.network import Sequential
from unrolled.nn.optim import Optimizer
from unrolled.nn.watch import NonFiniteError, first_non_finite, first_parameter
from unrolled.ops.arguments import check_array, check_arrays, check_whole

OF_A_NETWORK = "loss", "dtype", "parameters", "gradients", "state"  # what a program holds for, besides the layers
PLAIN = bool, int, float, str, tuple, type(None)  # an option of these types is the same if it reads the same


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
        self._network, self._optimizer, self._batch = network, optimizer, batch
        self.reason: str | None = None
        self._program: Program | None = None
        try:
            self._program = _program(network, optimizer, batch)
        except NotCompilableError as error:
            self.reason = str(error)
        self._before = Before(network, optimizer)
        self._compiled_for = _made_of(network, optimizer)

    @property
    def network(self) -> Sequential:
        """The network that is trained. Another one has to be compiled itself."""
        return self._network

    @property
    def optimizer(self) -> Optimizer:
        """What the parameters follow their gradients by. Its options may change at any time."""
        return self._optimizer

    @property
    def batch(self) -> int:
        """How many samples a step takes; the last one of an epoch may take fewer."""
        return self._batch

    def step(self, images: Array, labels: Array) -> Array:
        """Train on one batch: images (N, ...), labels (N,), N at most `batch`. Return the loss, an array without axes.

        Raises ValueError for more samples, and what `epoch` raises.
        """
        check_array("images", images)
        if len(images) > self._batch:
            raise ValueError(f"images has {len(images)} samples, the batch is {self._batch}: epoch takes several steps")
        return self.epoch(images, labels, np.arange(len(images)))[0]

    def epoch(self, images: Array, labels: Array, order: Any, rate: float = 1.0) -> Array:
        """Train on the samples that `order` (N,) names, `batch` at a time; a smaller last batch runs eagerly.

        images (M, ...) and labels (M,) lie where the network does; `order` comes from there or from the host, or is a
        list. `rate` multiplies the learning rate, as a schedule does. Returns the losses (S,), S = ceil(N / batch).

        Raises TypeError or ValueError for what does not fit, ValueError for a network that changed since it was
        compiled, and on the host for labels that are no classes; nothing is trained then, nor where the epoch is
        interrupted. Raises NonFiniteError, which names step, layer and array, where a loss or a parameter is not
        finite: network and optimizer are as they were before that step, but for what classes of your own keep where
        ours keep nothing.
        """
        order = self._fitting(images, labels, order)
        if not isinstance(rate, Real):
            raise TypeError(f"rate is {rate!r}; expected a number")
        self._before.take()
        try:
            losses = self._run(images, labels, order, rate)
        except BaseException:  # such as ValueError: steps from Python look at their labels only when they get there
            self._before.restore()
            raise
        if not (_all_finite(losses) and _all_finite(self._network.parameters)):
            self._name_bad_step(images, labels, order, rate)
        return losses

    def _run(self, images: Array, labels: Array, order: Array, rate: float) -> Array:
        """All steps: whole batches by the program, the rest without it; the losses (S,)."""
        whole = len(order) - len(order) % self._batch if self._program else 0
        losses = [self._program.run(images, labels, order[:whole], rate)] if whole and self._program else []
        with np.errstate(all="ignore"):  # what is not finite is named at the end
            for at in range(whole, len(order), self._batch):
                chosen = order[at : at + self._batch]
                loss, _ = self._network.loss_and_scores(images[chosen], labels[chosen])
                self._optimizer.step(self._network.parameters, self._network.gradients, rate)
                losses.append(loss.reshape(1))
        if whole < len(order):
            for layer in self._network.layers:
                layer.forget()
        return array_module(images).concatenate(tuple(losses))

    def _fitting(self, images: Array, labels: Array, order: Any) -> Array:
        """The order, where the network lies. Raises ValueError or TypeError for what does not fit the network."""
        self._check_unchanged()
        module = check_arrays(images=images, labels=labels, parameters=self._network.parameters)
        classes = self._network.loss is ops.softmax_cross_entropy
        labelled = labels.shape if classes else labels.shape[:1]  # another loss may have targets (M, ...)
        if tuple(images.shape[1:]) != self._network.input_shape or labelled != images.shape[:1]:
            expected = f"images (M, {', '.join(map(str, self._network.input_shape or ()))}) and labels (M,)"
            raise ValueError(f"images has shape {images.shape}, labels {labels.shape}; expected {expected}")
        if classes and labels.dtype.kind not in "iu":
            raise ValueError(f"labels are {labels.dtype}; expected integers, one class a sample")
        return _order(order, len(images), module)

    def _check_unchanged(self) -> None:
        """Raise ValueError unless the network is what it was when it was compiled, but for the values of its arrays."""
        now = _made_of(self._network, self._optimizer)
        for where, name in self._compiled_for.keys() | now.keys():
            before, after = self._compiled_for.get((where, name)), now.get((where, name))
            if before is not after and not (isinstance(before, PLAIN) and repr(before) == repr(after)):
                what = f"{name} of {where}" if name else where
                raise ValueError(f"{what} is another than when the network was compiled: compile it again")

    def _name_bad_step(self, images: Array, labels: Array, order: Array, rate: float) -> NoReturn:
        """Raise NonFiniteError for the first step whose loss, or whose parameters after it, are not finite.

        Steps are the same each time, so they are taken again one by one, and the network is left before the bad one.
        """
        self._before.restore()
        for at in range(0, len(order), self._batch):
            chosen = order[at : at + self._batch]
            self._before.take()
            finite = _all_finite(self._run(images, labels, chosen, rate))
            if not (finite and _all_finite(self._network.parameters)):
                break
        if finite:
            place = first_parameter(self._network)
        else:
            self._before.restore()
            with np.errstate(all="ignore"):
                place = first_non_finite(self._network, images[chosen], labels[chosen])
        self._before.restore()
        raise NonFiniteError(at // self._batch + 1, *place)


def _made_of(network: Sequential, optimizer: Optimizer) -> dict[tuple[str, str], Any]:
    """What a program works on or was chosen by: by place and name, the objects themselves."""
    found: dict[tuple[str, str], Any] = {("the network", name): getattr(network, name) for name in OF_A_NETWORK}
    found |= {("the network", name): vars(network).get(name) for name in PASSES}
    found["the optimizer", "step"] = vars(optimizer).get("step")
    for number, layer in enumerate(network.layers):
        where = f"layer {number}"
        found[where, ""] = layer
        found |= {(where, name): vars(layer).get(name) for name in PASSES}
        if isinstance(layer, Dropout):
            found[where, "seed"] = layer.seed
        for name, option in type(layer).__dataclass_fields__.items():
            if option.init:
                found[where, name] = getattr(layer, name)
    return found


def _order(order: Any, samples: int, module: Any) -> Array:
    """The order as an array of the module. Raises ValueError unless it names some of so many samples."""
    if not hasattr(order, "dtype"):
        order = np.asarray(order)
    if order.ndim != 1 or not len(order) or order.dtype.kind not in "iu":
        raise ValueError(f"order is {order.dtype} {order.shape}; expected whole numbers (N,), at least one")
    least, most = int(to_host(order.min())), int(to_host(order.max()))
    if least < 0 or most >= samples:
        raise ValueError(f"order names samples {least} to {most}; expected 0 to {samples - 1}")
    return to_device(order, module)


def _all_finite(values: Array) -> bool:
    """Whether all are; the host waits for a device here."""
    return bool(to_host(array_module(values).isfinite(values).all()))


def _program(network: Sequential, optimizer: Optimizer, batch: int) -> Program:
    """The program for where the network lies. Raises NotCompilableError."""
    module = array_module(network.parameters)
    stages = stages_of(network, dropout=module is not np)
    if module is np:
        from unrolled.nn.compiler import host

        return host.HostProgram(network, optimizer, batch, stages)
    if not kernels.runs_on(module):
        raise NotCompilableError(f"arrays of {getattr(module, '__name__', module)} have no kernels")
    if type(optimizer).step is not Optimizer.step or "step" in vars(optimizer) or not optimizer.has_kernel:
        raise NotCompilableError(f"{type(optimizer).__name__} has no kernel for a GPU")
    from unrolled.nn.compiler import cuda

    return cuda.GraphProgram(network, optimizer, batch, stages)
