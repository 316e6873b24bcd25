"""How many multiplications a convolution takes by method, and which method is fastest: measured where it is judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, Remark, mismatch
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Compare, Inputs
from unrolled.device import Array
from unrolled.timing.blocks import blas_threads

COUNTED = ("direct", "winograd 2x2", "winograd 4x4", "fft")
COMPLEX = 4  # real multiplications in a complex one


class Convolution(NamedTuple):
    """n images of c channels, o filters, results of size x size as the images are, kernels of kernel x kernel."""

    n: int
    c: int
    o: int
    size: int
    kernel: int


def multiplications(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return how many real multiplications the products take; transforms are not counted.

    "direct": kernel^2 for each result. "winograd MxM": (M + 2)^2 for each tile of M x M results, the last of a row or
    column being whole. "fft": 4 for each frequency of real images that are size + kernel - 1 high and wide.
    """
    n, c, o, size, kernel = shape
    if method == "direct":
        return n * c * o * size**2 * kernel**2
    if method == "fft":
        length = size + kernel - 1
        return n * c * o * COMPLEX * length * (length // 2 + 1)
    tile = int(method[-1])
    return n * c * o * (-(-size // tile)) ** 2 * (tile + 2) ** 2


def judge_count(got: Any, expected: float, inputs: Inputs) -> Mismatch | None:
    """Judge the number, and say for which method and shape it is wrong."""
    shape = ", ".join(f"{name} {size}" for name, size in zip(Convolution._fields, inputs["shape"], strict=True))
    found = mismatch(got, expected, 1e-9)
    return found and Mismatch.of(*found.lines, f"for {inputs['method']}: {shape}")


def any_shape(rng: np.random.Generator) -> Inputs:
    """Draw a method, and a shape that it takes."""
    method = COUNTED[rng.integers(len(COUNTED))]
    kernel = 3 if method.startswith("winograd") else int(rng.choice([3, 5, 7, 11]))
    n, c, o, size = (int(each) for each in rng.integers(2, 40, 4))
    return {"method": method, "shape": (n, c, o, size, kernel)}


def _counted(says: str, kind: str, count: Callable[[int, int, int], int]) -> Mistake:
    """Return the mistake of `count(n * c * o, size, tile)` in place of the right one, for methods of this kind.

    For "fft" the third argument is the length of a transform.
    """

    def changed(y: int, method: str, shape: Sequence[int]) -> int:
        n, c, o, size, kernel = shape
        if not method.startswith(kind):
            return y
        return count(n * c * o, size, size + kernel - 1 if kind == "fft" else int(method[-1]))

    return result(says, changed)


COUNT_MISTAKES = (
    _counted(
        "the last tile of a row counts whole, even where it reaches beyond the results: round up",
        "winograd",
        lambda pairs, size, tile: pairs * (size // tile) ** 2 * (tile + 2) ** 2,
    ),
    _counted(
        "a tile is computed whole: round the number of tiles up",
        "winograd",
        lambda pairs, size, tile: pairs * size**2 * (tile + 2) ** 2 // tile**2,
    ),
    _counted(
        "a real image needs half of the frequencies, length // 2 + 1 in a row: the others follow",
        *("fft", lambda pairs, size, length: pairs * COMPLEX * length**2),
    ),
    result("a complex multiplication takes 4 real ones", lambda y, method: y // COMPLEX if method == "fft" else y),
    given(
        "the images of the transform are size + kernel - 1 high and wide",
        shape=lambda method, shape: (*shape[:4], 1) if method == "fft" else shape,
    ),
    given("each of the n images counts", shape=lambda shape: (1, *shape[1:])),
    given("each of the c channels counts", shape=lambda shape: (shape[0], 1, *shape[2:])),
    given("each of the o filters counts", shape=lambda shape: (*shape[:2], 1, *shape[3:])),
)


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
