"""Variants of the exercises of lesson 12: squared errors, a ring to the left, turned weights, a schedule by slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.exercises.l12_many_devices import exercises, judging, replicas, ring, schedules, splits
from unrolled.checks.exercises.l12_many_devices.judging import kept_network
from unrolled.checks.mistakes import Mistake, converted
from unrolled.checks.spec import Inputs, case, random_case, variant
from unrolled.device import Array
from unrolled.parallel import Communicator

# squared errors


def squares_step(comm: Communicator, weight: Array, x: Array, target: Array) -> Array:
    """Return the gradient (K, M) of half the squared error, a mean over all ranks' samples, on each rank."""
    total = np.append((x.T @ (x @ weight - target)).ravel(), np.float32(len(x)))
    total = comm.all_reduce(total)
    return (total[:-1] / total[-1]).reshape(weight.shape)


def squares_mean_of_means(comm: Communicator, weight: Array, x: Array, target: Array) -> Array:
    """Return the mean over ranks of the gradients of their own means."""
    return comm.all_reduce(x.T @ (x @ weight - target) / np.float32(max(len(x), 1))) / np.float32(comm.size)


def squares_sum(comm: Communicator, weight: Array, x: Array, target: Array) -> Array:
    """Return the gradient of the summed errors."""
    return comm.all_reduce(x.T @ (x @ weight - target))


def _brought(weight: Array, x: Array, target: Array, ranks: int) -> list[Array]:
    """What a rank may bring to the sum; a gradient without the count is right where all ranks have as many samples."""
    summed = x.T @ (x @ weight - target)
    return [np.append(summed.ravel(), len(x)), summed, summed / max(len(x), 1)]


def _squares(*counts: int) -> Callable[[np.random.Generator], Inputs]:
    def draw(rng: np.random.Generator) -> Inputs:
        weight, *data = (
            rng.standard_normal(shape).astype(np.float32)
            for shape in ((4, 3), *(shape for n in counts for shape in ((n, 4), (n, 3))))
        )
        arguments = [(weight, x, target) for x, target in zip(data[::2], data[1::2], strict=True)]
        return {"network": kept_network(len(counts), rng), "arguments": arguments}

    return draw


def _any_squares(rng: np.random.Generator) -> Inputs:
    return _squares(*(int(n) for n in rng.integers(1, 10, rng.integers(2, 6))))(rng)


data_parallel_step_squares = variant(
    exercises.data_parallel_step,
    reference=squares_step,
    cases=[
        random_case("two ranks with 4 samples each", _squares(4, 4)),
        random_case("two ranks with 6 samples and 2", _squares(6, 2)),
        random_case("a rank without samples", _squares(3, 0, 4)),
        random_case("any ranks and samples", _any_squares),
    ],
    hints=(
        exercises.data_parallel_step.hints[0],
        "A rank's sum is x.T @ (x @ weight - target), which is zeros where there are no samples. How many samples "
        "there are in all, no rank knows: send the count along, as one more number behind the gradient.",
        "total = np.append((...).ravel(), np.float32(len(x)))\n"
        "total = comm.all_reduce(total)\n"
        "return (total[:-1] / ...).reshape(weight.shape)",
    ),
    mistakes=(
        Mistake(exercises.data_parallel_step.mistakes[0].says, squares_mean_of_means),
        Mistake(exercises.data_parallel_step.mistakes[2].says, squares_sum),
    ),
    compare=judging.all_reduces(replicas.BROUGHT, _brought, replicas.appended),
    points=3,
    speed=None,
)


# a ring to the left


def ring_to_the_left(comm: Communicator, x: Array) -> Array:
    """Return the sum of all ranks' x (n,), by chunks that go to the rank before."""
    return splits.ring(-1)(comm, x)


