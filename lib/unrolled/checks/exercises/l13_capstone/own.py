"""A network of the learner's own, before its repair and after: run in turns, compared and timed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, Remark, agree, as_numbers
from unrolled.checks.spec import Function, Inputs

TURNS, TOLERANCE = 3, 1e-3
VERSIONS = ("before", "after")


def in_turns(function: Function, inputs: Inputs) -> dict[str, list[tuple[Any, float]]]:
    """Return (the result, the seconds) of each version, by its name; both are run in turns."""
    found: dict[str, list[tuple[Any, float]]] = {version: [] for version in VERSIONS}
    for _ in range(TURNS):
        for version in VERSIONS:
            start = time.perf_counter()
            result = function(version)
            found[version].append((result, time.perf_counter() - start))
    return found


def stand_in(version: str) -> Any:
    """Stand for a network: what is returned is only looked at if it is the learner's."""
    return np.zeros(1, np.float32)


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
    """Ask that a repair changes the time and not the result; tell both times."""
    before, after = ([result for result, _ in got[version]] for version in VERSIONS)
    for version, results in ((VERSIONS[0], before), (VERSIONS[1], after)):
        numbers = as_numbers(results[0])
        if numbers is None or not np.size(numbers):
            what = "None" if results[0] is None else type(results[0]).__name__
            return Mismatch(
                (f'own_network("{version}") gives {what}; return an array: the loss of each step, or scores',)
            )
        if not np.isfinite(np.asarray(numbers, float)).all():
            return Mismatch((f'own_network("{version}") gives NaN or infinity: what is timed has to be right',))
        if not all(agree(other, results[0], TOLERANCE) for other in results[1:]):
            return Mismatch(
                (f'own_network("{version}") gives something else each time: give it a seed, and start anew',)
            )
    if not agree(after[0], before[0], TOLERANCE):
        return Mismatch(("before and after give different results: a repair changes the time, and nothing else",))
    times = {version: float(np.median([seconds for _, seconds in got[version]])) for version in VERSIONS}
    gain = times["before"] / max(times["after"], 1e-9)
    return Remark((f"before {times['before']:.4f} s, after {times['after']:.4f} s: {gain:.1f} times as fast",))
