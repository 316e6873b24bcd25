"""How many multiplications of a pixel and a weight a convolution takes, by method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Inputs

METHODS = ("direct", "winograd 2x2", "winograd 4x4", "fft")
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


def judge(got: Any, expected: float, inputs: Inputs) -> Mismatch | None:
    """Judge the number, and say for which method and shape it is wrong."""
    shape = ", ".join(f"{name} {size}" for name, size in zip(Convolution._fields, inputs["shape"], strict=True))
    found = mismatch(got, expected, 1e-9)
    return found and Mismatch.of(*found.lines, f"for {inputs['method']}: {shape}")


def any_shape(rng: np.random.Generator) -> Inputs:
    """Draw a method, and a shape that it takes."""
    method = METHODS[rng.integers(len(METHODS))]
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


MISTAKES = (
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
