"""The bound of a step: what `roofline_bound` must give, and what is usually computed instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from unrolled.checks.compare import Mismatch, first_mismatch, mismatch
from unrolled.checks.exercises.l07_profiling.traces import no_pair
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Function, Inputs
from unrolled.timing.measuring import duration

Bound = tuple[float, str]
Kernels = Sequence[tuple[float, ...]]  # (flops, bytes) of each
Sums = dict[str, float]

LIMITS = "memory", "arithmetic"


def bound(
    kernels: Kernels,
    peak: float,
    bandwidth: float,
    launch: float,
    *,
    slower: Function = max,
    together: Function = max,
) -> Bound:
    """Return (least seconds of a step, what sets them): Williams, Waterman and Patterson's roofline, and launches."""
    seconds = _sums(kernels, peak, bandwidth, slower)
    work, host = sum(seconds.values()), len(kernels) * launch
    limit = "launches" if host > work else _longest(seconds)
    return float(together(work, host)), limit


def _sums(kernels: Kernels, peak: float, bandwidth: float, slower: Function = max) -> Sums:
    """Return the seconds of the kernels that memory holds up, and of those that arithmetic does."""
    seconds = dict.fromkeys(LIMITS, 0.0)
    for flops, nbytes in kernels:
        took, limit = slower((nbytes / bandwidth, "memory"), (flops / peak, "arithmetic"))
        seconds[limit] += took
    return seconds


def _totals(kernels: Kernels, peak: float, bandwidth: float, launch: float) -> Sums:
    """Return the seconds that all bytes and all flops would take, as if they were one kernel's."""
    flops, nbytes = map(sum, zip(*kernels, strict=True))
    return {"memory": nbytes / bandwidth, "arithmetic": flops / peak}


def _longest(seconds: Sums) -> str:
    return max(seconds, key=lambda name: seconds[name])


def _seconds(says: str, seconds: Callable[..., float]) -> Mistake:
    """Return the mistake of seconds(kernels, peak, bandwidth, launch)."""
    return Mistake(says, lambda **step: (seconds(**step), ""))


def _some(says: str, change: Callable[[Kernels], Kernels]) -> Mistake:
    """Return the mistake of the bound of what `change` leaves of the kernels, where all are launched."""

    def seconds(kernels: Kernels, launch: float, **gpu: Any) -> float:
        return max(bound(change(kernels), **gpu, launch=0)[0], len(kernels) * launch)

    return _seconds(says, seconds)


MISTAKES = (
    _some(
        "the totals of all kernels went into one roofline: while one kernel waits for memory, the arithmetic that "
        "another will need lies idle. Bound each kernel, then add up",
        lambda kernels: [tuple(map(sum, zip(*kernels, strict=True)))],
    ),
    Mistake("of the two times of a kernel the longer one holds, not the shorter", partial(bound, slower=min)),
    _some(
        "a kernel moves and computes at the same time: the longer of the two holds, not the sum",
        lambda kernels: [part for flops, nbytes in kernels for part in ((flops, 0.0), (0.0, nbytes))],
    ),
    Mistake(
        "launches and work are added up: the host goes ahead while the GPU works, so the longer of the two holds",
        partial(bound, together=lambda work, host: work + host),
    ),
    _seconds(
        "the seconds of one launch are compared with each kernel: the host goes ahead, so while a long kernel runs it "
        "hands out the next ones. Compare the sum of the launches with the sum of the work",
        lambda kernels, peak, bandwidth, launch: sum(max(n / bandwidth, flops / peak, launch) for flops, n in kernels),
    ),
    given(
        "each kernel has to be launched: there are as many launches as kernels",
        launch=lambda kernels, launch: launch / len(kernels),
    ),
    given("the launches are missing: the host needs `launch` seconds for each kernel", launch=lambda launch: 0.0),
    given(
        "bytes and flops are exchanged: a kernel is (flops, bytes)", kernels=lambda kernels: [k[::-1] for k in kernels]
    ),
    Mistake("of the launches and the GPU's work the longer one holds, not the shorter", partial(bound, together=min)),
    _some("only the first kernel is in it: does the loop return too early?", lambda kernels: kernels[:1]),
    _seconds(
        "only one kernel is in it, the longest or the last: the GPU does one after the other, so add up, with +=",
        lambda kernels, peak, bandwidth, launch: max(
            *(bound([kernel], peak, bandwidth, 0)[0] for kernel in kernels), len(kernels) * launch
        ),
    ),
    given(
        "you multiplied: seconds are flops / peak and bytes / bandwidth",
        peak=lambda peak: 1 / peak,
        bandwidth=lambda bandwidth: 1 / bandwidth,
    ),
    _seconds(
        "seconds are flops / peak and bytes / bandwidth, not the other way round",
        lambda kernels, peak, bandwidth, launch: sum(
            max(peak / flops, bandwidth / n) if flops and n else math.inf for flops, n in kernels
        ),
    ),
    result("these are milliseconds; seconds are asked", lambda y: (1e3 * y[0], y[1])),
    result("these are microseconds; seconds are asked", lambda y: (1e6 * y[0], y[1])),
    result("this is the mean of the kernels; the step takes their sum", lambda y, kernels: (y[0] / len(kernels), y[1])),
    result(
        "these are flop/s; the seconds of the step are asked",
        lambda y, kernels: (sum(flops for flops, _ in kernels) / y[0], y[1]),
    ),
)


