"""Programs of many ranks: how they are called and judged, a data parallel step, and layers that are split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Compare, Function, Inputs, normals
from unrolled.device import Array
from unrolled.parallel import Communicator, Network, shard

Helps = Callable[[Any, Network], tuple[str, ...]]  # lines to say besides what is wrong, by results and network


def kept_network(ranks: int, rng: np.random.Generator) -> Network:
    """Return a network that keeps what is sent: ranks share a process, and a result may have come another way."""
    return Network(ranks, seed=int(rng.integers(2**31)), keep=True)


def on_network(function: Function, inputs: Inputs) -> Any:
    """Call a program of ranks on the case's network; return the results by rank."""
    return function(inputs["network"], inputs["arguments"])


def by_rank(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Say what is wrong with the first rank whose result is, and which rank it is."""
    return first_mismatch((f"rank {rank}", *both) for rank, both in enumerate(zip(got, expected, strict=True)))


def all_reduces(brings: str, terms: Callable[..., list[Array]], helps: Helps = lambda got, network: ()) -> Compare:
    """Return a comparison that asks for one all-reduce, too, of what each rank's own arguments give.

    terms(*arguments, ranks) are the arrays that a rank may bring, in any order of their numbers; `brings` says it.
    `helps` says more of what is wrong with the results or the calls.
    """

    def judge(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
        network: Network = inputs["network"]
        called = network.collectives
        if found := by_rank(got, expected, inputs):
            where = (_misplaced(network, terms, inputs["arguments"], brings),)
            return replace(found, lines=(*found.lines, *helps(got, network), *where), guesses=where)
        if len(called) != 1 or "all_reduce" not in called[0][0] or network.messages:
            names = ", ".join(name for name, _ in called) or "none"
            return Mismatch.of(
                "the values are right, but one all_reduce is asked for, and nothing else that is sent",
                f"the network carried {len(network.messages)} messages and these collective operations: {names}",
                *helps(got, network),
            )
        if (odd := _odd_one(network, terms, inputs["arguments"])) is not None:
            return Mismatch.of(
                f"the values are right, but not what rank {odd[0]} brought to the sum: {odd[1]} numbers",
                f"expected {odd[2]}: {brings}",
            )
        return None

    return judge


def _odd_one(network: Network, terms: Callable[..., list[Array]], arguments: Sequence[Any]) -> tuple[int, ...] | None:
    """The first rank that brought something else to the first sum than it may, and how many numbers; of how many."""
    for rank, brought in enumerate(network.brought[0]):
        own = terms(*arguments[rank], network.size)
        if not any(same_numbers(brought, term) for term in own):
            return rank, brought.size, own[0].size
    return None


def _misplaced(network: Network, terms: Callable[..., list[Array]], arguments: Sequence[Any], brings: str) -> str:
    """Where wrong values may come from, before the sum or after it."""
    if not network.brought:
        return "nothing was summed over ranks"
    if (odd := _odd_one(network, terms, arguments)) is not None:
        return f"what rank {odd[0]} brought to the sum is wrong already: it is to be {brings}"
    return "each rank brought to the sum what it may: look at what is made of the sum"


def same_numbers(brought: Array, term: Array) -> bool:
    """Return whether two arrays hold the same numbers, to rounding and in any order."""
    if brought.size != term.size:
        return False
    one, other = (np.sort(np.asarray(array, np.float64), axis=None) for array in (brought, term))
    return bool(np.allclose(one, other, rtol=0, atol=1e-4 * max(1.0, float(np.abs(other).max(initial=0)))))


# Data parallel: each rank has all of the weights, and some of the samples.

MEAN_BROUGHT = "the gradient of its own samples' summed loss, and their count"


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


def all_samples(inputs: Inputs) -> list[Array]:
    """Return what `data_parallel_step` gives on each rank, without ranks."""
    weights, x, labels = zip(*inputs["arguments"], strict=True)
    return [on_one_rank(weights[0], np.concatenate(x), np.concatenate(labels))] * len(x)


def rows_of_rank(inputs: Inputs, rank: int, ranks: int) -> tuple[Array, Array, Array]:
    """Return a rank's arguments: all of the weight, and its part of the samples."""
    mine = shard(len(inputs["x"]), rank, ranks)
    return inputs["weight"], inputs["x"][mine], inputs["labels"][mine]


STEP_MISTAKES = (
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
        "divided by len(x) * comm.size: other ranks may have other numbers of samples, so sum the counts, too",
        lambda comm, weight, x, labels: (
            comm.all_reduce(own(weight, x, labels) * np.float32(len(x))) / np.float32(len(x) * comm.size)
        ),
    ),
    Mistake(
        "each rank has the gradient of its own samples: sum over ranks",
        lambda comm, weight, x, labels: own(weight, x, labels),
    ),
)


def samples(rng: np.random.Generator, *counts: int, inputs: int = 5, classes: int = 3) -> Inputs:
    """Draw a step with so many samples on each rank."""
    weight = rng.standard_normal((inputs, classes)).astype(np.float32)
    own = [(rng.standard_normal((n, inputs)).astype(np.float32), rng.integers(0, classes, n)) for n in counts]
    return {"network": kept_network(len(counts), rng), "arguments": [(weight, *each) for each in own]}


def any_samples(rng: np.random.Generator) -> Inputs:
    """Draw a step on any ranks, of which one at least has samples."""
    counts = [edge_size(rng, 9, low=0) for _ in range(edge_size(rng, 9))]
    counts[int(rng.integers(len(counts)))] += not any(counts)
    return samples(rng, *counts, inputs=edge_size(rng, 6), classes=edge_size(rng, 5, low=2))


