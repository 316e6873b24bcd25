"""What a request of a warp costs: 32-byte sectors of global memory, passes of shared memory's banks."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.simgpu.kernel_report import SECTOR
from unrolled.simgpu.lockstep.lanes import WARP, Mask, Value, spread

BANKS = 32
BANK_WIDTH = 4
"""Bytes of one bank; a value of 8 bytes takes two, and half a warp at a time."""


def sectors(elements: Value, mask: Mask, itemsize: int) -> tuple[int, int]:
    """Return (sectors that the active lanes of all warps touch, sectors that would hold their values side by side).

    elements: each lane's place, in values of `itemsize` bytes from the beginning of the memory.
    """
    if np.ndim(elements) == 0 or elements.shape[1] == 1:
        return mask.warps, mask.warps
    rows, idle, times = _rows(elements, mask, WARP)
    steps = np.diff(rows, axis=1)
    if (steps < 0).any():
        rows = np.sort(rows, axis=1)
        steps = np.diff(rows, axis=1)
    values = 1 + np.count_nonzero(steps, axis=1) - idle
    places = rows // (SECTOR // itemsize) if itemsize < SECTOR else rows  # -1 stays -1
    touched = 1 + np.count_nonzero(np.diff(places, axis=1), axis=1) - idle
    ideal = -(-values * itemsize // SECTOR)
    return int(touched.sum()) * times, int(ideal.sum()) * times


def passes(elements: Value, mask: Mask, itemsize: int) -> tuple[int, int]:
    """Return (passes that shared memory takes for the active lanes of all warps, passes without conflicts).

    Lanes that read one word share a pass; different words of one bank take one each.
    """
    if np.ndim(elements) == 0 or elements.shape[1] == 1:
        return mask.warps, mask.warps
    width = max(BANK_WIDTH, itemsize)
    banks = BANKS * BANK_WIDTH // width
    rows, _, times = _rows(elements, mask, banks)
    words = np.sort(rows * itemsize // width if itemsize < width else rows, axis=1)
    new = words >= 0
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    group = np.arange(len(words))[:, None] * banks + words % banks
    counts = np.bincount(group[new], minlength=banks * len(words)).reshape(-1, banks)
    return int(counts.max(axis=1).sum()) * times, int(np.count_nonzero(new.any(axis=1))) * times


def _rows(elements: Value, mask: Mask, size: int) -> tuple[Any, Any, int]:
    """Places in rows of lanes, -1 for idle ones; which rows have idle ones; how many blocks a row stands for."""
    places, batch = spread(elements, mask.batch), mask.batch
    if mask.full and batch.width == batch.threads:
        return places.reshape(-1, size), 0, batch.blocks // places.shape[0]
    places = np.where(mask.lanes, places, -1)
    rows = places.reshape(-1, size)
    return rows, (rows < 0).any(axis=1), batch.blocks // places.shape[0]


def split_warps(mask: Mask, yes: Mask) -> int:
    """Return how many warps have active lanes on both sides of a condition."""
    if not yes.count or yes.count == mask.count:
        return 0
    rows = np.broadcast_to(yes.lanes, np.broadcast_shapes(yes.lanes.shape, mask.spread.shape))
    taken = rows.reshape(-1, WARP)
    left = np.broadcast_to(mask.spread, rows.shape).reshape(-1, WARP) & ~taken
    split = int(np.count_nonzero(taken.any(axis=1) & left.any(axis=1)))
    return split * int(mask.batch.blocks // rows.shape[0])
