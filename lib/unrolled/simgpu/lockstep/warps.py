"""What threads of a block or of a warp do together: barriers and shuffles."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.simgpu.lockstep import faults
from unrolled.simgpu.lockstep.lanes import WARP, Mask, Value
from unrolled.simgpu.lockstep.state import Run


def barrier(run: Run, mask: Mask, line: int) -> None:
    """Let all threads of a block wait for each other. Raises KernelFault if some of them are not here."""
    if not mask.full:
        here = mask.spread
        missing = here.any(axis=1, keepdims=True) & run.batch.all.spread & ~here
        _check(run, missing, line, "does not reach this barrier, and others of its block do")
    rows = mask.spread.any(axis=1)
    run.counts.barriers += int(np.count_nonzero(rows)) * (run.batch.blocks // len(rows))
    run.clock.barrier(mask)


def warp_barrier(run: Run, mask: Mask, lanes: int, line: int) -> None:
    """Let the threads of a warp that `lanes` names wait for each other. Those that have left the kernel may be missing.

    Raises KernelFault if others are.
    """
    _check(run, _missing(run, mask, lanes), line, "does not reach this syncwarp, and others of its warp do")
    run.clock.warp_barrier(mask)


def _missing(run: Run, mask: Mask, lanes: int) -> Any:
    """Threads that `lanes` names, bit by bit, and that are not here, in warps where others are."""
    named = (lanes >> (run.batch.thread % WARP)) & 1 == 1
    there = run.batch.all.lanes & ~run.kernel.returned.lanes & named
    rows = max(mask.spread.shape[0], there.shape[0])
    here = np.broadcast_to(mask.spread, (rows, run.batch.width))
    met = here.reshape(rows, -1, WARP).any(axis=2).repeat(WARP, axis=1)
    return met & there & ~here


def _check(run: Run, missing: Any, line: int, text: str, kind: str = faults.BARRIER) -> None:
    if missing.any():
        raise run.fault(kind, line, text, run.batch.all.first(missing))


def shuffle(run: Run, mask: Mask, kind: str, value: Value, by: Value, size: int, lanes: int, line: int) -> Value:
    """Return the value of another lane of the warp, by the rules of `__shfl_sync` and its kin (kind: up_, down_, xor_).

    Raises KernelFault where that lane takes no part, since its value is then undefined.
    """
    text = "is named by the shuffle's mask and does not reach it, and others of its warp do"
    _check(run, _missing(run, mask, lanes), line, text, faults.SHUFFLE)
    thread = run.batch.thread
    lane, offset = thread % WARP, np.asarray(by).astype(np.int64)
    first = lane // size * size
    source = {
        "": first + offset % size,
        "up_": np.where(lane - offset < first, lane, lane - offset),
        "down_": np.where(lane + offset >= first + size, lane, lane + offset),
        "xor_": np.where((lane ^ offset) >= first + size, lane, lane ^ offset),
    }[kind]
    place = thread - lane + np.clip(source, 0, WARP - 1)
    rows = max(place.shape[0], mask.spread.shape[0])
    taking = np.take_along_axis(np.broadcast_to(mask.spread, (rows, run.batch.width)), _rows(place, rows), axis=1)
    wrong = mask.lanes & ~taking
    if wrong.any():
        raise run.fault(faults.SHUFFLE, line, "takes the value of a lane that takes no part", mask.first(wrong))
    if np.ndim(value) == 0 or value.shape[1] == 1:
        return value
    rows = max(place.shape[0], value.shape[0])
    return np.take_along_axis(_rows(value, rows), _rows(place, rows), axis=1)


def _rows(x: Any, rows: int) -> Any:
    return np.broadcast_to(x, (rows, x.shape[1]))
