"""Which keys a query may look at: always the first ones, up to an end."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from unrolled.device import Array, array_module
from unrolled.ops.arguments import check_arrays, check_axes, check_shape


@dataclass(frozen=True)
class Mask:
    """Query t looks at keys up to its own place if `causal`, and at as many as `lengths` (B, 1, 1) says for its head.

    A block is the rows and columns of scores (B, T, S) that slices name.
    """

    causal: bool
    lengths: Array | None

    def stop(self, heads: slice, rows: slice, keys: int) -> int:
        """Return how many of the keys the queries of a block may look at; a GPU is not asked for its lengths."""
        if self.causal:
            keys = min(keys, rows.stop)
        if isinstance(self.lengths, np.ndarray):
            keys = min(keys, int(self.lengths[heads].max()))
        return keys

    def hide(self, scores: Array, heads: slice, rows: slice, columns: slice) -> None:
        """Make the scores of a block -inf where a query may not look."""
        module = array_module(scores)
        first = max(columns.start, rows.start + 1)  # the first key that not all may look at
        if self.causal and first < columns.stop:
            late = scores[:, :, first - columns.start :]
            places = module.arange(rows.start, rows.stop)[:, None]
            late[...] = module.where(module.arange(first, columns.stop) <= places, late, -inf)
        if self.lengths is not None and (module is not np or self.lengths[heads].min() < columns.stop):
            scores[...] = module.where(module.arange(columns.start, columns.stop) < self.lengths[heads], scores, -inf)


def mask_of(q: Array, k: Array, lengths: Array | None, causal: bool) -> Mask:
    """Return the mask for arguments that are checked."""
    if lengths is not None:
        n, h = q.shape[:2]
        lengths = (lengths[:, None] + array_module(q).zeros((1, h), dtype=lengths.dtype)).reshape(n * h, 1, 1)
    return Mask(causal, lengths)


def check(q: Array, k: Array, v: Array, lengths: Array | None, causal: bool) -> None:
    """Raise ValueError unless these arguments of `attention` fit together. Lengths are looked at in NumPy only."""
    check_arrays(q=q, k=k, v=v, lengths=lengths)
    check_axes("q", q, "N, H, T, D")
    check_axes("k", k, "N, H, S, D")
    (n, h, t, d), s = q.shape, k.shape[2]
    check_shape("k", k, (n, h, s, d), f"q {q.shape}")
    check_shape("v", v, k.shape, f"k {k.shape}")
    if not s or not d:
        raise ValueError(f"k has shape {k.shape}; expected at least one key, of at least one value")
    if causal and s != t:
        raise ValueError(f"k has shape {k.shape} with S = {s}, but q {q.shape} with T = {t}: causal needs T = S")
    if lengths is None:
        return
    check_shape("lengths", lengths, (n,), f"q {q.shape}")
    if lengths.dtype.kind not in "iu":
        raise ValueError(f"lengths are {lengths.dtype}; expected integers, the keys of each sample")
    if isinstance(lengths, np.ndarray) and n and not 0 <= lengths.min() <= lengths.max() <= s:
        raise ValueError(f"lengths are {lengths.min()} to {lengths.max()}; expected 0 to {s} for k of shape {k.shape}")
