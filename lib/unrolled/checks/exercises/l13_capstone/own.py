"""A network of the learner's own, before its repair and after: run in turns, compared and timed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, Remark, agree
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array

TURNS, TOLERANCE = 2, 1e-3
VERSIONS = ("before", "after")
Run = tuple[str, int, Any, float]  # version, seed, result, seconds


def two_seeds(rng: np.random.Generator) -> Inputs:
    """Draw two seeds that differ."""
    return {"seeds": [int(seed) for seed in rng.choice(10_000, 2, replace=False)]}


def in_turns(function: Function, inputs: Inputs) -> list[Run]:
    """Return every run of both versions with both seeds, in turns."""
    runs: list[Run] = []
    for _ in range(TURNS):
        for seed in inputs["seeds"]:
            for version in VERSIONS:
                start = time.perf_counter()
                result = function(version, seed)
                runs.append((version, seed, result, time.perf_counter() - start))
    return runs


def stand_in(version: str, seed: int) -> Array:
    """Stand for a network: what is returned depends on the seed, and not on the version."""
    return np.random.default_rng(seed).standard_normal(3).astype(np.float32)


def compare(got: Any, expected: Any, inputs: Inputs) -> Mismatch | Remark | None:
    """Ask that a repair changes the time and not the result; tell both times."""
    known: dict[tuple[str, int], Array] = {}
    for version, seed, result, _ in got:
        call = f'own_network("{version}", {seed})'
        if says := _strange(result):
            return Mismatch((f"{call} {says}",))
        if not agree(result, known.setdefault((version, seed), result), TOLERANCE):
            return Mismatch((f"{call} gives something else each time: draw everything from the seed, and start anew",))
    first, second = inputs["seeds"]
    if not all(agree(known["after", seed], known["before", seed], TOLERANCE) for seed in inputs["seeds"]):
        return Mismatch(("before and after give different results: a repair changes the time, and nothing else",))
    if agree(known["before", first], known["before", second], 0):
        return Mismatch(("another seed gives the same: the network's weights come from the seed",))
    before, after = (float(np.median([run[3] for run in got if run[0] == version])) for version in VERSIONS)
    return Remark((f"before {before:.4f} s, after {after:.4f} s: {before / max(after, 1e-9):.1f} times as fast",))


def _strange(result: Any) -> str:
    """Say why this is no array of numbers."""
    if not isinstance(result, np.ndarray) or result.dtype.kind != "f" or not result.size:
        what = "None" if result is None else type(result).__name__
        return f"gives {what}; return an array of floats: the loss of each step, or scores"
    return "" if np.isfinite(result).all() else "gives NaN or infinity: what is timed has to be right"
