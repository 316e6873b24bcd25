"""Measure how long one function takes, and two ceilings of a machine: the speed of copies and of matrix products.

For showing: nothing is decided from an absolute time.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from unrolled import device
from unrolled.timing import blocks, rule
from unrolled.timing.blocks import BlockTimer, Inputs, blas_threads, block_timer
from unrolled.timing.verdict import TimedBlock

SHORT_BLOCK = 0.001  # seconds: far above the clock's resolution
# Enough that the synchronization hardly counts; never by the real clock, or times would vary with it.
MODELLED_CALLS = 16

COPY_BYTES = 128 * 2**20  # a buffer; two of them are several times any cache of a CPU
MATMUL_SIZE = 768
CEILING_BUDGET = 0.4  # seconds


@dataclass(frozen=True)
class Measurement:
    """Seconds per call: the median of the blocks, and the 95 % interval of that median from `low` to `high`.

    `device` is "modelled, T4" where a simulated GPU gave the times, else empty.
    """

    seconds: float
    low: float
    high: float
    calls: int
    blocks: tuple[TimedBlock, ...]
    threads: str
    device: str = ""

    def __str__(self) -> str:
        low, high = duration(self.low), duration(self.high)
        how = f"; {self.device}" if self.device else ""
        return f"{duration(self.seconds)} per call ({low} to {high}, {self.calls} call{'s' * (self.calls > 1)}{how})"


def measure(function: Callable[..., Any], inputs: Inputs | Sequence[Inputs], *, budget: float = 0.5) -> Measurement:
    """Measure the median seconds per call of `function` within about `budget` seconds, after a warm-up call.

    `inputs`: keyword arguments, or a sequence of such dictionaries that is gone through cyclically. One BLAS thread
    times. On the host, a first call longer than the budget is all that is
    measured. Work on a GPU, where the first call may compile, is warmed up for half a second besides; its time is that
    between two events, to a device-wide synchronization. On the simulated GPU the time is modelled: no budget counts.
    Where the notebook is being graded the budget is 0: a class of hundreds need not wait for figures to be exact.
    Raises ValueError for an empty sequence.
    """
    cases = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if not cases:
        raise ValueError("inputs is empty; expected keyword arguments, or a sequence of such dictionaries")
    if is_graded():
        budget = 0.0
    start = time.perf_counter()
    with blas_threads(1) as threads_in_words:
        result = function(**cases[0])
        first = time.perf_counter() - start
        module = blocks.device_module(cases[0], result)
        del result  # its memory goes back to the pool of a device
        if module is not np:
            timed = _blocks_on(module, block_timer(function, cases, module), budget)
        elif first > budget:
            timed = [TimedBlock(1, first)]
        else:
            timed = _blocks(block_timer(function, cases), budget, start)
        seconds = [block.wall / block.calls for block in timed]
        low, high = rule.median_interval(seconds)
        calls, where = sum(block.calls for block in timed), blocks.in_words(module)
        return Measurement(statistics.median(seconds), low, high, calls, tuple(timed), threads_in_words(), where)


def is_graded() -> bool:
    """Return whether a notebook is run in order to grade it, by our judge or by nbgrader itself."""
    return "UNROLLED_GRADING" in os.environ or os.environ.get("NBGRADER_EXECUTION") == "autograde"


def _blocks(block: BlockTimer, budget: float, start: float, calls: int = 1) -> list[TimedBlock]:
    """Blocks of at least 1 ms until `budget` seconds after `start`: at least one."""
    while (wall := block(calls).wall) < SHORT_BLOCK:
        calls = blocks.longer(calls, wall, SHORT_BLOCK)
    timed = [TimedBlock(calls, *block(calls))]
    while time.perf_counter() - start + timed[-1].wall < budget:
        timed.append(TimedBlock(calls, *block(calls)))
    return timed


def _blocks_on(module: device.Module, block: BlockTimer, budget: float) -> list[TimedBlock]:
    """Blocks on a device, once it is warm. A model does not waver: one block of it, of the same calls everywhere."""
    if device.is_simulated(module):
        block(blocks.ON_SIMULATED.calls)
        calls = max(1, min(MODELLED_CALLS, math.ceil(SHORT_BLOCK / max(block(1).wall, blocks.SHORTEST))))
        return [TimedBlock(calls, *block(calls))]
    warm = blocks.warm_up_on(module)
    seconds = blocks.warm_up(block, warm, patience=max(warm.seconds, budget) if budget else 0.0, shortest=SHORT_BLOCK)
    return _blocks(block, budget, time.perf_counter(), calls=max(1, math.ceil(SHORT_BLOCK / seconds)))


def duration(seconds: float) -> str:
    """Return seconds in words, with three digits and a unit: 1.23 ms."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 0.9995:  # 0.9999 s is 1 s, not 1e+03 ms
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if abs(seconds) >= 1e-12 else "0 ns"  # below: what a difference of times leaves


def copy_bandwidth() -> float:
    """Return the bytes per second that copying a large array moves, read and write both counted, as STREAM counts them.

    By one thread, and the best of several copies: a ceiling is what the machine can do. (J. McCalpin, STREAM, 1995.)
    """
    source, target = np.full(COPY_BYTES // 8, 1.0), np.empty(COPY_BYTES // 8)
    return 2 * COPY_BYTES / _fastest(partial(np.copyto, target, source), 1)


def matmul_peak(dtype: DTypeLike = np.float32, threads: int = 1) -> float:
    """Return the floating-point operations per second of a product of two matrices of 768 x 768, by the best time."""
    rng, shape = np.random.default_rng(0), (MATMUL_SIZE, MATMUL_SIZE)
    a, b = (rng.random(shape, dtype=np.float32).astype(dtype) for _ in range(2))
    out = np.empty(shape, dtype=dtype)
    return 2 * MATMUL_SIZE**3 / _fastest(lambda: np.matmul(a, b, out=out), threads)


def _fastest(function: Callable[[], object], threads: int) -> float:
    """Seconds of the fastest call in about 0.4 s, after one that does not count; where it is graded, of one call."""
    block = block_timer(function, [{}])
    with blas_threads(threads):
        block(1)
        end = time.perf_counter() + (0.0 if is_graded() else CEILING_BUDGET)
        walls = [block(1).wall]
        while time.perf_counter() <= end:
            walls.append(block(1).wall)
    return min(walls)
