"""Which method is fastest for which convolution: measured on the machine that judges, by the library's own methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, Remark
from unrolled.checks.exercises.l10_faster_convolutions.counts import Convolution
from unrolled.checks.spec import Compare, Inputs
from unrolled.device import Array
from unrolled.timing.blocks import blas_threads

METHODS = ("gemm", "fft", "winograd")
MOST = 1.3  # times the best total
TRIES = 3  # a total that is too long is measured again: what else the machine does is not the learner's doing
TURNS = 5
Make = Callable[[Array, Array, str], None]


def any_convolutions(rng: np.random.Generator) -> Inputs:
    """Draw convolutions of which most have a method that is clearly the best."""
    drawn = (
        (2, 4, 3, 8, 32, (15, 17)),  # frequencies, with channels to sum over
        (4, 8, 1, 2, 64, (19, 21)),  # frequencies, one channel
        (4, 8, 48, 64, 24, (3,)),  # no frequencies: too many transforms for too little work
        (32, 48, 3, 16, 32, (3, 5)),
        (8, 16, 1, 8, 28, (3, 5)),
    )
    shapes = []
    for fewest, most, c, o, size, kernels in drawn:
        n, width = int(rng.integers(fewest, most + 1)), size + 2 * int(rng.integers(0, 5))
        shapes.append(Convolution(n, c, o, width, int(rng.choice(kernels))))
    return {"shapes": [tuple(shapes[at]) for at in rng.permutation(len(shapes))]}


def best(n: int, c: int, o: int, size: int, kernel: int) -> str:
    """Return a method by size alone: frequencies for large kernels and few channels."""
    return "fft" if kernel >= 11 and min(c, o) < 32 else "gemm"


def judged_by(make: Make) -> Compare:
    """Return a judge of methods: in all they may take 1.3 times as long as the best; measured here and now."""

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
        shapes = [Convolution(*shape) for shape in inputs["shapes"]]
        for shape, name in zip(shapes, got, strict=True):
            if not isinstance(name, str) or not suits(name, shape):
                others = " or ".join(f'"{method}"' for method in METHODS if suits(method, shape))
                return Mismatch((f"{shape}: you return {name!r:.40}, and {others} can be chosen",))
        for _ in range(TRIES):
            times = [measured(shape, make) for shape in shapes]
            chosen = sum(found[name] for found, name in zip(times, got, strict=True))
            ratio = chosen / sum(min(found.values()) for found in times)
            line = f"in all {ratio:.2f} times the time of the fastest methods, at most {MOST} allowed"
            if ratio <= MOST:
                return Remark((line,))
        return Mismatch.of(line, *_lost(shapes, got, times))

    return judge


def suits(name: str, shape: Convolution) -> bool:
    """Return whether the method takes such a convolution."""
    return name in METHODS and (name != "winograd" or shape.kernel == 3)


def forward(x: Array, weight: Array, method: str) -> None:
    """Convolve by this method, padded to keep the size."""
    ops.conv2d(x, weight, padding=weight.shape[2] // 2, method=method)


def backward(x: Array, weight: Array, method: str) -> None:
    """Find the gradients of such a convolution by this method."""
    grad = x[:, :1].repeat(len(weight), axis=1)
    ops.conv2d_backward(grad, x, weight, padding=weight.shape[2] // 2, method=method)


def measured(shape: Convolution, make: Make) -> dict[str, float]:
    """Return seconds of CPU time by method, on one thread: medians of turns."""
    n, c, o, size, kernel = shape
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, c, size, size), dtype=np.float32)
    weight = rng.standard_normal((o, c, kernel, kernel), dtype=np.float32)
    methods = [name for name in METHODS if suits(name, shape)]
    times: dict[str, list[float]] = {name: [] for name in methods}
    with blas_threads(1):
        for _ in range(TURNS):
            for name in methods:
                start = time.thread_time()
                make(x, weight, name)
                times[name].append(time.thread_time() - start)
    return {name: float(np.median(found[1:])) for name, found in times.items()}


def _lost(shapes: Sequence[Convolution], got: Sequence[str], times: Sequence[dict[str, float]]) -> list[str]:
    """The two choices that cost most."""
    costs = [found[name] - min(found.values()) for found, name in zip(times, got, strict=True)]
    lines = []
    for at in sorted(range(len(shapes)), key=lambda at: -costs[at])[:2]:
        if costs[at] > 0:
            fast = min(times[at], key=lambda name: times[at][name])
            took = f"{times[at][got[at]] * 1e3:.2f} ms, {fast} {times[at][fast] * 1e3:.2f} ms"
            lines.append(f"{shapes[at]}: {got[at]} took {took}")
    return lines
