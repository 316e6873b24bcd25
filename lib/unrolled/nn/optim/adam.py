"""Adam: momentum, and a rate for each value."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.nn.optim.optimizer import SMALLEST, Optimizer, forget_and_add_square, scaled


@dataclass(eq=False)
class Adam(Optimizer):
    """m = beta1 * m + (1 - beta1) * g; s = beta2 * s + (1 - beta2) * g^2, both divided by 1 - beta^steps, which undoes
    their start at 0; then p -= r * m / (sqrt(s) + epsilon) (Kingma and Ba, 2015, arXiv:1412.6980).
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(beta1=0, beta2=0, below=1)
        self._check(epsilon=SMALLEST)

    @property
    def memories(self) -> int:
        return 2

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
