"""A ring of ranks, and layers split among them. Right programs, and usual wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.spec import Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator

Program = Callable[[Communicator, Array], Array]

BROUGHT = "what this rank's hidden units add to the result"


def ring_allreduce(comm: Communicator, x: Array) -> Array:
    """Return the sum of all ranks' x (n,), by 2 (p - 1) rounds of chunks that go round a ring."""
    return ring()(comm, x)


def ring(step: int = 1, first: int = 1, off: int = 0) -> Program:
    """Return an all-reduce in which rank r sends to rank r + step, with `first` the number of its first round.

    A number other than 1 calls the chunks otherwise, and the sums stay the same. The second half begins `off` rounds
    too late, which is wrong unless it is 0.
    """

    def program(comm: Communicator, x: Array) -> Array:
        y = x.copy()
        chunks = np.array_split(y, comm.size)
        half = first + comm.size - 1
        _go_round(comm, chunks, range(first, half), step, adds=True)
        _go_round(comm, chunks, range(half + off, half + off + comm.size - 1), step, adds=False)
        return y

    return program


def half_a_ring(step: int = 1, first: int = 1) -> Program:
    """Return what leaves a rank with the first half: one chunk is a sum of all, the others of some."""

    def program(comm: Communicator, x: Array) -> Array:
        y = x.copy()
        _go_round(comm, np.array_split(y, comm.size), range(first, first + comm.size - 1), step, adds=True)
        return y

    return program


def _go_round(comm: Communicator, chunks: list[Array], rounds: range, step: int, adds: bool) -> None:
    """In round k send chunk r - k on, and add what comes to chunk r - k - 1, or keep it in its place."""
    for k in rounds:
        comm.send(chunks[(comm.rank - step * k) % comm.size], (comm.rank + step) % comm.size)
        mine = chunks[(comm.rank - step * (k + 1)) % comm.size]
        came = comm.receive(np.empty_like(mine), (comm.rank - step) % comm.size)
        mine[...] = mine + came if adds else came


def without_the_rest(comm: Communicator, x: Array) -> Array:
    """Return what chunks of n // p numbers give: those behind the last chunk stay a rank's own."""
    y, whole = x.copy(), len(x) // comm.size * comm.size
    y[:whole] = ring_allreduce(comm, x[:whole])
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
