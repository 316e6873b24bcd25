"""Emulated ranks: collectives against NumPy, the model's times and counts, and what goes wrong, by name."""

import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import device, parallel
from unrolled.checks.gpu import connected
from unrolled.checks.limits import TimeLimitError, time_limit
from unrolled.parallel import Network, emulate
from unrolled.parallel.network import Call, Outcome

DTYPES = ["float32", "float64", "int64"]
SOME = np.zeros(5)
MISMATCH, DEADLOCK = parallel.MismatchError, parallel.DeadlockError


def ring(comm, x):
    """All-reduce by send and receive, as lesson 12 writes it."""
    y = x.copy()
    chunks, right, left = np.array_split(y, comm.size), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for k in range(comm.size - 1):
        comm.send(chunks[(comm.rank - k) % comm.size], right)
        mine = chunks[(comm.rank - k - 1) % comm.size]
        mine += comm.receive(np.empty_like(mine), left)
    for k in range(comm.size - 1):
        comm.send(chunks[(comm.rank + 1 - k) % comm.size], right)
        comm.receive(chunks[(comm.rank - k) % comm.size], left)
    return y


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 4), st.sampled_from(DTYPES), st.integers(0, 2**31))
def test_collectives_give_what_numpy_gives(ranks, rows, dtype, seed):
    values = np.random.default_rng(seed).integers(-99, 99, (ranks, ranks * rows, 2)).astype(dtype)

    def program(comm):
        x, root = values[comm.rank], comm.size - 1
        pending = comm.start_all_reduce(x)
        done = comm.all_reduce(x), comm.reduce_scatter(x), comm.all_gather(x), comm.broadcast(x, root)
        comm.barrier()
        in_place = x.copy()
        assert comm.all_reduce(in_place, out=in_place) is in_place
        later = np.zeros_like(x)
        prepared = comm.prepare_all_reduce(later)
        later += x
        assert prepared() is prepared()
        return *done, pending.wait(), pending.wait(), in_place, prepared()

    total = values.sum(axis=0)
    for rank, results in enumerate(emulate(program, ranks=ranks, seed=seed)):
        blocks = total[rank * rows : (rank + 1) * rows]
        expected = total, blocks, values.reshape(-1, 2), values[-1], total, total, total, total
        for got, want in zip(results, expected, strict=True):
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_a_ring_takes_the_rounds_bytes_and_time_of_the_formula(ranks):
    network = Network(ranks, "PCIe 4")
    x = np.arange(8 * 3 * 100, dtype=np.float64)
    for got in emulate(lambda comm: ring(comm, x + comm.rank), network=network):
        np.testing.assert_array_equal(got, x * ranks + sum(range(ranks)))
    share = 2 * (ranks - 1) * x.nbytes // ranks
    assert network.rounds == 2 * (ranks - 1)
    assert network.link_bytes == {(rank, (rank + 1) % ranks): share for rank in range(ranks) if ranks > 1}
    assert network.seconds == pytest.approx(network.link.all_reduce_seconds(x.nbytes, ranks))
    assert network.collectives == []


def test_a_collective_is_charged_as_the_ring_is():
    network = Network(4)
    emulate(lambda comm: comm.all_reduce(np.zeros(1000)), network=network)
    assert network.seconds == pytest.approx(network.link.all_reduce_seconds(8000, 4))
    assert (network.rounds, network.collectives, network.messages) == (6, [("all_reduce", 8000)], [])


def test_messages_on_one_link_follow_one_another():
    network = Network(2, parallel.Link("slow", 1.0, 0.5, "made up"))

    def program(comm):
        if comm.rank == 0:
            comm.send(np.zeros(4, np.uint8), 1)
            comm.send(np.zeros(2, np.uint8), 1)
        else:
            for size in (4, 2):
                comm.receive(np.empty(size, np.uint8), 0)

    emulate(program, network=network)
    assert [(message.start, message.arrival) for message in network.messages] == [(0.0, 3.0), (2.0, 4.0)]
    assert network.seconds == 4.0


def test_what_was_sent_is_a_copy_and_arguments_are_each_ranks_own():
    def program(comm, x):
        if comm.rank == 0:
            comm.send(x, 1)
            x += 1
            return x
        return comm.receive(x, 0)

    x = np.zeros(3)
    first, second = emulate(program, x)
    assert (first.tolist(), second.tolist(), x.tolist()) == ([1, 1, 1], [0, 0, 0], [0, 0, 0])


def test_the_seed_decides_who_goes_next():
    def order(seed):
        turns = []
        emulate(lambda comm: [turns.append(comm.rank) or comm.barrier() for _ in range(5)], ranks=4, seed=seed)
        return turns

    assert order(3) == order(3)
    assert len({tuple(order(seed)) for seed in range(5)}) > 1


