"""The variant of lesson 11: pruning of whole filters."""

from __future__ import annotations

from math import floor

import numpy as np

from unrolled.checks.exercises.l11_smaller_numbers import exercises, fewer
from unrolled.checks.mistakes import Mistake
from unrolled.checks.spec import Inputs, case, random_case, variant
from unrolled.device import Array


def prune_rows(weight: Array, fraction: float, updates: list[Array]) -> Array:
    """Return the weights (O, K) with the rows of the smallest sums of magnitudes at 0, after updates."""
    mask = np.ones(len(weight), weight.dtype)
    mask[np.argsort(np.abs(weight).sum(axis=1))[: floor(fraction * len(weight))]] = 0
    for update in updates:
        weight = (weight - update) * mask[:, None]
    return weight * mask[:, None]


def _grown_again(weight: Array, fraction: float, updates: list[Array]) -> Array:
    weight = prune_rows(weight, fraction, [])
    for update in updates:
        weight = weight - update
    return weight


def _of_the_last(weight: Array, fraction: float, updates: list[Array]) -> Array:
    for update in updates:
        weight = weight - update
    return prune_rows(weight, fraction, [])


def _by_sums(weight: Array, fraction: float, updates: list[Array]) -> Array:
    mask = np.ones(len(weight), weight.dtype)
    mask[np.argsort(weight.sum(axis=1))[: floor(fraction * len(weight))]] = 0
    for update in updates:
        weight = (weight - update) * mask[:, None]
    return weight * mask[:, None]


def _five_filters(rng: np.random.Generator) -> Inputs:
    """Draw a layer of which 3.75 rows are to go: 3 do."""
    weight, update = rng.standard_normal((2, 5, 4)).astype(np.float32)
    return {"weight": weight, "fraction": 0.75, "updates": [update]}


def _rounded_rows(weight: Array, fraction: float, updates: list[Array]) -> Array:
    return prune_rows(weight, (round(fraction * len(weight)) + 0.5) / len(weight), updates)


prune_filters = variant(
    exercises.prune,
    reference=prune_rows,
    cases=[
        case(
            "four filters, half of them",
            weight=np.array([[3, -1], [0.5, -0.5], [-4, -4], [1, 1]], np.float32),
            fraction=0.5,
            updates=[np.array([[3, -1], [-5, 5], [1, 1], [1, 1]], np.float32)],
        ),
        random_case("any layer", fewer.any_pruning),
        random_case("five filters, and a share that does not come out even", _five_filters),
        case(
            "no update",
            weight=np.array([[3, -1], [0.5, -0.5], [-4, -4], [1, 1]], np.float32),
            fraction=0.5,
            updates=[],
        ),
    ],
    hints=(
        exercises.prune.hints[0],
        "np.argsort(np.abs(weight).sum(axis=1)) gives the rows, the smallest first; int(fraction * len(weight)) of "
        "them go. Keep a mask of ones and zeros, (O, 1), and multiply by it.",
        "mask = np.ones((len(weight), 1), weight.dtype)\n"
        "mask[np.argsort(...)[: int(...)]] = 0\n"
        "for update in updates:\n"
        "    weight = (weight - update) * ...",
    ),
    mistakes=(
        Mistake("what was pruned grows again in an update: multiply by the mask after each", _grown_again),
        Mistake("the mask is that of the weights before the first update", _of_the_last),
        Mistake("a row is small if its magnitudes are: np.abs(weight)", _by_sums),
        Mistake("whole rows go, and not single weights", fewer.prune),
        Mistake("int cuts off: one row fewer goes than by rounding", _rounded_rows),
    ),
)
