"""Forward and backward of conv2d beside PyTorch on the CPU.

    python benchmarks/cpu.py [--quick] [--json benchmarks/results/cpu.json] [--threads 2]

A step is conv2d and then its three gradients: by the input, the weight and the bias. Both sides get the same arrays and
the same number of threads; their results are compared before anything is timed.

Each side has a process of its own, and they take turns: in one process the threads of the one library still wait for
work, by spinning, when the other one starts. `ratio` is ours / PyTorch in turns of 40 calls, with freed memory kept on
both sides, as in a training. `ratio_apart` is of turns of 3 calls, with the C library's usual limits: there a side may
give its memory back to the system and pay for it again, page by page, in the next call. `ours_mb` and `peer_mb` are how
far a step raises the memory, `others` is the share of the machine that other processes took meanwhile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import threadpoolctl
import torch

import common
from unrolled import ops

PACKAGES = ("unrolled", "numpy", "torch", "threadpoolctl")
TOLERANCE = 1e-4  # of the largest value; sums of 100,000 float32 differ by their order


def convolution_arrays(
    x_shape: tuple[int, ...], filters: int, kernel: int, padding: int, images: int | None = None
) -> tuple[Any, ...]:
    """Return x, weight, bias, and a gradient to send back, all float32; fewer images if asked."""
    rng = np.random.default_rng(0)
    n, c, h, w = x_shape
    n = images or n
    output = (n, filters, *ops.conv2d_output_size((h, w), kernel, 1, padding))
    shapes = ((n, c, h, w), (filters, c, kernel, kernel), (filters,), output)
    return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


@dataclass(frozen=True)
class Case:
    """One convolution."""

    x_shape: tuple[int, int, int, int]
    filters: int
    kernel: int
    padding: int
    at_most: float  # times PyTorch's time: the aim

    @property
    def name(self) -> str:
        padded = f" padding {self.padding}" if self.padding else ""
        return f"conv2d {self.x_shape} {self.filters} filters {self.kernel}x{self.kernel}{padded}"

    def arrays(self, images: int | None = None) -> tuple[Any, ...]:
        return convolution_arrays(self.x_shape, self.filters, self.kernel, self.padding, images)


CASES = (
    Case((100, 3, 32, 32), 16, 5, 0, at_most=1.2),
    Case((100, 3, 32, 32), 64, 5, 0, at_most=1.2),
    Case((128, 1, 28, 28), 10, 3, 1, at_most=1.2),
    Case((128, 32, 14, 14), 64, 3, 1, at_most=1.5),
)


def ours(x: Any, weight: Any, bias: Any, grad: Any, padding: int) -> tuple[Any, ...]:
    """Run one step of the library; return output and gradients."""
    y = ops.conv2d(x, weight, bias, padding=padding)
    return y, *ops.conv2d_backward(grad, x, weight, padding=padding)


def peer(x: Any, weight: Any, bias: Any, grad: Any, padding: int) -> tuple[Any, ...]:
    """Run one step of PyTorch; return output and gradients as NumPy arrays."""
    inputs: list[Any] = [torch.from_numpy(array).requires_grad_() for array in (x, weight, bias)]
    y = torch.nn.functional.conv2d(inputs[0], inputs[1], inputs[2], padding=padding)
    torch.autograd.backward(y, torch.from_numpy(grad))
    return y.detach().numpy(), *(tensor.grad.numpy() for tensor in inputs)


SIDES: dict[str, Callable[..., tuple[Any, ...]]] = {"ours": ours, "peer": peer}


def limit_threads(threads: int) -> None:
    """Limit the threads of NumPy's BLAS and of PyTorch, from now on."""
    threadpoolctl.threadpool_limits(threads)
    torch.set_num_threads(threads)


def make(side: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return the step of one side, and the same step on one image."""
    limit_threads(threads)
    function, arrays, one_image = SIDES[side], case.arrays(), case.arrays(1)
    return lambda: function(*arrays, padding=case.padding), lambda: function(*one_image, padding=case.padding)


def check(case: Case) -> None:
    """Exit unless both sides compute the same."""
    names = ("y", "grad_x", "grad_weight", "grad_bias")
    x, weight, bias, grad = case.arrays()
    for name, a, b in zip(names, *(side(x, weight, bias, grad, case.padding) for side in SIDES.values()), strict=True):
        if a.dtype != np.float32 or np.abs(a - b).max() > TOLERANCE * np.abs(b).max():
            sys.exit(f"{case.name}: {name} differs by {np.abs(a - b).max()}")


def row(case: Case, chosen: Any) -> dict[str, Any]:
    """Measure one case; return its row."""
    check(case)
    measured = common.both_modes(make, case, chosen.threads, quick=chosen.quick)
    return {"name": case.name, "peer": "PyTorch", "at_most": case.at_most, **measured}


def main() -> None:
    """Measure every case."""
    chosen = common.options(__doc__)
    limit_threads(chosen.threads)
    common.finish(chosen, [row(case, chosen) for case in CASES], PACKAGES)


if __name__ == "__main__":
    main()
