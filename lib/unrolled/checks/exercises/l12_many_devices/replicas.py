"""Data parallel: each rank has all of the weights, and some of the samples. Right programs, and usual wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Inputs
from unrolled.device import Array
from unrolled.parallel import Communicator, Network, shard

BROUGHT = "the gradient of its own samples' summed loss, and their count"


def data_parallel_step(comm: Communicator, weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient (K, M) by weight of the mean loss over all ranks' samples x (N, K), on each rank."""
    count = np.float32(len(x))
    total = comm.all_reduce(np.append(own(weight, x, labels) * count, count))
    return (total[:-1] / total[-1]).reshape(weight.shape)


def own(weight: Array, x: Array, labels: Array) -> Array:
    """Return the gradient (K, M) by weight of the mean loss over a rank's own samples: zeros where it has none."""
    return on_one_rank(weight, x, labels) if len(x) else np.zeros_like(weight)


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


MISTAKES = (
    Mistake(
        "this is the mean of the ranks' means: a rank with few samples counts as much as one with many",
        lambda comm, weight, x, labels: comm.all_reduce(own(weight, x, labels)) / np.float32(comm.size),
    ),
    Mistake(
        "this is the sum of the ranks' means: each is a mean over its own samples only",
        lambda comm, weight, x, labels: comm.all_reduce(own(weight, x, labels)),
    ),
    Mistake(
        "this is the sum over all samples: divide by how many there are on all ranks",
        lambda comm, weight, x, labels: comm.all_reduce(own(weight, x, labels) * np.float32(len(x))),
    ),
    Mistake(
        "each rank has the gradient of its own samples: sum over ranks",
        lambda comm, weight, x, labels: own(weight, x, labels),
    ),
)


def samples(rng: np.random.Generator, *counts: int) -> Inputs:
    """Draw a step with so many samples on each rank."""
    weight = rng.standard_normal((5, 3)).astype(np.float32)
    arguments = [(weight, rng.standard_normal((n, 5)).astype(np.float32), rng.integers(0, 3, n)) for n in counts]
    return {"network": kept_network(len(counts), rng), "arguments": arguments}


def appended(got: Any, network: Network) -> tuple[str, ...]:
    """Return what to say where the results are float64, as they get by a count that is appended."""
    wide = any(getattr(one, "dtype", None) == np.float64 for one in got)
    return ("so do np.append and np.concatenate with an integer: append np.float32(n)",) if wide else ()


def gradient_and_count(weight: Array, x: Array, labels: Array, ranks: int) -> list[Array]:
    """Return what a rank may bring to the sum: the gradient of its summed loss and how many samples it has.

    Or a gradient alone, which gives the right values where all have the same number: other cases tell why it is wrong.
    """
    mean = own(weight, x, labels)
    return [np.append((mean * len(x)).ravel(), len(x)), mean, mean * len(x)]
