"""compare_blocks and its rule on machines with a fake clock: blocks, intervals, outcomes, the operating curve."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.timing import BlockTime, Verdict, blocks, compare_blocks, rule
from unrolled.timing.blocks import BlockTimer, block_calls

Noise = Callable[["Machine"], float]


@dataclass
class Machine:
    """`noise` multiplies the wall time of each block; CPU time only wavers by 1 %."""

    noise: Noise = lambda machine: 1.0
    seed: int = 0
    now: float = 0.0
    log: list[tuple[str, int, float]] = field(default_factory=list)  # name, calls, wall seconds

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def clock(self) -> float:
        return self.now

    def timer(self, name: str, seconds: float, busy: float = 1.0) -> BlockTimer:
        """A block timer of a function of `seconds` a call, of which the share `busy` is CPU time."""

        def block(calls: int) -> BlockTime:
            work = calls * seconds
            wall = work * self.noise(self)
            self.now += wall
            self.log.append((name, calls, wall))
            return BlockTime(wall, busy * work * self.rng.lognormvariate(0, 0.01))

        return block

    def calls(self, name: str) -> list[int]:
        return [calls for who, calls, _ in self.log if who == name]


def quiet(machine: Machine) -> float:
    """An idle machine: 3 % of noise."""
    return machine.rng.lognormvariate(0, 0.03)


def shaky(machine: Machine) -> float:
    """15 % of noise on every block."""
    return machine.rng.lognormvariate(0, 0.15)


def spikes(machine: Machine) -> float:
    """Now and then another process takes the core: one block in four lasts 1.5 to 4 times as long."""
    spike = machine.rng.uniform(1.5, 4) if machine.rng.random() < 0.25 else 1.0
    return spike * machine.rng.lognormvariate(0, 0.05)


def drift(machine: Machine) -> float:
    """The clock frequency halves and doubles over about a second."""
    phase = machine.now % 1.0
    return (1 + 2 * min(phase, 1 - phase)) * machine.rng.lognormvariate(0, 0.05)


def crowded(machine: Machine) -> float:
    """Four busy processes on two cores: every block shares its core, more or less."""
    return machine.rng.choice((1.0, 2.0, 2.0, 3.0)) * machine.rng.lognormvariate(0, 0.1)


NOISES = [quiet, shaky, spikes, drift, crowded]


def test_the_interval_is_the_narrowest_that_covers_the_median_with_95_percent() -> None:
    def coverage(k: int) -> float:  # the k-th smallest of n to the k-th largest
        return sum(math.comb(n, below) for below in range(k, n - k + 1)) / 2**n

    for n in range(6, 65):
        rank = rule.interval_rank(n)
        assert coverage(rank) >= 0.95, n
        assert coverage(rank + 1) < 0.95, n


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=40))
def test_the_interval_lies_within_the_values_and_around_their_middle(values: list[float]) -> None:
    low, high = rule.median_interval(values)
    middle = sorted(values)[len(values) // 2]
    assert min(values) <= low <= middle <= high <= max(values)


@pytest.mark.parametrize(
    ("outcome", "several"),
    [
        ("pass", ([2.5] * 8, [9.0] * 13 + [0.1] * 3, [9.0] * 18 + [0.1] * 6, [9.0] * 23 + [0.1] * 9)),
        ("fail", ([1.99] * 8, [0.1] * 13 + [9.0] * 3)),
        ("inconclusive", ([2.5] * 7 + [2.49], [1.99] * 7 + [2.0], [2.2] * 8, [9.0] * 7, [9.0] * 9)),
        ("inconclusive", ([9.0] * 12 + [0.1] * 4, [9.0] * 22 + [0.1] * 10)),
    ],
)
def test_decide(outcome: str, several: tuple[list[float], ...]) -> None:
    assert {rule.decide(ratios, 2.5) for ratios in several} == {outcome}


def test_noisy_control() -> None:
    """One spike in eight is what the interval is made for."""
    quiet_ones = [1.0] * 8, [0.95, 1.05] * 4, [1.0] * 7 + [5.0]
    noisy_ones = [0.89] * 8, [1.11] * 8, [0.87] * 4 + [1.13] * 4, [1.0] * 5 + [3.0] * 3
    assert not any(map(rule.is_noisy, quiet_ones))
    assert all(map(rule.is_noisy, noisy_ones))


def test_hopeless() -> None:
    """A quarter of 4 with three pairs, a sixteenth with two, a sixty-fourth with one."""
    assert all(rule.is_hopeless(ratios, 4.0) for ratios in ([0.99] * 3, [0.99] * 7, [0.24] * 2, [0.06]))
    assert not any(rule.is_hopeless(ratios, 4.0) for ratios in ([1.0] * 3, [0.1, 0.1, 1.1], [0.25] * 2, [0.07], []))


def curve(margin: float, noise: Noise, runs: int, at_least: float = 4.0) -> list[str]:
    """Outcomes of a candidate that is `margin` times as fast as asked, each on a machine of its own."""
    outcomes = []
    for seed in range(runs):
        machine = Machine(noise, seed)
        baseline, candidate = machine.timer("baseline", 0.02), machine.timer("candidate", 0.02 / at_least / margin)
        outcomes.append(compare_blocks(candidate, baseline, at_least, seed=seed, clock=machine.clock).outcome)
    return outcomes


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("margin", "runs", "never"), [(1.5, 200, "fail"), (2.0, 50, "fail"), (0.5, 50, "pass"), (0.67, 200, "pass")]
)
def test_no_honest_function_fails_and_slow_code_never_passes(
    noise: Noise, margin: float, runs: int, never: str
) -> None:
    outcomes = curve(margin, noise, runs)
    assert never not in outcomes
    if margin == 2.0:
        assert outcomes.count("pass") >= 45, "most honest functions pass even under load"


@pytest.mark.parametrize(
    ("margin", "outcome"),
    [(0.5, "fail"), (0.67, "fail"), (0.9, "inconclusive"), (1.5, "pass"), (2.0, "pass")],  # fail starts at 0.8 T
)
def test_a_quiet_machine_always_decides_except_between_the_thresholds(margin: float, outcome: str) -> None:
    assert {*curve(margin, quiet, 100 if outcome == "inconclusive" else 50)} == {outcome}


def test_at_the_threshold_nothing_fails_and_the_four_looks_together_pass_a_few_in_a_hundred() -> None:
    outcomes = curve(1.0, shaky, 200)
    assert "fail" not in outcomes
    assert outcomes.count("pass") <= 0.05 * 200


def race(
    machine: Machine, baseline: float, candidate: float, at_least: float = 2.5, busy: float = 1.0, **options: Any
) -> Verdict:
    """A verdict on two functions of these seconds a call."""
    sides = machine.timer("candidate", candidate, busy), machine.timer("baseline", baseline)
    return compare_blocks(*sides, at_least, clock=machine.clock, seed=7, **options)


def every_second(factor: float) -> Noise:
    """Every second block takes `factor` times as long: the control sees it, as the order of the pairs is random."""
    return lambda machine: factor if len(machine.log) % 2 else 1.0


def still(machine: Machine) -> float:
    return 1.0


def stalling(machine: Machine) -> float:
    """A machine that stalls once the pairs are done."""
    return 500.0 if machine.now > 0.9 else 1.0


def wavering(machine: Machine) -> float:
    return machine.rng.choice((1.0, 2.0)) if machine.log else 1.0


@settings(max_examples=300)
@given(st.floats(1e-7, 2.0), st.floats(1e-7, 2.0))
def test_blocks_are_even_long_enough_and_not_too_long(baseline: float, candidate: float) -> None:
    calls = block_calls(baseline, candidate)
    lengths = calls[0] * baseline, calls[1] * candidate
    assert min(calls) >= 1
    assert max(lengths) >= 0.01
    slow = max(baseline, candidate)
    assert max(lengths) <= max(0.25, slow) * 1.5
    if slow <= 0.25:
        assert max(lengths) <= 1.5 * min(lengths)
    if slow <= 0.125:
        assert max(lengths) <= 1.26 * min(lengths)


@pytest.mark.parametrize("cold", ["baseline", "candidate"])
def test_blocks_are_sized_again_when_the_first_estimate_was_wrong(cold: str) -> None:
    """One side takes four times as long while it warms up: after 8 pairs at the latest the blocks are even."""
    machine = Machine()
    warm = {"baseline": 0.02, "candidate": 0.01}

    def timer(name: str) -> BlockTimer:
        late, early = machine.timer(name, warm[name]), machine.timer(name, 4 * warm[name])
        return lambda calls: (early if name == cold and len(machine.calls(name)) < 3 else late)(calls)

    verdict = compare_blocks(timer("candidate"), timer("baseline"), 2.1, clock=machine.clock)
    assert len(verdict.pairs) == 32
    assert [pair.baseline.wall / pair.candidate.wall for pair in verdict.pairs[8:]] == pytest.approx([1.0] * 24)


@pytest.mark.parametrize("slow_block", range(8))
def test_one_slow_block_does_not_spoil_the_warm_up(slow_block: int) -> None:
    machine = Machine(noise=lambda machine: 20.0 if len(machine.log) == slow_block else 1.0)
    seconds = blocks.warm_up(machine.timer("function", 0.001), blocks.ON_HOST, patience=2.0)
    assert seconds == pytest.approx(0.001)


def test_the_warm_up_takes_two_calls_a_side_and_on_a_gpu_ten_and_half_a_second() -> None:
    machine = Machine()
    verdict = race(machine, 0.03, 0.03)
    assert len(machine.calls("candidate")) - len(verdict.pairs) == 2
    for per_call, calls in ((0.001, 100), (0.1, 10)):
        machine = Machine()
        blocks.warm_up(machine.timer("kernel", per_call), blocks.ON_GPU, patience=2.0)
        assert sum(machine.calls("kernel")) >= calls
        assert machine.now >= 0.5


@pytest.mark.parametrize(
    ("ratios", "clear"),
    [
        ([9.9, 7.5, 9.0], True),
        ([9.9, 7.4, 9.0], False),
        ([99.0, 99.0], False),
        ([5.0] * 4, True),
        ([5.0] * 3, False),
        ([3.75] * 5, True),
        ([3.74] * 5, False),
        ([3.75] * 6, False),
        ([99.0], False),
        ([], False),
    ],
)
def test_a_clear_pass(ratios: list[float], clear: bool) -> None:
    """2.5 is asked: three pairs at 3 times that, four at twice, five at 1.5 times."""
    assert rule.is_clear(ratios, 2.5) == clear
    assert rule.decide(ratios, 2.5) == ("pass" if clear else "inconclusive")


@pytest.mark.parametrize(("candidate", "waits"), [(0.02 / 2.5 / 5, False), (0.02 / 2.5 / 1.2, True), (0.02, True)])
def test_the_machine_is_asked_for_unless_the_first_pairs_are_clear(candidate: float, waits: bool) -> None:
    """What was measured before is forgotten, and the wait is none of the 12 seconds."""
    machine = Machine()
    waited: list[float] = []

    def quieten() -> None:
        waited.append(machine.now)
        machine.now += 1000.0

    verdict = race(machine, 0.02, candidate, quieten=quieten)
    assert bool(waited) == waits
    assert verdict.outcome == ("fail" if candidate == 0.02 else "pass")
    assert len(verdict.pairs) == (8 if waits else 3)


def test_order_of_the_pairs_is_random_and_follows_the_seed() -> None:
    def orders(seed: int) -> list[str]:
        machine = Machine(noise=lambda machine: machine.rng.lognormvariate(0, 0.05))
        timers = machine.timer("candidate", 0.008), machine.timer("baseline", 0.02)
        return [pair.first for pair in compare_blocks(*timers, 2.5, clock=machine.clock, seed=seed).pairs]

    assert len(orders(0)) == 32
    assert {*orders(0)} == {"baseline", "candidate"}
    assert orders(0) == orders(0) != orders(1)


def test_an_order_effect_cancels() -> None:
    """The second block of a pair takes 1.3x as long (a core that heats up): equal functions come out equal."""
    machine = Machine(noise=every_second(1.3))
    assert race(machine, 0.02, 0.02, at_least=1.0).ratio == pytest.approx(1, abs=0.31)
    assert {pair.first for pair in race(machine, 0.02, 0.02).pairs} == {"baseline", "candidate"}


@pytest.mark.parametrize(
    ("noise", "baseline", "candidate", "outcome", "pairs", "control", "noisy", "excused"),
    [
        (still, 0.02, 0.02 / 2.5 / 1.4, "pass", [8], [0], False, False),  # a pass needs no control
        (still, 0.02, 0.02 / 2.5 / 1.6, "pass", [5], [0], False, False),  # and few pairs where they are far beyond
        (still, 0.02, 0.02 / 2.5 / 5, "pass", [3], [0], False, False),
        (still, 0.02, 0.02, "fail", [8], [8], False, False),
        (still, 0.02, 0.02 / 2.3, "inconclusive", [32], [8], False, False),  # too close to call: the candidate's own
        (still, 0.6, 0.6 / 2.5 / 1.4, "pass", range(8, 33), [0], False, False),  # a slow host: no time for a control
        (every_second(1.8), 0.02, 0.02 / 2.3, "inconclusive", [32], [8], True, True),
        (every_second(1.8), 0.02, 0.04, "inconclusive", range(33), [8], True, False),  # by far too slow
        (lambda machine: 2.0, 0.02, 0.02 / 2.3, "inconclusive", range(33), range(9), False, True),  # crowded
        (stalling, 0.04, 0.04 / 1.5, "inconclusive", range(33), range(9), None, True),
        (stalling, 0.04, 0.04, "inconclusive", [8], range(1, 8), None, False),  # without a full control nothing fails
        (still, 1.0, 0.8, "inconclusive", range(8), range(9), None, True),  # no time for eight pairs
        (wavering, 0.1, 0.5, "inconclusive", range(3, 8), range(9), True, False),  # pairs below half, and fair ones
        (wavering, 0.02, 1.4, "fail", range(3, 8), range(9), True, False),  # hopeless by far: no noise excuses it
    ],
)
def test_outcomes_and_what_excuses_them(
    noise: Noise, baseline: float, candidate: float, outcome: str, pairs: Any, control: Any, noisy: Any, excused: bool
) -> None:
    verdict = race(Machine(noise=noise), baseline, candidate)
    assert (verdict.outcome, verdict.excused) == (outcome, excused)
    assert len(verdict.pairs) in pairs
    assert len(verdict.control) in control
    assert noisy is None or verdict.noisy == noisy
    assert verdict.seconds <= 12 or outcome != "pass"
    if outcome == "inconclusive" and control == range(1, 8):
        assert "control" in str(verdict)


@pytest.mark.parametrize(
    ("slowdown", "candidate", "busy", "witness", "outcome", "by"),
    [
        (1.0, 0.02 / 2.3, 0.1, ("pass",), "inconclusive", "wall clock"),  # quiet: little CPU time is no gain
        (1.8, 0.02, 1.0, ("pass",), "inconclusive", "wall clock"),  # the control is noisy: no fail
        (1.8, 0.08, 1.0, ("pass",), "fail", "wall clock"),  # but no noise excuses a quarter of what was asked
        (3.0, 0.005, 1.0, ("pass",), "pass", "cpu time"),
        (3.0, 0.005, 1.0, (), "inconclusive", "wall clock"),  # ruled out
        (3.0, 0.005, math.nan, ("pass",), "inconclusive", "wall clock"),  # not known
        (3.0, 0.01, 0.1, ("pass",), "inconclusive", "wall clock"),  # who sleeps cannot pass by it
        (3.0, 0.01, 0.1, ("fail",), "inconclusive", "wall clock"),  # nor fail
        (3.0, 0.02 / 2.5 / 0.7, 1.0, ("pass", "fail"), "fail", "cpu time"),
        (3.0, 0.02 / 2.5 / 0.7, 1.0, ("fail",), "fail", "cpu time"),
        (3.0, 0.02 / 2.5 / 0.7, 1.0, ("pass",), "inconclusive", "wall clock"),
        (3.0, 0.02 / 2.5 / 0.85, 1.0, ("pass", "fail"), "inconclusive", "wall clock"),  # near what is asked
        (3.0, 0.02 / 2.5 / 1.5, 1.0, ("pass", "fail"), "pass", "cpu time"),
    ],
)
def test_cpu_time_is_a_second_witness_on_a_noisy_machine(
    slowdown: float, candidate: float, busy: float, witness: tuple[str, ...], outcome: str, by: str
) -> None:
    verdict = race(Machine(noise=every_second(slowdown)), 0.02, candidate, busy=busy, cpu_witness=witness)
    assert (verdict.outcome, verdict.witness, verdict.noisy) == (outcome, by, slowdown > 1)
    assert ("CPU time decided" in str(verdict)) == (by == "cpu time")


@pytest.mark.parametrize("noise", [still, every_second(1.5), every_second(3)])
def test_cpu_time_never_makes_a_fail_where_two_cores_are_fair(noise: Noise) -> None:
    """The candidate burns both cores: ten times the CPU time of the baseline, a tenth of its wall time."""
    assert race(Machine(noise=noise), 0.02, 0.002, busy=100).outcome == "pass"
    assert race(Machine(noise=noise), 0.02, 0.008, busy=100).outcome != "fail"


def test_uneven_calls_excuse_nothing() -> None:
    """A candidate at 0.4 T, and three blocks in eight look ten times as fast."""
    machine = Machine()
    slow, fast = machine.timer("candidate", 0.02), machine.timer("candidate", 0.002)

    def uneven(calls: int) -> BlockTime:
        return (fast if len(machine.calls("candidate")) % 8 < 3 else slow)(calls)

    verdict = compare_blocks(uneven, machine.timer("baseline", 0.02), 2.5, clock=machine.clock, seed=7)
    assert (verdict.outcome, len(verdict.pairs), verdict.excused) == ("inconclusive", 32, False)


@pytest.mark.parametrize("asleep_from", [9, 12, 17, 30])
def test_a_delay_after_the_first_look_is_no_way_out(asleep_from: int) -> None:
    """One pair in the first eight looks fast, so that the first look decides nothing; then the time is used up."""
    machine = Machine()
    slow, fast, late = (machine.timer("candidate", seconds) for seconds in (0.02, 0.002, 8.0))

    def candidate(calls: int) -> BlockTime:
        block = len(machine.calls("candidate")) - 3  # after the warm-up's
        return (fast if block == 3 else late if block >= asleep_from else slow)(calls)

    verdict = compare_blocks(candidate, machine.timer("baseline", 0.02), 2.5, clock=machine.clock, seed=7)
    assert verdict.outcome == "fail"
    assert not verdict.excused


@pytest.mark.parametrize(
    ("candidate", "pairs", "seconds"),
    [(0.1, 8, 3), (0.3, 5, 4), (1.0, 3, 7), (2.0, 3, 10), (3.0, 2, 11), (5.0, 1, 11), (8.0, 1, 17)],
)
def test_a_hopelessly_slow_candidate_fails_early(candidate: float, pairs: int, seconds: float) -> None:
    """After 3 s three pairs suffice; two or one if no more fit into 12 s, unless a single call takes longer."""
    machine = Machine()
    verdict = race(machine, 0.02, candidate)
    assert (verdict.outcome, len(verdict.pairs), len(verdict.control)) == ("fail", pairs, 8)
    assert verdict.seconds == machine.now <= seconds
    if pairs < 8:
        assert "far below what was asked" in str(verdict)


def test_a_single_pair_must_be_far_further_below_and_a_limit_may_be_shorter() -> None:
    """A baseline of 0.25 s and a candidate of 3 s: a thirtieth of what was asked is not enough."""
    verdict = race(Machine(), 0.25, 3.0)
    assert (verdict.outcome, len(verdict.pairs)) == ("inconclusive", 1)
    assert "Time ran out after 1 of at least 8 pairs" in str(verdict)
    verdict = race(Machine(), 0.02, 0.2, time_limit=3.2)
    assert verdict.seconds <= 3.2
    assert 3 <= len(verdict.pairs) < 8


def test_a_slow_comparison_says_how_long_it_takes() -> None:
    """Before the first pair, and how it goes every two seconds from then on."""
    announced: list[str] = []
    for candidate in (0.4, 0.002, 20.0):
        race(Machine(), 0.02, candidate, announce=announced.append)
    slow = [f"One call is slow here: this takes about {seconds} s." for seconds in (3, 20)]
    assert [text for text in announced if text.startswith("One")] == slow
    assert announced[1] == "Measuring speed: 0.05 times after 2 of 32 pairs at most."


def test_a_coarse_clock_neither_breaks_nor_fails() -> None:
    """A clock that ticks 50 times a second: some blocks of 20 ms take no time at all."""

    def coarse(machine: Machine, name: str, seconds: float) -> BlockTimer:
        timer = machine.timer(name, seconds)

        def block(calls: int) -> BlockTime:
            start = int(machine.now * 50)
            timer(calls)
            ticks = int(machine.now * 50) - start
            return BlockTime(ticks / 50, ticks / 50)

        return block

    walls = set()
    for seed in range(20):
        machine = Machine(quiet, seed)
        sides = coarse(machine, "candidate", 0.004), coarse(machine, "baseline", 0.02)
        verdict = compare_blocks(*sides, 2.5, clock=machine.clock, seed=seed)
        assert verdict.outcome != "fail"
        walls |= {block.wall for pair in verdict.pairs for block in (pair.baseline, pair.candidate)}
    assert 0.0 in walls


@pytest.mark.parametrize("at_least", [0, -2.5, float("nan")])
def test_at_least_must_be_positive(at_least: float) -> None:
    with pytest.raises(ValueError, match="at_least"):
        race(Machine(), 0.02, 0.01, at_least)
