"""Gradient descent on mini-batches, with momentum."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.nn.optim.optimizer import Optimizer


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
        self._check(momentum=0, below=1)
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
