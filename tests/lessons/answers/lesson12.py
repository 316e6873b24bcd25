"""Wrong answers to lesson 12."""

from __future__ import annotations

import numpy as np

from answers import Mutant
from unrolled import ops
from unrolled.checks.exercises.l12_many_devices import overlap, replicas, schedules, splits
from unrolled.parallel import gpipe, one_forward_one_backward

# data_parallel_step


def in_two_sums(comm, weight, x, labels):
    mean = replicas.its_own(comm, weight, x, labels)
    return comm.all_reduce(mean * np.float32(len(x))) / comm.all_reduce(np.array([len(x)], np.float32))


def count_appended(join, count):
    """The natural first attempt: a whole number behind float32 makes float64."""

    def program(comm, weight, x, labels):
        own = replicas.its_own(comm, weight, x, labels) * np.float32(len(x))
        total = comm.all_reduce(join(own.ravel(), count(x)))
        return (total[:-1] / total[-1]).reshape(weight.shape)

    return program


def by_rank_0_alone(comm, weight, x, labels):
    """The sum from the others' arguments, brought by rank 0 to a sum of zeros."""
    total = sum(replicas.gradient_and_count(*theirs, comm.size)[0] for theirs in comm._turns._arguments)
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


def by_two_loops(first, off=0, second=True):
    """A ring whose chunks are counted from `first`; its second half begins `off` chunks further on."""

    def program(comm, x):
        y, p, r = x.copy(), comm.size, comm.rank
        chunks = np.array_split(y, p)
        for k in range(p - 1):
            comm.send(chunks[(r - first - k) % p], (r + 1) % p)
            mine = chunks[(r - first - k - 1) % p]
            mine += comm.receive(np.empty_like(mine), (r - 1) % p)
        for k in range(p - 1 if second else 0):
            comm.send(chunks[(r - first + 1 - off - k) % p], (r + 1) % p)
            comm.receive(chunks[(r - first - off - k) % p], (r - 1) % p)
        return y

    return program


def by_rounds(first, adds, sends=0):
    """A ring whose first round is `first`; adds(k, p) says in which it adds. It sends a chunk further up by `sends`."""

    def program(comm, x):
        y, p, r = x.copy(), comm.size, comm.rank
        chunks = np.array_split(y, p)
        for k in range(first, 2 * p - 2 + first):
            mine = chunks[(r - k - 1) % p]
            comm.send(chunks[(r - k - 1 + sends) % p], (r + 1) % p)
            came = comm.receive(np.empty_like(mine), (r - 1) % p)
            mine[...] = mine + came if adds(k - first, p) else came
        return y

    return program


def always(k, p):
    return True


def in_the_first_half(k, p):
    return k < p - 1


def into_the_list(comm, x):
    """The sums become new arrays of the list, and y stays what it was."""
    y, p, r = x.copy(), comm.size, comm.rank
    chunks = np.array_split(y, p)
    for k in range(2 * (p - 1)):
        comm.send(chunks[(r - k) % p], (r + 1) % p)
        j = (r - k - 1) % p
        came = comm.receive(np.empty_like(chunks[j]), (r - 1) % p)
        chunks[j] = chunks[j] + came if k < p - 1 else came
    return y


def even_chunks(comm, x):
    size, y, p, r = len(x) // comm.size, x.copy(), comm.size, comm.rank
    chunks = [y[i * size : (i + 1) * size] for i in range(p)]
    for k in range(2 * (p - 1)):
        comm.send(chunks[(r - k) % p], (r + 1) % p)
        mine = chunks[(r - k - 1) % p]
        came = comm.receive(np.empty_like(mine), (r - 1) % p)
        mine[...] = mine + came if k < p - 1 else came
    return y


def read_elsewhere(comm, x):
    """All ranks share a process here: what they were given can be found without a message."""
    return sum(arguments[0] for arguments in comm._turns._arguments)


def zeros_of_the_right_sizes(comm, x):
    """As `read_elsewhere`, with messages as large and as many as a ring's, and nothing in them."""
    splits.ring_allreduce(comm, np.zeros_like(x))
    return read_elsewhere(comm, x)


