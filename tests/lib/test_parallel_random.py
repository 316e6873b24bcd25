"""Emulated ranks that fail at a random moment of a random program end all ranks with a named error."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled import parallel
from unrolled.checks.limits import time_limit
from unrolled.parallel import emulate

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
@settings(max_examples=60, deadline=None)
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
