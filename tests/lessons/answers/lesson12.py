"""Wrong answers to lesson 12."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from unrolled import ops
from unrolled.checks.exercises.l12_many_devices import replicas, splits
from unrolled.parallel import gpipe, one_forward_one_backward

# data_parallel_step


def in_two_sums(comm, weight, x, labels):
    mean = replicas.its_own(comm, weight, x, labels)
    return comm.all_reduce(mean * np.float32(len(x))) / comm.all_reduce(np.array([len(x)], np.float32))


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


def even_chunks(comm, x):
    size = len(x) // comm.size
    y = x.copy()
    y[: size * comm.size] = splits.ring_allreduce(comm, np.ascontiguousarray(x[: size * comm.size]))
    return y


def read_elsewhere(comm, x):
    """All ranks share a process here: what they were given can be found without a message."""
    return sum(arguments[0] for arguments in comm._turns._arguments)


# column_row_linear


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


def all_at_once(stages, micro_batches):
    work = [(kind, i) for kind in "FB" for i in range(micro_batches)]
    return [list(work) for _ in range(stages)]


def without_backward(stages, micro_batches):
    return [[slot for slot in row if slot is None or slot[0] == "F"] for row in gpipe(stages, micro_batches)]


def words(stages, micro_batches):
    return [["F0"] for _ in range(stages)]


# overlapped_gradients


def waiting_each_time(comm, grad, inputs, weights):
    found = []
    for x, weight in zip(reversed(inputs), reversed(weights), strict=True):
        found.append(comm.start_all_reduce(x.T @ grad).wait())
        grad = grad @ weight.T
    return found[::-1]


def after_the_way_back(comm, grad, inputs, weights):
    own = replicas.own_layers(comm, grad, inputs, weights)
    return [one.wait() for one in [comm.start_all_reduce(gradient) for gradient in own]]


MUTANTS = {
    "data_parallel_step": [
        Mutant(replicas.mean_of_means, "the mean of the ranks' means"),
        Mutant(replicas.sum_of_means, "the sum of the ranks' means"),
        Mutant(replicas.sum_of_sums, "divide by how many there are on all ranks"),
        Mutant(replicas.its_own, "sum over ranks"),
        Mutant(in_two_sums, "one all_reduce is asked for"),
    ],
    "ring_allreduce": [
        Mutant(by_rank_0, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(whole_arrays, "send one chunk in each round"),
        Mutant(even_chunks, "of 10 values differ"),
        Mutant(read_elsewhere, "only 0 bytes were sent"),
        Mutant(splits.half_a_ring, "only the first half is done"),
        Mutant(lambda comm, x: comm.all_reduce(x), "only send and receive are allowed"),
    ],
    "column_row_linear": [
        Mutant(splits.with_each_bias, "add it after the sum"),
        Mutant(splits.not_summed, "sum over ranks"),
        Mutant(splits.without_relu, "the ReLU between the layers is missing"),
        Mutant(hidden_gathered, "one all_reduce is asked for"),
    ],
    "pipeline_schedule": [
        Mutant(one_after_the_other, "a stage waits where it could work"),
        Mutant(all_at_once, "before"),
        Mutant(without_backward, "never does"),
        Mutant(words, "expected a list for each stage"),
    ],
    "lean_schedule": [
        Mutant(gpipe, "let backward passes begin earlier"),
        Mutant(one_after_the_other, "a stage waits where it could work"),
        Mutant(lambda stages, micro_batches: one_forward_one_backward(stages, micro_batches)[::-1], "before"),
    ],
    "overlapped_gradients": [
        Mutant(waiting_each_time, "before you wait for the first"),
        Mutant(after_the_way_back, "the last layer first"),
        Mutant(replicas.own_layers, "sum over ranks"),
        Mutant(replicas.first_layer_first, "turn it round"),
    ],
}
HONEST = {"data_parallel_step": [into_zeros, by_one_hot]}
LOOP = {"data_parallel_step": by_sample}
