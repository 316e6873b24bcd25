"""Forward and backward of conv2d beside PyTorch on the CPU.

    python benchmarks/cpu.py [--quick] [--json benchmarks/results/cpu.json] [--threads 2]

A step is conv2d and then its three gradients: by the input, the weight and the bias. Both sides get the same arrays and
the same number of threads; their results are compared before anything is timed. "the products alone" is what is left of
ours if its columns are there already, and nobody adds them up again: a bound for all that copies less.

Each side has a process of its own, and they take turns: in one process the threads of the one library still wait for
work, by spinning, when the other one starts. `ratio` is ours / PyTorch in turns of 40 calls, with freed memory kept on
both sides, as in a training. `ratio_apart` is of turns of 3 calls, with the C library's usual limits: there a side may
give its memory back to the system and pay for it again, page by page, in the next call. `ours_mb` and `peer_mb` are how
far a step raises the memory, `others` is the share of the machine that other processes took meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import threadpoolctl
import torch

import common
from unrolled import ops
from unrolled.ops import blocks, threads
from unrolled.ops.windows import Windows


@dataclass(frozen=True)
class Convolution:
    """A convolution with a stride of 1."""

    x_shape: tuple[int, int, int, int]
    filters: int
    kernel: int
    padding: int = 0

    @property
    def name(self) -> str:
        padded = f" padding {self.padding}" if self.padding else ""
        return f"conv2d {self.x_shape} {self.filters} filters {self.kernel}x{self.kernel}{padded}"

    @property
    def windows(self) -> Windows:
        return Windows.over(self.x_shape[2:], self.kernel, 1, self.padding)

    def arrays(self, images: int | None = None) -> tuple[Any, ...]:
        """Return x, weight, bias, and a gradient to send back, all float32; fewer images if asked."""
        rng = np.random.default_rng(0)
        n, c, h, w = self.x_shape
        n = images or n
        output = (n, self.filters, *ops.conv2d_output_size((h, w), self.kernel, 1, self.padding))
        shapes = ((n, c, h, w), (self.filters, c, self.kernel, self.kernel), (self.filters,), output)
        return tuple(rng.normal(size=shape).astype(np.float32) for shape in shapes)


class Operation:
    """An operation of ours and of PyTorch, with a `name` and an aim `at_most`, times PyTorch's time.

    It has steps `ours` and `peer`, which take `arrays(images)` and return, as arrays of NumPy, what `tolerances` names.
    """

    tolerances: ClassVar[dict[str, float]]

    def row(self: Any, chosen: Any, **more: Any) -> dict[str, Any]:
        """Measure it, once both sides are seen to compute the same; return its row."""
        limit_threads(chosen.threads)
        both = zip(self.tolerances.items(), self.ours(*self.arrays()), self.peer(*self.arrays()), strict=True)
        for (result, tolerance), ours, peers in both:
            common.check(f"{self.name}: {result}", ours, peers, tolerance)
        measured = common.both_modes(make, self, chosen.threads, quick=chosen.quick)
        return {"name": self.name, "peer": "PyTorch", "at_most": self.at_most, **more, **measured}


@dataclass(frozen=True)
class Case(Convolution, Operation):
    """One convolution."""

    at_most: float = 1.2
    tolerances = dict.fromkeys(("y", "grad_x", "grad_weight", "grad_bias"), common.TOLERANCE)

    def ours(self, x: Any, weight: Any, bias: Any, grad: Any) -> tuple[Any, ...]:
        y = ops.conv2d(x, weight, bias, padding=self.padding)
        return y, *ops.conv2d_backward(grad, x, weight, padding=self.padding)

    def peer(self, x: Any, weight: Any, bias: Any, grad: Any) -> tuple[Any, ...]:
        inputs: list[Any] = [torch.from_numpy(array).requires_grad_() for array in (x, weight, bias)]
        y = torch.nn.functional.conv2d(*inputs, padding=self.padding)
        torch.autograd.backward(y, torch.from_numpy(grad))
        return y.detach().numpy(), *(tensor.grad.numpy() for tensor in inputs)


class Products(Case):
    """The three products of a convolution, block by block."""

    @property
    def name(self) -> str:
        return f"{super().name}, the products alone"

    def row(self, chosen: Any, **more: Any) -> dict[str, Any]:
        """Measure it: it has no results that could be compared, and no aim."""
        return {
            "name": self.name,
            "peer": "PyTorch",
            **common.both_modes(make, self, chosen.threads, quick=chosen.quick),
        }

    def ours(self, x: Any, weight: Any, bias: Any, grad: Any) -> Any:
        windows = Windows.over(x.shape[2:], self.kernel, 1, self.padding)
        filters = weight.reshape(self.filters, -1)

        def block_of(images: int) -> Any:
            block = blocks.Block(np, images, weight, windows)
            block.unroll(x[:images])
            return block, np.empty_like(block.columns)

        def work(parts: Iterator[slice]) -> None:
            for _, (block, by_columns) in blocks.with_blocks(parts, block_of):
                np.matmul(filters, block.columns, out=block.outputs)
                np.matmul(block.columns, block.outputs.T)
                np.matmul(filters.T, block.outputs, out=by_columns)

        size = filters[0].nbytes * grad[0, 0].size
        threads.share(work, blocks.parts_of(np, len(x), size))


CASES = (
    Case((100, 3, 32, 32), 16, 5),
    Case((100, 3, 32, 32), 64, 5),
    Case((128, 1, 28, 28), 10, 3, 1),
    Case((128, 32, 14, 14), 64, 3, 1, at_most=1.0),
    Products((128, 32, 14, 14), 64, 3, 1),
)


def limit_threads(threads: int) -> None:
    """Limit the threads of NumPy's BLAS and of PyTorch, from now on."""
    threadpoolctl.threadpool_limits(threads)
    torch.set_num_threads(threads)


def make(side: str, case: Any, threads: int) -> tuple[common.Step, common.Step]:
    """Return the step of one side, and the same step on one image."""
    limit_threads(threads)
    step, arrays, one_image = getattr(case, side), case.arrays(), case.arrays(1)
    return lambda: step(*arrays), lambda: step(*one_image)


if __name__ == "__main__":
    common.run(__doc__, lambda chosen: [case.row(chosen) for case in CASES])
