"""A machine whose clock behaves as real ones do, for whoever says what each cause gained: and the factors it has."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch
from unrolled.checks.spec import Inputs

DRIFT = 0.004
"""The machine gets warm: each run takes so much longer than the one before, relative to the first."""
JITTER, COLD, DISTURBED, EVERY = 0.01, (2.0, 6.0), 3.0, 7
"""Evenly drawn wobble, what the first run of a setting costs, and what every seventh run does."""
WITHIN = 0.1
MOST_RUNS = 400


class Machine:
    """`run(**switches)` returns seconds; each cause is on unless its switch is False. The causes interact.

    `factors` are what each cause gains when all the others are on.
    """

    def __init__(self, causes: Mapping[str, float], together: float, seed: int) -> None:
        self._seconds, self._together = dict(causes), together
        self._rng = np.random.default_rng(seed)
        self._seen: set[frozenset[str]] = set()
        self.runs = 0

    def __call__(self, **switches: bool) -> float:
        if unknown := sorted(set(switches) - set(self._seconds)):
            raise ValueError(f"there is no cause {unknown[0]!r}; there are {', '.join(self._seconds)}")
        if self.runs >= MOST_RUNS:
            raise RuntimeError(f"more than {MOST_RUNS} runs: nine of each setting are enough")
        off = frozenset(name for name, on in switches.items() if not on)
        self.runs += 1
        seconds = self.true_seconds(off) * (1 + DRIFT * self.runs) * (1 + self._rng.uniform(-JITTER, JITTER))
        seconds *= self._rng.uniform(*COLD) if off not in self._seen else 1
        self._seen.add(off)
        return float(seconds * (DISTURBED if self.runs % EVERY == 0 else 1))

    def true_seconds(self, off: frozenset[str]) -> float:
        """Return the seconds of a setting on a quiet machine: causes that are off multiply, and do not add up."""
        seconds = float(np.prod([self._seconds[name] for name in off], initial=0.02))
        return seconds * self._together ** max(0, len(off) - 1)

    @property
    def factors(self) -> dict[str, float]:
        return {name: self.true_seconds(frozenset([name])) / self.true_seconds(frozenset()) for name in self._seconds}

    def one_after_the_other(self) -> dict[str, float]:
        """Return what each cause seems to gain if they are turned off one after the other, and stay off."""
        names = list(self._seconds)
        steps = [self.true_seconds(frozenset(names[:count])) for count in range(len(names) + 1)]
        return {name: after / before for name, (before, after) in zip(names, itertools.pairwise(steps), strict=True)}

    def alone(self) -> dict[str, float]:
        """Return what each cause gains by itself, where all the others are off."""
        everything = frozenset(self._seconds)
        return {name: self.true_seconds(everything) / self.true_seconds(everything - {name}) for name in everything}


def any_machine(rng: np.random.Generator) -> Inputs:
    """Draw a machine with three to five causes, which share a part of what they gain."""
    names = [str(name) for name in rng.permutation(["code", "batch", "precision", "graph", "fusion"])]
    return machine(rng, names[: int(rng.integers(3, 6))])


def machine(rng: np.random.Generator, names: list[str]) -> Inputs:
    """Draw a machine with these causes."""
    causes = {name: float(rng.uniform(1.5, 5)) for name in names}
    return {"run": Machine(causes, float(rng.uniform(0.45, 0.7)), int(rng.integers(2**31))), "causes": names}


def turned_off_alone(run: Any, causes: list[str]) -> dict[str, float]:
    """Return by cause how many times longer a run takes without it: all others on, in rounds, medians of ratios."""
    ratios: dict[str, list[float]] = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            everything = run()
            ratios[cause].append(run(**{cause: False}) / everything)
    return {cause: float(np.median(found)) for cause, found in ratios.items()}


KNOWN = (
    ("one_after_the_other", "these are factors of causes turned off one after the other: turn each on again"),
    ("alone", "these are the factors with all other causes off: leave them on, and turn off one"),
)


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge factors by the machine's own."""
    truth = inputs["run"].factors
    if not isinstance(got, dict) or set(got) != set(truth):
        return Mismatch((f"expected a dictionary with the causes {', '.join(truth)}, got {_short(got)}",))
    if strange := [name for name, value in got.items() if not isinstance(value, float | int | np.floating)]:
        return Mismatch((f"the factor of {strange[0]} is no number: {_short(got[strange[0]])}",))
    if (worst := _furthest(got, truth)) is None:
        return None
    for name, says in KNOWN:
        if _furthest(got, getattr(inputs["run"], name)()) is None:
            return Mismatch((says,))
    if _furthest({name: 1 / value if value else 0 for name, value in got.items()}, truth) is None:
        return Mismatch(("upside down: a cause that helps has a factor above 1, seconds without it / seconds with it",))
    line = f"the factor of {worst} is {truth[worst]:.2f}, yours is {got[worst]:.2f}"
    return Mismatch((f"{line}: more than {WITHIN:.0%} away", _advice(inputs["run"].runs, len(truth))))


def _advice(runs: int, causes: int) -> str:
    if runs < 3 * (causes + 1):
        return "the first run of a setting is slow, and some runs are disturbed: repeat, and take the median"
    return (
        "this machine gets slower all the time: compare runs that follow each other, and take the median of their "
        "ratios (a mean holds the disturbed runs, too)"
    )


def _furthest(got: Mapping[str, Any], truth: Mapping[str, float]) -> str | None:
    """The cause whose factor is furthest away, or None where all are within the tolerance."""
    off = {name: abs(float(got[name]) / value - 1) for name, value in truth.items()}
    worst = max(off, key=lambda name: off[name])
    return None if off[worst] <= WITHIN else worst


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
