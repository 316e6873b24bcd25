"""Convolution by FFT, Winograd's filtering and cuDNN beside one matrix product (`ops.conv2d`), on a GPU and its host.

    python benchmarks/convolutions.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/convolutions.json]

On a GPU: `3x3` has the layers that Winograd's filtering is for, `large kernels` those for FFT, `crossovers` a grid of
kernels and images (8 images, 16 channels, 16 filters) with FFT alone. Every method computes in float32; TF32 is off.
Times are those of a whole call, by CUDA events around calls in a row; methods take turns, medians count. Results are
compared with float64 first: `error` is the largest difference, of the largest value, forward and backward.

`ours_s` is the method's time, `peer_s` that of gemm, `ratio` the median of the pairs and `faster` its inverse, for
`crossovers` forward alone; `backward_` the same for the gradients (`conv2d_backward`). `of_cudnn` is cuDNN's time over
the method's: above 1 the method is faster. `failed` says why a method is missing. PyTorch stands for cuDNN as it is
called there, the fastest of its ways searched.

`CPU` are the targets of cpu_convolutions.py, measured as there, on the host of the GPU.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import common
import cpu_convolutions as cpu
import gpu_common
from common import Row
from cpu import convolution_arrays
from unrolled import device, ops
from unrolled.ops.methods import fastest_on_gpu
from unrolled.ops.windows import Windows

Arrays = tuple[Any, ...]
Both = tuple[common.Step, common.Step]
BLOCK_SECONDS = 4e-3  # calls in a row


@dataclass(frozen=True)
class Case:
    """One convolution with a stride of 1 whose results are as large as its images, by many methods."""

    section: str
    x_shape: tuple[int, int, int, int]
    filters: int
    kernel: int

    @property
    def name(self) -> str:
        if self.section == "crossovers":
            return f"crossover, {self.kernel}x{self.kernel} on {self.x_shape[2]}x{self.x_shape[3]}"
        return f"conv2d {self.x_shape} {self.filters} filters {self.kernel}x{self.kernel} padding {self.padding}"

    @property
    def padding(self) -> int:
        return self.kernel // 2

    @property
    def auto(self) -> str:
        """What "auto" chooses on a GPU."""
        windows = Windows.over(self.x_shape[2:], self.kernel, 1, self.padding)
        return fastest_on_gpu(windows, *self.x_shape[:2], self.filters)

    def arrays(self) -> Arrays:
        """Return x, weight, bias and a gradient to send back, float32 on the GPU."""
        arrays = convolution_arrays(self.x_shape, self.filters, self.kernel, self.padding)
        return tuple(map(device.gpu().asarray, arrays))


LAYERS = tuple(
    Case("3x3", (n, channels, size, size), channels, 3)
    for n, channels, size in ((32, 64, 56), (32, 128, 28), (32, 256, 14), (128, 64, 28), (128, 256, 14))
)
LARGE = tuple(
    Case("large kernels", (8, channels, size, size), filters, kernel)
    for channels, filters, size in ((1, 1, 128), (3, 16, 128), (16, 16, 64), (16, 16, 256))
    for kernel in (7, 15, 31)
)
GRID = tuple(
    Case("crossovers", (8, 16, size, size), 16, kernel)
    for size in (16, 32, 64, 128, 256)
    for kernel in (3, 7, 11, 15, 23, 31)
)
SECTIONS = {"3x3": LAYERS, "large kernels": LARGE, "crossovers": GRID}
HOST = (0, 4, 7)  # of cpu_convolutions.TARGETS


def by_method(forward: Callable[..., Any], backward: Callable[..., Any], **options: Any) -> Callable[..., Both]:
    """Return what makes both passes by functions of the library."""

    def make(case: Case, arrays: Arrays) -> Both:
        x, weight, bias, grad = arrays
        more = {"padding": case.padding, **options}
        return partial(forward, x, weight, bias, **more), partial(backward, grad, x, weight, **more)

    return make


def by_torch(case: Case, arrays: Arrays) -> Both:
    """Return PyTorch's passes on the same memory."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    x, weight, bias, grad = map(torch.from_dlpack, arrays)
    geometry = [1, 1], [case.padding] * 2, [1, 1], False, [0, 0], 1, [True, True, True]

    def forward() -> Any:
        with torch.no_grad():
            return torch.nn.functional.conv2d(x, weight, bias, padding=case.padding)

    backward = torch.ops.aten.convolution_backward
    return forward, lambda: backward(grad, x, weight, [case.filters], *geometry)


