"""A ring of ranks, and layers split among them. Right programs, and usual wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.spec import Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator

BROUGHT = "what this rank's hidden units add to the result"


def ring_allreduce(comm: Communicator, x: Array) -> Array:
    """Return the sum of all ranks' x (n,), by 2 (p - 1) rounds of chunks that go round a ring."""
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for k in range(comm.size - 1):
        comm.send(chunks[(comm.rank - k) % comm.size], right)
        mine = chunks[(comm.rank - k - 1) % comm.size]
        mine += comm.receive(np.empty_like(mine), left)
    for k in range(comm.size - 1):
        comm.send(chunks[(comm.rank + 1 - k) % comm.size], right)
        comm.receive(chunks[(comm.rank - k) % comm.size], left)
    return y


def half_a_ring(comm: Communicator, x: Array) -> Array:
    """Return what a rank holds after the first half: one chunk is a sum of all, the others of some."""
    y = x.copy()
    chunks = np.array_split(y, comm.size)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for k in range(comm.size - 1):
        comm.send(chunks[(comm.rank - k) % comm.size], right)
        mine = chunks[(comm.rank - k - 1) % comm.size]
        mine += comm.receive(np.empty_like(mine), left)
    return y


def mean(comm: Communicator, x: Array) -> Array:
    """Return the mean over ranks."""
    return ring_allreduce(comm, x) / np.float32(comm.size)


def arrays(ranks: int, size: int) -> Callable[[np.random.Generator], Inputs]:
    """Return a draw of an array (size,) on each rank."""

    def draw(rng: np.random.Generator) -> Inputs:
        arguments = [(rng.standard_normal(size).astype(np.float32),) for _ in range(ranks)]
        return {"network": kept_network(ranks, rng), "arguments": arguments}

    return draw


def any_arrays(rng: np.random.Generator) -> Inputs:
    """Draw arrays of three to six ranks, whose size they hardly ever divide."""
    return arrays(int(rng.integers(3, 7)), int(rng.integers(20, 200)))(rng)


def column_row_linear(
    comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array
) -> Array:
    """Return relu(x @ W1 + b1) @ W2 + b2 (N, M); this rank has columns of W1, b1's share, and rows of W2."""
    hidden = np.maximum(x @ weight1 + bias1, 0)
    return comm.all_reduce(hidden @ weight2) + bias2


def with_each_bias(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return the layers where each rank adds the second bias."""
    return comm.all_reduce(np.maximum(x @ weight1 + bias1, 0) @ weight2 + bias2)


def not_summed(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return the layers of this rank's part alone."""
    return np.maximum(x @ weight1 + bias1, 0) @ weight2 + bias2


def without_relu(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return the layers without what is between them."""
    return comm.all_reduce((x @ weight1 + bias1) @ weight2) + bias2


def two_layers(*widths: int) -> Callable[[np.random.Generator], Inputs]:
    """Return a draw of two layers whose hidden units are shared out so."""

    def draw(rng: np.random.Generator) -> Inputs:
        n, k, m = (int(size) for size in rng.integers(2, 6, 3))

        def normal(*shape: int) -> Array:
            return rng.standard_normal(shape).astype(np.float32)

        x, bias2 = normal(n, k), normal(m)
        arguments = [(x, normal(k, width), normal(width), normal(width, m), bias2) for width in widths]
        return {"network": kept_network(len(widths), rng), "arguments": arguments}

    return draw


def any_layers(rng: np.random.Generator) -> Inputs:
    """Draw two layers on two to five ranks."""
    return two_layers(*(int(width) for width in rng.integers(1, 6, rng.integers(2, 6))))(rng)


def terms(x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array, ranks: int) -> list[Array]:
    """Return what a rank may bring to the sum: its term, with bias2 or its share of it or not."""
    term = np.maximum(x @ weight1 + bias1, 0) @ weight2
    return [term, term + bias2, term + bias2 / ranks]
