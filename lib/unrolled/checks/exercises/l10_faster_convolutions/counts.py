"""How many multiplications of a pixel and a weight a convolution takes, by method."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Inputs

METHODS = ("direct", "winograd 2x2", "winograd 4x4", "fft")
COMPLEX = 4  # real multiplications in a complex one


class Shape(NamedTuple):
    """n images of c channels, o filters, results of size x size, kernels of kernel x kernel."""

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
    return n * c * o * of_one_pair(method, size, kernel)


def of_one_pair(method: str, size: int, kernel: int) -> int:
    """Return the multiplications for one channel, one filter and one image."""
    if method == "direct":
        return size**2 * kernel**2
    if method == "fft":
        length = size + kernel - 1
        return COMPLEX * length * (length // 2 + 1)
    tile = int(method[-1])
    return ceil(size, tile) ** 2 * (tile + 2) ** 2


def ceil(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def judge(got: Any, expected: float, inputs: Inputs) -> Mismatch | None:
    """Judge the number, and say for which method and shape it is wrong."""
    found = mismatch(got, expected, 1e-9)
    if found is None:
        return None
    shape = ", ".join(f"{name} {size}" for name, size in zip(Shape._fields, inputs["shape"], strict=True))
    return Mismatch((*found.lines, f"for {inputs['method']}: {shape}"))


def any_shape(rng: np.random.Generator) -> Inputs:
    """Draw a method, and a shape that it takes."""
    method = METHODS[rng.integers(len(METHODS))]
    kernel = 3 if method.startswith("winograd") else int(rng.choice([3, 5, 7, 11]))
    n, c, o, size = (int(each) for each in rng.integers(2, 40, 4))
    return {"method": method, "shape": (n, c, o, size, kernel)}


def whole_tiles_only(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return the count where results beyond the last whole tile are forgotten."""
    n, c, o, size, kernel = shape
    left_out = size % int(method[-1]) if method.startswith("winograd") else 0
    return multiplications(method, (n, c, o, size - left_out, kernel))


def tiles_not_rounded(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return the count where a tile may be a fraction."""
    n, c, o, size, _ = shape
    if not method.startswith("winograd"):
        return multiplications(method, shape)
    tile = int(method[-1])
    return n * c * o * size**2 * (tile + 2) ** 2 // tile**2


def all_frequencies(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return the count where half of the frequencies are not left out."""
    n, c, o, size, kernel = shape
    length = size + kernel - 1
    return n * c * o * COMPLEX * length**2 if method == "fft" else multiplications(method, shape)


def complex_as_one(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return the count where a complex multiplication is one."""
    found = multiplications(method, shape)
    return found // COMPLEX if method == "fft" else found


def of_the_size(method: str, shape: tuple[int, int, int, int, int]) -> int:
    """Return the count where the transforms are as long as the results, so that kernels wrap round."""
    n, c, o, size, _ = shape
    return n * c * o * COMPLEX * size * (size // 2 + 1) if method == "fft" else multiplications(method, shape)
