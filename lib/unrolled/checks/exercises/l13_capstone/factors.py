"""Machines for whoever says what each cause gained, and their factors: a clock that behaves as real ones, and work."""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, Remark, shortened
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array

DRIFT = 0.015
"""The machine gets warm: each run takes so much longer than the one before, relative to the first.

So the shortest or the median of five runs of each setting, one setting after the other, was wrong in each of 200 draws;
medians of paired ratios were right in all of them, and so were those of settings in turns.
"""
JITTER, COLD, DISTURBED, EVERY = 0.01, (2.0, 6.0), 3.0, 7
"""Evenly drawn wobble, what the first run of a setting costs, and what every seventh run does."""
MOST_RUNS = 400
CALM, SHORTEST_OF = 0.25, 3
"""How far two measurements of real work may be apart, relative to one, before nothing is decided by them; and how many
times a run does it, for the shortest time, as others disturb some."""


class Switched(ABC):
    """`run(**switches)` returns seconds; each cause is on unless its switch is False."""

    within: float  # how far a claimed factor may be away, relative to the true one

    def __init__(self, causes: Sequence[str]) -> None:
        self.causes = list(causes)
        self.runs = 0
        self.most_off: list[str] = []  # of all runs, the switches that were off in the one with the most of them
        self.measured_runs: list[tuple[frozenset[str], float]] = []  # of each, the switches that were off, and seconds

    def __call__(self, **switches: bool) -> float:
        if unknown := sorted(set(switches) - set(self.causes)):
            raise ValueError(f"there is no cause {unknown[0]!r}; there are {', '.join(self.causes)}")
        if self.runs >= MOST_RUNS:
            raise RuntimeError(f"more than {MOST_RUNS} runs: nine of each setting are enough")
        self.runs += 1
        off = [name for name, on in switches.items() if not on]
        self.most_off = max(self.most_off, off, key=len)
        self.measured_runs.append((frozenset(off), self.seconds(frozenset(off))))
        return self.measured_runs[-1][1]

    @property
    def repeated(self) -> bool:
        """Whether there were three runs of each setting, at least."""
        return self.runs >= 3 * (len(self.causes) + 1)

    @abstractmethod
    def seconds(self, off: frozenset[str]) -> float:
        """Return what a run takes on this machine with these causes off."""

    def paired(self, average: Function) -> dict[str, float]:
        """Return by cause the average ratio of its runs two by two, without it alone, over everything on.

        Infinity for a cause with fewer than three.
        """
        ratios: dict[str, list[float]] = {name: [] for name in self.causes}
        for pair in zip(self.measured_runs[::2], self.measured_runs[1::2], strict=False):
            (off, everything), (alone, without) = sorted(pair, key=lambda run: len(run[0]))
            if not off and len(alone) == 1:
                ratios[next(iter(alone))].append(without / everything)
        return {name: float(average(found)) if len(found) >= 3 else math.inf for name, found in ratios.items()}


class Machine(Switched):
    """A clock without work. The causes interact; `factors` are what each gains when all the others are on."""

    within = 0.1

    def __init__(self, causes: Mapping[str, float], together: float, seed: int) -> None:
        super().__init__(list(causes))
        self._seconds, self._together = dict(causes), together
        self._rng = np.random.default_rng(seed)
        self._seen: set[frozenset[str]] = set()

    def seconds(self, off: frozenset[str]) -> float:
        """Return the seconds of a run: with a drift, a slow first run of each setting, and disturbed ones."""
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


class Work(Switched):
    """Real work on this machine: the sum of x * x over an array x (P,), in few parts, and a part by one call."""

    within = 0.5

    def __init__(self, x: Array) -> None:
        super().__init__(["batch", "code"])
        self._x = x

    def seconds(self, off: frozenset[str]) -> float:
        """Return the shortest of three times."""
        parts = np.split(self._x, 256 if "batch" in off else 8)
        total = _in_loops if "code" in off else _at_once
        times = []
        for _ in range(SHORTEST_OF):
            start = time.perf_counter()
            for part in parts:
                total(part)
            times.append(time.perf_counter() - start)
        return min(times)

    def measured(self) -> dict[str, float]:
        """Return by cause what it gains with all others on, measured now."""
        self.runs = 0
        return turned_off_alone(self, self.causes)


def _at_once(part: Array) -> float:
    return float((part * part).sum())


def _in_loops(part: Array) -> float:
    return sum(_at_once(some) for some in np.split(part, 8))


def any_machine(rng: np.random.Generator) -> Inputs:
    """Draw a machine with three to five causes, which share a part of what they gain."""
    names = [str(name) for name in rng.permutation(["code", "batch", "precision", "graph", "fusion"])]
    return machine(rng, names[: int(rng.integers(3, 6))])


def machine(rng: np.random.Generator, names: list[str]) -> Inputs:
    """Draw a machine with these causes."""
    causes = {name: float(rng.uniform(1.5, 5)) for name in names}
    return {"machine": Machine(causes, float(rng.uniform(0.45, 0.7)), int(rng.integers(2**31)))}