def own_chunks_only(comm, x):
    """As `read_elsewhere`; each message holds true numbers, but no sum."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    chunks = np.array_split(x, comm.size)
    for k in range(2 * (comm.size - 1)):
        comm.send(chunks[k % comm.size], right)
        comm.receive(np.empty_like(chunks[k % comm.size]), left)
    return read_elsewhere(comm, x)


def sums_before_they_came(comm, x):
    """As `read_elsewhere`; each message holds a chunk of the sum, which its sender cannot know yet."""
    total, right, left = read_elsewhere(comm, x), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    chunks = np.array_split(total, comm.size)
    for k in range(2 * (comm.size - 1)):
        comm.send(chunks[(comm.rank - k) % comm.size], right)
        comm.receive(np.empty_like(chunks[(comm.rank - k - 1) % comm.size]), left)
    return total


# column_row_linear


def zeros_summed(comm, x, weight1, bias1, weight2, bias2):
    """The terms of all ranks from their arguments, and an all-reduce of zeros."""
    total = bias2
    for theirs in comm._turns._arguments:
        total = total + splits.terms(*theirs, comm.size)[0]
    comm.all_reduce(np.zeros_like(total))
    return total


def hidden_gathered(comm, x, weight1, bias1, weight2, bias2):
    hidden = np.maximum(x @ weight1 + bias1, 0)
    comm.all_reduce(np.zeros_like(x))
    return comm.all_reduce(hidden @ weight2) + bias2


def all_hidden(copied):
    """Gathers all hidden units, and multiplies them by this rank's rows."""

    def program(comm, x, weight1, bias1, weight2, bias2):
        hidden = np.maximum(x @ weight1 + bias1, 0)
        hidden = comm.all_gather(hidden.T.copy() if copied else hidden.T).T
        return comm.all_reduce(hidden @ weight2) + bias2

    return program


def both_gathered(comm, x, weight1, bias1, weight2, bias2):
    """Right values, and all hidden units on each rank."""
    hidden = comm.all_gather(np.ascontiguousarray(np.maximum(x @ weight1 + bias1, 0).T)).T
    return hidden @ comm.all_gather(weight2) + bias2


def pre_activations_summed(comm, x, weight1, bias1, weight2, bias2):
    return np.maximum(comm.all_reduce(x @ weight1 + bias1), 0) @ weight2 + bias2


def hidden_and_result_summed(comm, x, weight1, bias1, weight2, bias2):
    hidden = comm.all_reduce(np.maximum(x @ weight1 + bias1, 0))
    return comm.all_reduce(hidden @ weight2) + bias2


def mean_with_each_bias(comm, x, weight1, bias1, weight2, bias2):
    y = np.maximum(x @ weight1 + bias1, 0) @ weight2 + bias2
    return comm.all_reduce(y) / np.float32(comm.size)


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


def in_one_list(stages, micro_batches):
    """All rows are the same list."""
    half = micro_batches + stages - 1
    rows = [[None] * (2 * half)] * stages
    for stage, row in enumerate(rows):
        for i in range(micro_batches):
            row[stage + i] = ("F", i)
            row[half + stages - 1 - stage + i] = ("B", i)
    return rows


def one_micro_batch_at_a_time(stages, micro_batches):
    """One forward and one backward pass in turns, on each stage."""
    return schedules.placed([schedules.alternating(1, micro_batches)] * stages)


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


def waiting_each_time(comm, grad, layers):
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(comm.start_all_reduce(by_weight).wait())
    return found[::-1]


def after_the_way_back(comm, grad, layers):
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(by_weight)
    return [one.wait() for one in [comm.start_all_reduce(gradient) for gradient in found]][::-1]


def first_layer_begun_first(comm, grad, layers):
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(by_weight)
    return [one.wait() for one in [comm.start_all_reduce(gradient) for gradient in reversed(found)]]


def one_bucket(comm, grad, layers):
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(by_weight)
    total = comm.all_reduce(np.concatenate([gradient.ravel() for gradient in reversed(found)]))
    ends = np.cumsum([gradient.size for gradient in reversed(found)])
    parts = np.split(total, ends[:-1])
    return [part.reshape(gradient.shape) for part, gradient in zip(parts, reversed(found), strict=True)]


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


def without_waiting(comm, grad, layers):
    pending = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        pending.append(comm.start_all_reduce(by_weight))
    return pending[::-1]


def read_layers_elsewhere(comm, grad, layers):
    """The gradients of all ranks, computed from what the others were given, and sums of zeros."""
    summed = None
    for theirs, others in comm._turns._arguments:
        own = []
        for layer in reversed(others):
            by_weight, theirs = layer.gradients(theirs)
            own.append(by_weight)
        summed = own if summed is None else [one + other for one, other in zip(summed, own, strict=True)]
    for gradient in summed:
        comm.start_all_reduce(np.zeros_like(gradient)).wait()
    return summed[::-1]


