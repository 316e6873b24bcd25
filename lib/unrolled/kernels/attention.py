"""Attention in one launch: a block of threads has some queries of a head, and goes over its keys, a tile at a time.

The scores of a tile are in registers, 8 x 8 a thread, and go through shared memory once, as weights. So the GPU's
memory sees q, k, v and the output, and no scores. float32 and float16 come in; all is computed in float32.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np

from unrolled.device import Array, array_module
from unrolled.kernels.kernel import Arrays, Constants, Kernel, Options, constants, runs_on, source
from unrolled.kernels.persistent import room

LARGEST_D, DOWN, THREADS = 128, 16, 128  # as in the source
ROWS = 8, 4, 2, 1  # queries of a thread


def attention_constants(q: Array, causal: bool) -> Constants | None:
    """Return the kernel's constants for queries (N, H, T, D), None if it does not take such.

    A block has as many queries as its shared memory has room for. T and S come with each launch: they compile nothing.
    """
    module, (_, heads, _, d) = array_module(q), q.shape
    if q.dtype.char not in "fe" or not runs_on(module) or d > LARGEST_D:
        return None
    most = room(module)[1]
    sizes = (rows for rows in ROWS[d > 64 :] if _shared({"d": d, "rows": rows}) <= most)
    rows = next(sizes, None)
    return None if rows is None else constants(d=d, heads=heads, causal=causal, rows=rows)


def _shared(options: Options) -> int:
    """Bytes of shared memory: queries, keys and values of a tile, weights."""
    d, queries = options["d"], DOWN * options["rows"]
    width, keys = -(-d // 32) * 32, 64 if d <= 64 else 32
    return int(4 * (queries * (width + 4) + keys * (width + 4) + keys * width + queries * (keys + 8)))


def _threads(size: int, options: Options) -> int:
    """A block for each so many queries of a head, of `size` queries in all."""
    t = int(options["queries"])
    return size // t * -(-t // int(DOWN * options["rows"])) * THREADS


def _attention(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (q, k, v, lengths), (y, logsumexp) = inputs, outputs
    n, h, t, d = q.shape
    expected = {"d": d, "heads": h, "queries": t, "keys": k.shape[2]}
    if k.shape != v.shape or k.shape[:2] != (n, h) or any(options[name] != size for name, size in expected.items()):
        raise ValueError(f"q {q.shape}, k {k.shape} and v {v.shape} do not fit {dict(options)}")
    places = np.arange(k.shape[2])
    for sample, head in np.ndindex(n, h):
        own, keys, values = (x[sample, head].astype(np.float32, copy=False) for x in (q, k, v))
        seen = (places < lengths[sample]) & ((places <= np.arange(t)[:, None]) | (not options["causal"]))
        scores = np.where(seen, own @ keys.T / np.float32(sqrt(d)), -inf)
        largest = np.where(seen.any(axis=1), scores.max(axis=1), 0)
        weights = np.exp(scores - largest[:, None], dtype=np.float32)
        total = weights.sum(axis=1)
        some = np.where(total == 0, np.float32(1), total)
        y[sample, head] = weights @ values / some[:, None]
        logsumexp[sample, head] = np.where(total == 0, inf, largest + np.log(some))


attention = Kernel(
    "attention",
    source("attention"),
    _attention,
    lambda inputs, outputs, options: 4 * inputs[0].size * inputs[1].shape[2],
    size=lambda inputs, outputs: int(outputs[1].size),
    threads=_threads,
    block=THREADS,
    shared_bytes=_shared,
)
"""(q (N, H, T, D), k, v (N, H, S, D), lengths (N,) of int64) to (y, logsumexp (N, H, T) of float32)."""
