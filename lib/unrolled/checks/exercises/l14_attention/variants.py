"""The variant of lesson 14: two parts of a row that were summed apart are put together."""

from __future__ import annotations

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l14_attention import exercises
from unrolled.checks.mistakes import Mistake, result
from unrolled.checks.spec import Inputs, case, normal, normals, random_case, variant
from unrolled.device import Array


def joined_sums(largest: Array, total: Array, other_largest: Array, other_total: Array) -> tuple[Array, Array]:
    """Return the largest score (T,) and the sum of exponentials (T,) of two parts of each row together."""
    new = np.maximum(largest, other_largest)
    return new, total * np.exp(largest - new) + other_total * np.exp(other_largest - new)


def any_parts(rng: np.random.Generator) -> Inputs:
    """Draw two parts of any rows; one of them has seen nothing yet, in a third of draws."""
    t = edge_size(rng, 6)
    drawn = normals(rng, largest=(t,), total=(t,), other_largest=(t,), other_total=(t,))
    scale = np.float32(rng.choice([1, 200]))
    drawn = {name: x * scale if "largest" in name else 1 + abs(x) for name, x in drawn.items()}
    if rng.random() < 0.3:
        drawn["largest"][:], drawn["total"][:] = -np.inf, 0
    return drawn


def _added(largest: Array, total: Array, other_largest: Array, other_total: Array) -> tuple[Array, Array]:
    return np.maximum(largest, other_largest), total + other_total


def _upside_down(largest: Array, total: Array, other_largest: Array, other_total: Array) -> tuple[Array, Array]:
    new = np.maximum(largest, other_largest)
    return new, total * np.exp(new - largest) + other_total * np.exp(new - other_largest)


def _one_faded(largest: Array, total: Array, other_largest: Array, other_total: Array) -> tuple[Array, Array]:
    new = np.maximum(largest, other_largest)
    return new, total * np.exp(largest - new) + other_total


online_softmax_joined = variant(
    exercises.online_softmax,
    reference=joined_sums,
    cases=[
        case(
            "two rows",
            largest=np.array([3, 1], np.float32),
            total=np.array([2, 1], np.float32),
            other_largest=np.array([1, 4], np.float32),
            other_total=np.array([1.5, 2], np.float32),
        ),
        case(
            "the first part has seen nothing",
            largest=np.full(2, -np.inf, np.float32),
            total=np.zeros(2, np.float32),
            other_largest=np.array([1, -4], np.float32),
            other_total=np.array([1.5, 2], np.float32),
        ),
        case(
            "four rows",
            **{name: normal(4) for name in ("largest", "other_largest")},
            total=np.arange(1, 5, dtype=np.float32),
            other_total=np.array([4, 1, 2, 5], np.float32),
        ),
    ],
    domain=random_case("any two parts", any_parts),
    hints=(
        "Each sum was made with the largest score of its own part. Where the other part has a larger one, every term "
        "has to shrink by the same factor, so the sum does.",
        "exp(x - new) is exp(x - old) * exp(old - new), for each of the two with its own old. The new largest is the "
        "larger of both; all are (T,).",
        "new = np.maximum(largest, other_largest)\nreturn new, total * np.exp(...) + other_total * np.exp(...)",
    ),
    mistakes=(
        Mistake("each sum was made with its own largest: multiply each by exp(its own - new)", _added),
        Mistake("the factors are upside down: exp(old - new), which is never above 1", _upside_down),
        Mistake("the second sum fades, too, where the first part has the larger score", _one_faded),
        result("the largest comes first, then the sum", lambda y: y[::-1]),
    ),
)
