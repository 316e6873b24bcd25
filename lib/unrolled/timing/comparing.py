"""Compare the speed of a candidate with that of a baseline, timed on the same inputs in the same run."""

from __future__ import annotations

import math
import random
import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unrolled.timing import blocks, rule
from unrolled.timing.blocks import MIN_BLOCK, BlockTimer, Inputs, WarmUp, blas_threads, block_calls, block_timer
from unrolled.timing.verdict import Pair, TimedBlock, Verdict, conclude

MIN_INPUTS = 16
USUAL_SECONDS, TIME_LIMIT = 3.0, 12.0
PROGRESS = 2.0  # seconds between two lines that say how it goes
CONTROL_BLOCK = 0.05  # seconds; the control need not take as long as the blocks of a slow candidate
RESERVE = 1.5  # of the control's expected time is kept back for it
Announce = Callable[[str], None]


def compare(
    candidate: Callable[..., Any],
    baseline: Callable[..., Any],
    *,
    inputs: Sequence[Inputs] | Callable[[np.random.Generator], Inputs],
    at_least: float,
    seed: int | None = None,
    announce: Announce | None = None,
) -> Verdict:
    """Return a verdict on whether `candidate` is at least `at_least` times as fast as `baseline`.

    Check first that `candidate` is correct. Raises ValueError for fewer than 16 inputs, and what the functions raise.

    `inputs`: at least 16 dictionaries of keyword arguments, or a function that makes one from a NumPy random generator;
    both sides go through the same ones. `seed` decides the order of the pairs (and the inputs that are made). One BLAS
    thread times. Waited for is the device of the arrays among the inputs and the baseline's result. `announce` is told,
    before it starts, how long it will take: 12 seconds at most, unless a single call takes longer. On the simulated GPU
    all times are modelled, and the verdict says so; these seconds stay real ones.
    """
    seed = secrets.randbits(32) if seed is None else seed
    if callable(inputs):
        rng = np.random.default_rng(seed)
        inputs = [inputs(rng) for _ in range(MIN_INPUTS)]
    elif len(inputs) < MIN_INPUTS:
        raise ValueError(f"inputs has {len(inputs)} dictionaries; expected at least {MIN_INPUTS} fresh ones")
    if announce:
        announce(f"Measuring speed: less than a second as a rule, {TIME_LIMIT:.0f} s at most.")
    with blas_threads(1) as threads_in_words:
        module = blocks.device_module(inputs[0], baseline(**inputs[0]))
        modelled = blocks.in_words(module)
        verdict = compare_blocks(
            block_timer(candidate, inputs, module),
            block_timer(baseline, inputs, module),
            at_least,
            seed=seed,
            announce=announce,
            warm=blocks.warm_up_on(module),
            cpu_witness=("pass",) if module is np else (),
            shortest=blocks.MODELLED_BLOCK if modelled else MIN_BLOCK,
        )
        return replace(verdict, threads=threads_in_words(), device=modelled)


def compare_blocks(
    candidate: BlockTimer,
    baseline: BlockTimer,
    at_least: float,
    *,
    seed: int | None = None,
    time_limit: float = TIME_LIMIT,
    announce: Announce | None = None,
    threads: str = "",
    warm: WarmUp = blocks.ON_HOST,
    cpu_witness: Sequence[rule.Outcome] = ("pass",),
    shortest: float = MIN_BLOCK,
    clock: Callable[[], float] = time.perf_counter,
    quieten: Callable[[], object] | None = None,
) -> Verdict:
    """Apply the rule of `compare` to block timers, `(calls) -> BlockTime(wall, cpu)` in seconds, wherever they time.

    `threads` says in words what held while they ran. `cpu_witness`: the outcomes that CPU time may decide where the
    machine is noisy; none where it says nothing, as on a GPU; "fail" only where one core is the rule.
    No block is planned for less than `shortest` seconds: more where a block costs more to start. `quieten` has the
    machine for this comparison alone from then on. It is called unless the first pairs are a clear pass, which other
    work cannot make; they are forgotten then, and neither they nor the wait count towards `time_limit`.
    Returns the verdict. Raises ValueError if `at_least` is not positive.
    """
    if not at_least > 0:
        raise ValueError(f"at_least is {at_least}; expected a positive factor")
    start = clock()
    seed = secrets.randbits(32) if seed is None else seed
    by_cpu = "pass" in cpu_witness
    race = _Race(candidate, baseline, random.Random(seed), clock, time_limit, shortest, by_cpu, announce)
    enough = min(shortest, MIN_BLOCK) / 2  # to plan blocks by
    race.baseline_seconds = blocks.warm_up(baseline, warm, time_limit / 6, enough)
    race.candidate_seconds = blocks.warm_up(candidate, warm, time_limit / 6, enough)
    if announce and clock() + race.expected(at_least) > race.usual_end:
        announce(f"One call is slow here: this takes about {race.expected(at_least):.0f} s.")
    pairs = race.first_pairs(at_least, shortest if quieten is None else min(shortest, MIN_BLOCK))
    if quieten is not None and not rule.is_clear(_ratios(pairs), at_least):
        quieten()
        race.begin()
        pairs = []
    race.add_pairs(pairs, at_least)
    control = [] if rule.decide(_ratios(pairs), at_least) == "pass" else race.control()
    took = clock() - start
    return conclude(pairs, control, at_least, threads=threads, seconds=took, seed=seed, cpu_witness=cpu_witness)


