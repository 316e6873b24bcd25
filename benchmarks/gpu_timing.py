"""Timing on a GPU, for gpu.py: events on the device, the host's share of a call, two sides in turn."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import cupy as cp

Step = Callable[[], Any]
WARM_UP = 3
SPIN = r"""
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""


@cache
def spinner() -> Any:
    """Return a kernel that keeps the device busy, so that the host gets ahead of it."""
    return cp.RawKernel(SPIN, "spin")


def synchronize() -> None:
    cp.cuda.runtime.deviceSynchronize()


def seconds_between(first: Any, last: Any) -> float:
    last.synchronize()
    return float(cp.cuda.get_elapsed_time(first, last)) / 1e3


def block(step: Step, calls: int) -> float:
    """Return the seconds of one call, from `calls` calls in a row.

    They are timed by events, so whatever is slower counts, host or device.
    """
    synchronize()
    first, last = cp.cuda.Event(), cp.cuda.Event()
    first.record()
    for _ in range(calls):
        step()
    last.record()
    return seconds_between(first, last) / calls


def side_by_side(steps: Mapping[str, Step], calls: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of a call of each side, `rounds` times: in turn, in random order."""
    for step in steps.values():
        for _ in range(max(WARM_UP, calls // 4)):
            step()
    times: dict[str, list[float]] = {side: [] for side in steps}
    for _ in range(rounds):
        for side in random.sample(list(steps), len(steps)):
            times[side].append(block(steps[side], calls))
    return times


def host_seconds(step: Step, calls: int = 50, rounds: int = 7) -> float:
    """Return the seconds that the host needs to issue a call: it never waits, as long as the queue has room."""
    for _ in range(WARM_UP):
        step()
    found = []
    for _ in range(rounds):
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            step()
        found.append((time.perf_counter() - start) / calls)
        synchronize()
    return statistics.median(found)


def device_seconds(step: Step, host: float, calls: int = 40, rounds: int = 5) -> float:
    """Return the seconds that the device needs for a call, with the gap between two kernels.

    The host issues all of them while a kernel keeps the device busy. `host` is `host_seconds(step)`.
    """
    cycles = int(2e9 * (2 * calls * host + 300e-6))
    found = []
    for _ in range(rounds):
        synchronize()
        first, last = cp.cuda.Event(), cp.cuda.Event()
        spinner()((1,), (1,), (cycles,))
        first.record()
        for _ in range(calls):
            step()
        last.record()
        found.append(seconds_between(first, last) / calls)
    return statistics.median(found)


def costs(step: Step) -> dict[str, float]:
    """Return {"host_us", "device_us"}, in microseconds, of a call that does not wait."""
    host = host_seconds(step)
    return {"host_us": 1e6 * host, "device_us": 1e6 * device_seconds(step, host)}
