"""The variant of lesson 11: pruning of whole filters."""

from __future__ import annotations

import numpy as np

from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l11_smaller_numbers import exercises, fewer
from unrolled.checks.mistakes import Mistake, given
from unrolled.checks.spec import case, normal, random_case, variant
from unrolled.device import Array


def prune_rows(weight: Array, fraction: float, updates: list[Array], late: Array | None = None) -> Array:
    """Return the weights (O, K) with the rows of the smallest sums at 0, of equal ones where `late` is lowest."""
    return _by(np.abs(weight).sum(axis=1), weight, fraction, updates, late)


def _by(sizes: Array, weight: Array, fraction: float, updates: list[Array], late: Array | None = None) -> Array:
    """Prune the rows of the smallest of these sizes (O,)."""
    return fewer.masked(weight, fewer.kept(sizes, fraction, late)[:, None], updates)


FOUR = array([2, -2], [0.5, -0.5], [-4, -4], [3, 0])

prune_filters = variant(
    exercises.prune,
    reference=prune_rows,
    cases=[
        case(
            "four filters, half of them",
            weight=FOUR,
            fraction=0.5,
            updates=[array([3, -1], [-5, 5], [1, 1], [1, 1]), array([1, 1], [1, 1], [2, 2], [0, 1])],
        ),
        # The share is 3.75 rows, of which 3 go.
        random_case("five filters, and a share that does not come out even", fewer.one_update, 0.75, 5, 4),
        random_case("nearly equal sums", fewer.nearly_equal, 12, 1),
        case("no update", weight=normal(4, 2), fraction=0.5, updates=[]),
        case("equal sums", weight=array([1, -1], [-2, 0], [0, 2], [3, 3]), fraction=0.5, updates=[FOUR]),
        case("no update, and none goes", weight=FOUR, fraction=0.2, updates=[]),
    ],
    compare=fewer.whichever_goes(prune_rows, lambda x: x.any(axis=1)),
    domain=random_case("any weights and updates", fewer.any_pruning, fewest=2, most=2),
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
        Mistake(
            "what was pruned grows again in an update: multiply by the mask after each",
            lambda weight, fraction, updates: fewer.updated(prune_rows(weight, fraction, []), updates),
        ),
        Mistake(
            "the mask is that of the weights before the first update",
            lambda weight, fraction, updates: prune_rows(fewer.updated(weight, updates), fraction, []),
        ),
        Mistake(
            "a row is small if its magnitudes are: np.abs(weight)",
            lambda weight, fraction, updates: _by(weight.sum(axis=1), weight, fraction, updates),
        ),
        Mistake("whole rows go, and not single weights", fewer.prune),
        given(
            "int cuts off: one row fewer goes than by rounding",
            fraction=lambda weight, fraction: (round(fraction * len(weight)) + 0.5) / len(weight),
        ),
    ),
)