def test_it_works_on_arrays_of_a_gpu():
    with connected() as module:
        results = emulate(lambda comm: comm.all_reduce(module.full(4, comm.rank + 1.0, dtype="float32")), ranks=3)
        assert all(device.to_host(result).tolist() == [6.0] * 4 for result in results)


def test_a_deadlock_names_each_line_that_ranks_wait_in_and_who_returned():
    def program(comm):
        if comm.rank >= 8:
            return
        if comm.rank < 6:
            comm.receive(np.empty(3), comm.rank + 1)
        else:
            comm.barrier()

    with pytest.raises(parallel.DeadlockError) as caught:
        emulate(program, ranks=10)
    _, *lines = str(caught.value).splitlines()
    assert lines[3:5] == ["rank 3 in receive(source=4), there as well", "2 more, there as well"]
    assert lines[5].startswith("rank 6 in barrier(), at line ")
    assert lines[6:] == ["rank 7 in barrier(), there as well", "ranks 8, 9 returned"]


def unmatched(comm):
    if comm.rank == 0:
        comm.send(np.zeros(3), 1)
        comm.send(np.zeros(4), 1)
    else:
        comm.receive(np.empty(3), 0)


def test_an_endless_rank_is_stopped_with_the_run():
    def endless(comm):
        comm.barrier()
        while True:
            time.monotonic()

    before = threading.active_count()
    with pytest.raises(TimeLimitError), time_limit(0.2):
        emulate(endless)
    assert threading.active_count() == before


def test_ranks_that_wait_may_clean_up_before_they_end():
    """An error raised in what they run to clean up would be lost, or that of a callback be reported instead."""
    ended = []

    def program(comm):
        try:
            comm.barrier() if comm.rank else 1 / 0
        finally:
            time.sleep(0.2)
            ended.append(comm.rank)

    with pytest.raises(ZeroDivisionError):
        emulate(program, ranks=3)
    assert sorted(ended) == [0, 1, 2]


@pytest.mark.parametrize(
    ("program", "error", "says"),
    [
        (lambda comm: comm.all_reduce(np.zeros(3 + comm.rank)), MISMATCH, r"all_reduce\(\) with float64 \(3,\)"),
        (lambda comm: comm.all_reduce(np.zeros(3, f"f{4 + 4 * comm.rank}")), MISMATCH, r"float32 \(3,\)"),
        (lambda comm: comm.barrier() if comm.rank else comm.all_gather(np.zeros(2)), MISMATCH, r"calls barrier\(\)"),
        (lambda comm: comm.broadcast(np.zeros(2), comm.rank), MISMATCH, r"broadcast\(root=1\)"),
        (lambda comm: comm.receive(np.zeros(4), 0) if comm.rank else comm.send(SOME, 1), MISMATCH, r"send\(to=1\) wi"),
        (lambda comm: comm.rank and comm.barrier(), DEADLOCK, r"\nrank 0 returned without this barrier: every rank m"),
        (lambda comm: comm.receive(np.empty(1), 0) if comm.rank == 1 else None, DEADLOCK, r"\nrank 0 returned$"),
        (unmatched, parallel.RankError, r"rank 0's send\(to=1\) .*\(4,\) was never received, at line \d+ of unmatched"),
        (lambda comm: comm.send(np.zeros(2), 2), ValueError, "to is 2; expected a rank from 0 to 1"),
        (lambda comm: comm.receive(np.zeros(2), comm.rank), ValueError, "this rank itself"),
        (lambda comm: comm.all_reduce(np.zeros((3, 3))[:, 0]), ValueError, "not contiguous"),
        (lambda comm: comm.prepare_all_reduce([1.0]), TypeError, "x is a list"),
        (lambda comm: comm.all_reduce(np.zeros(2, ">f4")), ValueError, "dtype >f4; .* order of bytes, float32"),
        (lambda comm: comm.all_reduce(np.zeros((1,) * 9)), ValueError, "x has 9 axes; expected at most 8"),
        (lambda comm: comm.all_reduce(np.zeros(2), out=np.zeros(2, ">f8")), ValueError, "out is of dtype >f8"),
        (lambda comm: comm.all_reduce(np.zeros(2), out=np.zeros(3)), ValueError, r"out has shape \(3,\)"),
        (lambda comm: comm.all_reduce(np.zeros(2), out=np.zeros(2, "f4")), TypeError, "out is of dtype float32"),
        (lambda comm: comm.all_reduce(SOME[:4], out=SOME[1:]), ValueError, "out overlaps x"),
        (lambda comm: comm.reduce_scatter(SOME[:4], out=SOME[:2]), ValueError, "out overlaps x"),
        (lambda comm: comm.all_reduce(np.zeros(1), out=np.broadcast_to(0.0, 1)), ValueError, "out is read-only"),
        (lambda comm: comm.receive(np.broadcast_to(0.0, 1), 1 - comm.rank), ValueError, "x is read-only"),
        (lambda comm: comm.reduce_scatter(np.zeros(3)), ValueError, "share evenly"),
        (lambda comm: comm.all_gather(np.zeros(())), ValueError, "no axis"),
    ],
)
def test_what_is_wrong_is_named(program, error, says):
    with pytest.raises(error, match=says):
        emulate(program)


