"""Convolution by FFT and by Winograd's filtering beside one matrix product (`ops.conv2d`), on the CPU.

    python benchmarks/cpu_convolutions.py [--only SECTION ...] [--quick] [--json FILE] [--threads 2]

Sections: `targets` are sizes that each method is for; `crossovers` lie at the edges of `unrolled.ops.methods`, one step
to either side of where "auto" changes its method. Each side runs in a process of its own, forward and backward
(`conv2d_backward`) apart, with the same arrays and the same number of threads; freed memory stays with the process, so
that no side pays page faults for buffers that the other one keeps. Results are compared with float64 first: `error` and
`peer_error` are the largest difference, of the largest value.

`ratio` is ours / gemm and `faster` its inverse; `backward_` the same for the gradients. `positions_s` is the time of
`ops.conv2d_positions`, one small product for each place of the window. `auto` is what "auto" chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl

import common
import cpu
from unrolled import ops
from unrolled.ops import methods


@dataclass(frozen=True)
class Case(cpu.Convolution):
    """One convolution, by FFT or by Winograd's filtering with tiles of this size."""

    tile: int = 0
    at_least: float | None = None  # times as fast as gemm: the aim

    @property
    def name(self) -> str:
        return f"{super().name}, " + (f"winograd {self.tile}x{self.tile}" if self.tile else "fft")

    @property
    def auto(self) -> str:
        return methods.fastest(self.windows, *self.x_shape[:2], self.filters)


TARGETS = (
    Case((8, 1, 128, 128), 1, 15, at_least=3),
    Case((8, 3, 128, 128), 16, 15),
    Case((8, 16, 128, 128), 16, 15, at_least=3),
    Case((2, 3, 512, 512), 8, 15),
    Case((16, 64, 56, 56), 64, 3, 1, tile=2),
    Case((16, 64, 28, 28), 64, 3, 1, tile=2),
    Case((32, 64, 14, 14), 64, 3, 1, tile=2),
    Case((16, 64, 56, 56), 64, 3, 1, tile=4, at_least=1.3),
    Case((16, 64, 28, 28), 64, 3, 1, tile=4),
)


def crossovers() -> tuple[Case, ...]:
    """Return cases on both sides of each edge that "auto" has."""
    by_fft = [
        Case((methods.FFT_IMAGES, channels, size, size), max(8, 4 * channels), side, side // 2)
        for channels, kernel in methods.FFT_KERNELS.items()
        for size in (32, 64, 128)
        for side in (kernel - 2, kernel)
    ]
    by_winograd = [
        Case((16, channels, size, size), channels, 3, 1, tile=2)
        for channels in (methods.WINOGRAD_CHANNELS // 2, methods.WINOGRAD_CHANNELS)
        for size in (14, 28, 56)
    ]
    return (*by_fft, *by_winograd)


Way = Callable[..., Any]


def ways(case: Case, side: str) -> tuple[Way, Way]:
    """Return forward and backward of a side: of the case's method, or of conv2d as it is for "peer"."""
    if side == "peer":
        return ops.conv2d, ops.conv2d_backward
    if not case.tile:
        return ops.fft_conv2d, ops.fft_conv2d_backward
    return partial(ops.winograd_conv2d, tile=case.tile), partial(ops.winograd_conv2d_backward, tile=case.tile)


def make(side: str, what: str, case: Case, threads: int) -> tuple[common.Step, common.Step]:
    """Return a step of a side, "forward" or "backward", and the same on one image."""
    threadpoolctl.threadpool_limits(threads)
    forward, backward = (ops.conv2d_positions, None) if side == "positions" else ways(case, side)

    def step(x: Any, weight: Any, bias: Any, grad: Any) -> Any:
        if what == "forward":
            return forward(x, weight, bias, padding=case.padding)
        return backward(grad, x, weight, padding=case.padding)

    arrays, one_image = case.arrays(), case.arrays(1)
    return lambda: step(*arrays), lambda: step(*one_image)


def errors(case: Case) -> dict[str, float]:
    """Return how far both sides are from float64, of the largest value of each array. Raises if that is too far."""

    def results(side: str, dtype: Any) -> list[Any]:
        x, weight, bias, grad = (array.astype(dtype) for array in case.arrays())
        forward, backward = ways(case, side)
        return [forward(x, weight, bias, padding=case.padding), *backward(grad, x, weight, padding=case.padding)]

    exact, found = results("peer", np.float64), {}
    for side, key in (("ours", "error"), ("peer", "peer_error")):
        pairs = zip(results(side, np.float32), exact, strict=True)
        found[key] = max(common.check(f"{case.name}: {side}", *pair) for pair in pairs)
    return found


def row(section: str, case: Case, chosen: Any) -> dict[str, Any]:
    """Measure one case, each side in a process of its own; return its row."""
    found = errors(case)
    positions = ("positions",) if not case.tile and section == "targets" else ()
    measured = []
    for what, names in (("forward", ("ours", "peer", *positions)), ("backward", ("ours", "peer"))):
        sides = {side: (side, what, case, chosen.threads) for side in names}
        measured.append(common.each_apart(make, sides, *common.rounds(chosen.quick), kept=True))
    (times, others, _), (back, others_back, _) = measured
    there, backward = common.compared(times), common.compared(back)
    slow = common.compared(times, peer="positions") if positions else None
    row = {"name": case.name, "section": section, **there, "peer": "gemm", "faster": 1 / there["ratio"]}
    row |= {"at_least": case.at_least, "positions_s": slow["peer_s"] if slow else None}
    row |= {"faster_than_positions": 1 / slow["ratio"] if slow else None}
    row |= {f"backward_{key}": value for key, value in backward.items()} | {"backward_faster": 1 / backward["ratio"]}
    return row | {"auto": case.auto, **found, "others": round(max(others, others_back), 2)}


if __name__ == "__main__":
    cases = {"targets": TARGETS, "crossovers": crossovers()}
    options = common.sections(__doc__, cases)
    if options.quick:
        cases = {"targets": TARGETS[::4][:2], "crossovers": cases["crossovers"][:2]}
    common.finish(options, [row(section, case, options) for section in options.only for case in cases[section]])
