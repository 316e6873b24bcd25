"""The speed of a program of ranks where it cannot be measured: too few cores, ranks that wait for each other."""

from __future__ import annotations

import time

import numpy as np
import pytest

from unrolled import checks
from unrolled.checks import ranked
from unrolled.checks.limits import TimeLimitError
from unrolled.checks.run import SPEED_LIMIT
from unrolled.parallel import DeadlockError, RankError
from unrolled.parallel.team import Team, missing
from unrolled.timing import Pair, TimedBlock, where_able
from unrolled.timing.verdict import conclude

two_cores = pytest.mark.skipif(bool(missing(2)), reason=missing(2) or "two ranks run here")
SPEC = checks.all_specs()["data_parallel_step"]


def crossed(comm, weight, x, labels):
    if comm.rank:
        comm.receive(np.empty(1), 0)
    comm.receive(np.empty(1), 1)


def asleep(comm, weight, x, labels):
    time.sleep(1)
    return SPEC.reference(comm, weight, x, labels)


def endless(comm, weight, x, labels):
    while True:
        time.sleep(0.1)


def raced(function, say=None, limit=SPEED_LIMIT):
    return ranked.race(function, SPEC, 1, say, limit)


def test_one_core_leaves_the_speed_open_and_says_so(monkeypatch):
    monkeypatch.setattr("unrolled.parallel.team.cores", lambda: 1)
    said: list[str] = []
    verdict = raced(SPEC.reference, said.append)
    assert verdict.outcome == "inconclusive"
    assert verdict.excused
    assert "2 ranks need 2 cores, and here is 1" in str(verdict)
    assert said == []


@two_cores
def test_a_deadlock_is_named_with_both_lines(monkeypatch):
    """Within the limit of a check: on the emulation these ranks would be found out at once."""
    assert ranked.TIMEOUT < SPEED_LIMIT / 2
    monkeypatch.setattr(ranked, "TIMEOUT", 2.0)
    said: list[str] = []
    with pytest.raises(DeadlockError) as caught:
        raced(crossed, said.append)
    line = crossed.__code__.co_firstlineno
    for rank, place in ((1, line + 2), (0, line + 3)):
        waits = f"rank {rank} waits in receive from rank {1 - rank} of float64 (1,) in test_checks_ranked.py:{place}"
        assert waits in str(caught.value)
    assert said == ["Measuring speed on 2 ranks: 3 to 6 s on a quiet machine, about 20 s on a busy one."]


@two_cores
def test_a_function_that_never_ends_is_stopped_at_the_limit():
    with pytest.raises(TimeLimitError):
        raced(endless, limit=1.0)


@two_cores
def test_time_that_the_function_did_not_take_is_not_held_against_it(monkeypatch):
    """Processes that start slowly and a slow baseline cost it nothing: only its own blocks count."""
    start = Team.__init__

    def slow_start(self, *arguments, **named):
        time.sleep(2)
        start(self, *arguments, **named)

    monkeypatch.setattr(Team, "__init__", slow_start)
    monkeypatch.setattr(ranked, "COMPARE_LIMIT", 0.5)
    assert raced(SPEC.reference, limit=4.0).outcome != "fail"


@two_cores
@pytest.mark.parametrize("late", ["slow", "never"])
def test_a_machine_too_busy_to_start_ranks_leaves_the_speed_open(monkeypatch, late):
    """Also for slow code, which it cannot tell from fast code; what is asked is the baseline alone."""

    def refuses(*arguments, **named):
        raise RankError("rank 0 is not there after 20 s")

    if late == "never":
        monkeypatch.setattr(ranked, "Team", refuses)
    monkeypatch.setattr(ranked, "START_LIMIT", 0.0)
    verdict = raced(endless)
    assert verdict.outcome == "inconclusive"
    assert verdict.excused
    assert "too busy to start the ranks" in str(verdict)


@two_cores
def test_a_model_that_does_not_start_leaves_the_speed_open(monkeypatch):
    """Who did start is not to blame, whatever the first comparison found."""
    start = Team.__init__

    def no_model(self, program, *arguments, **named):
        if program is SPEC.reference:
            raise RankError("rank 1 is not there after 20 s")
        start(self, program, *arguments, **named)

    monkeypatch.setattr(Team, "__init__", no_model)
    assert raced(asleep).excused


@two_cores
def test_a_function_that_sleeps_fails_whatever_the_machine_does(monkeypatch):
    """Too little time for the pairs of a first look is no excuse: the reference has as little."""
    monkeypatch.setattr(ranked, "COMPARE_LIMIT", 3.0)
    verdict = raced(asleep)
    assert verdict.outcome == "fail", str(verdict)
    assert not verdict.excused


def reported(verdict, monkeypatch):
    monkeypatch.setattr(ranked, "race", lambda *arguments: verdict)
    return checks.run("data_parallel_step", SPEC, into_zeros)


def into_zeros(comm, weight, x, labels):
    total = np.zeros(weight.size + 1, np.float32)
    if len(x):
        scores = x @ weight
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        odds[np.arange(len(x)), labels] -= 1
        total[:-1] = (x.T @ odds).ravel()
    total[-1] = len(x)
    total = comm.all_reduce(total)
    return (total[:-1] / total[-1]).reshape(weight.shape)


def measured(ratio):
    same = TimedBlock(1, 1.0, 1.0)
    return conclude([Pair(same, TimedBlock(1, 1 / ratio, 1 / ratio))] * 8, [Pair(same, same)] * 8, 1.6)


def test_a_machine_that_cannot_show_the_speed_gives_the_points_and_no_advice(monkeypatch):
    report = reported(where_able(measured(0.6), measured(0.5)), monkeypatch)
    assert report.points == report.max_points
    assert report.passed
    _, *said = report.findings[-1].lines
    assert said == [
        "0.6 times as fast as the baseline (0.6 to 0.6); at least 1.6 times was asked: inconclusive. "
        "The course's own answer is 0.5 times as fast here, so this machine cannot show it.",
        "the machine was the cause, and you have the points",
    ]


def test_who_is_slower_than_the_courses_own_answer_reads_the_advice(monkeypatch):
    report = reported(where_able(measured(0.6), measured(1.9)), monkeypatch)
    assert not report.passed
    assert report.findings[-1].lines[-1] == SPEC.speed.advice
