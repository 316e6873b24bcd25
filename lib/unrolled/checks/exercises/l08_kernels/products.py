"""What `matmul_tiled` is given, what it may read, and the mistake of a part of its sums."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Inputs, normals

TILE = 32


def any_product(rng: np.random.Generator) -> Inputs:
    """Draw two matrices of any sizes."""
    m, k, n = (edge_size(rng, 40) for _ in range(3))
    return normals(rng, a=(m, k), b=(k, n))


def reads(inputs: Inputs) -> float:
    """Return the bytes of 2 K / TILE values for each output, where outputs are counted in whole tiles."""
    (m, k), n = inputs["a"].shape, inputs["b"].shape[1]
    return 4 * float(tiles(m, n) * TILE * 2 * k)


def tiles(*sizes: int) -> int:
    """Return how many tiles have room for sizes along some axes."""
    return prod(-(-size // TILE) for size in sizes)


def part_of_k(says: str, part: Callable[[int], slice]) -> Mistake:
    """Return the mistake of part(K) of the sums alone."""
    return Mistake(says, lambda a, b: a[:, part(len(b))] @ b[part(len(b))])
