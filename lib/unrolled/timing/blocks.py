"""Blocks: some calls in a row, timed as a whole, and how many calls make a block.

On the host a block is timed by the wall clock. On a device it lies between two CUDA events, the second recorded after a
device-wide synchronization, so that work on any stream counts. The simulated GPU has the same events; its times are
those of its model, and the real clock has no part in them. What is kept still meanwhile: BLAS threads and collection.
"""

from __future__ import annotations

import gc
import itertools
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unrolled import device
from unrolled.timing.verdict import UNCONTROLLED

Inputs = Mapping[str, Any]
MIN_BLOCK, MAX_BLOCK = 0.010, 0.25  # seconds
SHORTEST = 1e-9  # seconds: stands for what the clock cannot resolve


class BlockTime(NamedTuple):
    """Seconds that a block took: by the wall clock or the device's, and in CPU time (NaN if unknown)."""

    wall: float
    cpu: float = math.nan


BlockTimer = Callable[[int], BlockTime]


@dataclass(frozen=True)
class WarmUp:
    """At least so many calls, and so many seconds, before anything counts."""

    calls: int = 2
    seconds: float = 0.0


ON_HOST = WarmUp()
ON_GPU = WarmUp(calls=10, seconds=0.5)
ON_SIMULATED = WarmUp()  # no clock that rises, no kernel to compile: but the second call finds memory in the pool
MODELLED_BLOCK = 0.001  # seconds of the model: it does not waver, so this only has to outweigh the synchronization


def block_timer(function: Callable[..., Any], inputs: Sequence[Inputs], module: device.Module = np) -> BlockTimer:
    """Return a timer of blocks of `function` in this process, without garbage collection.

    It goes through `inputs` cyclically and keeps its place from block to block. The work runs on the module's device.
    """
    walk, timed = itertools.cycle(inputs), _on_host if module is np else partial(_on_device, module)

    def block(calls: int) -> BlockTime:
        def run() -> None:
            for kwargs in itertools.islice(walk, calls):
                function(**kwargs)

        with no_collection():
            return timed(run)

    return block


def _on_host(run: Callable[[], None]) -> BlockTime:
    cpu, wall = cpu_seconds(), time.perf_counter()
    run()
    return BlockTime(time.perf_counter() - wall, cpu_seconds() - cpu)


def _on_device(module: device.Module, run: Callable[[], None]) -> BlockTime:
    """CPU seconds stay unknown: they say nothing of the work of a GPU."""
    start, end = module.cuda.Event(), module.cuda.Event()
    device.synchronize(module)
    start.record()
    run()
    device.synchronize(module)
    end.record()
    end.synchronize()
    return BlockTime(module.cuda.get_elapsed_time(start, end) / 1000)


def warm_up_on(module: device.Module) -> WarmUp:
    """Return how much warm-up work on this module's device needs."""
    return ON_HOST if module is np else ON_SIMULATED if device.is_simulated(module) else ON_GPU


def in_words(module: device.Module) -> str:
    """Return "modelled, T4" for the times of a simulated T4; "" for times that are measured."""
    return f"modelled, {module.profile().name}" if device.is_simulated(module) else ""


def warm_up(block: BlockTimer, warm: WarmUp, patience: float, shortest: float = MIN_BLOCK) -> float:
    """Run `block` until it is warm; return its seconds per call, by the shorter of two blocks of `shortest` seconds.

    After `patience` seconds return what there is, from one call at least.
    """
    calls, done, spent = 1, 0, 0.0
    walls: list[float] = []  # of the blocks of `calls` calls
    while True:
        wall = block(calls).wall
        walls.append(wall)
        done, spent = done + calls, spent + wall
        warmed = done >= warm.calls and spent >= warm.seconds
        if spent >= patience or (warmed and len(walls) >= 2 and wall >= shortest):
            return max(min(walls[-2:]) / calls, SHORTEST)
        if done >= warm.calls and wall < shortest:
            # Step by step, as these calls may still have been slow ones.
            calls, walls = longer(calls, wall, shortest), []


def longer(calls: int, wall: float, target: float) -> int:
    """Return more calls than the block of `wall` seconds had: enough for `target` seconds, at most 16 times as many."""
    return min(16 * calls, math.ceil(1.25 * calls * target / max(wall, SHORTEST)))


def block_calls(baseline: float, candidate: float, shortest: float = MIN_BLOCK) -> tuple[int, int]:
    """Return how many calls of (baseline, candidate) make a block, from their seconds per call.

    The slower side is called once, or as often as `shortest` seconds take; the faster side is repeated until both
    blocks are within 1.25x of each other, so that they stay within 1.5x when the machine wavers: under load, unequal
    blocks bias the ratio. No block grows beyond 0.25 s, unless a single call is longer than that.
    """
    slow, fast = max(baseline, candidate), min(baseline, candidate)
    slow_calls = max(1, math.ceil(shortest / slow))
    length = slow_calls * slow
    repeated = max(1, round(length / fast)) * fast
    even = max(length, repeated) <= 1.25 * min(length, repeated)
    if not even and 2 * length <= MAX_BLOCK:
        slow_calls, length = 2 * slow_calls, 2 * length  # twice as long a block always divides evenly enough
    fast_calls = max(1, round(min(length, MAX_BLOCK) / fast))
    return (slow_calls, fast_calls) if baseline >= candidate else (fast_calls, slow_calls)


def device_module(*values: Any) -> device.Module:
    """Return the array module of the first array among `values` that lies on a device; NumPy if all lie in host memory.

    The first 16 items of tuples, lists and dictionaries are looked at; what is no array is passed over.
    """
    for value in values:
        if isinstance(value, tuple | list | Mapping):
            items = value.values() if isinstance(value, Mapping) else value
            module = device_module(*itertools.islice(items, 16))
        else:
            try:
                module = device.array_module(value)
            except TypeError:  # no array
                continue
        if module is not np:
            return module
    return np


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    try:
        import resource
    except ImportError:  # Windows
        times = os.times()
        return time.process_time() + times.children_user + times.children_system
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@contextmanager
def no_collection() -> Iterator[None]:
    """Turn garbage collection off inside the block."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def blas_threads(threads: int) -> Iterator[Callable[[], str]]:
    """Hold BLAS (and OpenMP) to `threads` threads inside the block; yield a function that says in words what holds.

    "threads uncontrolled": threadpoolctl knows no BLAS, as with Apple's Accelerate, or one was loaded inside the block
    and runs more. Raises ValueError for fewer than one.
    """
    if threads < 1:
        raise ValueError(f"threads is {threads}; expected at least 1")
    import threadpoolctl

    def threads_in_words() -> str:
        pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
        if not pools or max(pools) > threads:
            return UNCONTROLLED
        return f"{threads} thread{'s' * (threads > 1)}"

    with threadpoolctl.threadpool_limits(threads):
        yield threads_in_words
