"""How many multiplications a convolution takes by method, and which method is fastest: measured where it is judged."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled import ops
from unrolled.checks.compare import Mismatch, Remark, mismatch
from unrolled.checks.domain import edge_size
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
    kernel = 3 if method.startswith("winograd") else 1 + 2 * edge_size(rng, 6, 0)
    n, c, o, size = (edge_size(rng, 30) for _ in range(4))
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
MOST = 1.3  # times the fastest
HOPELESS = 4  # times the fastest: what takes so long once is not measured again
TRIES = 3  # what takes too long is measured again: what else the machine does is not the learner's doing
TURNS = 5
Make = Callable[[Array, Array, str], None]
SHAPES = [
    (4, 1, 2, 64, 19),  # a product takes four times as long as frequencies
    (4, 4, 8, 14, 21),  # and twice as long for small images, with channels to sum over
    (1, 4, 10, 24, 21),  # nearly twice as long, for one small image and more filters
    (1, 8, 8, 48, 5),  # frequencies take three times as long and more, for a large image and few filters
    (4, 2, 12, 24, 5),  # and more than twice as long for several images
    (8, 1, 8, 28, 3),  # frequencies take four times as long as a product, and forward so does Winograd
    (2, 3, 128, 14, 3),  # Winograd takes more than one and a half times as long: channels count as filters do
    (1, 48, 48, 14, 3),  # frequencies take ten times as long
    (1, 48, 48, 12, 7),  # too many transforms: frequencies take six times as long as a product
    (1, 48, 48, 8, 13),  # and twice as long and more even here
    (1, 64, 64, 16, 21),  # and as much longer for the largest kernel, on images that are no smaller than others
    (4, 256, 256, 14, 3),  # a product takes one and a half times as long as Winograd
]


def any_convolutions(rng: np.random.Generator) -> Inputs:
    """Draw convolutions such as `SHAPES`, which all have a method that is clearly too slow."""
    shapes = [(n, c, o, size + 2 * int(rng.integers(0, 2)), kernel) for n, c, o, size, kernel in SHAPES]
    return {"shapes": [shapes[at] for at in rng.permutation(len(shapes))]}


def best(n: int, c: int, o: int, size: int, kernel: int) -> str:
    """Return a method by size alone: frequencies for large kernels and few channels, Winograd for many of these."""
    if kernel == 3 and min(c, o) >= 128:
        return "winograd"
    return "fft" if kernel >= 11 and min(c, o) < 32 else "gemm"


def judged_by(make: Make) -> Compare:
    """Return a judge of methods: none may take more than `MOST` times as long as the fastest, here and now."""

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark:
        shapes = [Convolution(*shape) for shape in inputs["shapes"]]
        for shape, name in zip(shapes, got, strict=True):
            if not isinstance(name, str) or not suits(name, shape):
                others = " or ".join(f'"{method}"' for method in METHODS if suits(method, shape))
                return Mismatch((f"{shape}: you return {name!r:.40}, and {others} can be chosen",))
        worst = 1.0
        for shape, name in zip(shapes, got, strict=True):
            for again in range(TRIES):
                times = measured(shape, make) if again else _once_measured(shape, make)
                fastest = min(times, key=lambda method: times[method])
                ratio = times[name] / times[fastest]
                if ratio <= MOST:
                    break
            else:
                took = f"{name} took {times[name] * 1e3:.2f} ms, {fastest} {times[fastest] * 1e3:.2f} ms"
                return Mismatch.of(f"{shape}: {took}; at most {MOST} times the time of the fastest is allowed")
            worst = max(worst, ratio)
        return Remark((f"none takes more than {worst:.2f} times the time of the fastest method",))

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
    """Return seconds of CPU time by method, on one thread: medians of turns; hopeless ones have a single turn."""
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
            longest = HOPELESS * min(times[name][0] for name in methods)
            methods = [name for name in methods if times[name][0] <= longest]
    return {name: float(np.median(found[1:] or found)) for name, found in times.items()}


_once_measured = functools.lru_cache(maxsize=100)(measured)
