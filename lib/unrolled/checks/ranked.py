"""The speed of a program of ranks, timed here: two processes beside one, by the rule and the clock of all speeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from unrolled import timing
from unrolled.parallel.team import TIMEOUT, Team, alone, missing

from .spec import Function, Inputs, Spec

USUAL_SECONDS = 6  # to start three processes and to compare; a second comparison takes them where the first is no pass
MOST_SECONDS = 30  # `run.SPEED_LIMIT`, after which the check ends


def race(function: Function, spec: Spec, seed: int, announce: Callable[[str], None] | None) -> timing.Verdict:
    """Return the verdict on a program of ranks; open where this machine cannot show that speed, with the reason.

    Raises RankError for what a rank raises, and what else ParallelError has for what goes wrong between ranks.
    """
    speed = spec.speed
    assert speed is not None
    if why := missing(speed.ranks):
        return timing.untimed(why, speed.at_least, seed)
    inputs = speed.draw_inputs(seed)
    if announce:
        announce(f"Measuring speed on {speed.ranks} ranks: {USUAL_SECONDS} s as a rule, {MOST_SECONDS} s at most.")
    verdict = _against_one(function, spec, inputs, seed)
    if verdict.outcome == "pass":
        return verdict
    return timing.where_able(verdict, _against_one(spec.reference, spec, inputs, seed))


def _against_one(function: Function, spec: Spec, inputs: Sequence[Inputs], seed: int) -> timing.Verdict:
    """The verdict on ranks that run the function, against one rank that has all samples."""
    speed = spec.speed
    assert speed is not None
    assert speed.share is not None
    slot = spec.timed_result(inputs[0]).nbytes
    room = sum(array.nbytes for array in inputs[0].values()) + 2**12  # which alignment may take
    size = len(inputs) * (room + slot)
    with (
        Team(function, speed.share, speed.ranks, size=size, timeout=TIMEOUT) as team,
        Team(alone(speed.baseline), speed.share, 1, size=size, timeout=TIMEOUT) as one,
    ):
        for each in (team, one):
            each.prepare([each.put(given) for given in inputs], len(inputs) * room, slot)
        candidate, baseline = (_timer(each, len(inputs)) for each in (team, one))
        return timing.compare_blocks(candidate, baseline, speed.at_least, seed=seed, cpu_witness=(), threads="1 thread")


def _timer(team: Team, count: int) -> Callable[[int], timing.BlockTime]:
    """A timer of blocks of the team's calls, which goes through all inputs in turn."""
    place = 0

    def block(calls: int) -> timing.BlockTime:
        nonlocal place
        start = time.perf_counter()
        team.run(calls, place)
        wall = time.perf_counter() - start
        place = (place + calls) % count
        return timing.BlockTime(wall)

    return block
