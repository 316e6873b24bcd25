"""The kernel: one head in tiles of shared memory, what it may read, and which keys an answer may miss."""

from __future__ import annotations

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l14_attention import forms
from unrolled.checks.exercises.l14_attention.draws import far
from unrolled.checks.mistakes import Function, Mistake
from unrolled.checks.spec import Budget, Inputs, normals
from unrolled.device import Array

WIDE, ROWS, TILE = 32, 8, 32  # D, and queries and keys of a tile


def any_sequence(rng: np.random.Generator) -> Inputs:
    """Draw q, k and v of any length; some with scores far from 0."""
    t = edge_size(rng, 40)
    drawn = normals(rng, q=(t, WIDE), k=(t, WIDE), v=(t, WIDE))
    return far(drawn) if rng.random() < 0.3 else drawn


def reads(inputs: Inputs) -> float:
    """Return the bytes of the queries once, and of keys and values once for each block of queries."""
    t = len(inputs["q"])
    return 1.05 * 4.0 * WIDE * (t + 2 * t * -(-t // ROWS))


TILES = Budget(
    launches=1,
    own=1,
    bank_conflicts=0,
    read_sectors=1.1,
    written_sectors=1.1,
    bytes_read=reads,
    bytes_written=lambda inputs: float(inputs["q"].nbytes),
    shared_bytes=48.0,
    working=0.25,
)


def single(q: Array, k: Array, v: Array) -> Array:
    """Attend with one head: q, k, v (T, D)."""
    return forms.blocks(q[None], k[None], v[None], TILE)[0]


def _with_keys(says: str, change: Function) -> Mistake:
    """Return the mistake of other keys and values, change(x) of each."""
    return Mistake(says, lambda q, k, v: forms.plain(q[None], change(k)[None], change(v)[None])[0])


MISTAKES = (
    _with_keys("only the first 32 keys are looked at: go through all tiles", lambda x: x[:TILE]),
    _with_keys(
        "keys that are not there have a part: beyond the last key there is no score, not a score of 0",
        lambda x: np.pad(x, ((0, -len(x) % TILE), (0, 0))),
    ),
    _with_keys(
        "only the last tile of keys is in it: largest, total and the sum begin once, before the loop",
        lambda x: x[(len(x) - 1) // TILE * TILE :],
    ),
)
