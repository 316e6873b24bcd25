"""Wrong and imperfect answers to lesson 12."""

import numpy as np

from answers import Mutant, in_place
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


def class_by_class(comm, weight, x, labels):
    """Right: by log-odds, and a row of counts below the gradient."""
    scores = x @ weight
    odds = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    grads = [x.T @ (odds[:, m] - (labels == m)) for m in range(weight.shape[1])]
    summed = comm.all_reduce(np.float32([*np.transpose(grads), [len(x)] * weight.shape[1]]))
    return summed[:-1] / summed[-1]


# ring_allreduce


def two_loops(comm, x, step=1):
    """Right: a loop for each half, and copies of chunks that are joined."""
    parts, there, back = [*map(np.copy, np.array_split(x, comm.size))], comm.rank + step, comm.rank - step
    for k in range(comm.size - 1):
        comm.send(parts[(comm.rank - step * k) % comm.size], there % comm.size)
        into = (back - step * k) % comm.size
        parts[into] = parts[into] + comm.receive(np.empty_like(parts[into]), back % comm.size)
    for k in range(comm.size - 1):
        comm.send(parts[(there - step * k) % comm.size], there % comm.size)
        comm.receive(parts[(comm.rank - step * k) % comm.size], back % comm.size)
    return np.concatenate(parts)


def every_pth(comm, x, step=1):
    """Right: chunks of every p-th number."""
    y, left, right = np.array(x), comm.rank - step, comm.rank + step
    for k in range(2 * comm.size - 2):
        comm.send(y[(comm.rank - step * k) % comm.size :: comm.size].copy(), right % comm.size)
        mine = slice((left - step * k) % comm.size, None, comm.size)
        y[mine] = (k < comm.size - 1) * y[mine] + comm.receive(np.zeros_like(y[mine]), left % comm.size)
    return y


RING_IN_OTHER_WORDS = (  # of the variant, too
    (
        "y = x.copy()\n    chunks = np.array_split(y, comm.size)",
        "rows = np.pad(x, (0, -len(x) % comm.size)).reshape(comm.size, -1)\n"
        "    y, chunks = rows.ravel()[: len(x)], list(rows)",
    ),
    (
        "mine[...] = mine + came if k < comm.size else came",
        "came += mine * (k < comm.size)\n        np.copyto(mine, came)",
    ),
    (
        "chunks = np.array_split(y, comm.size)",
        "ends = [len(x) * i // comm.size for i in range(comm.size + 1)]\n"
        "    chunks = [y[start:end] for start, end in zip(ends, ends[1:])]",
    ),
)


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


# sharded_step


def steps_gathered(comm, weight, grad, velocity, rate, momentum):
    """Right: the steps travel, and each rank adds them to all of its weight."""
    velocity = velocity * momentum - comm.reduce_scatter((rate * grad).astype(grad.dtype))
    return weight + comm.all_gather(velocity), velocity


def in_rows(comm, weight, grad, velocity, rate, momentum):
    """Right: blocks are rows of a matrix, and numbers are taken one by one."""
    (summed,) = comm.reduce_scatter(grad.reshape(comm.size, -1))[None]
    new = np.float32([momentum * v - rate * g for v, g in zip(velocity, summed.flat, strict=True)])
    return comm.all_gather(weight.reshape(comm.size, -1)[[comm.rank]] + new).ravel(), new


def summed_whole(comm, weight, grad, velocity, rate, momentum):
    mine = slice(comm.rank * len(velocity), (comm.rank + 1) * len(velocity))
    velocity = momentum * velocity - rate * comm.all_reduce(grad)[mine]
    return comm.all_gather(weight[mine] + velocity), velocity


def block_alone(comm, weight, grad, velocity, rate, momentum):
    velocity = momentum * velocity - rate * comm.reduce_scatter(grad)
    return np.array_split(weight, comm.size)[comm.rank] + velocity, velocity


def zeros_brought(comm, weight, grad, velocity, rate, momentum):
    """The gradients from the others' arguments, beside a sum of zeros."""
    size = len(velocity)
    mine = slice(comm.rank * size, (comm.rank + 1) * size)
    summed = sum(arguments[1] for arguments in comm._turns._arguments)
    velocity = momentum * velocity - rate * (summed[mine] + comm.reduce_scatter(0 * grad))
    return comm.all_gather(weight[mine] + velocity), velocity


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


def unit_by_unit(comm, x, weight1, bias1, weight2, bias2):
    y = np.zeros((len(x), len(bias2)), x.dtype)
    for column, bias, row in zip(weight1.T, bias1, weight2, strict=True):
        hidden = x @ column + bias
        y += np.outer(np.where(hidden > 0, hidden, 0), row)
    comm.all_reduce(y, out=y)
    return np.add(y, bias2, out=y)


def bias_as_a_weight(comm, x, weight1, bias1, weight2, bias2):
    hidden = np.column_stack([x, np.ones_like(x[:, 0])]) @ np.vstack([weight1, bias1])
    return bias2 + comm.all_reduce((weight2.T @ hidden.clip(min=0).T).copy()).T


# schedules


