"""Work for a GPU whose seconds are known, and what is wrong with a clock that tells something else."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from unrolled import device
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Function, Inputs
from unrolled.device import Array

WARM_UP = 30
"""The first call takes as long as so many others, as if kernels were compiled in it."""
MODELLED, MEASURED = 0.10, 0.35
"""How far an answer may lie from the truth, as a share of it."""
KEPT = 64
"""Calls whose events are kept."""
ON_REAL_GPU = 50
"""Times as many products on a real GPU: it needs only microseconds for one."""


class Work:
    """A function that gives the GPU some work and returns at once: products of x with itself, thrown away.

    It knows when the GPU began and ended each call, from events beside the work.
    """

    def __init__(self, products: int) -> None:
        self.products = products
        self.calls = 0
        self._events: list[tuple[Any, Any]] = []
        self._module: Any = None  # none before the first call, so that it can be copied

    def __call__(self, x: Array) -> None:
        """Work on x (K, N), wherever it lies. Returns nothing, and at once."""
        module = self._module = device.array_module(x)
        self.calls += 1
        rounds = WARM_UP if self.calls == 1 else 1
        if module is np:
            self._multiply(x, rounds)
            return
        start, end = module.cuda.Event(), module.cuda.Event()
        start.record()
        self._multiply(x, rounds)
        end.record()
        if self.calls > 1:
            self._events = [*self._events[1 - KEPT :], (start, end)]

    def _multiply(self, x: Array, rounds: int) -> None:
        real = self._module is not np and not device.is_simulated(self._module)
        for _ in range(rounds * self.products * (ON_REAL_GPU if real else 1)):
            x.T @ x

    def seconds(self) -> float | None:
        """Return the seconds that one call costs the device; None before a second call, and for NumPy."""
        if not self._events:
            return None
        device.synchronize(self._module)
        return statistics.median(float(self._module.cuda.get_elapsed_time(*pair)) / 1000 for pair in self._events)

    def tolerance(self) -> float:
        """Return how exactly this device's time can be told."""
        return MODELLED if device.is_simulated(self._module) else MEASURED


def honest_seconds(function: Function, x: Array, calls: int = 20) -> float:
    """Return the seconds of one call of function(x) on the device: the mean of many, between two waits."""
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return float(device.clock(x) - start) / calls


def work(rng: np.random.Generator, products: int) -> Inputs:
    """Draw work and the matrix for it.

    It takes the modelled T4 a millisecond and a CPU less: float64, and a result of a single tile, so that one of forty
    multiprocessors works and the others do not.
    """
    return {"function": Work(products), "x": rng.standard_normal((int(rng.integers(400, 513)), 64))}


def honest(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether `got` are the seconds of a call, by the events of the work itself."""
    task: Work = inputs["function"]
    if found := mismatch(got, 1.0, float("inf")):
        return found
    if task.calls < 2:
        said = f"your function was given work, and it was {'called once' if task.calls else 'never called'}"
        return Mismatch((f"{said}: call it once before the clock starts, and again while it runs",))
    true = task.seconds()
    if true is None or abs(got - true) <= task.tolerance() * true:
        return None
    said = f"got {got * 1e6:,.0f} µs; by events on the GPU itself a call takes {true * 1e6:,.0f} µs"
    return Mismatch((said, _why(float(got), true, task.calls)))


def _why(got: float, true: float, calls: int) -> str:
    """Say the likeliest reason, by the ratio of what was told and what is true."""
    if got <= 0:
        return "seconds are positive: the clock's end minus its start"
    reasons = {
        "this is the time of all calls together: divide by their number": (calls, calls - 1),
        "these are milliseconds: get_elapsed_time gives milliseconds, and seconds are asked": (1e3,),
        "these are microseconds: seconds are asked": (1e6,),
        "the work of the first call is in it: make that call before the clock starts, and wait for the device before "
        "you start it": tuple((WARM_UP - 1 + n) / m for n in (calls, calls - 1) for m in (calls, calls - 1)),
    }
    for says, ratios in reasons.items():
        if any(abs(got / true / ratio - 1) < 0.12 for ratio in ratios if ratio > 1.2):
            return says
    if got < true:
        return "the clock stopped before the device was done: wait, device.synchronize(x), before you read it. " + CLOCK
    return "that is too long: does something else run between the two readings? " + CLOCK


CLOCK = "And let it be device.clock(x): on a simulated GPU time.perf_counter() tells how long this computer was busy"
