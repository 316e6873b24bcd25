"""The rule on pairs: its interval, its outcomes, and its operating curve on synthetic machines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom  # type: ignore[import-untyped, unused-ignore]
from timing_fakes import Machine, Noise, crowded, drift, quiet, shaky, spikes

from unrolled.timing import compare_blocks, rule

NOISES = [quiet, shaky, spikes, drift, crowded]


@pytest.mark.parametrize("n", range(6, 65))
def test_the_interval_is_the_narrowest_that_covers_the_median_with_95_percent(n: int) -> None:
    def coverage(k: int) -> float:  # the k-th smallest to the k-th largest
        return float(binom.cdf(n - k, n, 0.5) - binom.cdf(k - 1, n, 0.5))

    rank = rule.interval_rank(n)
    assert coverage(rank) >= 0.95
    assert coverage(rank + 1) < 0.95


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=40))
@settings(max_examples=50)
def test_the_interval_lies_within_the_values_and_around_their_middle(values: list[float]) -> None:
    low, high = rule.median_interval(values)
    middle = sorted(values)[len(values) // 2]
    assert min(values) <= low <= middle <= high <= max(values)


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ([2.5] * 8, "pass"),
        ([2.5] * 7 + [2.49], "inconclusive"),
        ([1.99] * 8, "fail"),
        ([1.99] * 7 + [2.0], "inconclusive"),
        ([2.2] * 8, "inconclusive"),
        ([9.0] * 7, "inconclusive"),
        ([9.0] * 9, "inconclusive"),
        ([9.0] * 13 + [0.1] * 3, "pass"),
        ([9.0] * 12 + [0.1] * 4, "inconclusive"),
        ([0.1] * 13 + [9.0] * 3, "fail"),
        ([9.0] * 18 + [0.1] * 6, "pass"),
        ([9.0] * 23 + [0.1] * 9, "pass"),
        ([9.0] * 22 + [0.1] * 10, "inconclusive"),
    ],
)
def test_decide(ratios: list[float], outcome: str) -> None:
    assert rule.decide(ratios, 2.5) == outcome


@pytest.mark.parametrize(
    ("control", "noisy"),
    [
        ([1.0] * 8, False),
        ([0.95, 1.05] * 4, False),
        ([0.89] * 8, True),
        ([1.11] * 8, True),
        ([0.87] * 4 + [1.13] * 4, True),
        ([1.0] * 7 + [5.0], False),  # one spike in eight is what the interval is made for
        ([1.0] * 5 + [3.0] * 3, True),
    ],
)
def test_noisy_control(control: list[float], noisy: bool) -> None:
    assert rule.is_noisy(control) is noisy


@pytest.mark.parametrize(
    ("ratios", "hopeless"),
    [
        ([0.99] * 3, True),
        ([1.0] * 3, False),
        ([0.1, 0.1, 1.1], False),
        ([0.99] * 7, True),
        ([0.24] * 2, True),
        ([0.25] * 2, False),
        ([0.06], True),
        ([0.07], False),
        ([], False),
    ],
)
def test_hopeless(ratios: list[float], hopeless: bool) -> None:
    """A quarter of 4 with three pairs, a sixteenth with two, a sixty-fourth with one."""
    assert rule.is_hopeless(ratios, 4.0) is hopeless


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
