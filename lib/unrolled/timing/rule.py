"""The rule that turns pairs of measured times into an outcome. Pure functions on ratios, nothing is timed here.

A ratio is baseline seconds / candidate seconds: 4 means that the candidate is four times as fast. Minima, single shots
and means all flake on a shared machine; the interval of the median of paired ratios does not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

Outcome = Literal["pass", "fail", "inconclusive"]

LOOKS = (8, 16, 24, 32)  # numbers of pairs after which the rule looks at the interval
CLEAR = {3: 3.0, 4: 2.0, 5: 1.5}  # pairs that pass before the first look: how many times at_least each must be
SLACK = 1.25  # a fail is only given below at_least / SLACK
HOPELESS_PAIRS, HOPELESS = 3, 4.0  # too slow to wait for 8 pairs: 3 pairs below at_least / 4
FAR = 2.0  # an interval below at_least / 2: a busy machine is no excuse, the code is too slow
CONTROL_PAIRS = 8
CONTROL_MEDIAN = (0.9, 1.1)
CONTROL_IQR = 0.25
CONTROL_SHARE = 0.9  # of a core: with less, others have the rest of it


def interval_rank(n: int) -> int:
    """Return the largest k such that the k-th smallest to the k-th largest of n values cover the median with 95 %.

    The coverage is 1 - 2 P(B < k) for B ~ Binomial(n, 1/2), whatever the distribution of the values (David and
    Nagaraja, Order Statistics, 2003, section 7.1), in whole numbers. Below 6 values no k reaches 95 %; then k is 1.
    """
    rank, ways, tail, total = 1, 1, 0, 2**n
    for k in range(1, n // 2 + 1):
        tail += ways  # tail / total is P(B < k)
        if 40 * tail > total:
            break
        rank, ways = k, ways * (n - k + 1) // k
    return rank


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % order-statistic interval (low, high) of the median: of 8 values min to max, of none NaN."""
    ordered = sorted(values)
    if not ordered:
        return math.nan, math.nan
    rank = interval_rank(len(ordered))
    return ordered[rank - 1], ordered[-rank]


def decide(ratios: Sequence[float], at_least: float) -> Outcome:
    """Return "pass" if the whole interval reaches `at_least`, "fail" if all of it is below at_least / 1.25.

    Only the numbers of pairs in LOOKS can pass or fail; everything else is "inconclusive", but for a clear pass.
    """
    if is_clear(ratios, at_least):
        return "pass"
    if len(ratios) not in LOOKS:
        return "inconclusive"
    if median_interval(ratios)[0] >= at_least:
        return "pass"
    return "fail" if is_slow(ratios, at_least) else "inconclusive"


def is_clear(ratios: Sequence[float], at_least: float) -> bool:
    """Return whether these pairs, fewer than at the first look, are so far beyond `at_least` that more cannot matter.

    Each of three reaches 3 times what is asked, of four twice, of five 1.5 times. Let p(c) be the probability that a
    pair looks c times as fast as it is. Who is just not as fast as asked then passes with p(3)^3, p(2)^4 or p(1.5)^5,
    and at the first look with p(1)^8, which is (1/2)^8 = 0.4 % by what a median is. So none of these looks errs more
    often than that one where p(3) is below 15 %, p(2) below 25 % and p(1.5) below 33 %.
    `benchmarks/operating_curve.py` measures all three, also beside four busy processes on two cores. (A bound of its
    own at each look is what makes a test sequential: A. Wald, Sequential Analysis, 1947.)
    """
    factor = CLEAR.get(len(ratios))
    return factor is not None and min(ratios) >= factor * at_least


def may_be_clear(ratios: Sequence[float], at_least: float) -> bool:
    """Return whether one more pair could make these pairs a clear pass."""
    return len(ratios) < max(CLEAR) and all(ratio >= min(CLEAR.values()) * at_least for ratio in ratios)


def is_slow(ratios: Sequence[float], at_least: float, by: float = SLACK) -> bool:
    """Return whether there are as many pairs as at the first look, and their whole interval is below at_least / `by`.

    `decide` asks at its looks alone, so that no number of pairs can be waited for. Here no more pairs will come.
    """
    return len(ratios) >= LOOKS[0] and median_interval(ratios)[1] < at_least / by


def is_hopeless(ratios: Sequence[float], at_least: float) -> bool:
    """Return whether these pairs, too few for the interval, are so far below `at_least` that more cannot help.

    Each is below at_least / 4 if they are three or more, at_least / 16 if two, at_least / 64 if one is all that fitted.
    """
    return bool(ratios) and max(ratios) < at_least / HOPELESS ** (1 + max(0, HOPELESS_PAIRS - len(ratios)))


def is_beyond_noise(ratios: Sequence[float], at_least: float) -> bool:
    """Return whether the pairs are so far below `at_least` that no noise explains it.

    The high end of the interval is below at_least / 4; with too few pairs for an interval all are below at_least / 16.
    Other processes slow both sides alike in the long run; they do not make one side four times as slow in pair after
    pair of random order. Without this, slow code could not fail on a busy machine, however slow.
    """
    if len(ratios) in LOOKS:
        return median_interval(ratios)[1] < at_least / HOPELESS
    return bool(ratios) and max(ratios) < at_least / HOPELESS**2


def is_noisy(control: Sequence[float]) -> bool:
    """Return whether of two or more ratios of the baseline against itself the median is off, or the IQR.

    The median if it is outside 0.9 to 1.1, the IQR if it is over 25 % of the median.
    """
    lower, _, upper = statistics.quantiles(control, n=4, method="inclusive")
    median = statistics.median(control)
    return not (CONTROL_MEDIAN[0] <= median <= CONTROL_MEDIAN[1] and upper - lower <= CONTROL_IQR * median)