@dataclass
class _Race:
    """Two block timers, what is known of their speed, and the time that is left."""

    candidate: BlockTimer
    baseline: BlockTimer
    rng: random.Random
    clock: Callable[[], float]
    time_limit: float
    shortest: float
    by_cpu: bool  # whether CPU time may let the candidate pass
    announce: Announce | None = None
    baseline_seconds: float = 0.0  # per call
    candidate_seconds: float = 0.0

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count the time from here."""
        now = self.clock()
        self.usual_end, self.deadline, self._progress = now + USUAL_SECONDS, now + self.time_limit, now + PROGRESS

    def first_pairs(self, at_least: float, shortest: float) -> list[Pair]:
        """Pairs until they are a clear pass, or cannot be any more. Blocks may be short where little cannot decide."""
        pairs: list[Pair] = []
        while rule.may_be_clear(_ratios(pairs), at_least) and not rule.is_clear(_ratios(pairs), at_least):
            if pairs and self._out_of_time(pairs, at_least):
                break
            self._add(pairs, block_calls(self.baseline_seconds, self.candidate_seconds, shortest))
        return pairs

    def add_pairs(self, pairs: list[Pair], at_least: float) -> None:
        """Add pairs until the rule decides, no look is left, or the time runs out: so that there is at least one."""
        for look in rule.LOOKS:
            calls = self._calls()
            while rule.decide(_ratios(pairs), at_least) == "inconclusive" and len(pairs) < look:
                if pairs and self._out_of_time(pairs, at_least):
                    return
                self._add(pairs, calls)

    def _add(self, pairs: list[Pair], calls: tuple[int, int]) -> None:
        pairs.append(self._pair(self.baseline, self.candidate, calls))
        self.baseline_seconds = _seconds_per_call([pair.baseline for pair in pairs])
        self.candidate_seconds = _seconds_per_call([pair.candidate for pair in pairs])
        if self.announce is not None and (now := self.clock()) >= self._progress:
            self._progress = now + PROGRESS
            so_far = statistics.median(_ratios(pairs))
            self.announce(f"Measuring speed: {so_far:.2g} times after {len(pairs)} of {rule.LOOKS[-1]} pairs at most.")

    def _out_of_time(self, pairs: Sequence[Pair], at_least: float) -> bool:
        """Whether another pair, and a control if one may be needed, would not fit; or 3 s went on a hopeless one."""
        ratios, now = _ratios(pairs), self.clock()
        if len(pairs) >= rule.HOPELESS_PAIRS and now > self.usual_end:
            by_cpu = [pair.cpu_ratio for pair in pairs if self.by_cpu and not math.isnan(pair.cpu_ratio)]
            if rule.is_hopeless([*ratios, *by_cpu], at_least):
                return True
        reserve = 0.0 if min(ratios) >= at_least else RESERVE * self._control_seconds()
        return now + pairs[-1].baseline.wall + pairs[-1].candidate.wall + reserve > self.deadline

    def control(self) -> list[Pair]:
        """The baseline against itself. It may overrun the limit, but by 2 s at most: then it is cut short."""
        calls = self._control_calls()
        control: list[Pair] = []
        end = max(self.deadline, self.clock() + min(2 * self._control_seconds(), 2.0))
        while len(control) < rule.CONTROL_PAIRS and self.clock() < end:
            control.append(self._pair(self.baseline, self.baseline, (calls, calls)))
        return control

    def expected(self, at_least: float) -> float:
        """Seconds that a clear fail will take from here."""
        calls, count = self._calls(), rule.LOOKS[0]
        pair = calls[0] * self.baseline_seconds + calls[1] * self.candidate_seconds
        if rule.is_hopeless([self.baseline_seconds / self.candidate_seconds] * rule.HOPELESS_PAIRS, at_least):
            count = min(count, max(rule.HOPELESS_PAIRS, math.ceil((self.usual_end - self.clock()) / pair)))
        return min(count * pair + self._control_seconds(), max(pair, self.deadline - self.clock()))

    def _pair(self, baseline: BlockTimer, candidate: BlockTimer, calls: tuple[int, int]) -> Pair:
        if self.rng.random() < 0.5:
            first = TimedBlock(calls[0], *baseline(calls[0]))
            return Pair(first, TimedBlock(calls[1], *candidate(calls[1])), "baseline")
        second = TimedBlock(calls[1], *candidate(calls[1]))
        return Pair(TimedBlock(calls[0], *baseline(calls[0])), second, "candidate")

    def _calls(self) -> tuple[int, int]:
        return block_calls(self.baseline_seconds, self.candidate_seconds, self.shortest)

    def _control_calls(self) -> int:
        """As many calls as in the pairs, but not much more than 50 ms of them."""
        return max(1, min(self._calls()[0], round(CONTROL_BLOCK / self.baseline_seconds)))

    def _control_seconds(self) -> float:
        return 2 * rule.CONTROL_PAIRS * self._control_calls() * self.baseline_seconds


def _ratios(pairs: Sequence[Pair]) -> list[float]:
    return [pair.ratio for pair in pairs]


def _seconds_per_call(timed: Sequence[TimedBlock]) -> float:
    return max(statistics.median(block.wall / block.calls for block in timed), blocks.SHORTEST)
