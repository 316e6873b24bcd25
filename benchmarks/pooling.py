"""Forward and backward of max_pool2d beside PyTorch on the CPU, with overlapping windows and without.

    python benchmarks/pooling.py [--quick] [--json benchmarks/results/pooling.json] [--threads 2]

A step is max-pooling and its gradient by the input: `max_pool2d_with_indices` and `max_unpool2d`, which is what a layer
calls. Both sides get the same arrays and --threads threads, and their results are compared before anything is timed.

`ratio` and `ratio_apart` are ours / PyTorch, each side in a process of its own: see cpu.py. `over_no_overlap` is ours /
ours with the same window and stride = window, called in turn in one process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch

import common
import cpu
from unrolled import ops


@dataclass(frozen=True)
class Case(cpu.Operation):
    """One max-pooling."""

    x_shape: tuple[int, int, int, int]
    kernel: int
    stride: int
    at_most: float
    tolerances: ClassVar = {"y": 0.0, "grad_x": 1e-5}

    @property
    def name(self) -> str:
        return f"max_pool2d {self.x_shape} window {self.kernel} stride {self.stride}"

    @property
    def window(self) -> tuple[int, int]:
        return self.kernel, self.stride

    def arrays(self, images: int | None = None) -> tuple[Any, Any]:
        """Return x, as it leaves a ReLU, and a gradient to send back, both float32; fewer images if asked."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(images or self.x_shape[0], *self.x_shape[1:])).astype(np.float32)
        x *= x > 0
        return x, rng.normal(size=ops.max_pool2d(x, *self.window).shape).astype(np.float32)

    def ours(self, x: Any, grad: Any) -> tuple[Any, Any]:
        y, indices = ops.max_pool2d_with_indices(x, *self.window)
        return y, ops.max_unpool2d(grad, indices, x.shape[2:])

    def peer(self, x: Any, grad: Any) -> tuple[Any, Any]:
        inputs: Any = torch.from_numpy(x).requires_grad_()
        y = torch.nn.functional.max_pool2d(inputs, *self.window)
        torch.autograd.backward(y, torch.from_numpy(grad))
        return y.detach().numpy(), inputs.grad.numpy()


CASES = (
    Case((100, 64, 28, 28), 4, 2, at_most=2.0),
    Case((100, 64, 28, 28), 4, 4, at_most=2.0),
    Case((100, 64, 28, 28), 2, 2, at_most=2.0),
    Case((8, 10, 28, 28), 2, 2, at_most=1.0),
    Case((128, 10, 28, 28), 2, 2, at_most=1.0),
)


def over_no_overlap(case: Case, chosen: Any) -> float | None:
    """Return how many times longer ours takes than with windows that do not overlap, None where these do not."""
    if case.stride == case.kernel:
        return None
    cases = {"ours": case, "no overlap": replace(case, stride=case.kernel)}
    steps = {name: cpu.make("ours", each, chosen.threads)[0] for name, each in cases.items()}
    times, _ = common.side_by_side(steps, *common.rounds(chosen.quick))
    return common.compared(times, peer="no overlap")["ratio"]


if __name__ == "__main__":
    common.run(
        __doc__, lambda chosen: [case.row(chosen, over_no_overlap=over_no_overlap(case, chosen)) for case in CASES]
    )
