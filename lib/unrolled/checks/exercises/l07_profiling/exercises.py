"""Lesson 07: timing layers on a device, reading traces, repairing a planted bottleneck, and the roofline."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.exercises.l07_profiling import repairs, toy_device, traces
from unrolled.checks.exercises.l07_profiling.toy_device import on_toy
from unrolled.checks.mistakes import given, result
from unrolled.checks.spec import Inputs, Spec, case, gpu_case, random_case

Bound = tuple[float, str]

TWO_LAYERS = [(0.001, 0.002), (0.003, 0.006)]

time_layers = Spec(
    reference=toy_device.timed,
    cases=[
        random_case("two layers on a CPU: 1 and 3 ms forward, 2 and 6 ms backward", on_toy(False, TWO_LAYERS)),
        random_case("the same on a GPU, which works on while the host goes ahead", on_toy(True, TWO_LAYERS)),
        random_case("a GPU that is still busy when you begin", on_toy(True, TWO_LAYERS, waiting=0.005)),
        random_case("as many layers as come", on_toy(True, waiting=0.002)),
    ],
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
        case("six events, by hand", trace=traces.BY_HAND),
        random_case("one stream, six lines", lambda rng: traces.drawn_trace(rng, 1)),
        random_case("two streams side by side", lambda rng: traces.drawn_trace(rng, 2)),
    ],
    points=2,
    hints=(
        "Keep one sum for each line of the program. Go through the events once and add each to the sum of its line.",
        "A dictionary from line to seconds; an event adds end - start. What it waited in the queue, issued to start, "
        "is no work. At the end, the line whose sum is largest.",
        "seconds = {}\n"
        "for event in trace:\n"
        "    line = event['line']\n"
        "    seconds[line] = seconds.get(line, 0) + (how long this event worked)\n"
        "line = max(seconds, key=seconds.get)\n"
        "return line, seconds[line]",
    ),
    mistakes=traces.TRACE_MISTAKES,
    compare=traces.same_line,
)

repaired_step = Spec(
    reference=repairs.repaired,
    cases=[
        case("six small maps, on the CPU", **repairs.SMALL),
        gpu_case("192 maps on the simulated GPU, without transfer and wait, 5 times as fast", **repairs.LARGE),
    ],
    points=4,
    hints=(
        "Profile before you change anything: profile.statements(mine.step, maps, weight) names the line. Then ask of "
        "that line: how many launches is this, how many bytes, what dtype, and does anything wait or leave the GPU?",
        "A loop over maps or channels becomes one operation on the whole array: x.mean(axis=(0, 2, 3), keepdims=True) "
        "is (1, C, 1, 1), x[1::2] are all mirrored maps, xp.arange makes a constant where it is needed. An array that "
        "pairs n rows with n places wants both named: rows[xp.arange(len(rows)), places].",
        "middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)\n"
        "x = images * middle * middle[:, None]\n"
        "x[1::2] = x[1::2, :, :, ::-1].copy()\n"
        "x = x - x.mean(axis=(0, 2, 3), keepdims=True)\n"
        "x = x / x.std(axis=(0, 2, 3), keepdims=True)\n"
        "Everything in float32; the rest of the step stands in your source.",
    ),
    compare=repairs.same_and_faster,
    call=repairs.traced_call,
)


def _bound(flops: float, nbytes: float, peak: float, bandwidth: float) -> Bound:
    """Return (flop/s that can be reached, what limits them): the roofline of Williams, Waterman and Patterson, 2009."""
    from_memory = flops / nbytes * bandwidth
    return (float(peak), "arithmetic") if from_memory >= peak else (float(from_memory), "memory")


BOUND_MISTAKES = (
    result(
        "this is the higher of the two ceilings: the lower one holds",
        lambda y, flops, nbytes, peak, bandwidth: (max(peak, flops / nbytes * bandwidth), y[1]),
    ),
    given(
        "the intensity is flops divided by bytes, not the other way round",
        flops=lambda nbytes: nbytes,
        nbytes=lambda flops: flops,
    ),
    result("these are seconds; flop/s are asked", lambda y, flops: (flops / y[0], y[1])),
    result("this is the intensity; times the bandwidth it is flop/s", lambda y, flops, nbytes: (flops / nbytes, y[1])),
)


def _same_bound(got: Any, expected: Bound, inputs: Inputs) -> Mismatch | None:
    """Judge whether flop/s and what limits them are right; the first usual mistake is told."""
    if lines := traces.no_pair(got, f"such as {expected}", str):
        return Mismatch(lines)
    if found := mismatch(got[0], expected[0], 1e-6):
        known = [m.says for m in BOUND_MISTAKES if mismatch(got[0], m.of(_bound)(**inputs)[0], 1e-6) is None]
        return Mismatch(("flop/s: " + found.lines[0], *found.lines[1:], *known[:1]))
    if got[1] != expected[1]:
        return Mismatch((f"flop/s are right, but what limits them is {expected[1]!r}, not {got[1]!r:.40}",))
    return None


def _any_kernel(rng: np.random.Generator) -> Inputs:
    """Draw a kernel (flop, bytes) and a GPU (flop/s, bytes/s), by their powers of ten."""
    powers = {"flops": (6, 10), "nbytes": (5, 8), "peak": (12, 14), "bandwidth": (11, 12.6)}
    return {name: float(10 ** rng.uniform(*between)) for name, between in powers.items()}


roofline_bound = Spec(
    reference=_bound,
    cases=[
        case("an addition: 1 flop for 12 bytes", flops=1e6, nbytes=12e6, peak=8e12, bandwidth=288e9),
        case("a large product", flops=2e9, nbytes=12e6, peak=8e12, bandwidth=288e9),
        random_case("any kernel", _any_kernel),
        random_case("another", _any_kernel),
    ],
    points=2,
    hints=(
        "Two ceilings: the arithmetic can do `peak` flop/s at most, and memory brings `bandwidth` bytes a second, each "
        "of which is good for a certain number of flops.",
        "The intensity is flops / nbytes, in flops a byte. Times the bandwidth, in bytes a second, that is flop/s. The "
        "lower of the two ceilings holds.",
        "from_memory = (flops a byte) * bandwidth\n"
        "if from_memory < peak:\n"
        '    return from_memory, "memory"\n'
        'return peak, "arithmetic"',
    ),
    mistakes=BOUND_MISTAKES,
    compare=_same_bound,
)
