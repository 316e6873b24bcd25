"""AdaDelta: steps in the unit of the parameters."""

from __future__ import annotations

from dataclasses import dataclass

from unrolled import kernels
from unrolled.device import Array, Module
from unrolled.nn.optim.optimizer import SMALLEST, Optimizer, forget_and_add_square


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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(decay=0, below=1)
        self._check(epsilon=SMALLEST)

    @property
    def memories(self) -> int:
        return 2

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
