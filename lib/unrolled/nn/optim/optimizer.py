"""Optimizers: how the parameters follow their gradients. Update rules are PyTorch's, here on one flat array.

In the formulas p are the parameters, g the gradients, r the learning rate. All are updated value by value, so a step
takes an array in pieces that stay in the cache through all of its operations (on a GPU: in one piece).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from unrolled import kernels
from unrolled.device import Array, Module, array_module

PIECE = 32_768  # values: 128 KiB in float32; the six arrays of a step in that size fit in the cache of one core
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
    """Steps taken since the memory was made."""
    _memory: list[Array] = field(default_factory=list, init=False, repr=False)
    _scratch: list[Array] = field(default_factory=list, init=False, repr=False)
    _kind: Any = field(default=None, init=False, repr=False)  # of parameters that the memory is made for

    @property
    def memories(self) -> int:
        """How many arrays outlast a step, each as large as the parameters."""
        return 0

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
        if kernels.take(parameters, gradients):
            kernel, options = self._fused(rate)
            options["weight_decay"] = self.weight_decay
            floats = {name: float(value) for name, value in options.items()}
            kernel((gradients,), (parameters, *self._memory), kernels.NONE, **floats)
            return
        for part in _parts(len(parameters), len(self._scratch[0])):
            p, memory = parameters[part], [array[part] for array in self._memory]
            scratch, changed = (array[: len(p)] for array in self._scratch)
            p -= self._move(module, rate, self._gradient(module, p, gradients[part], changed), scratch, *memory)

    def reset(self) -> None:
        """Forget all steps: the next one is like the first. Needed before another network of the same size."""
        self._memory, self._scratch, self._kind, self.steps = [], [], None, 0

    def _gradient(self, module: Module, p: Array, g: Array, changed: Array) -> Array:
        """The g of the formulas, written to `changed` where it is not g itself.

        Gradients that die out leave squares and memories below the smallest normal float, and a CPU computes with such
        numbers ten times slower. So what is remembered is g + 1e-18 (in float32): for any g that counts, that is g.
        """
        if self.weight_decay:
            module.multiply(p, self.weight_decay, out=changed)
            changed += g
            return changed
        if self._memory:
            return module.add(g, 8 * sqrt(np.finfo(p.dtype).tiny), out=changed)
        return g

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        """What to subtract from the parameters, written to scratch; updates the memory. g does not change."""
        raise TypeError(f"{type(self).__name__} has no rule")

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        """The kernel that does all of a step on a GPU, and its options but for weight_decay."""
        raise TypeError(f"{type(self).__name__} has no kernel")

    def _remember(self, parameters: Array, module: Module) -> None:
        """Make the memory (zeros) and the scratch, unless they are there and fit."""
        size, dtype = len(parameters), parameters.dtype
        kind = (size, dtype, module, self.memories)
        if kind != self._kind:
            self.steps, self._kind = 0, kind
            self._memory = [module.zeros(size, dtype=dtype) for _ in range(self.memories)]
            piece = 0 if kernels.take(parameters) else min(size, PIECE) if module is np else size
            self._scratch = [module.empty(max(1, piece), dtype=dtype) for _ in range(2)]

    def _check(self, below: float = np.inf, **least: float) -> None:
        """Raise ValueError unless least <= option < below, for each option named."""
        for name, smallest in least.items():
            value = getattr(self, name)
            if not smallest <= value < below:
                upper = f" and below {below:g}" if below < np.inf else ""
                raise ValueError(f"{name} is {value}; expected at least {smallest:g}{upper}")


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


def _parts(size: int, piece: int) -> Iterator[slice]:
    """Slices of at most `piece` that cover `size`."""
    for start in range(0, size, piece):
        yield slice(start, min(start + piece, size))
