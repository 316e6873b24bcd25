"""Lesson 07: timing layers on a device, reading traces, repairing a planted bottleneck, and the roofline."""

from __future__ import annotations

import numpy as np

from unrolled.checks.exercises.l07_profiling import bounds, repairs, toy_device, traces
from unrolled.checks.exercises.l07_profiling.toy_device import on_toy
from unrolled.checks.spec import Inputs, Spec, case, gpu_case, random_case

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
        case("seven events, by hand", trace=traces.BY_HAND),
        case("two events, the first of them late", trace=traces.FIRST_LATE),
        random_case("a program that waits", traces.drawn_trace(waits=True)),
        random_case("a program that is slow to ask", traces.drawn_trace(waits=False)),
    ],
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


def _any_step(rng: np.random.Generator) -> Inputs:
    """Draw a step of 4 to 12 kernels (flops, bytes), and a GPU and its host, all by their powers of ten."""

    def about(low: float, high: float) -> float:
        return float(f"{10 ** rng.uniform(low, high):.3g}")

    kernels = [(about(6, 10), about(5, 8)) for _ in range(int(rng.integers(4, 13)))]
    return {"kernels": kernels, "peak": about(12, 14), "bandwidth": about(11, 12.6), "launch": about(-5.5, -3.5)}


GPU = {"peak": 8e12, "bandwidth": 288e9}
BY_HAND = {"peak": 1.0, "bandwidth": 2.0}

roofline_bound = Spec(
    reference=bounds.bound,
    cases=[
        case("an addition of 12 MB and a product", kernels=[(1e6, 12e6), (2e9, 12e6)], **GPU, launch=20e-6),
        case(
            "a product of 10 s, and a copy of 5 s that has no flops", kernels=[(10, 18), (0, 10)], **BY_HAND, launch=0.1
        ),
        case(
            "four kernels of 10, 6, 6 and 2 s, and 5 s for a launch",
            kernels=[(10, 2), (5, 12), (5, 12), (1, 4)],
            **BY_HAND,
            launch=5.0,
        ),
        case("25 small kernels", kernels=[(1e4, 8e4)] * 25, **GPU, launch=20e-6),
        case("three additions and a product", kernels=[(2e9, 12e6)] + [(1e6, 12e6)] * 3, **GPU, launch=20e-6),
        random_case("any step", _any_step),
        random_case("another", _any_step),
    ],
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
    mistakes=bounds.MISTAKES,
    compare=bounds.same_bound,
)
