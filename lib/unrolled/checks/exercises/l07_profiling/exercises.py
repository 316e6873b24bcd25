"""Lesson 07: timing layers on a device, reading traces, repairing a planted bottleneck, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, first_mismatch, mismatch
from unrolled.checks.domain import edge_size
from unrolled.checks.exercises.l07_profiling import repairs, toy_device, traces
from unrolled.checks.exercises.l07_profiling.toy_device import on_toy
from unrolled.checks.exercises.l07_profiling.traces import no_pair
from unrolled.checks.mistakes import Mistake, given, result
from unrolled.checks.spec import Function, Inputs, Spec, case, gpu_case, random_case
from unrolled.timing.measuring import duration

TWO_LAYERS = [(0.001, 0.002), (0.003, 0.006)]

time_layers = Spec(
    reference=toy_device.timed,
    cases=[
        random_case("two layers on a CPU: 1 and 3 ms forward, 2 and 6 ms backward", on_toy, False, TWO_LAYERS),
        random_case("the same on a GPU, which works on while the host goes ahead", on_toy, True, TWO_LAYERS),
        random_case("a GPU that is still busy when you begin", on_toy, True, TWO_LAYERS, waiting=0.005),
    ],
    domain=random_case("any layers, on a CPU or a GPU", toy_device.any_toy),
    points=3,
    hints=(
        "A clock may only be read when nothing is going on. So wait, read, let one layer work, wait, read again. The "
        "end of one layer is the start of the next.",
        "Each layer gets what the one before it gave: x = layer.forward(x, True). On the way back the last layer comes "
        "first, and grad = layer.backward(grad). The backward times come in the opposite order: turn them round at "
        "the end.",
        "synchronize()\n"
        "start = clock()\n"
        "for layer in layers:\n"
        "    x = layer.forward(x, True)\n"
        "    synchronize()\n"
        "    end = clock()\n"
        "    forward.append(end - start)\n"
        "    start = end\n"
        "... the same for layer in reversed(layers), with grad = layer.backward(grad)\n"
        "return list(zip(forward, reversed(backward)))",
    ),
    mistakes=toy_device.TIMING_MISTAKES,
    compare=toy_device.same_times,
)

find_bottleneck = Spec(
    reference=traces.costliest,
    cases=[
        case("seven events, by hand", trace=traces.BY_HAND),
        case("two events, the first of them late", trace=traces.FIRST_LATE),
        case("two events, nearly alike", trace=traces.NEARLY_ALIKE),
        random_case("a program that waits", traces.drawn_trace, waits=True),
        random_case("a program that is slow to ask", traces.drawn_trace, waits=False),
    ],
    domain=random_case("any events", traces.any_events),
    points=2,
    hints=(
        "Every moment until the last event's end is due to one line: the GPU works for it, or the GPU is idle because "
        "of it. Keep one sum for each line, go along the time, and add both.",
        "Sort by start and remember the event before. An event adds end - start to its own line. The gap before it, "
        "start minus the end of the event before (0 for the first), belongs to the line of the event before if that "
        "one waits, else to its own.",
        "for event in sorted(trace, key=lambda event: event['start']):\n"
        "    cause = (the line of the event before, if that one waits, else of this one)\n"
        "    seconds[cause] = seconds.get(cause, 0) + event['start'] - done\n"
        "    ... the same for the event's own line and its work\n"
        "    done = event['end']\n"
        "line = max(seconds, key=seconds.get)",
    ),
    mistakes=traces.TRACE_MISTAKES,
    compare=traces.same_line,
)

repaired_step = Spec(
    reference=repairs.repaired,
    numbers={"times": repairs.AT_LEAST},
    cases=[
        case("six small maps, on the CPU", **repairs.SMALL),
        gpu_case(
            f"192 maps on the simulated GPU, without transfer and wait, {repairs.AT_LEAST} times as fast",
            **repairs.LARGE,
        ),
    ],
    domain=random_case("any maps, on the CPU", repairs.any_maps),
    points=4,
    hints=(
        "Profile before you change anything: profile.statements(received.step, maps, weight) names the line. Then ask "
        "of that line: how many launches is this, how many numbers, what dtype, and does anything wait or leave the "
        "GPU?",
        "A loop over maps or channels becomes one operation on the whole array, (N, C, 5, 5): a reduction over several "
        "axes at once with keepdims=True, or a slice such as y[::3]. A constant is made on the GPU, once, in float32. "
        "And where two arrays of indices are meant as pairs, both are named.",
        "The same repair in another program: y is (n, m), and each row is divided by its largest value. As it came:\n"
        "    for i in range(n):\n"
        "        y[i] = y[i] / float(y[i].max())\n"
        "n launches of each kind, and n waits. Repaired, two launches and no wait:\n"
        "    y = y / y.max(axis=1, keepdims=True)\n"
        "Which axes does your line keep? Change that line alone, and profile again.",
    ),
    compare=repairs.same_and_faster,
    call=repairs.traced_call,
)


Bound = tuple[float, str]
Kernels = Sequence[tuple[float, ...]]  # (flops, bytes) of each
Sums = dict[str, float]

LIMITS = "memory", "arithmetic"


def bound(
    kernels: Kernels, peak: float, bandwidth: float, launch: float, *, slower: Function = max, together: Function = max
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


BOUND_MISTAKES = (
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


WRONG_LIMITS: dict[str, Callable[..., str]] = {
    "that is what sets the longest kernel: add up the seconds of all": lambda kernels, peak, bandwidth, launch: bound(
        [max(kernels, key=lambda kernel: bound([kernel], peak, bandwidth, 0)[0])], peak, bandwidth, 0
    )[1],
    "all flops and all bytes were added up first: a kernel that waits for memory leaves its arithmetic idle. Sort the "
    "kernels, then add up the seconds of each sort": lambda kernels, launch, **gpu: _longest(
        _sums([tuple(map(sum, zip(*kernels, strict=True)))], **gpu)
    ),
    "the launches have to be longer than memory and arithmetic together": lambda kernels, launch, **gpu: _longest(
        {**_sums(kernels, **gpu), "launches": len(kernels) * launch}
    ),
    "count the seconds of the kernels, not the kernels": lambda kernels, launch, **gpu: LIMITS[
        sum(_longest(_sums([kernel], **gpu)) == "memory" for kernel in kernels) <= len(kernels) / 2
    ],
}
"""What gives a wrong limit beside the right seconds, where launches do not set the pace; by what is said then."""


def same_bound(got: Any, expected: Bound, inputs: Inputs) -> Mismatch | None:
    """Judge whether the seconds and what sets them are right; the first usual mistake is named."""
    if lines := no_pair(got, f"such as ({expected[0]:.4g}, {expected[1]!r})", str):
        return Mismatch(lines)
    if found := first_mismatch([("seconds", got[0], expected[0])], 1e-6):
        known = [m.says for m in BOUND_MISTAKES if mismatch(got[0], m.of(bound)(**inputs)[0], 1e-6) is None]
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


def _any_step(rng: np.random.Generator) -> Inputs:
    """Draw a step of 1 to 12 kernels (flops, bytes), as many bound by one as by the other, and a GPU and its host."""

    def about(low: float, high: float) -> float:
        return float(f"{10 ** rng.uniform(low, high):.3g}")

    peak, bandwidth = about(12, 14), about(11, 12.6)
    seconds = 10 ** rng.uniform(-6, -3.5, (edge_size(rng, 12), 2))
    kernels = [(float(peak * computing), float(bandwidth * moving)) for computing, moving in seconds]
    return {"kernels": kernels, "peak": peak, "bandwidth": bandwidth, "launch": about(-6.5, -3.8)}


GPU = {"peak": 8e12, "bandwidth": 288e9}
BY_HAND = {"peak": 1.0, "bandwidth": 2.0}

roofline_bound = Spec(
    reference=bound,
    cases=[
        case("an addition of 12 MB and a product", kernels=[(1e6, 12e6), (2e9, 12e6)], **GPU, launch=20e-6),
        case(
            "a product of 10 s, and a copy of 5 s that has no flops", kernels=[(10, 18), (0, 10)], **BY_HAND, launch=0.1
        ),
        case(
            "five kernels of 10, 6, 6, 2 and 2 s, and 5 s for a launch",
            kernels=[(10, 2), (5, 12), (5, 12), (1, 4), (2, 1)],
            **BY_HAND,
            launch=5.0,
        ),
        case("25 small kernels", kernels=[(1e4, 8e4)] * 25, **GPU, launch=20e-6),
        case("three additions and a product", kernels=[(2e9, 12e6)] + [(1e6, 12e6)] * 3, **GPU, launch=20e-6),
    ],
    domain=random_case("any step", _any_step),
    points=2,
    hints=(
        "Memory and arithmetic work side by side in each kernel, and the host hands out kernel after kernel meanwhile. "
        "Bound each kernel by the slower of its two; then compare the sum of these with what the host needs.",
        "A kernel lasts at least nbytes / bandwidth and at least flops / peak seconds: the longer one holds, and "
        "names what limits it. Keep a sum for each of the two limits. The host needs len(kernels) * launch.",
        "seconds = {'memory': 0, 'arithmetic': 0}\n"
        "for flops, nbytes in kernels:\n"
        "    (add the longer time to the sum of its limit)\n"
        "work, host = sum(seconds.values()), len(kernels) * launch\n"
        "if host > work:\n"
        "    return host, 'launches'\n"
        "return work, (the limit with most seconds)",
    ),
    mistakes=BOUND_MISTAKES,
    compare=same_bound,
)
