"""Work for a GPU whose seconds are known, and what is wrong with a clock that shows others."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import device
from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Draw, Function, Inputs
from unrolled.device import Array

WARM_UP = 20  # the first call takes as long as so many others, as if kernels were compiled in it
MODELLED, MEASURED = 0.15, 0.35  # how far an answer may lie from the truth, as a share of it
CALLS = 10  # calls with which the truth is found


class Work:
    """A function that gives the GPU some work and returns at once; it does nothing on NumPy.

    The work is `kernel(x)`, `times` times, thrown away; on a real GPU large products, since it would be done with small
    kernels before the host can ask for the next.
    """

    def __init__(self, kernel: Function, times: int) -> None:
        self.kernel, self.times = kernel, times
        self.calls = 0
        self._x: Any = None  # what the last call was given; none before the first, so that it can be copied

    def __call__(self, x: Array) -> None:
        """Work on x (K, N), where it lies. Returns nothing, and at once."""
        self.calls += 1
        self._x = x
        self._work(WARM_UP if self.calls == 1 else 1)

    def _work(self, rounds: int = 1) -> None:
        x, module = self._x, device.array_module(self._x)
        for _ in range(0 if module is np else rounds * self.times):
            if device.is_simulated(module):
                self.kernel(x)
            else:
                product = x @ x.T
                product @ product

    def seconds(self) -> tuple[float, float] | None:
        """Return (seconds of one call among many, of one that is waited for); None without an array on a GPU."""
        if self._x is None or device.array_module(self._x) is np:
            return None
        cuda = device.array_module(self._x).cuda
        start, end = cuda.Event(), cuda.Event()
        self._work()  # the GPU is at work while the host hands over the rest
        start.record()
        for _ in range(CALLS):
            self._work()
        end.record()
        device.synchronize(self._x)
        begun = device.clock(self._x)
        self._work()
        device.synchronize(self._x)
        alone = device.clock(self._x) - begun
        return float(cuda.get_elapsed_time(start, end)) / 1000 / CALLS, alone

    def tolerance(self) -> float:
        """Return how exactly this device's time is known."""
        return MODELLED if device.is_simulated(device.array_module(self._x)) else MEASURED


def honest_seconds(function: Function, x: Array, calls: int = 20) -> float:
    """Return the seconds of one call of function(x) on the device: the mean of many, between two waits."""
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return float(device.clock(x) - start) / calls


SHORT: Inputs = {
    "function": Draw(lambda rng: Work(lambda x: x * x, 1)),
    "x": Draw(lambda rng: np.full((2200, 512), rng.random(), np.float32)),
}
"""Work that takes the modelled T4 twice as long as the host needs to ask for it: each wait shows.

NumPy takes many times as long for it, so that this computer's clock never tells the modelled seconds.
"""


def long_work(rng: np.random.Generator) -> Inputs:
    """Draw work that takes the modelled T4 some milliseconds, and NumPy less.

    It is float64, and each result is a single tile, so that one of forty multiprocessors works.
    """
    x = rng.random((2 * int(rng.integers(200, 257)), 64))
    return {"function": Work(lambda x: x.T @ x, 3), "x": x, "calls": 2 * int(rng.integers(4, 8))}


def honest(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge whether `got` are the seconds of a call, by the events of the work itself."""
    task: Work = inputs["function"]
    if found := mismatch(got, 1.0, float("inf")):
        return found
    if task.calls < 2:
        calls = "never called" if not task.calls else "called once"
        advice = "call it once before the clock starts, and again while it runs"
        return Mismatch((f"your function was given work, and it was {calls}: {advice}",))
    if (found_seconds := task.seconds()) is None:
        return Mismatch(("the work was given an array on the host: call function(x) with x as it comes",))
    true, alone = found_seconds
    if abs(got - true) <= task.tolerance() * true:
        return None
    line = f"got {_micro(got)}; by events on the GPU itself a call among many takes {_micro(true)}"
    return Mismatch((line, _why(float(got), true, alone, task.calls)))


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def _why(got: float, true: float, alone: float, calls: int) -> str:
    """Say the likeliest reason, by the ratio of the answer and the truth."""
    if got <= 0:
        return "seconds are positive: the clock's end minus its start"
    if abs(got / alone - 1) < 0.12:
        return (
            "so long takes a call that the host waits for: the GPU has nothing to do while the next one is handed "
            "over. Make many calls, wait once, and divide. (Or the work of the first call is in it: wait for the "
            "device before you start the clock, too)"
        )
    if got < true and calls <= 2:
        return f"{TOO_EARLY}. Or it ran for one call: make many, and divide by as many as there were"
    first = "the work of the first call is in it: make that call before the clock starts, and wait for the device "
    first += "before you start it"
    counts, waiting = (calls, calls - 1), alone / true
    reasons = {
        "this is the time of all calls together: divide by their number": counts,
        "these are milliseconds: get_elapsed_time gives milliseconds, and seconds are asked": (1e3, 1e3 * waiting),
        "these are microseconds: seconds are asked": (1e6, 1e6 * waiting),
        first: tuple((WARM_UP - 1 + n) / m for n in counts for m in counts if m),
        f"{first}. And the host waits after every call: wait once, after the last": tuple(
            (WARM_UP - 1 + calls - n + n * waiting) / n
            for n in counts
            if n and waiting > 1.2  # else nobody can tell
        ),
    }
    ratios = [(abs(got / true / ratio - 1), says) for says, them in reasons.items() for ratio in them if ratio > 1.2]
    distance, says = min(ratios)
    if distance < 0.12:
        return says
    if got < true:
        return f"{TOO_EARLY}. {CLOCK}"
    return (
        "that is too long: the work of the first call is in it if you do not wait for the device before you start the "
        "clock, or something else runs between the two readings. " + CLOCK
    )


TOO_EARLY = "the clock stopped before the device was done: wait, device.synchronize(x), before you read it"
CLOCK = "And let it be device.clock(x): on a simulated GPU time.perf_counter() tells how long this computer was busy"
