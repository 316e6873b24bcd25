"""The speed of a program of ranks, by teams of paper: too few cores, ranks that wait for each other, who is to blame.

Processes and what they say of a deadlock are tested in `test_parallel_team.py` and `test_parallel_mpi.py`.
"""

from collections import Counter
from contextlib import contextmanager
from functools import partial
from unittest.mock import MagicMock

import numpy as np
import pytest

from unrolled import checks, timing
from unrolled.checks import ranked
from unrolled.checks.limits import TimeLimitError, UnfairError
from unrolled.checks.run import SPEED_LIMIT
from unrolled.checks.words import SLOW
from unrolled.parallel import DeadlockError, RankError
from unrolled.timing import Pair, TimedBlock, where_able
from unrolled.timing.verdict import conclude

SPEC = checks.all_specs()["data_parallel_step"]
BASELINE = 0.02  # seconds of a call


def sleeping(comm, weight, x, labels):
    """A second a call."""


def endless(comm, weight, x, labels):
    """What never returns."""


def crossed(comm, weight, x, labels):
    """Ranks that wait for each other."""


class _Anywhere:
    """The bytes of a shared file: the same results, wherever they are looked for."""

    def __init__(self, results):
        self.results = results

    def __getitem__(self, place):
        return self.results.reshape(-1).view(np.uint8)


class Paper:
    """Teams whose calls take seconds of a clock of paper."""

    def __init__(self) -> None:
        self.now = 0.0
        self.missing = ""
        self.start_seconds = 0.5
        self.reference_seconds = BASELINE / 1.9
        self.starts = {"baseline", "reference", "candidate"}
        """Which of the teams the machine can start."""
        self.results = np.ones((2, 2), np.float32)
        self.started: list[str] = []
        self.spent: Counter[str] = Counter()

    def perf_counter(self) -> float:
        return self.now

    @contextmanager
    def time_limit(self, seconds):
        end = self.now + seconds
        yield
        if self.now > end:
            raise TimeLimitError

    def team(self, program, share, ranks, **named):
        who = "baseline" if ranks == 1 else "reference" if program is SPEC.reference else "candidate"
        self.now += self.start_seconds
        if who not in self.starts:
            raise RankError("rank 1 is not there after 20 s")
        self.started.append(who)
        slow = {sleeping: 1.0, endless: 1e9}
        seconds = BASELINE if who == "baseline" else slow.get(program, self.reference_seconds)

        def run(calls, first=0):
            if program is crossed:
                raise DeadlockError("no progress for 12 s: rank 0 waits in receive; rank 1 waits in receive")
            self.now += calls * seconds
            self.spent[who] += calls * seconds
            self.results[1] = program is not wrong_on_rank_1
            return calls * seconds * ranks

        team = MagicMock(shared=None, put=lambda inputs: inputs, run=run)
        team.prepare = lambda inputs, results, slot: setattr(team, "bytes", _Anywhere(self.results))
        team.__enter__.return_value = team
        return team


@pytest.fixture
def paper(monkeypatch):
    made = Paper()
    monkeypatch.setattr(ranked, "Team", made.team)
    monkeypatch.setattr(ranked, "time", made)
    monkeypatch.setattr(ranked, "time_limit", made.time_limit)
    monkeypatch.setattr(ranked, "missing", lambda ranks: made.missing.format(ranks))
    monkeypatch.setattr(type(SPEC), "timed_result", lambda spec, inputs: np.ones((2, 2), np.float32))
    monkeypatch.setattr(timing, "compare_blocks", partial(timing.compare_blocks, clock=made.perf_counter))
    return made


def raced(function, say=None, limit=SPEED_LIMIT):
    return ranked.race(function, SPEC, 1, say, limit)


ONE_CORE, BUSY = "{0} ranks need {0} cores, and here is 1", "too busy to start the ranks"


