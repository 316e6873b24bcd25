"""The speed of a program of ranks where it cannot be measured: too few cores, ranks that wait for each other."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled import checks
from unrolled.checks import ranked
from unrolled.checks.run import SPEED_LIMIT
from unrolled.parallel import DeadlockError
from unrolled.parallel.team import missing

SPEC = checks.all_specs()["data_parallel_step"]


def crossed(comm, weight, x, labels):
    if comm.rank:
        comm.receive(np.empty(1), 0)
    comm.receive(np.empty(1), 1)


def test_one_core_leaves_the_speed_open_and_says_so(monkeypatch):
    monkeypatch.setattr("unrolled.parallel.team.cores", lambda: 1)
    said: list[str] = []
    verdict = ranked.race(SPEC.reference, SPEC, 1, said.append)
    assert verdict.outcome == "inconclusive"
    assert verdict.excused
    assert "2 ranks need 2 cores, and here is 1" in str(verdict)
    assert said == []


@pytest.mark.skipif(bool(missing(2)), reason=missing(2) or "two ranks run here")
def test_a_deadlock_is_named_with_both_lines(monkeypatch):
    """Within the limit of a check: on the emulation these ranks would be found out at once."""
    assert ranked.TIMEOUT < SPEED_LIMIT / 2
    assert ranked.MOST_SECONDS == SPEED_LIMIT
    monkeypatch.setattr(ranked, "TIMEOUT", 2.0)
    said: list[str] = []
    with pytest.raises(DeadlockError) as caught:
        ranked.race(crossed, SPEC, 1, said.append)
    line = crossed.__code__.co_firstlineno
    for rank, place in ((1, line + 2), (0, line + 3)):
        waits = f"rank {rank} waits in receive from rank {1 - rank} of float64 (1,) in test_checks_ranked.py:{place}"
        assert waits in str(caught.value)
    assert said == ["Measuring speed on 2 ranks: 6 s as a rule, 30 s at most."]
