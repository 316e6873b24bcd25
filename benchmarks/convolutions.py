"""Convolution by FFT, Winograd's filtering, cuDNN and PyTorch beside one matrix product (`ops.conv2d`), on a GPU.

    python benchmarks/convolutions.py [--only SECTION ...] [--quick] [--json lib/unrolled/records/convolutions.json]

`3x3` has the layers that Winograd's filtering is for, `large kernels` those for FFT, `crossovers` a grid of kernels and
images (8 images, 16 channels, 16 filters) with FFT alone, `lengths` the FFT there and back of 128 images with as many
rows and columns as the name says, and as its peer with the next length whose prime factors are small.

Every method computes in float32. TF32 is off, but for "PyTorch, TF32": that is how PyTorch convolves unless told
otherwise. Times are those of a whole call, by CUDA events around calls in a row; methods take turns, medians count.
Results are compared with float64 first: `error` is the largest difference, of the largest value, of the results, and
`backward_error` of the three gradients.

`ours_s` is the method's time, `peer_s` that of gemm, `ratio` the median of the pairs and `faster` its inverse, with its
quartiles `faster_low` and `faster_high`; `backward_` the same for the gradients (`conv2d_backward`). `of_cudnn` is
cuDNN's time over the method's: above 1 the method is faster. For `3x3`, `host_us` is what the host needs to issue a
call, `device_us` what the device does when the host is ahead, and `launches` how many the simulated GPU counts.
`best` is the fastest way of PyTorch without TF32, in either order of axes, and `best_s` its time. `failed` says why a
method is missing. PyTorch stands for cuDNN as it is called there, the fastest of its ways searched.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import common
import gpu_common
from common import Row
from cpu import Convolution
from unrolled import device, ops, simgpu
from unrolled.ops.fft import fast_length
from unrolled.ops.methods import fastest_on_gpu

Arrays = tuple[Any, ...]
Both = tuple[common.Step, common.Step]
BLOCK_SECONDS = 4e-3  # calls in a row
QUEUED = 5  # calls that the host issues ahead: a GPU's queue holds about a thousand launches
TF32 = "PyTorch, TF32"
TORCH = ("PyTorch", "PyTorch, channels last")
LENGTHS, TRANSFORMED = (127, 142, 254, 509), 128


@dataclass(frozen=True)
class Case(Convolution):
    """One convolution whose results are as large as its images, by many methods."""

    section: str = ""

    @property
    def name(self) -> str:
        crossover = f"crossover, {self.kernel}x{self.kernel} on {self.x_shape[2]}x{self.x_shape[3]}"
        return crossover if self.section == "crossovers" else super().name

    @property
    def auto(self) -> str:
        """What "auto" chooses on a GPU."""
        return fastest_on_gpu(self.windows, *self.x_shape[:2], self.filters)

    def on_gpu(self) -> Arrays:
        """Return its arrays on the GPU."""
        return tuple(map(device.gpu().asarray, self.arrays()))


LAYERS = tuple(
    Case((n, channels, size, size), channels, 3, 1, "3x3")
    for n, channels, size in ((32, 64, 56), (32, 128, 28), (32, 256, 14), (128, 64, 28), (128, 256, 14))
)
LARGE = tuple(
    Case((8, channels, size, size), filters, kernel, kernel // 2, "large kernels")
    for channels, filters, size in ((1, 1, 128), (3, 16, 128), (16, 16, 64), (16, 16, 256))
    for kernel in (7, 15, 31)
)
GRID = tuple(
    Case((8, 16, size, size), 16, kernel, kernel // 2, "crossovers")
    for size in (16, 32, 64, 128, 256)
    for kernel in (3, 7, 11, 15, 23, 31)
)
CASES = {"3x3": LAYERS, "large kernels": LARGE, "crossovers": GRID}


def by_method(forward: Callable[..., Any], backward: Callable[..., Any], **options: Any) -> Callable[..., Both]:
    """Return what makes both passes by functions of the library."""

    def make(case: Case, arrays: Arrays) -> Both:
        x, weight, bias, grad = arrays
        more = {"padding": case.padding, **options}
        return partial(forward, x, weight, bias, **more), partial(backward, grad, x, weight, **more)

    return make


def by_torch(case: Case, arrays: Arrays, tf32: bool = False, last: bool = False) -> Both:
    """Return PyTorch's passes on the same memory, or on copies with the channels last."""
    import torch

    torch.backends.cudnn.benchmark = True
    x, weight, bias, grad = map(torch.from_dlpack, arrays)
    if last:
        x, weight, grad = (array.contiguous(memory_format=torch.channels_last) for array in (x, weight, grad))
    geometry = [1, 1], [case.padding] * 2, [1, 1], False, [0, 0], 1, [True, True, True]

    def forward() -> Any:
        torch.backends.cudnn.allow_tf32 = tf32
        with torch.no_grad():
            return torch.nn.functional.conv2d(x, weight, bias, padding=case.padding)

    def backward() -> Any:
        torch.backends.cudnn.allow_tf32 = tf32
        return torch.ops.aten.convolution_backward(grad, x, weight, [case.filters], *geometry)

    return forward, backward


