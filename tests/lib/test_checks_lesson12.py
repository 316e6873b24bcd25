"""Lesson 12's judge: it follows what ranks can know from their messages, and takes any honest way to the result."""

import dataclasses
import re

import numpy as np
import pytest

from unrolled import checks
from unrolled.checks.exercises.l12_many_devices import overlap, programs, ring, schedules
from unrolled.checks.run import HERE
from unrolled.parallel import Network, emulate

SPECS = checks.all_specs()
WITH_ANSWERS = dataclasses.replace(HERE, withhold=False)


def test_a_rank_knows_what_came_to_it_and_its_own():
    network = Network(3, keep=True)
    arrays = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]], np.float32)

    def program(comm):
        x = arrays[comm.rank]
        if comm.rank == 0:
            comm.send(x, 1)
        elif comm.rank == 1:
            comm.send((x + comm.receive(np.empty_like(x), 0)) * np.array([1, 0], np.float32), 2)
        else:
            comm.receive(np.empty_like(x), 1)

    emulate(program, network=network)
    assert ring.known_sums(network, arrays, 1).tolist() == [[False, False], [False, False], [True, False]]
    assert ring.known_sums(network, arrays, -1).tolist() == [[False, False]] * 3


# sums beside a backward pass


def afterwards(comm, grad, layers):
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(by_weight)
    return [one.wait() for one in [comm.start_all_reduce(gradient) for gradient in found]][::-1]


def one_by_one(comm, grad, layers):
    """Each sum begins in time, and is waited for at once."""
    found = []
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        found.append(comm.start_all_reduce(by_weight).wait())
    return found[::-1]


def a_layer_late(comm, grad, layers):
    """The calls are in a right order, but each sum begins when the next layer's gradient is there."""
    pending, before = [], None
    for layer in reversed(layers):
        by_weight, grad = layer.backward(grad)
        pending += [] if before is None else [comm.start_all_reduce(before)]
        before = by_weight
    return [one.wait() for one in [*pending, comm.start_all_reduce(before)]][::-1]


@pytest.mark.parametrize("function", [afterwards, one_by_one, a_layer_late])
def test_overlap_is_judged_by_the_time_until_the_last_sum_is_there(function):
    spec = SPECS["overlapped_gradients"]
    even = dataclasses.replace(spec, cases=[spec.domain], domain=None)
    report = str(checks.run("overlapped_gradients", even, function, place=WITH_ANSWERS))
    took, enough = (float(re.search(words, report)[1]) for words in (r"took (.+) us, modelled", r"(\S+) us are enough"))
    assert took > 1.05 * enough


def test_gradients_that_take_no_time_are_none():
    def for_nothing(comm, grad, layers):
        own = overlap.own_gradients(grad, layers)[::-1]
        return [one.wait() for one in [comm.start_all_reduce(gradient) for gradient in own]][::-1]

    report = checks.run("overlapped_gradients", SPECS["overlapped_gradients"], for_nothing, place=WITH_ANSWERS)
    assert overlap.NOT_CALLED in str(report)


# ranks, what is wrong with their sums


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        (
            "data_parallel_step",
            lambda comm, weight, x, labels: comm.all_reduce(weight) * 0,
            "what rank 0 brought to the sum is wrong already",
        ),
        (
            "data_parallel_step",
            lambda comm, weight, x, labels: comm.all_reduce(programs.own(weight, x, labels)) * np.float32(0.1),
            "each rank brought to the sum what it may: look at what is made of the sum",
        ),
        ("ring_allreduce", lambda comm, x: x + 2 * (comm.rank == 0) * x, "x[0] on rank 0 holds rank 0's 3 times, rank"),
        ("ring_allreduce", lambda comm, x: ring.ring_allreduce(comm, x)[::-1].copy(), "holds the sum of x["),
        ("ring_allreduce", lambda comm, x: ring.ring_allreduce(comm, x.__imul__(2)), "changed its input x:"),
        (
            "sharded_step",
            lambda comm, weight, grad, velocity, rate, momentum: (weight, velocity.__imul__(2)),
            "changed its input velocity: work on a copy",
        ),
    ],
)
def test_wrong_sums_say_what_they_hold(name, function, says):
    assert says in str(checks.run(name, SPECS[name], function, place=WITH_ANSWERS))


# schedules


@pytest.mark.parametrize("name", ["pipeline_schedule", "lean_schedule"])
def test_fewer_micro_batches_than_stages_are_drawn_at_every_seed(name):
    def nothing(stages, micro_batches):
        return [] if micro_batches <= stages and stages > 1 else SPECS[name].reference(stages, micro_batches)

    for seed in range(5):
        report = checks.run(name, SPECS[name], nothing, seed=seed, place=WITH_ANSWERS)
        assert "the schedule has 0 stages" in str(report)


def test_a_warm_up_of_micro_batches_that_there_are_not_is_named():
    wrong = [[("F", 0), ("F", 1), None, ("B", 0)], [None, ("F", 0), ("B", 0), None]]
    assert "min(p - s, m)" in str(schedules.judge_memory(wrong, None, {"stages": 2, "micro_batches": 1}).lines)


def test_rows_that_are_alike_are_taken_for_one_list_only_where_passes_are_lost():
    sizes = {"stages": 2, "micro_batches": 2}
    for rows in (schedules.at_once(2, 2), [[None] * 6 for _ in range(2)]):
        assert schedules.ONE_LIST not in schedules.judge(rows, None, sizes).lines
    lost = schedules.judge([[("F", 0), None, ("F", 1)]] * 2, None, sizes)
    assert lost.lines[-1] == schedules.ONE_LIST


def test_a_sum_that_was_told_before_it_was_known_teaches_nothing():
    network, arrays = Network(3, keep=True), np.array([[1.0], [2.0], [4.0]], np.float32)

    def program(comm):
        if comm.rank < 2:
            comm.send(arrays[: comm.rank + 1].sum(axis=0), comm.rank + 1)
        if comm.rank > 0:
            comm.receive(np.empty(1, np.float32), comm.rank - 1)

    emulate(program, network=network, seed=next(seed for seed in range(9) if begins_with_rank_1(program, seed)))
    assert not ring.known_sums(network, arrays, 1).any()


def begins_with_rank_1(program, seed):
    network = Network(3, seed=seed)
    emulate(program, network=network)
    return network.messages[0].source == 1
