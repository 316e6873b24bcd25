"""A network of the learner's own, before its repair and after: run in turns, compared and timed."""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, Remark, agree
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array
from unrolled.timing import rule

TURNS, MOST_TURNS, ENOUGH = 2, 4, 4.0  # turns at least, and at most; no further one begins after so many seconds
SHORTEST = 0.005  # seconds that training takes before its repair: with less, a clock says little about it
FASTER = 1.1  # times as fast from which a repair shows: below, its remark asks
TOLERANCE = 1e-3  # how far losses may be apart, relative to the largest one before the repair
ROUNDING = 0.01  # what a first difference of rounding keeps below: it grows from step to step, and does not jump
VERSIONS = ("before", "after")
Run = tuple[str, int, Any, float]  # version, seed, result, seconds


def in_turns(function: Function, inputs: Inputs) -> list[Run]:
    """Return every run of both versions with both seeds, in turns; every second turn begins with the repaired one."""
    runs: list[Run] = []
    begun = time.perf_counter()
    for turn in range(MOST_TURNS):
        if turn >= TURNS and time.perf_counter() - begun > ENOUGH:
            break
        for seed in inputs["seeds"]:
            for version in VERSIONS[:: -1 if turn % 2 else 1]:
                start = time.perf_counter()
                result = function(version, seed)
                runs.append((version, seed, result, time.perf_counter() - start))
    return runs


def stand_in(version: str, seed: int) -> Array:
    """Stand for a network: the losses of a small regression from this seed, whatever the version."""
    rng = np.random.default_rng(seed)
    x, weight, wanted = (rng.standard_normal(shape) for shape in ((2000, 20), (20, 10), (20, 10)))
    target, losses = np.tanh(x @ wanted), []
    for _ in range(100):
        y = np.tanh(x @ weight)
        losses.append(float(((y - target) ** 2).mean()))
        weight -= x.T @ ((y - target) * (1 - y * y)) / len(x)
    return np.array(losses, np.float32)


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
    """Ask for training, and for a repair that changes its time and not its result; tell both times."""
    known: dict[tuple[str, int], Array] = {}
    for version, seed, result, _ in got:
        call = f'own_network("{version}", {seed})'
        if says := _strange(result):
            return Mismatch((f"{call} {says}",))
        if not agree(result, known.setdefault((version, seed), result), TOLERANCE):
            return Mismatch((f"{call} gives something else each time: draw everything from the seed, and start anew",))
    first, second = inputs["seeds"]
    for seed in inputs["seeds"]:
        if lines := _different(known["before", seed], known["after", seed]):
            return Mismatch(lines)
    if agree(known["before", first], known["before", second], 0):
        return Mismatch(("another seed gives the same: the network's weights come from the seed",))
    if not all(_falls(known["before", seed]) for seed in inputs["seeds"]):
        return Mismatch(("the losses do not fall: the second half of them is no lower, on average, than the first",))
    return _times(*([run[3] for run in got if run[0] == version] for version in VERSIONS))


def _times(before: list[float], after: list[float]) -> Mismatch | Remark:
    """Judge the seconds of both versions, turn by turn: only a repair that is slower in all of them fails."""
    if min(before) < SHORTEST:
        line = f"before takes {min(before) * 1e3:.2f} ms, which says little: train for {SHORTEST * 1e3:g} ms or longer"
        return Mismatch((line,))
    ratios = [slow / max(quick, 1e-9) for slow, quick in zip(before, after, strict=True)]
    medians = statistics.median(before), statistics.median(after)
    gain = medians[0] / max(medians[1], 1e-9)
    seconds = "medians: before {:.4f} s, after {:.4f} s".format(*medians)
    if rule.median_interval(ratios)[1] < 1 / rule.SLACK:
        return Mismatch((f"{seconds}: {1 / gain:.1f} times as long. A repair takes time away",))
    hardly = ("hardly faster: is that your repair?",) if gain < FASTER else ()
    return Remark((f"{seconds}, {gain:.1f} times as fast", *hardly))


def _different(before: Array, after: Array) -> tuple[str, ...]:
    """Say where the losses of both versions are first apart by more than is allowed, and by how much."""
    if len(before) != len(after):
        return (f"{len(before)} losses before, {len(after)} after: another batch is another training",)
    if agree(after, before, TOLERANCE):
        return ()
    scale = max(float(abs(before).max()), np.finfo(np.float32).tiny)
    apart = abs(after.astype(np.float64) - before) / scale
    step = int(np.argmax(apart > TOLERANCE))
    line = (
        f"before and after give different results, first in losses[{step}]: {before[step]:.6g} before, "
        f"{after[step]:.6g} after, apart by {apart[step]:.3%} of the largest loss; {TOLERANCE:.1%} is allowed"
    )
    if step and apart[step] <= ROUNDING:
        return (line, "a different order of sums? Its rounding grows from step to step: train fewer steps")
    return (line, "a repair changes the time, and nothing else")


def _falls(losses: Array) -> bool:
    half = len(losses) // 2
    return bool(losses[half:].mean() < losses[:half].mean())


def _strange(result: Any) -> str:
    """Say why these are no losses."""
    if not isinstance(result, np.ndarray) or result.dtype.kind != "f" or result.ndim != 1 or len(result) < 2:
        what = "None" if result is None else type(result).__name__
        what += f" of shape {result.shape}" if isinstance(result, np.ndarray) else ""
        return f"gives {what}; return an array of floats: the loss of each step"
    return "" if np.isfinite(result).all() else "gives NaN or infinity: what is timed has to be right"