@pytest.mark.parametrize(
    ("machine", "function", "says"),
    [
        ({"start_seconds": 1.1 * ranked.START_LIMIT}, endless, BUSY),
        ({"starts": {"reference", "candidate"}}, endless, BUSY),
        ({"starts": {"baseline", "candidate"}}, sleeping, ""),
    ],
    ids=["slow starts", "no start", "no start of the model"],
)
def test_a_machine_that_cannot_show_the_speed_leaves_it_open(paper, machine, function, says):
    """Also for slow code, which it cannot tell from fast code. Who did start is not to blame."""
    vars(paper).update(machine)
    verdict = raced(function)
    assert (verdict.outcome, verdict.excused) == ("inconclusive", False)
    assert says in str(verdict)


def test_a_machine_without_cores_for_the_ranks_defers_the_speed(paper):
    paper.missing = ONE_CORE
    report = checks.run("data_parallel_step", SPEC, into_zeros)
    assert [part.verdict for part in report.parts] == ["pass", "deferred"]
    assert report.passed
    assert ONE_CORE.format(2) in str(report)
    assert paper.started == []


def wrong_on_rank_1(comm, weight, x, labels):
    """Right where ranks are emulated."""


def test_each_ranks_result_is_compared_where_it_is_timed(paper):
    """It was looked at on the emulation alone: zeros under MPI earned 3 of 3."""
    with pytest.raises(UnfairError, match="right on emulated ranks, but wrong on rank 1 of MPI's: shape"):
        raced(wrong_on_rank_1)


def test_a_fast_program_passes_and_needs_no_model(paper):
    printed: list[str] = []
    assert raced(lambda comm, weight, x, labels: None, printed.append).outcome == "pass"
    assert printed == ["Measuring speed on 2 ranks: 3 to 6 s on a quiet machine, about 20 s on a busy one."]
    assert paper.started == ["baseline", "candidate"]


def test_a_deadlock_is_named_before_the_limit_of_a_check(paper):
    """On the emulation these ranks would be found out at once."""
    assert ranked.TIMEOUT < SPEED_LIMIT / 2
    with pytest.raises(DeadlockError, match="rank 0 waits in receive; rank 1 waits in receive"):
        raced(crossed)


def test_a_function_that_never_ends_is_stopped_at_the_limit(paper):
    with pytest.raises(TimeLimitError):
        raced(endless)


def test_time_that_the_function_did_not_take_is_not_held_against_it(paper):
    """Processes that start slowly and a slow baseline cost it nothing: only its own blocks count."""
    paper.start_seconds = 0.9 * ranked.START_LIMIT
    raced(lambda comm, weight, x, labels: None)
    own = paper.spent["candidate"]
    assert raced(lambda comm, weight, x, labels: None, limit=1.01 * own).outcome == "pass"
    with pytest.raises(TimeLimitError):
        raced(lambda comm, weight, x, labels: None, limit=0.9 * own)


@pytest.mark.parametrize("reference", [BASELINE / 1.9, BASELINE * 2])
def test_a_function_that_sleeps_fails_whatever_the_machine_does(paper, reference):
    """Too little time for the pairs of a first look is no excuse: the reference has as little."""
    paper.reference_seconds = reference
    verdict = raced(sleeping)
    assert len(verdict.pairs) < 8
    assert verdict.outcome == "fail", str(verdict)
    assert not verdict.excused
    assert paper.started == ["baseline", "candidate", "reference"]


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


def test_a_machine_that_cannot_show_the_speed_leaves_the_point_open_and_gives_no_advice(monkeypatch):
    report = reported(where_able(measured(0.6), measured(0.5)), monkeypatch)
    assert report.points == report.max_points - 1
    assert report.passed
    assert not report.settled
    _, *words = report.findings[-1].lines
    assert words == [
        "0.6 times as fast as the baseline (0.6 to 0.6); at least 1.6 times was asked: inconclusive. "
        "The course's own answer is 0.5 times as fast here, so this machine cannot show it.",
        SLOW,
    ]


def test_who_is_slower_than_the_courses_own_answer_reads_the_advice(monkeypatch):
    report = reported(where_able(measured(0.6), measured(1.9)), monkeypatch)
    assert not report.passed
    assert SPEC.speed.advice in report.findings[-1].lines
