"""A ring of ranks, and layers split among them. Right programs, and usual wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.spec import Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator, Network

Program = Callable[[Communicator, Array], Array]

BROUGHT = "what this rank's hidden units add to the result"
STAY = "hidden units stay where they are: call one all_reduce, of what the second layer gives"


def ring_allreduce(comm: Communicator, x: Array) -> Array:
    """Return the sum of all ranks' x (n,), by 2 (p - 1) rounds of chunks that go round a ring."""
    return ring()(comm, x)


def ring(step: int = 1, first: int = 1, off: int = 0, keeps: bool = True, same: bool = False) -> Program:
    """Return an all-reduce in which rank r sends to rank r + step, with `first` the number of its first round.

    A number other than 1 calls the chunks otherwise, and the sums stay the same. The second half begins `off` rounds
    too late, which is wrong unless it is 0. Wrong, too: the second half adds (not `keeps`), or what comes goes to the
    chunk that was sent in the `same` round.
    """

    def program(comm: Communicator, x: Array) -> Array:
        y = x.copy()
        chunks = np.array_split(y, comm.size)
        half = first + comm.size - 1
        _go_round(comm, chunks, range(first, half), step, adds=True, same=same)
        second = range(half + off, half + off + comm.size - 1)
        _go_round(comm, chunks, second, step, adds=not keeps, same=same)
        return y

    return program


def half_a_ring(step: int = 1, first: int = 1) -> Program:
    """Return what leaves a rank with the first half: one chunk is a sum of all, the others of some."""

    def program(comm: Communicator, x: Array) -> Array:
        y = x.copy()
        _go_round(comm, np.array_split(y, comm.size), range(first, first + comm.size - 1), step, adds=True)
        return y

    return program


def _go_round(
    comm: Communicator, chunks: list[Array], rounds: range, step: int, adds: bool, same: bool = False
) -> None:
    """In round k send chunk r - k on, and add what comes to chunk r - k - 1, or keep it in its place.

    With `same` it goes to chunk r - k.
    """
    for k in rounds:
        comm.send(chunks[(comm.rank - step * k) % comm.size], (comm.rank + step) % comm.size)
        mine = chunks[(comm.rank - step * (k + (not same))) % comm.size]
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


def mean_of_terms(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return the layers with the sum over hidden units divided by the number of ranks."""
    hidden = np.maximum(x @ weight1 + bias1, 0)
    return comm.all_reduce(hidden @ weight2) / np.float32(comm.size) + bias2


def without_bias2(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return the layers without the second bias."""
    return comm.all_reduce(np.maximum(x @ weight1 + bias1, 0) @ weight2)


def hidden_summed(before_relu: bool, again: bool) -> Callable[..., Array]:
    """Return what sums hidden units over ranks, before the ReLU or after it, and what comes of them again or not."""

    def program(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
        hidden = x @ weight1 + bias1
        hidden = np.maximum(comm.all_reduce(hidden), 0) if before_relu else comm.all_reduce(np.maximum(hidden, 0))
        y = hidden @ weight2
        return (comm.all_reduce(y) if again else y) + bias2

    return program


def stay(got: Any, network: Network) -> tuple[str, ...]:
    """Return what to say where something was gathered."""
    return (STAY,) if any(name == "all_gather" for name, _ in network.collectives) else ()


def stay_besides(lines: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """Return what to say of an error where something was gathered: before, or in the line that raised it."""
    return (STAY,) if any("all_gather" in line for line in lines) else stay(None, inputs["network"])


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