def appended(got: Any, network: Network) -> tuple[str, ...]:
    """Return what to say where the results are float64, as they get by a count that is appended."""
    wide = any(getattr(one, "dtype", None) == np.float64 for one in got)
    return ("so do np.append and np.concatenate with an integer: append np.float32(n)",) if wide else ()


def gradient_and_count(weight: Array, x: Array, labels: Array, ranks: int) -> list[Array]:
    """Return what a rank may bring to the sum: the gradient of its summed loss and how many samples it has.

    The count may be one more number, or be a row or a column of its own, as often as there is room or once. Or a
    gradient alone, which gives the right values where all have the same number: other cases tell why it is wrong.
    """
    mean = own(weight, x, labels)
    counts = [np.full(size, len(x)) for size in (1, *weight.shape)] + [len(x) * np.eye(n)[0] for n in weight.shape]
    return [*(np.append(mean * len(x), count) for count in counts), mean, mean * len(x)]


# Two layers that are split among ranks.

TERM_BROUGHT = "what this rank's hidden units add to the result"
STAY = "hidden units stay where they are: call one all_reduce, of what the second layer gives"


def column_row_linear(
    comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array
) -> Array:
    """Return relu(x @ W1 + b1) @ W2 + b2 (N, M); this rank has columns of W1, b1's share, and rows of W2."""
    hidden = np.maximum(x @ weight1 + bias1, 0)
    return comm.all_reduce(hidden @ weight2) + bias2


def whole_layers(inputs: Inputs) -> list[Array]:
    """Return what `column_row_linear` gives on each rank, without ranks."""
    arguments: Sequence[tuple[Array, ...]] = inputs["arguments"]
    total = np.sum(
        [np.maximum(x @ weight1 + bias1, 0) @ weight2 for x, weight1, bias1, weight2, _ in arguments], axis=0
    )
    return [total + arguments[0][-1]] * len(arguments)


def _layers(
    says: str, relu: bool = True, before: bool = False, after: bool = False, again: bool = True, last: bool = False
) -> Mistake:
    """Return the mistake of no ReLU, of a sum of hidden units over ranks before or after it, or of none at the end.

    Or of a ReLU as the `last` thing that is done to the sum.
    """

    def program(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
        hidden = x @ weight1 + bias1
        hidden = comm.all_reduce(hidden) if before else hidden
        hidden = np.maximum(hidden, 0) if relu else hidden
        hidden = comm.all_reduce(hidden) if after else hidden
        y = hidden @ weight2
        y = comm.all_reduce(y) if again else y
        return (np.maximum(y, 0) if last else y) + bias2

    return Mistake(says, program)


SUMMED = f"hidden units of different ranks are summed: {STAY}"

SPLIT_MISTAKES = (
    given("bias2 is in it once for each rank: add it after the sum", bias2=lambda comm, bias2: comm.size * bias2),
    _layers("each rank has its own terms only: sum over ranks", again=False),
    _layers("the ReLU comes after the sum over ranks: it belongs between the two layers", relu=False, last=True),
    result(
        "the ReLU comes last: it belongs between the two layers, and nothing comes after bias2",
        lambda y: np.maximum(y, 0),
        _layers("", relu=False).function,
    ),
    _layers("the ReLU between the layers is missing", relu=False),
    given(
        "bias1 is divided by comm.size: it is this rank's part already, of its own hidden units",
        bias1=lambda comm, bias1: bias1 / np.float32(comm.size),
    ),
    given("bias1 is missing: a hidden unit is max(x @ weight1 + bias1, 0)", bias1=lambda bias1: 0 * bias1),
    result(
        "bias1 comes after the ReLU: it belongs inside, max(x @ weight1 + bias1, 0)",
        lambda y, comm, bias1, weight2: y + comm.all_reduce(bias1 @ weight2),
        lambda comm, x, weight1, bias1, weight2, bias2: column_row_linear(comm, x, weight1, 0 * bias1, weight2, bias2),
    ),
    given("bias2 is missing: add it once, after the sum", bias2=lambda bias2: 0 * bias2),
    given(
        "the sum is divided by comm.size: the ranks' terms add up to the result",
        weight2=lambda comm, weight2: weight2 / np.float32(comm.size),
    ),
    _layers(SUMMED, before=True),
    _layers(SUMMED, before=True, again=False),
    _layers(SUMMED, after=True),
    _layers(SUMMED, after=True, again=False),
)


def stay(got: Any, network: Network) -> tuple[str, ...]:
    """Return what to say where something was gathered."""
    return (STAY,) if any(name == "all_gather" for name, _ in network.collectives) else ()


def stay_besides(lines: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """Return what to say of an error where something was gathered: before, or in the line that raised it."""
    return (STAY,) if any("all_gather" in line for line in lines) else stay(None, inputs["network"])


def two_layers(rng: np.random.Generator, *widths: int) -> Inputs:
    """Draw two layers whose hidden units are shared out so."""
    n, k, m = rng.integers(2, 6, 3).tolist()
    shared = normals(rng, x=(n, k), bias2=(m,))
    own = [normals(rng, weight1=(k, w), bias1=(w,), weight2=(w, m)) for w in widths]
    arguments = [(shared["x"], *arrays.values(), shared["bias2"]) for arrays in own]
    return {"network": kept_network(len(widths), rng), "arguments": arguments}


def terms(x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array, ranks: int) -> list[Array]:
    """Return what a rank may bring to the sum: its term, with bias2 or its share of it or not."""
    term = np.maximum(x @ weight1 + bias1, 0) @ weight2
    return [term, term + bias2, term + bias2 / ranks]
