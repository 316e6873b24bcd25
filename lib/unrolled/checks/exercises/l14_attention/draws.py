"""What the exercises of lesson 14 are given: heads of any size, and blocks of scores."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.spec import Inputs, normal, normals

FAR = 1000.0  # a score of which exp is infinite in float64 too, and below zero 0


def heads(*shape: int) -> dict[str, Any]:
    """Return draws of q, k and v of this shape."""
    return {name: normal(*shape) for name in ("q", "k", "v")}


def far(inputs: Inputs, by: float = FAR) -> Inputs:
    """Return the inputs with scores near `by` for every second query, and near -by for the others."""
    inputs["k"][..., 0] = 1
    inputs["q"][..., 0] = by * sqrt(inputs["q"].shape[-1])
    inputs["q"][..., ::2, 0] *= -1
    return inputs


def any_heads(rng: np.random.Generator, least: int = 0, steep: bool = True) -> Inputs:
    """Draw q, k and v of any size, (T, D) with `least` heads of 0, causal or not; some with scores far from 0."""
    shape = (edge_size(rng, 3),) * bool(least) + (edge_size(rng, 9), edge_size(rng, 6))
    drawn = normals(rng, q=shape, k=shape, v=shape)
    drawn = far(drawn) if steep and rng.random() < 0.3 else drawn
    return drawn | ({} if rng.random() < 0.2 else {"causal": bool(rng.random() < 0.6)})


def steep(rng: np.random.Generator, *shape: int) -> Inputs:
    """Draw q, k and v with scores of many hundreds, above and below 0, and hundreds apart."""
    drawn = normals(rng, q=shape, k=shape, v=shape)
    return far(drawn | {"q": drawn["q"] * np.float32(200)})


def any_block(rng: np.random.Generator) -> Inputs:
    """Draw a block of scores, and what the row had before it: nothing, in a third of draws."""
    t, b = edge_size(rng, 6), edge_size(rng, 40)
    drawn = normals(rng, scores=(t, b), largest=(t,), total=(t,))
    drawn["scores"] *= np.float32(rng.choice([1, 200]))
    drawn["largest"] *= np.float32(rng.choice([1, 200]))
    drawn["total"] = 1 + abs(drawn["total"])
    if rng.random() < 0.3:
        drawn["largest"][:], drawn["total"][:] = -np.inf, 0
    return drawn


def any_blocks(rng: np.random.Generator) -> Inputs:
    """Draw q, k and v of any size, and a block of any."""
    return any_heads(rng, least=1) | {"block": edge_size(rng, 10)}
