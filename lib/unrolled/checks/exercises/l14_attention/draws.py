"""What the exercises of lesson 14 are given: heads of any size, blocks of scores, gradients, one long head."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l14_attention import forms
from unrolled.checks.spec import Inputs, normal, normals

FAR = 1000.0  # a score of which exp is infinite in float64 too, and below zero 0
WIDE, ROWS, TILE = 32, 8, 32  # D, and queries and keys of a tile


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


def any_gradient(rng: np.random.Generator) -> Inputs:
    """Draw what the backward pass is given, for q, k and v of any size."""
    drawn = any_heads(rng, least=1, steep=False)
    drawn.pop("causal", None)
    return with_gradient(drawn | {"block": edge_size(rng, 10)}, rng)


def with_gradient(inputs: Inputs, rng: np.random.Generator) -> Inputs:
    """Return the inputs with a gradient by the output, the output, and the logarithms of the sums."""
    q, k, v = (inputs[name] for name in "qkv")
    scores = q @ k.swapaxes(1, 2) / np.float32(sqrt(q.shape[2]))
    largest = scores.max(axis=2)
    logsumexp = largest + np.log(np.exp(scores - largest[:, :, None]).sum(axis=2))
    return {"grad": normal(*q.shape).make(rng), **inputs, "y": forms.plain(q, k, v), "logsumexp": logsumexp}


def sized(rng: np.random.Generator) -> Inputs:
    """Draw what the backward pass is given, for 40 queries, with scores of which exp is infinite in float32."""
    return with_gradient(far(normals(rng, q=(2, 40, 5), k=(2, 40, 5), v=(2, 40, 5)), 130) | {"block": 3}, rng)


def any_sequence(rng: np.random.Generator) -> Inputs:
    """Draw q, k and v of any length; some with scores far from 0."""
    t = edge_size(rng, 40)
    drawn = normals(rng, q=(t, WIDE), k=(t, WIDE), v=(t, WIDE))
    return far(drawn) if rng.random() < 0.3 else drawn
