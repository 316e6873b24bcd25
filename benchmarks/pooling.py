"""Forward and backward of max_pool2d beside PyTorch on the CPU, with overlapping windows and without.

    python benchmarks/pooling.py [--quick] [--json benchmarks/results/pooling.json] [--threads 2]

A step is max-pooling and its gradient by the input: `max_pool2d_with_indices` and `max_unpool2d`, which is what a layer
calls. Both sides get the same arrays and --threads threads, and their results are compared before anything is timed.

`ratio` and `ratio_apart` are ours / PyTorch, each side in a process of its own: see cpu.py. `over_no_overlap` is ours /
ours with the same window and stride = window, called in turn in one process.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import common
from cpu import limit_threads
from unrolled import ops

PACKAGES = ("unrolled", "numpy", "torch", "threadpoolctl")


@dataclass(frozen=True)
class Case:
    """One max-pooling."""

    x_shape: tuple[int, int, int, int]
    kernel: int
    stride: int
    at_most: float  # times PyTorch's time: the aim

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


CASES = (
    Case((100, 64, 28, 28), 4, 2, at_most=2.0),
    Case((100, 64, 28, 28), 4, 4, at_most=2.0),
    Case((100, 64, 28, 28), 2, 2, at_most=2.0),
    Case((8, 10, 28, 28), 2, 2, at_most=1.0),
    Case((128, 10, 28, 28), 2, 2, at_most=1.0),
)


def ours(x: Any, grad: Any, kernel: int, stride: int) -> tuple[Any, Any]:
    """Run one step of the library; return output and gradient."""
    y, indices = ops.max_pool2d_with_indices(x, kernel, stride)
    return y, ops.max_unpool2d(grad, indices, x.shape[2:])


def peer(x: Any, grad: Any, kernel: int, stride: int) -> tuple[Any, Any]:
    """Run one step of PyTorch; return output and gradient as NumPy arrays."""
    inputs: Any = torch.from_numpy(x).requires_grad_()
    y = torch.nn.functional.max_pool2d(inputs, kernel, stride)
    torch.autograd.backward(y, torch.from_numpy(grad))
    return y.detach().numpy(), inputs.grad.numpy()


SIDES: dict[str, Callable[..., tuple[Any, Any]]] = {"ours": ours, "peer": peer}


def make(side: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return the step of one side, and the same step on one image."""
    limit_threads(threads)
    function, arrays, one_image = SIDES[side], case.arrays(), case.arrays(1)
    return lambda: function(*arrays, *case.window), lambda: function(*one_image, *case.window)


def check(case: Case) -> None:
    """Exit unless both sides compute the same."""
    (y, grad_x), (expected, expected_grad_x) = (side(*case.arrays(), *case.window) for side in SIDES.values())
    if y.dtype != np.float32 or not np.array_equal(y, expected):
        sys.exit(f"{case.name}: y differs")
    if grad_x.dtype != np.float32 or not np.allclose(grad_x, expected_grad_x, rtol=1e-5, atol=1e-5):
        sys.exit(f"{case.name}: grad_x differs by {np.abs(grad_x - expected_grad_x).max()}")


def row(case: Case, chosen: Any) -> dict[str, Any]:
    """Measure one case; return its row."""
    check(case)
    measured = common.both_modes(make, case, chosen.threads, quick=chosen.quick)
    overlap = over_no_overlap(case, chosen) if case.stride < case.kernel else None
    return {"name": case.name, "peer": "PyTorch", "at_most": case.at_most, "over_no_overlap": overlap, **measured}


def over_no_overlap(case: Case, chosen: Any) -> float:
    """Return how many times longer ours takes than with windows that do not overlap."""
    cases = {"ours": case, "no overlap": replace(case, stride=case.kernel)}
    steps = {name: make("ours", each, chosen.threads)[0] for name, each in cases.items()}
    times, _ = common.side_by_side(steps, *common.rounds(chosen.quick))
    return common.compared(times, peer="no overlap")["ratio"]


def main() -> None:
    """Measure every case."""
    chosen = common.options(__doc__)
    common.finish(chosen, [row(case, chosen) for case in CASES], PACKAGES)


if __name__ == "__main__":
    main()
