"""Wrong answers to lesson 12."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from unrolled.checks.exercises.l12_many_devices import replicas, schedules, splits
from unrolled.parallel import gpipe, one_forward_one_backward

# data_parallel_step


def in_two_sums(comm, weight, x, labels):
    mean = replicas.its_own(comm, weight, x, labels)
    return comm.all_reduce(mean * np.float32(len(x))) / comm.all_reduce(np.array([len(x)], np.float32))


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


def numbered(change):
    """A right schedule whose micro-batches have other names."""
    return lambda stages, micro_batches: [
        [slot and (slot[0], change(slot[1])) for slot in row] for row in gpipe(stages, micro_batches)
    ]


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
        Mutant(one_after_the_other, "waits until the one before is through"),
        Mutant(schedules.one_by_one, "waits until the one before is through"),
        Mutant(all_at_once, "before"),
        Mutant(schedules.at_once, "all stages begin at once"),
        Mutant(schedules.back_from_the_first, "the way back begins in the first stage"),
        Mutant(schedules.back_too_early, "forward passes to do until slot"),
        Mutant(without_backward, "never does"),
        Mutant(words, "expected a list for each stage"),
        Mutant(words, "stage 0 has 'F0' in slot 0"),
        Mutant(numbered(lambda i: i + 0.5), "has ('F', 0.5) in slot 0; i is a whole number"),
        Mutant(numbered(float), "has ('F', 0.0) in slot 0; i is a whole number"),
        Mutant(numbered(str), "has ('F', '0') in slot 0; i is a whole number"),
        Mutant(numbered(lambda i: "x"), "has ('F', 'x') in slot 0; i is a whole number"),
        Mutant(numbered(bool), "has ('F', False) in slot 0; i is a whole number"),
        Mutant(numbered(lambda i: None), "has ('F', None) in slot 0; i is a whole number"),
        Mutant(numbered(lambda i: [i]), "has ('F', [0]) in slot 0; i is a whole number"),
        Mutant(numbered(lambda i: float("nan")), "has ('F', nan) in slot 0; i is a whole number"),
    ],
    "lean_schedule": [
        Mutant(gpipe, "let backward passes begin earlier"),
        Mutant(gpipe, "all forward passes come first"),
        Mutant(schedules.forward_first, "all forward passes come first"),
        Mutant(schedules.same_on_each_stage, "stage 1 holds the activations of 4 micro-batches"),
        Mutant(schedules.same_on_each_stage, "each stage holds up to p micro-batches"),
        Mutant(schedules.one_too_few, "begins with p - s - 1 forward passes"),
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
