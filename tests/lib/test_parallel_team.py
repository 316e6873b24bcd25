"""Ranks that stay: what they return, and that a failure and an end leave no process."""

import contextlib
import os
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from unrolled import parallel
from unrolled.parallel.team import Team, alone, missing

pytest.importorskip("mpi4py", reason="MPI is not installed: pip install -e '.[mpi]'")
pytest.importorskip("cloudpickle", reason="cloudpickle is not installed: pip install -e '.[mpi]'")

COUNT, SLOT, ROOM = 5, 2 * 3 * 8, 4096


def share(inputs, rank, ranks):
    mine = parallel.shard(len(inputs["x"]), rank, ranks)
    return (inputs["x"][mine],)


def summed(comm, x):
    return comm.all_reduce(x.sum(axis=0)) + 100 * comm.rank


def drawn():
    rng = np.random.default_rng(0)
    return [{"x": rng.standard_normal((7, 3))} for _ in range(COUNT)]


@contextlib.contextmanager
def team_of(function, ranks=2):
    """A team that is ready for the drawn inputs, and its results, by number and rank."""
    with Team(function, share, ranks, size=ROOM + COUNT * SLOT) as team:
        team.prepare([team.put(each) for each in drawn()], ROOM, SLOT)
        yield team, team.bytes[ROOM : ROOM + COUNT * SLOT].view("f8").reshape(COUNT, 2, 3)


def test_each_rank_leaves_its_result_for_each_input_and_no_other_call_is_made():
    with team_of(summed) as (team, results):
        team.run(1, first=3)
        assert [bool(found.any()) for found in results] == [False, False, False, True, False]
        team.run(2)
        team.run(4, first=2)  # the last one is number 0 again
        for each, found in zip(drawn(), results, strict=True):
            for rank in range(2):
                np.testing.assert_allclose(found[rank], each["x"].sum(axis=0) + 100 * rank)
        with pytest.raises(ValueError, match="inputs of more than the 4,336 bytes of the shared file"):
            team.put({"x": np.zeros(1000)})


def test_a_function_that_knows_nothing_of_ranks_runs_on_one():
    with team_of(alone(lambda x: x.max(axis=0)), 1) as (team, results):
        team.run(1)
        np.testing.assert_array_equal(results[0, 0], drawn()[0]["x"].max(axis=0))


def test_what_a_rank_raises_is_raised_here():
    with (
        team_of(lambda comm, x: 1 // comm.rank) as (team, _),
        pytest.raises(parallel.RankError, match="rank 0 raised ZeroDivisionError"),
    ):
        team.run(1)


def test_an_endless_rank_is_ended_with_the_team(tmp_path):
    def endless(comm, x):
        Path(tmp_path, f"{comm.rank} is {os.getpid()}").touch()
        while True:
            time.sleep(60)

    with team_of(endless) as (team, _):
        for line in team._lines:
            line.sendall(b'{"calls": 1, "first": 0}\n')
        while len(numbers := [path.name.split()[-1] for path in tmp_path.iterdir()]) < 2:
            time.sleep(0.01)
    assert not team._thread.is_alive()
    while any(map(lives, numbers)):  # they end by themselves, once nobody hears them
        time.sleep(0.01)


def lives(number):
    """Whether the process of this number is there, and more than a zombie."""
    try:
        stat = Path("/proc", number, "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_too_few_cores_and_no_mpi_are_named(monkeypatch):
    assert missing(2, 1) == "2 ranks need 2 cores, and here is 1"
    assert missing(4, 3) == "4 ranks need 4 cores, and here are 3"
    assert missing(2, 2) == ""

    no_launcher = mock.Mock(side_effect=parallel.NoEngineError("no mpiexec"))
    monkeypatch.setattr("unrolled.parallel.team.launcher", no_launcher)
    assert missing(2, 2) == "no mpiexec"