def methods(case: Case) -> Mapping[str, Callable[[Case, Arrays], Both]]:
    """Return the methods that take part: those that fit, and are installed."""
    by_name = partial(by_method, ops.conv2d, ops.conv2d_backward)
    found = {method: by_name(method=method) for method in ("gemm", "fft")}
    if case.section == "crossovers":
        return found | {TORCH[0]: by_torch}
    found |= {"cudnn": by_name(method="cudnn"), TORCH[0]: by_torch}
    if case.kernel == 3:
        found["winograd 2x2"] = by_name(method="winograd")
        found["winograd 4x4"] = by_method(ops.winograd_conv2d, ops.winograd_conv2d_backward, tile=4)
        found |= {TORCH[1]: partial(by_torch, last=True), TF32: partial(by_torch, tf32=True)}
    return found


def error(name: str, found: Arrays, exact: Arrays, method: str) -> float:
    """Return how far results are from float64, of each array's largest value. Raises ArithmeticError if too far."""
    tolerance = 1e-2 if method == TF32 else common.TOLERANCE
    pairs = zip(map(device.gpu().asarray, found), exact, strict=True)
    return max(common.check(f"{name}, {method}", ours, expected, tolerance) for ours, expected in pairs)


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


def launches(case: Case, make: Callable[[Case, Arrays], Both]) -> int:
    """Return how many launches a call is, as the simulated GPU counts them: few pixels are enough for that."""
    n, channels = case.x_shape[:2]
    shapes = (n, channels, 8, 8), (case.filters, channels, 3, 3), (case.filters,), (n, case.filters, 8, 8)
    forward, _ = make(case, tuple(simgpu.zeros(shape, "float32") for shape in shapes))
    with simgpu.trace() as trace:
        forward()
    return len(trace.launches)


def timed(steps: Mapping[str, common.Step], quick: bool) -> common.Times:
    """Return the seconds of a call of each side, in turns."""
    slowest = max(gpu_common.block(step, 2) for step in steps.values())
    calls = max(2, min(20, int(BLOCK_SECONDS / slowest)))
    return gpu_common.side_by_side(steps, calls, 3 if quick else 7)


