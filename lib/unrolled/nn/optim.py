"""Optimizers: how the parameters follow their gradients. Update rules are PyTorch's, here on one flat array.

In the formulas p are the parameters, g the gradients, r the learning rate. All are updated value by value, so a step
takes an array in pieces that stay in the cache through all of its operations (on a GPU: in one piece).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array, Module, array_module, to_device
from unrolled.nn import saving
from unrolled.nn.habits import OPTIONS, Answering, answering
from unrolled.ops.arguments import check_arrays, check_float

PIECE = 131_072  # values: 512 KiB in float32; a last-level cache holds the six arrays of a step in that size
GUARD = 16  # steps between two that keep what is remembered from dying out
SMALLEST = float(np.finfo(np.float32).tiny)  # an epsilon below is 0 in float32, and 0 / 0 where a gradient is 0
LIMITS: dict[str, tuple[float, float]] = {"learning_rate": (0, inf), "weight_decay": (0, inf), "momentum": (0, 1)}
LIMITS |= {"decay": (0, 1), "beta1": (0, 1), "beta2": (0, 1), "epsilon": (SMALLEST, inf)}
"""By option: its least value, and the one that it must be below."""
RULE, STEPS = "rule", "steps"  # of an optimizer's file
NO_PARAMETERS = OPTIONS["params"]


@dataclass(eq=False)
class Optimizer(Answering):
    """What optimizers share. `learning_rate` may be changed at any time.

    weight_decay adds weight_decay * p to g: the gradient of weight_decay / 2 * sum of p^2, which keeps weights small.
    Memory that outlasts a step is made at the first one, beside the parameters, and anew for an array of another size.
    Raises ValueError for options out of range.
    """

    learning_rate: float
    weight_decay: float = field(default=0.0, kw_only=True)
    steps: int = field(default=0, init=False, repr=False)
    """Steps taken since the memory was made."""
    _memory: list[Array] = field(default_factory=list, init=False, repr=False)
    _scratch: list[Array] = field(default_factory=list, init=False, repr=False)
    _kind: Any = field(default=None, init=False, repr=False)  # of parameters that the memory is made for
    _loaded: bool = field(default=False, init=False, repr=False)  # the memory is a file's, on the host

    @property
    def memories(self) -> int:
        """How many arrays outlast a step, each as large as the parameters."""
        return 0

    @property
    def has_kernel(self) -> bool:
        """Whether one kernel does all of the rule on a GPU. A class that changes a rule has to bring its own."""
        kinds = [vars(kind) for kind in type(self).__mro__ if kind is not Optimizer]
        rules = [kind for kind in kinds if {"_move", "_gradient", "_fused"} & kind.keys()]
        return bool(rules) and "_fused" in rules[0]

    def __post_init__(self) -> None:
        for name, (least, below) in LIMITS.items():
            value = getattr(self, name, least)
            if not isinstance(value, (int, float, np.number)):
                kind = f"an array {np.shape(value)}: {NO_PARAMETERS}" if np.ndim(value) else repr(value)
                raise TypeError(f"{name} is {kind}; expected a number, such as nn.Adam(0.001)")
            if not least <= value < below:
                upper = f" and below {below:g}" if below < inf else ""
                raise ValueError(f"{name} is {value}; expected at least {least:g}{upper}")

    def step(self, parameters: Array, gradients: Array, rate: float = 1.0) -> None:
        """Move parameters (P,) against gradients (P,), in place, with learning_rate * rate. gradients never change.

        Raises ValueError if the shapes differ and for parameters that are no floats or have more than one axis.
        """
        module = check_arrays(parameters=parameters, gradients=gradients)
        if parameters.ndim != 1 or parameters.shape != gradients.shape:
            raise ValueError(
                f"parameters has shape {parameters.shape}, gradients {gradients.shape}; expected (P,) for both"
            )
        check_float("the dtype of parameters", parameters.dtype)
        self.prepare(parameters)
        if kernels.take(parameters, gradients) and self.has_kernel:
            kernel, options = self.next_launch(rate)
            kernel((gradients,), (parameters, *self._memory), kernels.NONE, **options)
            return
        self.steps += 1
        rate = float(rate * self.learning_rate)
        piece = len(self._scratch[0])
        for start in range(0, len(parameters), piece):
            part = slice(start, start + piece)
            p, memory = parameters[part], [array[part] for array in self._memory]
            scratch, changed = (array[: len(p)] for array in self._scratch)
            p -= self._move(module, rate, self._gradient(module, p, gradients[part], changed), scratch, *memory)

    def prepare(self, parameters: Array) -> list[Array]:
        """Return the arrays that outlast a step, each (P,), beside parameters (P,): zeros before the first step.

        Memory from a file is brought there. Raises ValueError where that does not fit. `step` calls this by itself.
        """
        module, size, dtype = array_module(parameters), len(parameters), parameters.dtype
        kind = (size, dtype, type(parameters), self.memories)
        if kind != self._kind:
            if self._loaded:
                self._take(parameters, module)
            else:
                self.steps, self._memory = 0, [module.zeros(size, dtype=dtype) for _ in range(self.memories)]
            self._kind, self._loaded = kind, False
            fused = kernels.take(parameters) and self.has_kernel
            piece = 0 if fused else min(size, PIECE) if module is np else size
            self._scratch = [module.empty(max(1, piece), dtype=dtype) for _ in range(2)]
        return self._memory

    def next_launch(self, rate: float = 1.0) -> tuple[kernels.Kernel, dict[str, float]]:
        """Count a step; return the kernel that does it on a GPU and its options by name, weight_decay the last.

        Only where `has_kernel`, and after `prepare`.
        """
        self.steps += 1
        kernel, options = self._fused(float(rate * self.learning_rate))
        return kernel, {name: float(value) for name, value in (options | {"weight_decay": self.weight_decay}).items()}

    def reset(self) -> None:
        """Forget all steps: the next one is like the first. Needed before another network of the same size."""
        self._memory, self._scratch, self._kind, self.steps, self._loaded = [], [], None, 0, False

    def save(self, path: str | Path) -> None:
        """Write steps and memory to an .npz file, so that a training can go on; the options stay in your code.

        Raises ValueError before the first step.
        """
        if not self.steps:
            raise ValueError("this optimizer has no state yet: it took no steps")
        memory = {f"memory.{number}": array for number, array in enumerate(self._memory)}
        saving.save(Path(path), {RULE: np.array(type(self).__name__), STEPS: np.array(self.steps)} | memory)

    def load(self, path: str | Path) -> Optimizer:
        """Take steps and memory from a file that `save` wrote; return self. The next step is as if nothing had been.

        Raises ValueError for the file of another rule, and in that next step for parameters of another size or dtype.
        """
        path, what = Path(path), "an optimizer's state"
        found = saving.headers(path, what)
        known = saving.arrays(path, what, (RULE, STEPS))
        memory = {name: header for name, header in found.items() if name not in known}
        names = [f"memory.{number}" for number in range(self.memories)]
        with saving.naming(path, "optimizer"):
            if str(known[RULE]) != type(self).__name__ or set(memory) != set(names):
                raise ValueError(f"it is of {known[RULE]} with {len(memory)} memories, this is {self!r}")
            if len(set(memory.values())) > 1 or any(len(header.shape) != 1 for header in memory.values()):
                raise ValueError("its memories have several shapes")
        arrays = saving.arrays(path, what, names)
        self.reset()
        self.steps, self._memory, self._loaded = int(known[STEPS]), [arrays[name] for name in names], True
        return self

    def _gradient(self, module: Module, p: Array, g: Array, changed: Array) -> Array:
        """The g of the formulas, written to `changed` where it is not g itself.

        Gradients that die out leave squares and memories below the smallest normal float, and a CPU computes with such
        numbers ten times slower. So what is remembered is g + 1e-18 (in float32) in every 16th step: for any g that
        counts, that is g.
        """
        if self.weight_decay:
            module.multiply(p, self.weight_decay, out=changed)
            changed += g
            return changed
        if self._memory and self.steps % GUARD == 1:
            return module.add(g, 8 * sqrt(np.finfo(p.dtype).tiny), out=changed)
        return g

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        """What to subtract from the parameters, written to scratch; updates the memory. g does not change."""
        raise TypeError(f"{type(self).__name__} has no rule")

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        """The kernel that does all of a step on a GPU, and its options but for weight_decay."""
        raise TypeError(f"{type(self).__name__} has no kernel")

    def _take(self, parameters: Array, module: Module) -> None:
        """Bring the memory of a file to where the parameters are."""
        for array in self._memory:
            if array.shape != parameters.shape or array.dtype != parameters.dtype:
                there = f"{array.dtype} {array.shape}, the parameters are {parameters.dtype} {parameters.shape}"
                raise ValueError(f"the memory that was loaded is {there}; reset() forgets it")
        self._memory = [to_device(array, module) for array in self._memory]


def forget_and_add_square(module: Module, sums: Array, decay: float, x: Array, scratch: Array) -> None:
    """Set sums = decay * sums + x^2, in place. The factor 1 - decay of a mean is left to `scaled`: one pass less."""
    sums *= decay
    sums += module.multiply(x, x, out=scratch)


def scaled(
    module: Module, x: Array, sums: Array, rate: float, epsilon: float, scratch: Array, share: float = 1.0
) -> Array:
    """Return rate * x / (sqrt(share * sums) + epsilon), in scratch; share goes into rate and epsilon: one pass less."""
    root = sqrt(share)
    module.sqrt(sums, out=scratch)
    scratch += epsilon / root
    module.divide(x, scratch, out=scratch)
    scratch *= rate / root
    return scratch


@answering(NO_PARAMETERS)
@dataclass(eq=False)
class SGD(Optimizer):
    """Stochastic gradient descent: p -= r * g.

    With momentum, v = momentum * v + g and p -= r * v: as a ball that rolls (Polyak, 1964). nesterov looks ahead:
    p -= r * (g + momentum * v) (Nesterov, 1983; in this form Sutskever et al., 2013).
    """

    learning_rate: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov is True and momentum 0; expected a momentum above 0")

    @property
    def memories(self) -> int:
        return 1 if self.momentum else 0

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

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        if not self.momentum:
            return kernels.sgd, {"rate": rate}
        return kernels.nesterov if self.nesterov else kernels.momentum, {"rate": rate, "momentum": self.momentum}


@answering(NO_PARAMETERS)
@dataclass(eq=False)
class AdaGrad(Optimizer):
    """s += g^2; p -= r * g / (sqrt(s) + epsilon): smaller steps where gradients were large (Duchi et al., 2011)."""

    learning_rate: float = 0.01
    epsilon: float = 1e-10
    memories = 1

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (s,) = memory
        s += module.multiply(g, g, out=scratch)
        return scaled(module, g, s, rate, self.epsilon, scratch)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        return kernels.scaled, {"rate": rate, "decay": 1.0, "epsilon": self.epsilon}


@answering(NO_PARAMETERS)
@dataclass(eq=False)
class RMSProp(Optimizer):
    """s = decay * s + (1 - decay) * g^2; p -= r * g / (sqrt(s) + epsilon): AdaGrad that forgets.

    Hinton and Tieleman, 2012, lecture 6e of Neural Networks for Machine Learning.
    """

    learning_rate: float = 0.001
    decay: float = 0.99
    epsilon: float = 1e-8
    memories = 1

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (sums,) = memory
        forget_and_add_square(module, sums, self.decay, g, scratch)
        return scaled(module, g, sums, rate, self.epsilon, scratch, 1 - self.decay)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        root = sqrt(1 - self.decay)
        return kernels.scaled, {"rate": rate / root, "decay": self.decay, "epsilon": self.epsilon / root}


@answering(NO_PARAMETERS)
@dataclass(eq=False)
class AdaDelta(Optimizer):
    """s = decay * s + (1 - decay) * g^2; d = sqrt(u + epsilon) / sqrt(s + epsilon) * g;
    u = decay * u + (1 - decay) * d^2; p -= r * d: steps in the unit of the parameters (Zeiler, 2012, arXiv:1212.5701).

    The paper has no learning rate: it is 1. Keras's example for MNIST reached only 83.56 % with a version whose default
    rate was 0.001; with 1 it passes 99 %.
    """

    learning_rate: float = 1.0
    decay: float = 0.95
    epsilon: float = 1e-6
    memories = 2

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        s, u = memory  # both as sums, so that 1 - decay goes from the fraction into epsilon
        epsilon = self.epsilon / (1 - self.decay)
        forget_and_add_square(module, s, self.decay, g, scratch)
        d = u + epsilon
        d /= module.add(s, epsilon, out=scratch)
        module.sqrt(d, out=d)
        d *= g
        forget_and_add_square(module, u, self.decay, d, scratch)
        return module.multiply(d, rate, out=scratch)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        epsilon = self.epsilon / (1 - self.decay)
        return kernels.adadelta, {"rate": rate, "decay": self.decay, "epsilon": epsilon}


@answering(NO_PARAMETERS)
@dataclass(eq=False)
class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; s = beta2 * s + (1 - beta2) * g^2, both divided by 1 - beta^steps, which undoes
    their start at 0; then p -= r * m / (sqrt(s) + epsilon) (Kingma and Ba, 2015, arXiv:1412.6980).
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    memories = 2

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        m, s = memory
        m *= self.beta1
        m += g
        forget_and_add_square(module, s, self.beta2, g, scratch)
        share1, share2 = self._shares()
        return scaled(module, m, s, rate * share1, self.epsilon, scratch, share2)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        share1, share2 = self._shares()
        root = sqrt(share2)  # goes into the two numbers, as in `scaled`
        betas = {"beta1": self.beta1, "beta2": self.beta2}
        return kernels.adam, {"rate": rate * share1 / root} | betas | {"epsilon": self.epsilon / root}

    def _shares(self) -> tuple[float, float]:
        """What makes means, without their start at 0, of the sums m and s."""
        share1, share2 = ((1 - beta) / (1 - beta**self.steps) for beta in (self.beta1, self.beta2))
        return share1, share2