def simulated(stages, micro_batches):
    """Right: a stage goes back where it can, and else forward while few are under way."""
    rows, done = [[] for _ in range(stages)], set()
    while len(done) < 2 * stages * micro_batches:
        for s, row in enumerate(rows):
            f, b = (sum(slot is not None and slot[0] == kind for slot in row) for kind in "FB")
            if b < f and (s == stages - 1 or (s + 1, "B", b) in done):
                row.append(("B", b))
            elif f < min(micro_batches, b + stages - s) and (s == 0 or (s - 1, "F", f) in done):
                row.append(("F", f))
            else:
                row.append(None)
        done |= {(s, *row[-1]) for s, row in enumerate(rows) if row[-1]}
    return rows


def by_adding_lists(stages, micro_batches):
    """Right: the last micro-batch comes back first, and there are no empty slots at the end."""
    forward = [("F", i) for i in range(micro_batches)]
    backward = [["B", i] for i in reversed(range(micro_batches))]
    return [[None] * s + forward + [None] * (2 * (stages - 1 - s)) + backward for s in range(stages)]


def in_turns(stages, micro_batches):
    """Right: forward passes in every other slot, backward passes in those between, the last micro-batch first."""
    rows, order = [], range(micro_batches)[::-1]
    for stage in range(stages):
        rows.append([None] * 2 * (micro_batches + stages - 1))
        for kind, first in (("F", stage), ("B", 2 * stages - 1 - stage)):
            rows[stage][first : first + 2 * micro_batches : 2] = [(kind, i) for i in order]
    return rows


def from_a_table(stages, micro_batches):
    slots = {(s, s + 2 * i): ("F", i) for i in range(micro_batches) for s in range(stages)}
    slots |= {(s, 2 * stages - s - 1 + 2 * i): ("B", i) for i in range(micro_batches) for s in range(stages)}
    return [[slots.get((s, t)) for t in range(1 + max(t for _, t in slots))] for s in range(stages)]


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


def recursive(comm, grad, layers):
    if not layers:
        return []
    by_weight, grad = layers[-1].backward(grad)
    begun = comm.start_all_reduce(by_weight, out=by_weight)
    return [*recursive(comm, grad, layers[:-1]), begun.wait()]


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
    "sharded_step": [
        Mutant(summed_whole, "a rank needs that of its own block"),
        Mutant(block_alone, "expected (8,)"),
        Mutant(zeros_brought, "did not bring its own gradient"),
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
        Mutant(schedules.same_on_each_stage, "stage 1 holds the activations of 6 micro-batches"),
        Mutant(one_after_the_other, "a stage waits where it could work"),
    ],
    "overlapped_gradients": [
        Mutant(from_the_first_layer, "go from the last layer to the first"),
        Mutant(results_swapped, "backward gives it first"),
        Mutant(not_passed_on, "got this one: pass on the gradient by x that it gave"),
    ],
}
RIGHT = {
    "data_parallel_step": [
        class_by_class,
        *in_place(
            "data_parallel_step",
            (
                "total[:-1] = gradient_of_mean(weight, x, labels).ravel() * len(x)",
                "for row, label in zip(x, labels):\n"
                "            total[:-1] += gradient_of_mean(weight, row[None], label[None]).flat",
            ),
        ),
    ],
    "ring_allreduce": [two_loops, every_pth, *in_place("ring_allreduce", *RING_IN_OTHER_WORDS)],
    "sharded_step": [
        *(steps_gathered, in_rows),
        *in_place(
            "sharded_step",
            ("weight[comm.rank * size :][:size]", "np.split(weight, comm.size)[comm.rank]"),
            (
                "momentum * velocity - rate * comm.reduce_scatter(grad)",
                "momentum * velocity + comm.reduce_scatter(-rate * grad)",
            ),
            ("weight[comm.rank * size :][:size]", "weight[comm.rank * size : (comm.rank + 1) * size].copy()"),
        ),
    ],
    "column_row_linear": [
        *(unit_by_unit, bias_as_a_weight),
        *in_place(
            "column_row_linear",
            ("hidden @ weight2) + bias2", "hidden @ weight2 + bias2 / comm.size)"),
            ("np.maximum(x @ weight1 + bias1, 0)", 'np.maximum(np.einsum("nk,kh->hn", x, weight1).T + bias1, 0)'),
        ),
    ],
    "pipeline_schedule": [
        *(simulated, by_adding_lists, from_a_table),
        *in_place(
            "pipeline_schedule",
            ("row[half + (stages - 1 - stage) + i]", "row[-1 - stage - i]"),
            ("[[None] * (2 * half) for _ in range(stages)]", "[list(row) for row in [(None,) * 2 * half] * stages]"),
        ),
    ],
    "lean_schedule": [
        *(simulated, in_turns, from_a_table),
        *in_place(
            "lean_schedule",
            ("for i in range(micro_batches):", "for i in reversed(range(micro_batches)):"),
            ('("B", i)', '["B", i]'),
        ),
    ],
    "overlapped_gradients": [
        recursive,
        *in_place(
            "overlapped_gradients",
            ("for layer in reversed(layers):", "left = list(layers)\n    while left:\n        layer = left.pop()"),
            ("return [one.wait() for one in pending][::-1]", "return *(one.wait() for one in pending[::-1]),"),
            (
                "pending.append(comm.start_all_reduce(by_weight))",
                "pending += map(comm.start_all_reduce, [by_weight.copy()])",
            ),
            (
                "for layer in reversed(layers):",
                "for number in range(1, len(layers) + 1):\n        layer = layers[-number]",
            ),
        ),
    ],
}
HONEST = {"data_parallel_step": [into_zeros, by_one_hot]}
LOOP = {"data_parallel_step": by_sample}