def case_rows(case: Case, quick: bool) -> list[Row]:
    """Measure one case; return a row for each method."""
    arrays = case.on_gpu()
    exact = exact_results(case, arrays)
    sides: dict[str, Both] = {}
    rows: dict[str, Row] = {}
    for method, make in methods(case).items():
        row = {"section": case.section, "name": f"{case.name}, {method}", "method": method}
        row |= {"kernel": case.kernel, "size": case.x_shape[-1], "channels": case.x_shape[1], "auto": case.auto}
        try:
            forward, backward = make(case, arrays)
            row["error"] = error(case.name, (forward(),), exact[:1], method)
            if case.section != "crossovers":
                row["backward_error"] = error(case.name, backward(), exact[1:], method)
            if case.section == "3x3":
                row |= gpu_common.costs(forward, QUEUED)
                row |= {"launches": launches(case, make)} if method.startswith(("gemm", "fft", "winograd")) else {}
            rows[method], sides[method] = row, (forward, backward)
        except Exception as reason:  # a way without room, or without its library, does not stop the others
            rows[method] = row | {"failed": f"{type(reason).__name__}: {reason}"}
    del exact
    device.gpu().get_default_memory_pool().free_all_blocks()
    there = timed({method: both[0] for method, both in sides.items()}, quick)
    back = {} if case.section == "crossovers" else timed({method: both[1] for method, both in sides.items()}, quick)
    for method in sides:
        rows[method] |= figures(there, method, "") | (figures(back, method, "backward_") if back else {})
        rows[method] |= best(there)
    device.gpu().get_default_memory_pool().free_all_blocks()
    return [row for method, row in rows.items() if case.section != "crossovers" or method == "fft"]


def best(times: common.Times) -> Row:
    """Return the fastest way of PyTorch, and its seconds."""
    found = {method: statistics.median(times[method]) for method in TORCH if method in times}
    fastest = min(found, key=lambda method: found[method], default=None)
    return {"best": fastest, "best_s": found[fastest]} if fastest else {}


@dataclass(frozen=True)
class Length:
    """Transforms of a length beside those of the next one that has small prime factors."""

    least: int

    @property
    def name(self) -> str:
        return f"transform, {self.least} beside {fast_length(self.least)}"

    def step(self, length: int) -> common.Step:
        """Return an FFT there and back."""
        cp = device.gpu()
        x = cp.asarray(np.random.default_rng(0).standard_normal((TRANSFORMED, length, length), dtype=np.float32))
        return lambda: cp.fft.irfft2(cp.fft.rfft2(x), (length, length))

    def row(self, quick: bool) -> Row:
        """Measure both."""
        times = timed({"this": self.step(self.least), "fast": self.step(fast_length(self.least))}, quick)
        row = {"section": "lengths", "name": self.name, "length": self.least, "fast_length": fast_length(self.least)}
        return row | figures(times, "this", "", "fast")


def figures(times: common.Times, method: str, prefix: str, peer: str = "gemm") -> Row:
    """Return a method's figures beside its peer's and cuDNN's."""
    found = common.compared(times, ours=method, peer=peer)
    row: Row = {f"{prefix}{key}": value for key, value in found.items()}
    pairs = [other / ours for other, ours in zip(times[peer], times[method], strict=True)]
    low, _, high = statistics.quantiles(pairs, n=4, method="inclusive")
    row |= {f"{prefix}faster": 1 / found["ratio"], f"{prefix}faster_low": low, f"{prefix}faster_high": high}
    if "cudnn" in times:
        others = zip(times["cudnn"], times[method], strict=True)
        row[f"{prefix}of_cudnn"] = statistics.median(other / ours for other, ours in others)
    return {"peer": peer, **row} if not prefix else row


def section_rows(cases: Sequence[Case], chosen: Any) -> list[Row]:
    """Measure the cases of a section; a fifth of them with --quick."""
    return gpu_common.each(cases[:: 5 if chosen.quick else 1], lambda case: case_rows(case, chosen.quick))


SECTIONS: dict[str, Callable[[Any], list[Row]]] = {
    **{name: partial(section_rows, cases) for name, cases in CASES.items()},
    "lengths": lambda chosen: gpu_common.each(map(Length, LENGTHS), lambda length: [length.row(chosen.quick)]),
}


if __name__ == "__main__":
    sys.exit(gpu_common.run(__doc__, SECTIONS))