def handed_out(function: Function, inputs: Inputs) -> Any:
    """Return what the function makes of `run` and the causes. What the machine knows of itself stays behind."""
    machine = inputs["machine"]

    def run(**switches: bool) -> float:
        return float(machine(**switches))

    return function(run=run, causes=list(machine.causes))


def turned_off_alone(run: Any, causes: list[str]) -> dict[str, float]:
    """Return by cause how many times longer a run takes without it: all others on, in rounds, medians of ratios."""
    ratios: dict[str, list[float]] = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            everything = run()
            ratios[cause].append(run(**{cause: False}) / everything)
    return {cause: float(np.median(found)) for cause, found in ratios.items()}


DIFFERENCES = (
    "these grow as what is added does: a factor is seconds without a cause / seconds with everything, no difference of "
    "seconds or percent"
)
KNOWN: dict[str, Callable[[Machine], dict[str, float]]] = {
    "these are factors of causes turned off one after the other: turn each on again": Machine.one_after_the_other,
    "these are the factors with all other causes off: leave them on, and turn off one": Machine.alone,
    "these are seconds of everything on, twice: run(cause=True) turns nothing off, False does": lambda m: dict.fromkeys(
        m.factors, 1.0
    ),
    "these are percent: a factor is seconds without a cause / seconds with everything": lambda m: {
        name: 100 * factor for name, factor in m.factors.items()
    },
    "these are means, which hold the disturbed runs, too: take the median of the ratios": lambda m: m.paired(np.mean),
}


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
    """Judge factors by the machine's own: those of a clock are known, those of work are measured again."""
    machine: Machine | Work = inputs["machine"]
    if not isinstance(got, dict) or set(got) != set(machine.causes):
        return Mismatch(
            (f"expected a dictionary with the causes {', '.join(machine.causes)}, got {shortened(repr(got), 60)}",)
        )
    if strange := [name for name, value in got.items() if not isinstance(value, float | int | np.floating)]:
        return Mismatch((f"the factor of {strange[0]} is no number: {shortened(repr(got[strange[0]]), 60)}",))
    return _beside_known(got, machine) if isinstance(machine, Machine) else _beside_measured(got, machine)


def _beside_known(got: Mapping[str, Any], machine: Machine) -> Mismatch | None:
    """Compare with the factors of a clock, and look for usual mistakes."""
    truth = machine.factors
    if (worst := _furthest(got, truth, machine.within)) is None:
        return None
    for says, factors in KNOWN.items():
        if _furthest(got, factors(machine), machine.within) is None:
            return Mismatch((says,))
    if _furthest({name: 1 / value if value else 0 for name, value in got.items()}, truth, machine.within) is None:
        return Mismatch(("upside down: a cause that helps has a factor above 1, seconds without it / seconds with it",))
    scales = [float(got[name]) / (factor - 1) for name, factor in truth.items()]
    if machine.repeated and 0 < max(scales) < (1 + 2 * machine.within) * min(scales):
        return Mismatch((DIFFERENCES,))
    line = f"the factor of {worst} is {truth[worst]:.2f}, yours is {got[worst]:.2f}"
    return Mismatch((f"{line}: more than {machine.within:.0%} away", _advice(machine)))


def _beside_measured(got: Mapping[str, Any], work: Work) -> Mismatch | Remark:
    """Compare with what the work takes now, measured twice.

    Where that differs, or the answer's own runs gave what it says, the machine was busy: nothing is decided then.
    """
    own = work.paired(np.median)
    truth, again = work.measured(), work.measured()
    measured = ", ".join(f"{name} {factor:.1f}" for name, factor in truth.items())
    if (worst := _furthest(got, truth, work.within)) is None or _furthest(got, again, work.within) is None:
        return Remark((f"measured again: {measured}",))
    if _furthest(again, truth, CALM) is not None or _furthest(got, own, work.within) is None:
        return Remark(("this machine is too busy to measure them again: taken as they are",))
    line = f"measured again, the factors are {measured}; yours of {worst} is {got[worst]:.2f}"
    return Mismatch((f"{line}, more than {work.within:.0%} away",))


def _advice(machine: Machine) -> str:
    if (count := len(machine.most_off)) > 1:
        call = ", ".join(f"{name}=False" for name in machine.most_off)
        return f"run({call}): {count} causes are off at once; turn off one alone"
    if not machine.repeated:
        return "the first run of a setting is slow, and some runs are disturbed: repeat, and take the median"
    return (
        "this machine gets slower all the time: compare runs that follow each other, and take the median of their "
        "ratios (a mean holds the disturbed runs, too)"
    )


def _furthest(got: Mapping[str, Any], truth: Mapping[str, float], within: float) -> str | None:
    """The cause whose factor is furthest away, or None where all are within the tolerance."""
    off = {name: abs(float(got[name]) / value - 1) for name, value in truth.items()}
    worst = max(off, key=lambda name: off[name])
    return None if off[worst] <= within else worst
