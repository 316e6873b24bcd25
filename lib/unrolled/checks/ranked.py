"""The speed of a program of ranks, timed here: two processes beside one, by the rule and the clock of all speeds."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from contextlib import nullcontext

from unrolled import timing
from unrolled.parallel.errors import ParallelError
from unrolled.parallel.team import TIMEOUT, Team, alone, missing

from .compare import mismatch
from .limits import UnableError, UnfairError, time_limit
from .spec import Function, Spec

QUIET, BUSY = "3 to 6 s", "about 20 s"  # what a measurement takes, by how busy the machine is
START_LIMIT = 8.0  # seconds to start the baseline's process and to copy the inputs to it; 1 s is usual
COMPARE_LIMIT = 6.0  # seconds of a comparison; a quiet machine decides within 1 to 4
SHORTEST_LIMIT = 0.01  # seconds: a timer set to none would never ring
TOO_BUSY = "the machine is too busy to start the ranks: try again when it is quieter"


def race(
    function: Function, spec: Spec, seed: int, announce: Callable[[str], None] | None, limit: float = math.inf
) -> timing.Verdict:
    """Return the verdict on a program of ranks; open where this machine cannot show that speed, with the reason.

    Whether the machine can is asked of what no learner wrote: how fast the baseline starts, and how fast the reference
    is on as many ranks. Raises UnableError where so many cannot run, UnfairError for a wrong result, TimeLimitError
    once the function's own blocks took `limit` seconds: neither processes that start nor the baseline count. Raises
    RankError for what a rank raises, and what else ParallelError has for what goes wrong between ranks.
    """
    speed = spec.speed
    assert speed is not None
    share = speed.share
    assert share is not None
    if why := missing(speed.ranks):
        raise UnableError(why)
    if announce:
        announce(f"Measuring speed on {speed.ranks} ranks: {QUIET} on a quiet machine, {BUSY} on a busy one.")
    inputs = speed.draw_inputs(seed)
    slot, expected = spec.timed_result(inputs[0]).nbytes, functools.cache(lambda n: spec.timed_result(inputs[n]))
    room = sum(array.nbytes for array in inputs[0].values()) + 2**12  # which alignment may take
    start = time.perf_counter()
    try:
        one = Team(alone(speed.baseline), share, 1, size=len(inputs) * (room + slot), timeout=TIMEOUT)
    except ParallelError:
        return timing.untimed(TOO_BUSY, speed.at_least, seed)
    with one:
        inputs, results = [one.put(given) for given in inputs], len(inputs) * room
        one.prepare(inputs, results, slot)
        if time.perf_counter() - start > START_LIMIT:
            return timing.untimed(TOO_BUSY, speed.at_least, seed)

        def compared(number: int) -> None:
            """Compare each rank's result of a call, as it lies in the file, with what it should be."""
            found = one.bytes[results + number * slot :][:slot]
            for rank, wanted in enumerate(expected(number)):
                got = found[rank * wanted.nbytes :][: wanted.nbytes].view(wanted.dtype).reshape(wanted.shape)
                if wrong := mismatch(got, wanted, spec.tolerance):
                    raise UnfairError(f"right on emulated ranks, but wrong on rank {rank} of MPI's: {wrong.lines[0]}")

        def against_one(program: Function, limit: float) -> timing.Verdict:
            with Team(program, share, speed.ranks, shared=one.shared, timeout=TIMEOUT) as team:
                team.prepare(inputs, results, slot)
                candidate = _timer(team, speed.ranks, len(inputs), compared, limit)
                baseline = _timer(one, 1, len(inputs))
                return timing.compare_blocks(
                    candidate,
                    baseline,
                    speed.at_least,
                    seed=seed,
                    time_limit=COMPARE_LIMIT,
                    cpu_witness=("pass",),
                    threads="1 thread",
                )

        verdict = against_one(function, limit)
        if verdict.outcome == "pass":
            return verdict
        try:
            return timing.where_able(verdict, against_one(spec.reference, math.inf))
        except ParallelError:
            return timing.untimed(TOO_BUSY, speed.at_least, seed)


def _timer(
    team: Team, ranks: int, count: int, compared: Callable[[int], None] | None = None, limit: float = math.inf
) -> Callable[[int], timing.BlockTime]:
    """A timer of blocks of the team's calls, which goes through all inputs in turn. All blocks may take `limit` s.

    CPU time is that of a rank on average. The number of each block's last inputs goes to `compared`.
    """
    place, left = 0, limit

    def block(calls: int) -> timing.BlockTime:
        nonlocal place, left
        with nullcontext() if left == math.inf else time_limit(max(left, SHORTEST_LIMIT)):
            start = time.perf_counter()
            cpu = team.run(calls, place)
            wall = time.perf_counter() - start
        if compared is not None:
            compared((place + calls - 1) % count)
        place, left = (place + calls) % count, left - wall
        return timing.BlockTime(wall, cpu / ranks)

    return block
