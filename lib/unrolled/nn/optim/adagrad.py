"""AdaGrad: a rate for each value, smaller where gradients were large."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.nn.optim.optimizer import SMALLEST, Optimizer, scaled


@dataclass(eq=False)
class AdaGrad(Optimizer):
    """s += g^2; p -= r * g / (sqrt(s) + epsilon): smaller steps where gradients were large (Duchi et al., 2011)."""

    learning_rate: float = 0.01
    epsilon: float = 1e-10

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(epsilon=SMALLEST)

    @property
    def memories(self) -> int:
        return 1

    def _move(self, module: Module, rate: float, g: Array, scratch: Array, *memory: Array) -> Array:
        (s,) = memory
        s += module.multiply(g, g, out=scratch)
        return scaled(module, g, s, rate, self.epsilon, scratch)

    def _fused(self, rate: float) -> tuple[kernels.Kernel, dict[str, float]]:
        return kernels.scaled, {"rate": rate, "decay": 1.0, "epsilon": self.epsilon}