def _of_most_kernels(kernels: Kernels, peak: float, bandwidth: float, launch: float) -> str:
    memory = sum(nbytes / bandwidth > flops / peak for flops, nbytes in kernels)
    return LIMITS[memory <= len(kernels) / 2]


WRONG_LIMITS: dict[str, Callable[..., str]] = {
    "that is what sets the longest kernel: add up the seconds of all": lambda kernels, peak, bandwidth, launch: bound(
        [max(kernels, key=lambda kernel: bound([kernel], peak, bandwidth, 0)[0])], peak, bandwidth, 0
    )[1],
    "all flops and all bytes were added up first: a kernel that waits for memory leaves its arithmetic idle. Sort the "
    "kernels, then add up the seconds of each sort": lambda **step: _longest(_totals(**step)),
    "the launches have to be longer than memory and arithmetic together": lambda kernels, launch, **gpu: _longest(
        {**_sums(kernels, **gpu), "launches": len(kernels) * launch}
    ),
    "count the seconds of the kernels, not the kernels": _of_most_kernels,
}
"""What gives a wrong limit beside the right seconds, where launches do not set the pace; by what is said then."""


def same_bound(got: Any, expected: Bound, inputs: Inputs) -> Mismatch | None:
    """Judge whether the seconds and what sets them are right; the first usual mistake is named."""
    if lines := no_pair(got, f"such as ({expected[0]:.4g}, {expected[1]!r})", str):
        return Mismatch(lines)
    if found := first_mismatch([("seconds", got[0], expected[0])], 1e-6):
        known = [m.says for m in MISTAKES if mismatch(got[0], m.of(bound)(**inputs)[0], 1e-6) is None]
        return Mismatch((*found.lines, *known[:1]))
    return None if got[1] == expected[1] else Mismatch(tuple(_other_limit(got[1], expected[1], inputs)))


def _other_limit(got: str, expected: str, inputs: Inputs) -> list[str]:
    """Say what sets the pace, by the sums that decide it, and what was probably compared instead."""
    seconds = _sums(inputs["kernels"], inputs["peak"], inputs["bandwidth"])
    known = [says for says, limit in WRONG_LIMITS.items() if expected != "launches" and limit(**inputs) == got]
    return [
        f"the seconds are right, but what sets them is {expected!r}, not {got!r:.40}",
        f"the kernels that wait for memory take {duration(seconds['memory'])}, those that wait for arithmetic "
        f"{duration(seconds['arithmetic'])}, all launches {duration(len(inputs['kernels']) * inputs['launch'])}",
        *known[:1],
    ]
