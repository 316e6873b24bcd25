"""Optimizers: how the parameters follow their gradients. Update rules are PyTorch's, here on one flat array.

In the formulas p are the parameters, g the gradients, r the learning rate. All are updated value by value, so a step
takes an array in pieces that stay in the cache through all of its operations (on a GPU: in one piece).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar

import numpy as np

from unrolled.device import Array, Module, array_module

PIECE = 16_384  # values: 64 KiB in float32; an optimizer's five arrays of that size fit in the cache of one core
SMALLEST = float(np.finfo(np.float32).tiny)  # an epsilon below is 0 in float32, and 0 / 0 where a gradient is 0


@dataclass(eq=False)
class Optimizer:
    """What optimizers share. `learning_rate` may be changed at any time.

    weight_decay adds weight_decay * p to g: the gradient of weight_decay / 2 * sum of p^2, which keeps weights small.
    Memory that outlasts a step is made at the first one, beside the parameters, and anew for an array of another size.
    Raises ValueError for options out of range.
    """

    learning_rate: float
    weight_decay: float = field(default=0.0, kw_only=True)
    steps: int = field(default=0, init=False, repr=False)
    """Steps taken since the memory is new."""
    _memory: list[Array] = field(default_factory=list, init=False, repr=False)
    _scratch: list[Array] = field(default_factory=list, init=False, repr=False)

    memories: ClassVar[int] = 0  # how many arrays outlast a step, each as large as the parameters

    def __post_init__(self) -> None:
        self._check(learning_rate=0, weight_decay=0)

    def step(self, parameters: Array, gradients: Array, rate: float = 1.0) -> None:
        """Move parameters (P,) against gradients (P,), in place, with learning_rate * rate. gradients never change.

        Raises ValueError if the shapes differ and for parameters that are no floats or have more than one axis.
        """
        module = array_module(parameters, gradients)
        if parameters.ndim != 1 or parameters.shape != gradients.shape:
            raise ValueError(
                f"parameters has shape {parameters.shape}, gradients {gradients.shape}; expected (P,) for both"
            )
        if parameters.dtype.kind != "f":
            raise ValueError(f"parameters are {parameters.dtype}; expected floats")
        self._remember(parameters, module)
        self.steps += 1
        rate = float(rate * self.learning_rate)
        for part in _parts(len(parameters), len(self._scratch[0])):
            p, g, memory = parameters[part], gradients[part], [array[part] for array in self._memory]
            scratch, decayed = (array[: len(p)] for array in self._scratch)
            if self.weight_decay:
                module.multiply(p, self.weight_decay, out=decayed)
                decayed += g
                g = decayed
            p -= self._move(module, rate, g, scratch, *memory)

    def reset(self) -> None:
        """Forget all steps: the next is as the first."""
        self._memory, self._scratch, self.steps = [], [], 0

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        """What to subtract from the parameters, written to scratch; updates the memory. g does not change."""
        raise TypeError(f"{type(self).__name__} has no rule")

    def _remember(self, parameters: Array, module: Module) -> None:
        """Make the memory (zeros) and the scratch, unless they are there and fit."""
        size, dtype = len(parameters), parameters.dtype
        fits = self._scratch and self._size == size and array_module(self._scratch[0]) is module
        if not (fits and self._scratch[0].dtype == dtype):
            self.steps, self._size = 0, size
            self._memory = [module.zeros(size, dtype=dtype) for _ in range(self.memories)]
            piece = min(size, PIECE) if module is np else size
            self._scratch = [module.empty(piece, dtype=dtype) for _ in range(2)]

    def _check(self, below: float = np.inf, **least: float) -> None:
        """Raise ValueError unless least <= option < below, for each option named."""
        for name, smallest in least.items():
            value = getattr(self, name)
            if not smallest <= value < below:
                upper = f" and below {below:g}" if below < np.inf else ""
                raise ValueError(f"{name} is {value}; expected at least {smallest:g}{upper}")


@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent: p -= r * g.

    With momentum, v = momentum * v + g and p -= r * v: as a ball that rolls (Polyak, 1964). nesterov looks ahead:
    p -= r * (g + momentum * v) (Nesterov, 1983; in this form Sutskever et al., 2013).
    """

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    memories: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(momentum=0, below=1)
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov is True and momentum 0; expected a momentum above 0")

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        if not self.momentum:
            return module.multiply(g, rate, out=scratch)
        (v,) = memory
        v *= self.momentum
        v += g
        if not self.nesterov:
            return module.multiply(v, rate, out=scratch)
        module.multiply(v, self.momentum, out=scratch)
        scratch += g
        scratch *= rate
        return scratch