ring_allreduce_left = variant(
    exercises.ring_allreduce,
    reference=ring_to_the_left,
    hints=(
        exercises.ring_allreduce.hints[0],
        "Count rounds from 1. In round k, rank r sends chunk r + k to the left, and gets chunk r + k + 1 from the "
        "right. Before round p it adds what came to its own chunk. From then on it keeps what came, in place of its "
        "own. Numbers of chunks are modulo p. Send before you receive.",
        "y = x.copy()\n"
        "chunks = np.array_split(y, comm.size)  # views of y\n"
        "for k in range(1, 2 * comm.size - 1):\n"
        "    comm.send(chunks[(comm.rank + k) % comm.size], left)\n"
        "    mine = chunks[...]\n"
        "    came = comm.receive(np.empty_like(mine), right)\n"
        "    mine[...] = ... if k < comm.size else ...\n"
        "return y",
    ),
    mistakes=(*ring.wrong_rounds(-1), *exercises.ring_allreduce.mistakes[len(ring.wrong_rounds(1)) :]),
    compare=ring.through_a_ring(-1),
)


# weights as PyTorch stores them


def _with_turned_weights(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of weights with a column for each output, for those with a row for each."""

    def turning(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
        return function(comm, x, np.ascontiguousarray(weight1.T), bias1, np.ascontiguousarray(weight2.T), bias2)

    return turning


def turned(comm: Communicator, x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array) -> Array:
    """Return relu(x @ W1.T + b1) @ W2.T + b2 (N, M) of weights with a row for each output."""
    return _with_turned_weights(splits.column_row_linear)(comm, x, weight1, bias1, weight2, bias2)


def _terms(x: Array, weight1: Array, bias1: Array, weight2: Array, bias2: Array, ranks: int) -> list[Array]:
    return splits.terms(x, weight1.T, bias1, weight2.T, bias2, ranks)


def _turned(draw: Callable[[np.random.Generator], Inputs]) -> Callable[[np.random.Generator], Inputs]:
    def turning(rng: np.random.Generator) -> Inputs:
        inputs = draw(rng)
        inputs["arguments"] = [
            (x, np.ascontiguousarray(first.T), bias1, np.ascontiguousarray(second.T), bias2)
            for x, first, bias1, second, bias2 in inputs["arguments"]
        ]
        return inputs

    return turning


column_row_linear_turned = variant(
    exercises.column_row_linear,
    reference=turned,
    cases=[
        random_case("two ranks with 3 hidden units each", _turned(splits.two_layers(3, 3))),
        random_case("three ranks with 4, 1 and 2", _turned(splits.two_layers(4, 1, 2))),
        random_case("any layers", _turned(splits.any_layers)),
    ],
    mistakes=tuple(
        Mistake(mistake.says, _with_turned_weights(mistake.function))
        for mistake in exercises.column_row_linear.mistakes
        if mistake.function is not None
    ),
    compare=judging.all_reduces(splits.BROUGHT, _terms, splits.stay),
)


# a schedule by slots


def by_slots(stages: int, micro_batches: int) -> list[Any]:
    """Return what all stages do in each slot."""
    return _turned_round(schedules.reference(stages, micro_batches))


def _turned_round(rows: list[list[Any]]) -> list[Any]:
    return [list(slot) for slot in zip(*rows, strict=True)]


def _judge_slots(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge with a row for each stage."""
    if not isinstance(got, list | tuple) or not all(
        isinstance(slot, list | tuple) and len(slot) == inputs["stages"] for slot in got
    ):
        return Mismatch(("expected a list of slots, each a list of what the stages do in it",))
    return schedules.judge([list(row) for row in zip(*got, strict=True)], None, inputs)


pipeline_schedule_slots = variant(
    exercises.pipeline_schedule,
    reference=by_slots,
    cases=[
        case("two stages, three micro-batches", stages=2, micro_batches=3),
        case("one stage", stages=1, micro_batches=4),
        random_case("any sizes", schedules.any_size),
    ],
    hints=(
        *exercises.pipeline_schedule.hints[:2],
        "slots = [[None] * p for _ in range(2 * (m + p - 1))]\n"
        "for s in range(p):\n"
        "    for i in range(m):\n"
        '        slots[...][s] = ("F", i)\n'
        '        slots[...][s] = ("B", i)\n'
        "return slots",
    ),
    mistakes=tuple(
        converted(mistake, schedules.reference, _turned_round) for mistake in exercises.pipeline_schedule.mistakes
    ),
    compare=_judge_slots,
)
