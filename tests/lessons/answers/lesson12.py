"""Wrong answers to lesson 12."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from unrolled import ops
from unrolled.checks.exercises.l12_many_devices import programs, schedules
from unrolled.parallel import gpipe

# data_parallel_step


def in_two_sums(comm, weight, x, labels):
    mean = programs.own(weight, x, labels)
    return comm.all_reduce(mean * np.float32(len(x))) / comm.all_reduce(np.array([len(x)], np.float32))


def count_appended(join, count):
    """The natural first attempt: a whole number behind float32 makes float64."""

    def program(comm, weight, x, labels):
        own = programs.own(weight, x, labels) * np.float32(len(x))
        total = comm.all_reduce(join(own.ravel(), count(x)))
        return (total[:-1] / total[-1]).reshape(weight.shape)

    return program


def by_rank_0_alone(comm, weight, x, labels):
    """The sum from the others' arguments, brought by rank 0 to a sum of zeros."""
    total = sum(programs.gradient_and_count(*theirs, comm.size)[0] for theirs in comm._turns._arguments)
    total = comm.all_reduce(np.float32(comm.rank == 0) * total.astype(np.float32))
    return (total[:-1] / total[-1]).reshape(weight.shape)


def by_one_hot(comm, weight, x, labels):
    """Right: a table of ones for the labels, and divisions by the count of all at the end."""
    scores = x @ weight
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    ones = (labels[:, None] == np.arange(weight.shape[1])).astype(np.float32)
    total = x.T @ (scores / scores.sum(axis=1, keepdims=True) - ones)
    total = comm.all_reduce(np.append(total, np.float32(len(x))))
    return total[:-1].reshape(weight.shape) / total[-1]


def into_zeros(comm, weight, x, labels):
    """Right: as the lesson's solution, with the library's loss."""
    total = np.zeros(weight.size + 1, np.float32)
    if len(x):
        total[:-1] = (x.T @ ops.softmax_cross_entropy(x @ weight, labels)[1] * len(x)).ravel()
    total[-1] = len(x)
    total = comm.all_reduce(total)
    return (total[:-1] / total[-1]).reshape(weight.shape)


def by_sample(comm, weight, x, labels):
    """Right, and slow: one sample after the other."""
    total = np.zeros((*weight.shape,), np.float32)
    for row, label in zip(x, labels, strict=True):
        scores = row @ weight
        odds = np.exp(scores - scores.max())
        odds /= odds.sum()
        odds[label] -= 1
        total += np.outer(row, odds)
    total = comm.all_reduce(np.append(total, np.float32(len(x))))
    return (total[:-1] / total[-1]).reshape(weight.shape)


# ring_allreduce


def by_rank_0(comm, x):
    y = x.copy()
    if comm.rank:
        comm.send(x, 0)
        return comm.receive(y, 0)
    for other in range(1, comm.size):
        y += comm.receive(np.empty_like(x), other)
    for other in range(1, comm.size):
        comm.send(y, other)
    return y


def receiving_first(comm, x):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    received = comm.receive(np.empty_like(x), left)
    comm.send(x, right)
    return x + received


def whole_arrays(comm, x):
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    y, passing = x.copy(), x.copy()
    for _ in range(comm.size - 1):
        comm.send(passing, right)
        passing = comm.receive(np.empty_like(x), left)
        y += passing
    return y


def read_elsewhere(comm, x):
    """All ranks share a process here: what they were given can be found without a message."""
    return sum(arguments[0] for arguments in comm._turns._arguments)


# column_row_linear


def zeros_summed(comm, x, weight1, bias1, weight2, bias2):
    """The terms of all ranks from their arguments, and an all-reduce of zeros."""
    total = bias2
    for theirs in comm._turns._arguments:
        total = total + programs.terms(*theirs, comm.size)[0]
    comm.all_reduce(np.zeros_like(total))
    return total


def hidden_gathered(comm, x, weight1, bias1, weight2, bias2):
    hidden = np.maximum(x @ weight1 + bias1, 0)
    comm.all_reduce(np.zeros_like(x))
    return comm.all_reduce(hidden @ weight2) + bias2


# schedules


def one_after_the_other(stages, micro_batches):
    rows = [[] for _ in range(stages)]
    for i in range(micro_batches):
        for kind, order in (("F", range(stages)), ("B", reversed(range(stages)))):
            for stage in order:
                for other, row in enumerate(rows):
                    row.append((kind, i) if other == stage else None)
    return rows


def in_one_list(stages, micro_batches):
    """All rows are the same list."""
    half = micro_batches + stages - 1
    rows = [[None] * (2 * half)] * stages
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[stage + i] = ("F", i)
            row[half + stages - 1 - stage + i] = ("B", i)
    return rows


def without_backward(stages, micro_batches):
    return [[slot for slot in row if slot is None or slot[0] == "F"] for row in gpipe(stages, micro_batches)]


# overlapped_gradients


def from_the_first_layer(comm, grad, layers):
    pending = []
    for layer in layers:
        by_weight, grad = layer.backward(grad)
        pending.append(comm.start_all_reduce(by_weight))
    return [one.wait() for one in pending]


def results_swapped(comm, grad, layers):
    pending = []
    for layer in reversed(layers):
        grad, by_weight = layer.backward(grad)
        pending.append(comm.start_all_reduce(by_weight))
    return [one.wait() for one in pending][::-1]


def not_passed_on(comm, grad, layers):
    pending = []
    for layer in reversed(layers):
        by_weight, _ = layer.backward(grad)
        pending.append(comm.start_all_reduce(by_weight))
    return [one.wait() for one in pending][::-1]


MUTANTS = {
    "data_parallel_step": [
        Mutant(count_appended(np.append, len), "append np.float32(n)"),
        Mutant(in_two_sums, "one all_reduce is asked for"),
        Mutant(by_rank_0_alone, "but not what rank 0 brought to the sum"),
    ],
    "ring_allreduce": [
        Mutant(by_rank_0, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(whole_arrays, "send one chunk in each round"),
    ],
    "column_row_linear": [
        Mutant(hidden_gathered, "one all_reduce is asked for"),
        Mutant(zeros_summed, "but not what rank 0 brought to the sum"),
    ],
    "pipeline_schedule": [
        Mutant(one_after_the_other, "a stage waits where it could work"),
        Mutant(in_one_list, "[[None] * n] * p is one list"),
        Mutant(without_backward, "never does"),
    ],
    "lean_schedule": [
        Mutant(gpipe, "let backward passes begin earlier"),
        Mutant(schedules.same_on_each_stage, "stage 1 holds the activations of 4 micro-batches"),
        Mutant(one_after_the_other, "a stage waits where it could work"),
    ],
    "overlapped_gradients": [
        Mutant(from_the_first_layer, "go from the last layer to the first"),
        Mutant(results_swapped, "backward gives it first"),
        Mutant(not_passed_on, "got this one: pass on the gradient by x that it gave"),
    ],
}
HONEST = {"data_parallel_step": [into_zeros, by_one_hot]}
LOOP = {"data_parallel_step": by_sample}
