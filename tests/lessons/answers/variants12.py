"""Wrong answers to the variants of lesson 12."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from answers.lesson12 import by_rank_0, hidden_gathered, one_after_the_other, read_elsewhere, receiving_first
from unrolled.checks.exercises.l12_many_devices import schedules, splits, variants


def in_columns(function):
    return lambda comm, x, weight1, bias1, weight2, bias2: function(
        comm, x, weight1.T.copy(), bias1, weight2.T.copy(), bias2
    )


def zeros_to_the_left(comm, x):
    variants.ring_to_the_left(comm, np.zeros_like(x))
    return read_elsewhere(comm, x)


def squares_brought_by_rank_0(comm, weight, x, target):
    total = sum(np.append(x.T @ (x @ w - t), len(x)) for w, x, t in comm._turns._arguments).astype(np.float32)
    total = comm.all_reduce(total * np.float32(comm.rank == 0))
    return (total[:-1] / total[-1]).reshape(weight.shape)


def own_squares(comm, weight, x, target):
    return x.T @ (x @ weight - target) / max(len(x), 1)


def one_by_one_by_slots(stages, micro_batches):
    return list(zip(*schedules.one_by_one(stages, micro_batches), strict=True))


MUTANTS = {
    "data_parallel_step_squares": [
        Mutant(variants.squares_mean_of_means, "the mean of the ranks' means"),
        Mutant(variants.squares_sum, "divide by how many there are on all ranks"),
        Mutant(own_squares, "differ"),
        Mutant(squares_brought_by_rank_0, "but not what rank 0 brought to the sum"),
    ],
    "ring_allreduce_left": [
        Mutant(splits.ring_allreduce, "in the ring it sends to rank"),
        Mutant(by_rank_0, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(splits.half_a_ring(-1), "only the first half is done"),
        Mutant(splits.ring(-1, off=1), "second half begins one chunk off"),
        Mutant(zeros_to_the_left, "cannot know that of x["),
    ],
    "column_row_linear_turned": [
        Mutant(in_columns(splits.with_each_bias), "add it after the sum"),
        Mutant(in_columns(splits.not_summed), "sum over ranks"),
        Mutant(in_columns(hidden_gathered), "one all_reduce is asked for"),
    ],
    "pipeline_schedule_slots": [
        Mutant(schedules.reference, "expected a list of slots"),
        Mutant(
            lambda stages, micro_batches: list(zip(*one_after_the_other(stages, micro_batches), strict=True)),
            "a stage waits where it could work",
        ),
        Mutant(lambda stages, micro_batches: variants.by_slots(stages, micro_batches)[::-1], "before"),
        Mutant(one_by_one_by_slots, "the one before is through"),
    ],
}
