"""RMSProp: AdaGrad that forgets."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.nn.optim.optimizer import SMALLEST, Optimizer, forget_and_add_square, scaled


@dataclass(eq=False)
class RMSProp(Optimizer):
    """s = decay * s + (1 - decay) * g^2; p -= r * g / (sqrt(s) + epsilon): AdaGrad that forgets.

    Hinton and Tieleman, 2012, lecture 6e of Neural Networks for Machine Learning.
    """

    learning_rate: float = 0.001
    decay: float = 0.99
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(decay=0, below=1)
        self._check(epsilon=SMALLEST)

    @property
    def memories(self) -> int:
        return 1

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (sums,) = memory
        forget_and_add_square(module, sums, self.decay, g, scratch)
        return scaled(module, g, sums, rate, self.epsilon, scratch, 1 - self.decay)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        root = sqrt(1 - self.decay)
        return kernels.scaled, {"rate": rate / root, "decay": self.decay, "epsilon": self.epsilon / root}