def methods(case: Case) -> Mapping[str, Callable[[Case, Arrays], Both]]:
    """Return the methods that take part: those that fit, and are installed."""
    by_name = partial(by_method, ops.conv2d, ops.conv2d_backward)
    found = {method: by_name(method=method) for method in ("gemm", "fft")}
    if case.section == "crossovers":
        return found
    if case.kernel == 3:
        found["winograd 2x2"] = by_name(method="winograd")
        found["winograd 4x4"] = by_method(ops.winograd_conv2d, ops.winograd_conv2d_backward, tile=4)
    return found | {"cudnn": by_name(method="cudnn"), "PyTorch": by_torch}


def error(case: Case, both: Both, exact: Arrays) -> float:
    """Return how far a method is from float64, of each array's largest value. Raises ArithmeticError if too far."""
    results = map(device.gpu().asarray, (both[0](), *both[1]()))
    return max(common.check(case.name, *pair) for pair in zip(results, exact, strict=True))


def exact_results(case: Case, arrays: Arrays) -> Arrays:
    """Return the results of both passes in float64, by gemm, a few images at a time."""
    x, weight, bias, grad = (array.astype("float64") for array in arrays)
    y, by_x, by_weight, by_bias = [], [], 0.0, 0.0
    for start in range(0, len(x), 4):
        part = slice(start, start + 4)
        y.append(ops.conv2d(x[part], weight, bias, padding=case.padding))
        gradients = ops.conv2d_backward(grad[part], x[part], weight, padding=case.padding)
        by_x.append(gradients[0])
        by_weight, by_bias = by_weight + gradients[1], by_bias + gradients[2]
    cp = device.gpu()
    return cp.concatenate(y), cp.concatenate(by_x), by_weight, by_bias


def timed(steps: Mapping[str, common.Step], quick: bool) -> common.Times:
    """Return the seconds of a call of each side, in turns."""
    slowest = max(gpu_common.block(step, 2) for step in steps.values())
    calls = max(2, min(20, int(BLOCK_SECONDS / slowest)))
    return gpu_common.side_by_side(steps, calls, 3 if quick else 9)


def case_rows(case: Case, quick: bool) -> list[Row]:
    """Measure one case; return a row for each method."""
    arrays = case.arrays()
    exact = exact_results(case, arrays)
    sides: dict[str, Both] = {}
    rows: dict[str, Row] = {}
    for method, make in methods(case).items():
        base = {"section": case.section, "name": f"{case.name}, {method}", "method": method}
        base |= {"kernel": case.kernel, "size": case.x_shape[-1], "channels": case.x_shape[1], "auto": case.auto}
        try:
            both = make(case, arrays)
            rows[method] = base | {"error": error(case, both, exact)}
            sides[method] = both
        except Exception as reason:  # a way without room, or without its library, does not stop the others
            rows[method] = base | {"failed": f"{type(reason).__name__}: {reason}"}
    del exact
    device.gpu().get_default_memory_pool().free_all_blocks()
    there = timed({method: both[0] for method, both in sides.items()}, quick)
    back = {} if case.section == "crossovers" else timed({method: both[1] for method, both in sides.items()}, quick)
    for method in sides:
        rows[method] |= figures(there, method, "") | (figures(back, method, "backward_") if back else {})
    device.gpu().get_default_memory_pool().free_all_blocks()
    return [row for method, row in rows.items() if case.section != "crossovers" or method == "fft"]


def figures(times: common.Times, method: str, prefix: str) -> Row:
    """Return a method's figures beside gemm's and cuDNN's."""
    found = common.compared(times, ours=method, peer="gemm")
    row: Row = {f"{prefix}{key}": value for key, value in found.items()}
    row[f"{prefix}faster"] = 1 / found["ratio"]
    if "cudnn" in times:
        pairs = zip(times["cudnn"], times[method], strict=True)
        row[f"{prefix}of_cudnn"] = statistics.median(other / ours for other, ours in pairs)
    return {"peer": "gemm", **row} if not prefix else row


def main() -> int:
    """Measure; the sections of the GPU only where there is one. Exit with 1 if one fails."""
    chosen = common.sections(__doc__, [*SECTIONS, "CPU"])
    if gpu_common.lacking(chosen):
        return 1

    def section(name: str, rows: list[Row]) -> list[Row]:
        if name == "CPU":
            return [cpu.row("CPU", cpu.TARGETS[number], chosen) for number in HOST]
        return gpu_common.each(SECTIONS[name][:: 5 if chosen.quick else 1], lambda case: case_rows(case, chosen.quick))

    found = gpu_common.measured(chosen, section)
    return int(any("failed" in row or isinstance(row.get("error"), str) for row in found))


if __name__ == "__main__":
    sys.exit(main())