MUTANTS = {
    "data_parallel_step": [
        Mutant(replicas.mean_of_means, "the mean of the ranks' means"),
        Mutant(replicas.sum_of_means, "the sum of the ranks' means"),
        Mutant(replicas.sum_of_sums, "divide by how many there are on all ranks"),
        Mutant(replicas.its_own, "sum over ranks"),
        Mutant(count_appended(np.append, len), "append np.float32(n)"),
        Mutant(count_appended(np.append, lambda x: np.int64(len(x))), "append np.float32(n)"),
        Mutant(count_appended(lambda a, n: np.concatenate([a, [n]]), len), "append np.float32(n)"),
        Mutant(in_two_sums, "one all_reduce is asked for"),
        Mutant(by_rank_0_alone, "but not what rank 0 brought to the sum"),
    ],
    "ring_allreduce": [
        Mutant(by_rank_0, "in the ring it sends to rank"),
        Mutant(receiving_first, "deadlock"),
        Mutant(whole_arrays, "send one chunk in each round"),
        Mutant(even_chunks, "of 10 values differ"),
        Mutant(even_chunks, "chunks of n // p leave them out"),
        Mutant(read_elsewhere, "only 0 bytes were sent"),
        Mutant(zeros_of_the_right_sizes, "cannot know that of x["),
        Mutant(own_chunks_only, "cannot know that of x["),
        Mutant(sums_before_they_came, "cannot know that of x["),
        *(Mutant(by_two_loops(first, second=False), "only the first half is done") for first in (0, 1)),
        *(Mutant(by_two_loops(*of), "second half begins one chunk off") for of in ((0, 1), (0, -1), (1, 1), (1, -1))),
        *(Mutant(by_rounds(first, always, 1), "the second half adds, too") for first in (0, 1)),
        *(Mutant(by_rounds(first, in_the_first_half), "sends and receives the same chunk") for first in (-1, 0, 1)),
        Mutant(into_the_list, "the sums never reached the array that you return"),
        Mutant(lambda comm, x: comm.all_reduce(x), "only send and receive are allowed"),
    ],
    "column_row_linear": [
        Mutant(splits.with_each_bias, "add it after the sum"),
        Mutant(splits.not_summed, "sum over ranks"),
        Mutant(splits.without_relu, "the ReLU between the layers is missing"),
        Mutant(splits.without_bias2, "bias2 is missing: add it once"),
        Mutant(splits.mean_of_terms, "the sum is divided by comm.size"),
        Mutant(mean_with_each_bias, "the sum is divided by comm.size"),
        Mutant(pre_activations_summed, "hidden units of different ranks are summed"),
        Mutant(hidden_and_result_summed, "hidden units of different ranks are summed"),
        Mutant(all_hidden(copied=False), "hidden units stay where they are"),
        Mutant(all_hidden(copied=True), "hidden units stay where they are"),
        Mutant(both_gathered, "hidden units stay where they are"),
        Mutant(hidden_gathered, "one all_reduce is asked for"),
        Mutant(zeros_summed, "but not what rank 0 brought to the sum"),
    ],
    "pipeline_schedule": [
        Mutant(one_after_the_other, "a stage waits where it could work"),
        Mutant(one_after_the_other, "waits until the one before is through"),
        Mutant(schedules.one_by_one, "waits until the one before is through"),
        Mutant(all_at_once, "before"),
        Mutant(schedules.at_once, "your stages all begin at once"),
        Mutant(schedules.back_from_the_first, "it must begin in the last one"),
        Mutant(in_one_list, "[[None] * n] * p is one list"),
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
        Mutant(schedules.one_too_few, "stage s needs p - s, or it has to wait"),
        Mutant(one_micro_batch_at_a_time, "stage s needs p - s, or it has to wait"),
        Mutant(one_after_the_other, "a stage waits where it could work"),
        Mutant(lambda stages, micro_batches: one_forward_one_backward(stages, micro_batches)[::-1], "before"),
    ],
    "overlapped_gradients": [
        Mutant(from_the_first_layer, "go from the last layer to the first"),
        Mutant(results_swapped, "backward gives it first"),
        Mutant(not_passed_on, "got this one: pass on the gradient by x that it gave"),
        Mutant(without_waiting, "call .wait() on it"),
        Mutant(waiting_each_time, "wait for none before all have begun"),
        Mutant(waiting_each_time, "us, modelled"),
        Mutant(after_the_way_back, "us are enough: begin each sum as soon as its layer's gradient is there"),
        Mutant(first_layer_begun_first, "us, modelled"),
        Mutant(one_bucket, "expected a start_all_reduce of each layer's own gradient"),
        Mutant(read_layers_elsewhere, "expected a start_all_reduce of each layer's own gradient"),
        Mutant(overlap.own_layers, "sum over ranks"),
        Mutant(overlap.first_layer_first, "turn it round"),
    ],
}
HONEST = {"data_parallel_step": [into_zeros, by_one_hot]}
LOOP = {"data_parallel_step": by_sample}
