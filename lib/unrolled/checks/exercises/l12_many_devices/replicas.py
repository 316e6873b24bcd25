"""Data parallel: each rank has all of the weights, and some of the samples. Right programs, and usual wrong ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.spec import Draw, Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator, Network, shard


def data_parallel_step(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient (K, M) by weight of the mean loss over all ranks' samples x (N, K), on each rank."""
    total = np.zeros(weight.size + 1, np.float32)
    if len(x):
        total[:-1] = (on_one_rank(weight, x, labels) * np.float32(len(x))).ravel()
    total[-1] = len(x)
    total = comm.all_reduce(total)
    return (total[:-1] / total[-1]).reshape(weight.shape)


def on_one_rank(weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient (K, M) by weight of the mean loss over x (N, K), as the lesson's `gradient_of_mean` does."""
    scores = x @ weight
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    by_scores = odds / odds.sum(axis=1, keepdims=True)
    by_scores[np.arange(len(x)), labels] -= 1
    return x.T @ (by_scores / np.float32(len(x)))


def rows_of_rank(inputs: Inputs, rank: int, ranks: int) -> tuple[Array, Array, Array]:
    """Return a rank's arguments: all of the weight, and its part of the samples."""
    mine = shard(len(inputs["x"]), rank, ranks)
    return inputs["weight"], inputs["x"][mine], inputs["labels"][mine]


def labels_of(n: int, classes: int) -> Draw:
    """Return a draw of n labels."""
    return Draw(lambda rng: rng.integers(0, classes, n))


def mean_of_means(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the mean over ranks of the gradients of their own means."""
    return comm.all_reduce(_own(weight, x, labels)) / np.float32(comm.size)


def sum_of_means(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the sum over ranks of the gradients of their own means."""
    return comm.all_reduce(_own(weight, x, labels))


def sum_of_sums(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient of the summed loss."""
    return comm.all_reduce(_own(weight, x, labels) * np.float32(len(x)))


def its_own(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient of a rank's own mean."""
    return _own(weight, x, labels)


def _own(weight: Array, x: Array, labels: Array) -> Array:
    if not len(x):
        return np.zeros_like(weight)
    return x.T @ ops.softmax_cross_entropy(x @ weight, labels)[1]


def samples(*counts: int) -> Callable[[np.random.Generator], Inputs]:
    """Return a draw of a step with so many samples on each rank."""

    def draw(rng: np.random.Generator) -> Inputs:
        weight = rng.standard_normal((5, 3)).astype(np.float32)
        arguments = [(weight, rng.standard_normal((n, 5)).astype(np.float32), rng.integers(0, 3, n)) for n in counts]
        return {"network": Network(len(counts), seed=int(rng.integers(2**31))), "arguments": arguments}

    return draw


def any_samples(rng: np.random.Generator) -> Inputs:
    """Draw a step of two to five ranks with one to nine samples each."""
    return samples(*(int(n) for n in rng.integers(1, 10, rng.integers(2, 6))))(rng)


def weight_and_count(inputs: Inputs) -> int:
    """Return how many numbers a weight and a count are."""
    return int(inputs["arguments"][0][0].size) + 1


def overlapped_gradients(
    comm: Communicator, grad: Array, inputs: Sequence[Array], weights: Sequence[Array]
) -> list[Array]:
    """Return each layer's gradient, summed over ranks, for layers y = x @ weight and the gradient by the last y."""
    pending = []
    for x, weight in zip(reversed(inputs), reversed(weights), strict=True):
        pending.append(comm.start_all_reduce(x.T @ grad))
        grad = grad @ weight.T
    return [one.wait() for one in pending][::-1]


def layers(rng: np.random.Generator) -> Inputs:
    """Draw layers of different widths, on two to four ranks with samples of their own."""
    widths = rng.permutation(np.arange(2, 9))[: int(rng.integers(3, 6))]
    weights = [rng.standard_normal(shape).astype(np.float32) for shape in pairwise(widths)]
    arguments = []
    for _ in range(int(rng.integers(2, 5))):
        n = int(rng.integers(1, 6))
        given = [rng.standard_normal((n, width)).astype(np.float32) for width in widths]
        arguments.append((given[-1], given[:-1], weights))
    return {"network": Network(len(arguments), seed=int(rng.integers(2**31))), "arguments": arguments}


def own_layers(comm: Communicator, grad: Array, inputs: Sequence[Array], weights: Sequence[Array]) -> list[Any]:
    """Return the gradients of a rank's own samples."""
    found = []
    for x, weight in zip(reversed(inputs), reversed(weights), strict=True):
        found.append(x.T @ grad)
        grad = grad @ weight.T
    return found[::-1]


def first_layer_first(
    comm: Communicator, grad: Array, inputs: Sequence[Array], weights: Sequence[Array]
) -> list[Array]:
    """Return the right gradients in the order in which the backward pass finds them."""
    return overlapped_gradients(comm, grad, inputs, weights)[::-1]