def test_bad_ranks_links_and_networks_are_named():
    with pytest.raises(ValueError, match="ranks is 0; expected at least 1"):
        emulate(lambda comm: None, ranks=0)
    with pytest.raises(ValueError, match="link is 'string'; expected one of NVLink 4"):
        Network(2, "string")
    network = Network(2)
    emulate(lambda comm: None, network=network)
    with pytest.raises(ValueError, match="has carried a run already"):
        emulate(lambda comm: None, network=network)
    with pytest.raises(TypeError, match=r"network is 3; expected a parallel.Network"):
        emulate(lambda comm: None, network=3)


def test_more_than_a_network_holds_is_named(monkeypatch):
    monkeypatch.setattr("unrolled.parallel.network.MOST_BYTES", 2**20)
    with pytest.raises(ValueError, match="more than 1,048,576 bytes on their way or kept"):
        emulate(lambda comm: comm.all_reduce(np.zeros(2**17 - 1)), ranks=2)


def test_a_network_refuses_a_rank_that_it_did_not_let_run():
    network = Network(2)
    rank, outcome, _ = network(-1, Call.START)
    assert outcome == Outcome.GO_ON
    with pytest.raises(ValueError, match="is not the one that runs"):
        network(1 - rank, Call.SEND, rank, np.zeros(1))


WITH_SHAPES = ["all_reduce", "start_all_reduce", "all_gather", "reduce_scatter", "broadcast", "ring"]
STEPS = [*WITH_SHAPES, "barrier", "from_rank_0"]
FAULTS = {
    "raises": (ZeroDivisionError, None),
    "exits": (SystemExit, None),
    "returns": (parallel.DeadlockError, r"rank.* returned"),
    "forgets": (parallel.ParallelError, "ranks disagree|deadlock"),
    "sends another shape": (parallel.ParallelError, "ranks disagree|deadlock"),
}
"""What a rank does, and what is raised then. One that forgets a step meets the others in another one, or in none."""


def do(comm, step, shape):
    """One step of a program that all ranks run."""
    x, right, left = np.ones(shape), (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if step == "ring":
        comm.send(x, right)
        comm.receive(x, left)
    elif step == "from_rank_0":
        for other in range(1, comm.size):
            comm.send(x, other) if comm.rank == 0 else comm.rank == other and comm.receive(x, 0)
    elif step == "start_all_reduce":
        comm.start_all_reduce(x).wait()
    elif step == "reduce_scatter":
        comm.reduce_scatter(np.ones((comm.size, *shape)))
    elif step == "barrier":
        comm.barrier()
    else:
        getattr(comm, step)(x)


def program(comm, steps, who, when, fault):
    """Do the steps; at one of them a rank fails."""
    for number, step in enumerate(steps):
        fails = (comm.rank, number) == (who, when)
        if fails and fault == "raises":
            raise ZeroDivisionError
        if fails and fault == "exits":
            sys.exit(3)
        if fails and fault == "returns":
            return None
        if not (fails and fault == "forgets"):
            do(comm, step, (3,) if fails and fault == "sends another shape" else (2,))
    return comm.rank


@pytest.mark.parametrize("fault", FAULTS)
@given(st.integers(2, 5), st.lists(st.sampled_from(STEPS), min_size=1, max_size=12), st.data())
def test_a_rank_that_fails_at_any_moment_ends_all_of_them(fault, ranks, steps, data):
    who, when = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, len(steps) - 1))
    if fault == "sends another shape":
        steps[when] = data.draw(st.sampled_from(WITH_SHAPES))
    elif fault == "forgets" and who > 0 and steps[when] == "from_rank_0":
        steps[when] = "ring"  # a message that nobody takes is no error
    steps += ["barrier", "all_gather"]  # as at the end of training
    seed, before = data.draw(st.integers(0, 99)), threading.active_count()
    error, says = FAULTS[fault]
    with time_limit(120):
        assert emulate(program, steps, -1, 0, "", ranks=ranks, seed=seed) == list(range(ranks))
        with pytest.raises(error, match=says):
            emulate(program, steps, who, when, fault, ranks=ranks, seed=seed)
    assert threading.active_count() == before
