"""Measure how long one function takes, for showing. Nothing is decided from an absolute time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unrolled.timing import rule
from unrolled.timing.blocks import Inputs, block_timer, device_module, longer
from unrolled.timing.threads import blas_threads
from unrolled.timing.verdict import Block

SHORT_BLOCK = 0.001  # seconds: far above the clock's resolution


@dataclass(frozen=True)
class Measurement:
    """Seconds per call: the median of the blocks, and the 95 % interval of that median from `low` to `high`."""

    seconds: float
    low: float
    high: float
    calls: int
    blocks: tuple[Block, ...]
    threads: str

    def __str__(self) -> str:
        low, high = _duration(self.low), _duration(self.high)
        return f"{_duration(self.seconds)} per call ({low} to {high}, {self.calls} call{'s' * (self.calls > 1)})"


def measure(
    function: Callable[..., Any],
    inputs: Inputs | Sequence[Inputs],
    *,
    budget: float = 0.5,
    threads: int | None = 1,
) -> Measurement:
    """Median seconds per call of `function` within about `budget` seconds, at least one call after a warm-up call.

    `inputs`: keyword arguments, or a sequence of such dictionaries that is walked through cyclically. `threads`: BLAS
    threads while timing; None leaves them alone. A first call longer than the budget is all that is measured.
    """
    cases = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if not cases:
        raise ValueError("inputs is empty; expected keyword arguments, or a sequence of such dictionaries")
    start = time.perf_counter()
    with blas_threads(threads) as held:
        result = function(**cases[0])
        first = time.perf_counter() - start
        if first > budget:
            return _measurement([Block(1, first)], held())
        block = block_timer(function, cases, device_module(cases[0], result))
        calls = 1
        while (wall := block(calls).wall) < SHORT_BLOCK:
            calls = longer(calls, wall, SHORT_BLOCK)
        blocks = [Block(calls, *block(calls))]
        while time.perf_counter() - start + blocks[-1].wall < budget:
            blocks.append(Block(calls, *block(calls)))
        return _measurement(blocks, held())


def _measurement(blocks: Sequence[Block], threads: str) -> Measurement:
    seconds = [block.wall / block.calls for block in blocks]
    low, high = rule.median_interval(seconds)
    return Measurement(
        statistics.median(seconds), low, high, sum(block.calls for block in blocks), tuple(blocks), threads
    )


def _duration(seconds: float) -> str:
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