@dataclass(eq=False)
class AdaGrad(Optimizer):
    """s += g^2; p -= r * g / (sqrt(s) + epsilon): smaller steps where gradients were large (Duchi et al., 2011)."""

    learning_rate: float = 0.01
    epsilon: float = 1e-10
    memories: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(epsilon=SMALLEST)

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (s,) = memory
        s += module.multiply(g, g, out=scratch)
        return _scaled(module, g, s, rate, self.epsilon, scratch)


@dataclass(eq=False)
class RMSProp(Optimizer):
    """s = decay * s + (1 - decay) * g^2; p -= r * g / (sqrt(s) + epsilon): AdaGrad that forgets.

    Hinton and Tieleman, 2012, lecture 6e of Neural Networks for Machine Learning.
    """

    learning_rate: float = 0.001
    decay: float = 0.99
    epsilon: float = 1e-8
    memories: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(decay=0, below=1)
        self._check(epsilon=SMALLEST)

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (sums,) = memory
        _forget_and_add_square(module, sums, self.decay, g, scratch)
        return _scaled(module, g, sums, rate, self.epsilon, scratch, 1 - self.decay)


@dataclass(eq=False)
class AdaDelta(Optimizer):
    """s = decay * s + (1 - decay) * g^2; d = sqrt(u + epsilon) / sqrt(s + epsilon) * g;
    u = decay * u + (1 - decay) * d^2; p -= r * d: steps in the unit of the parameters (Zeiler, 2012, arXiv:1212.5701).

    The paper has no learning rate: it is 1. A well-known example for MNIST stayed at 83.56 % because its library had
    come to use 0.001 by default; with 1 it passes 99 %.
    """

    learning_rate: float = 1.0
    decay: float = 0.95
    epsilon: float = 1e-6
    memories: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(decay=0, below=1)
        self._check(epsilon=SMALLEST)

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        s, u = memory  # both as sums, so that 1 - decay goes from the fraction into epsilon
        epsilon = self.epsilon / (1 - self.decay)
        _forget_and_add_square(module, s, self.decay, g, scratch)
        d = u + epsilon
        d /= module.add(s, epsilon, out=scratch)
        module.sqrt(d, out=d)
        d *= g
        _forget_and_add_square(module, u, self.decay, d, scratch)
        return module.multiply(d, rate, out=scratch)


@dataclass(eq=False)
class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; s = beta2 * s + (1 - beta2) * g^2, both divided by 1 - beta^steps, which undoes
    their start at 0; then p -= r * m / (sqrt(s) + epsilon) (Kingma and Ba, 2015, arXiv:1412.6980).
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    memories: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(beta1=0, beta2=0, below=1)
        self._check(epsilon=SMALLEST)

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        m, s = memory
        m *= self.beta1
        m += g
        _forget_and_add_square(module, s, self.beta2, g, scratch)
        share1, share2 = ((1 - beta) / (1 - beta**self.steps) for beta in (self.beta1, self.beta2))
        return _scaled(module, m, s, rate * share1, self.epsilon, scratch, share2)


def _forget_and_add_square(module: Module, sums: Array, decay: float, x: Array, scratch: Array) -> None:
    """sums = decay * sums + x^2. The factor 1 - decay of a mean is left to `_scaled`: one pass less."""
    sums *= decay
    sums += module.multiply(x, x, out=scratch)


def _scaled(
    module: Module, x: Array, sums: Array, rate: float, epsilon: float, scratch: Array, share: float = 1.0
) -> Array:
    """rate * x / (sqrt(share * sums) + epsilon). The share goes into the two numbers: one pass less."""
    root = sqrt(share)
    module.sqrt(sums, out=scratch)
    scratch += epsilon / root
    module.divide(x, scratch, out=scratch)
    scratch *= rate / root
    return scratch


def _parts(size: int, piece: int) -> Iterator[slice]:
    """Slices of at most `piece` that cover `size`."""
    for start in range(0, size, piece):
        yield slice(start, min(start + piece, size))
